"""gather_rows, scatter_rows, copy and segmented kernels against numpy."""
import numpy as np
import pytest
from harness import check, compile_kernels, run, runnable_cpus, tensor


def rand(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rows,size,ids", [(5, 3, 4), (65, 16, 24), (1000, 100, 64)])
@pytest.mark.parametrize("id_type", [np.int64, np.int32])
def test_gather_rows(rows, size, ids, id_type):
    table = rand(rows, size)
    index = np.random.default_rng(1).integers(0, rows, ids).astype(id_type)
    index[0], index[1] = -1, rows  # outside: rows of zeros
    out = np.where(((index >= 0) & (index < rows))[:, None], table[np.clip(index, 0, rows - 1)], 0)
    ir = f"""func.func @f(%t: {tensor(table)}, %i: {tensor(index)}) -> {tensor(out)} {{
      %0 = kernel.gather_rows %t, %i : ({tensor(table)}, {tensor(index)}) -> {tensor(out)}
      return %0 : {tensor(out)}
    }}"""
    check(ir, [table, index], [(out.astype(np.float64), np.float32)], ids, tolerance=0)


@pytest.mark.parametrize("rows,size,ids,into",
                         [(5, 3, 7, False), (5, 3, 7, True), (65, 16, 200, False), (65, 16, 200, True),
                          (1000, 100, 64, False), (1000, 100, 64, True),
                          (17000, 512, 20, False)])  # too large for caches
def test_scatter_rows(rows, size, ids, into):
    grad, start = rand(ids, size), rand(rows, size, seed=1)
    index = np.random.default_rng(1).integers(0, rows, ids)
    index[0], index[-1] = -100, rows
    want = start.astype(np.float64) if into else np.zeros((rows, size))
    for i, row in enumerate(index):
        if 0 <= row < rows and row != 2:
            want[row] += grad[i]
    extra = f", %s: {tensor(start)}" if into else ""
    operand, kind = (" into %s", f", {tensor(start)}") if into else ("", "")
    ir = f"""func.func @f(%g: {tensor(grad)}, %i: {tensor(index)}{extra}) -> {tensor(start)} {{
      %0 = kernel.scatter_rows <add> %g, %i{operand} rows {rows} padding_idx 2
          : ({tensor(grad)}, {tensor(index)}{kind}) -> {tensor(start)}
      return %0 : {tensor(start)}
    }}"""
    inputs = [grad, index] + ([start] if into else [])
    check(ir, inputs, [(want, np.float32)], min(64, rows), alias=[(2, 0)] if into else [])


def test_gather_rows_of_several_tables():
    table, index = rand(3, 7, 5), np.random.default_rng(1).integers(0, 7, (3, 4))
    index[1, 2] = 7  # outside: not a row of the next table
    want = np.stack([np.where((i < 7)[:, None], t[np.minimum(i, 6)], 0) for t, i in zip(table, index)])
    ir = f"""func.func @f(%t: {tensor(table)}, %i: {tensor(index)}) -> {tensor(want.astype(np.float32))} {{
      %0 = kernel.gather_rows %t, %i batch 3 rows 7 : ({tensor(table)}, {tensor(index)}) -> {tensor(want.astype(np.float32))}
      return %0 : {tensor(want.astype(np.float32))}
    }}"""
    check(ir, [table, index], [(want.astype(np.float64), np.float32)], 12, tolerance=0)


@pytest.mark.parametrize("kind", ["set", "add", "mul", "max", "min"])
@pytest.mark.parametrize("batch,rows,size", [(1, 6, 1), (3, 5, 20), (70, 2, 3)])
def test_scatter_rows_kinds(kind, batch, rows, size):
    src, start = rand(batch, 9, size), rand(batch, rows, size, seed=1)
    index = np.random.default_rng(1).integers(0, rows, (batch, 9))
    want = start.astype(np.float64)
    combine = {"set": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    for b in range(batch):
        for i, row in enumerate(index[b]):
            want[b, row] = combine(want[b, row], src[b, i])
    types = f"({tensor(src)}, {tensor(index)}, {tensor(start)}) -> {tensor(start)}"
    ir = f"""func.func @f(%g: {tensor(src)}, %i: {tensor(index)}, %s: {tensor(start)}) -> {tensor(start)} {{
      %0 = kernel.scatter_rows <{kind}> %g, %i into %s batch {batch} rows {rows} : {types}
      return %0 : {tensor(start)}
    }}"""
    trips = batch * min(-(-64 // batch), rows)
    check(ir, [src, index, start], [(want, np.float32)], trips, alias=[(2, 0)])


@pytest.mark.parametrize("ids,rows,size,spread", [(5000, 40, 12, 0.02), (300, 3, 5000, 0.5), (50, 3000, 1, 1.0)])
def test_scatter_many(ids, rows, size, spread):
    """Ids of which a part of `spread` is anywhere and all others are 1."""
    rng = np.random.default_rng([ids, rows, size])
    src, start = (rng.standard_normal((n, size)).astype(np.float32) for n in (ids, rows))
    index = np.where(rng.random(ids) < spread, rng.integers(0, rows, ids), 1)
    want = start.copy()
    for i, row in enumerate(index):
        want[row] += src[i]
    types = ", ".join(map(tensor, (src, index, start)))
    ir = f"""func.func @f(%g: {tensor(src)}, %i: {tensor(index)}, %s: {tensor(start)}) -> {tensor(start)} {{
      %0 = kernel.scatter_rows <add> %g, %i into %s rows {rows} : ({types}) -> {tensor(start)}
      return %0 : {tensor(start)}
    }}"""
    check(ir, [src, index, start], [(want, np.float32)], min(64, rows), tolerance=0, alias=[(2, 0)])


def groups_of(rows, count):
    """Groups in any order, some of them without rows, some rows of no group."""
    groups = np.random.default_rng([rows, count]).integers(0, count, rows)
    groups[groups == count // 2] = 0
    groups[0], groups[1] = -1, count
    return groups


@pytest.mark.parametrize("rows,k,n,count", [(5, 3, 7, 2), (40, 67, 85, 4)])
@pytest.mark.parametrize("transposed", [False, True])
def test_grouped_gemm(rows, k, n, count, transposed):
    x, w = rand(rows, k), rand(count, n, k) if transposed else rand(count, k, n)
    groups = groups_of(rows, count)
    want = np.zeros((rows, n))
    for i, group in enumerate(groups):
        if 0 <= group < count:
            want[i] = x[i].astype(np.float64) @ (w[group].T if transposed else w[group])
    out = tensor(want.astype(np.float32))
    ir = f"""func.func @f(%x: {tensor(x)}, %w: {tensor(w)}, %g: {tensor(groups)}) -> {out} {{
      %0 = kernel.grouped_gemm m {rows} n {n} k {k} groups {count}(%g : {tensor(groups)}) a(%x : {tensor(x)})
          b(%w ld {w.shape[2]} stride {k * n} {"trans" if transposed else ""} : {tensor(w)}) -> {out}
      return %0 : {out}
    }}"""
    check(ir, [x, w, groups], [(want, np.float32)], rows)


@pytest.mark.parametrize("rows,m,n,count", [(5, 3, 7, 2), (40, 67, 85, 4)])
def test_grouped_outer(rows, m, n, count):
    x, y, groups = rand(rows, m), rand(rows, n, seed=1), groups_of(rows, count)
    want = np.zeros((count, m, n))
    for i, group in enumerate(groups):
        if 0 <= group < count:
            want[group] += np.outer(x[i].astype(np.float64), y[i])
    out = tensor(want.astype(np.float32))
    ir = f"""func.func @f(%x: {tensor(x)}, %y: {tensor(y)}, %g: {tensor(groups)}) -> {out} {{
      %0 = kernel.grouped_outer rows {rows} m {m} n {n} groups {count}(%g : {tensor(groups)}) a(%x : {tensor(x)})
          b(%y : {tensor(y)}) -> {out}
      return %0 : {out}
    }}"""
    check(ir, [x, y, groups], [(want, np.float32)], count * m)


def sort_ir(x, descending):
    indices = np.zeros(x.shape, np.int64)
    return f"""func.func @f(%x: {tensor(x)}) -> ({tensor(x)}, {tensor(indices)}) {{
      %0, %1 = kernel.sort %x size {x.shape[-1]} {"descending" if descending else ""} : ({tensor(x)}) -> ({tensor(x)}, {tensor(indices)})
      return %0, %1 : {tensor(x)}, {tensor(indices)}
    }}"""


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("rows,size", [(3, 1), (4, 2), (5, 33), (2, 500)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_sort(rows, size, dtype, descending):
    # many equal ones
    x = np.random.default_rng([rows, size]).integers(-size // 3, size // 3 + 1, (rows, size)).astype(dtype)
    indices = np.argsort(-x if descending else x, axis=-1, kind="stable")
    check(sort_ir(x, descending), [x], [(np.take_along_axis(x, indices, -1), dtype), (indices, np.int64)],
          rows, tolerance=0)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_puts_nan_after_infinity(descending):
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, -inf, inf, 1, nan, 0]], np.float32)
    values, indices = run(compile_kernels(sort_ir(x, descending), runnable_cpus()[0]), [x],
                          [(x.shape, np.float32), (x.shape, np.int64)], 1)
    order = [1, 5, 3, 0, 4, 6, 2] if descending else [2, 6, 0, 4, 3, 1, 5]
    assert indices.tolist() == [order] and np.array_equal(values, x[:, order], equal_nan=True)


@pytest.mark.parametrize("rows", [6, 50])
def test_copy(rows):
    """A concatenation of a tensor, a transposed tensor and zeros, along the second dim."""
    a, b = rand(rows, 40), rand(33, rows)
    want = np.concatenate([a, b.T, np.zeros((rows, 3), np.float32)], 1)
    ir = f"""func.func @f(%a: {tensor(a)}, %b: {tensor(b)}) -> {tensor(want)} {{
      %0 = kernel.copy %a, %b pieces [
          #kernel.piece<0 [{rows}, 40] (d0, d1) -> (d0 * 40 + d1) to (d0, d1) -> (d0 * 76 + d1)>,
          #kernel.piece<1 [{rows}, 33] (d0, d1) -> (d1 * {rows} + d0) to (d0, d1) -> (d0 * 76 + d1 + 40)>,
          #kernel.piece<zero [{rows}, 3] to (d0, d1) -> (d0 * 76 + d1 + 73)>]
          : ({tensor(a)}, {tensor(b)}) -> {tensor(want)}
      return %0 : {tensor(want)}
    }}"""
    check(ir, [a, b], [(want.astype(np.float64), np.float32)], 3 * rows, tolerance=0)


def test_copy_flat():
    a = np.random.default_rng(0).integers(0, 1 << 40, 100)
    want = np.concatenate([np.zeros(7, np.int64), a])
    ir = f"""func.func @f(%a: {tensor(a)}) -> {tensor(want)} {{
      %0 = kernel.copy %a pieces [#kernel.piece<0 [100] (d0) -> (d0) to (d0) -> (d0 + 7)>,
                                  #kernel.piece<zero [7] to (d0) -> (d0)>] : ({tensor(a)}) -> {tensor(want)}
      return %0 : {tensor(want)}
    }}"""
    check(ir, [a], [(want, np.int64)], 107)


STARTS, ENDS = [0, 128, 256, 640], [100, 256, 600, 777]


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_segmented(rank):
    """An optimizer-like update: tables and constants per segment, a scalar, zeros between segments."""
    chunk = 200
    p, g = rand(chunk), rand(chunk, seed=1)
    decay, rate = rand(4, seed=2), np.float32(0.5).reshape(())
    factor = [1.0, 2.0, 3.0, 4.0]
    position = np.arange(chunk) + rank * chunk
    segment = np.full(chunk, -1)
    for s, (a, b) in enumerate(zip(STARTS, ENDS)):
        segment[(position >= a) & (position < b)] = s
    kept = segment >= 0
    update = p * decay[segment] * np.array(factor, np.float32)[segment] + g
    want = np.where(kept, p - 0.5 * update, 0)
    ir = f"""func.func @f(%p: {tensor(p)}, %g: {tensor(g)}, %d: {tensor(decay)}, %r: tensor<f32>)
        -> ({tensor(p)}, {tensor(p)}) {{
      %0:2 = kernel.segmented chunk {chunk} position ()[s0] -> (s0 * {chunk}) segments {STARTS} to {ENDS}
          elements(%a = %p : {tensor(p)}, %b = %g : {tensor(g)}) tables(%w = %d : {tensor(decay)})
          scalars(%lr = %r : tensor<f32>) outs({tensor(p)}, {tensor(p)}) {{
        %f = kernel.segment_constant dense<{factor}> : tensor<4xf32> : f32
        %wf = arith.mulf %w, %f : f32
        %t = arith.mulf %a, %wf : f32
        %u = arith.addf %t, %b : f32
        %s = arith.mulf %lr, %u : f32
        %y = arith.subf %a, %s : f32
        kernel.yield %y, %b : f32, f32
      }}
      return %0#0, %0#1 : {tensor(p)}, {tensor(p)}
    }}"""
    results = [(want.astype(np.float64), np.float32), (np.where(kept, g, 0).astype(np.float64), np.float32)]
    check(ir, [p, g, decay, rate], results, chunk, coords=(rank,), alias=[(0, 0), (1, 1)])


@pytest.mark.parametrize("rank", [0, 2, 3])
@pytest.mark.parametrize("pieces", [1, 3])
def test_segment_norms(rank, pieces):
    chunk = 250
    g = rand(chunk)
    want = np.zeros((4, pieces))
    for s, (a, b) in enumerate(zip(STARTS, ENDS)):
        low, high = max(a - rank * chunk, 0), min(b - rank * chunk, chunk)
        length = max(high - low, 0)
        for piece in range(pieces):
            part = g[low + length * piece // pieces:low + length * (piece + 1) // pieces] if length else g[:0]
            want[s, piece] = np.sqrt((part.astype(np.float64) ** 2).sum())
    out = tensor(want.astype(np.float32))
    ir = f"""func.func @f(%g: {tensor(g)}) -> {out} {{
      %0 = kernel.segmented chunk {chunk} position ()[s0] -> (s0 * {chunk}) segments {STARTS} to {ENDS} pieces {pieces}
          elements(%a = %g : {tensor(g)}) outs({out}) {{
        %q = arith.mulf %a, %a : f32
        %s = kernel.reduce <add> %q over [0] : f32
        %n = math.sqrt %s : f32
        kernel.yield %n : f32
      }}
      return %0 : {out}
    }}"""
    check(ir, [g], [(want, np.float32)], 4 * pieces, coords=(rank,))


@pytest.mark.parametrize("chunk,position", [(12_000, 0), (12_000, 3)])
def test_segmented_of_many_blocks(chunk, position):
    """Segments that begin and end anywhere, padding longer than a segment."""
    p, g = rand(chunk), rand(chunk, seed=1)
    part = chunk // 60
    starts, ends = [0, part, part + 480, 55 * part], [part - 1, part + 450, 54 * part - 1, 57 * part + 7]
    place = np.arange(chunk) + position
    want = np.zeros(chunk, np.float32)
    for factor, (start, end) in enumerate(zip(starts, ends)):
        inside = (place >= start) & (place < end)
        want[inside] = p[inside] * np.float32(factor + 1) + g[inside]
    ir = f"""func.func @f(%p: {tensor(p)}, %g: {tensor(p)}) -> {tensor(p)} {{
      %0 = kernel.segmented chunk {chunk} position () -> ({position}) segments {starts} to {ends}
          elements(%a = %p : {tensor(p)}, %b = %g : {tensor(p)}) outs({tensor(p)}) {{
        %f = kernel.segment_constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : f32
        %x = arith.mulf %a, %f : f32
        %y = arith.addf %x, %b : f32
        kernel.yield %y : f32
      }}
      return %0 : {tensor(p)}
    }}"""
    check(ir, [p, g], [(want, np.float32)], chunk, tolerance=0, alias=[(0, 0)])


@pytest.mark.parametrize("chunk", [35_000])
def test_segment_norms_of_long_segments(chunk):
    part, pieces = chunk // 350, 2
    starts, ends = [0, part + 3, 11 * part // 10, 300 * part], [part + 1, 11 * part // 10, 290 * part + 2, 350 * part]
    g = rand(chunk)
    want = np.zeros((4, pieces))
    for s, (low, high) in enumerate(zip(starts, ends)):
        for piece in range(pieces):
            stretch = g[low + (high - low) * piece // pieces:low + (high - low) * (piece + 1) // pieces]
            want[s, piece] = (stretch.astype(np.float64) ** 2).sum()
    out = tensor(want.astype(np.float32))
    ir = f"""func.func @f(%g: {tensor(g)}) -> {out} {{
      %0 = kernel.segmented chunk {chunk} position () -> (0) segments {starts} to {ends} pieces {pieces}
          elements(%a = %g : {tensor(g)}) outs({out}) {{
        %q = arith.mulf %a, %a : f32
        %s = kernel.reduce <add> %q over [0] : f32
        kernel.yield %s : f32
      }}
      return %0 : {out}
    }}"""
    check(ir, [g], [(want, np.float32)], 4 * pieces)
