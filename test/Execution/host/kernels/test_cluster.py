"""kernel.cluster against numpy: every skeleton, ragged sizes, every CPU, any cut, in place."""
import numpy as np
import pytest
from harness import check, tensor


def rand(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def func(inputs, outputs, cluster):
    """A function around one cluster. Operands are %x0, %x1, ..."""
    args = ", ".join(f"%x{i}: {tensor(a)}" for i, a in enumerate(inputs))
    types = ", ".join(outputs)
    results = ", ".join(f"%r#{i}" for i in range(len(outputs)))
    return f"func.func @f({args}) -> ({types}) {{\n%r:{len(outputs)} = {cluster}\nreturn {results} : {types}\n}}"


@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 1000])
def test_elementwise(n):
    x, y = rand(n), rand(n, seed=1)
    ir = func([x, y], [tensor(x)], f"""kernel.cluster dims [{n}] parallel 1
      ins(%a = %x0 at (d0) -> (d0) : {tensor(x)}, %b = %x1 at (d0) -> (d0) : {tensor(y)})
      outs(at (d0) -> (d0) : {tensor(x)}) {{
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %p, %a : f32
        %e = math.exp %s : f32
        kernel.yield %e : f32
      }}""")
    p = (x * y).astype(np.float32)
    want = np.exp((p + x).astype(np.float64))
    check(ir, [x, y], [(want, np.float32)], n, alias=[(0, 0), (1, 0)])


@pytest.mark.parametrize("rows,cols", [(1, 1), (3, 5), (7, 16), (5, 100), (64, 65)])
def test_bias_and_comparison(rows, cols):
    """Maps that lack a dim, an i1 result, an index."""
    x, bias = rand(rows, cols), rand(cols, seed=1)
    mask = np.zeros((rows, cols), np.bool_)
    ir = func([x, bias], [tensor(x), tensor(mask)], f"""kernel.cluster dims [{rows}, {cols}] parallel 2
      ins(%a = %x0 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, %b = %x1 at (d0, d1) -> (d1) : {tensor(bias)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, at (d0, d1) -> (d0 * {cols} + d1) : {tensor(mask)}) {{
        %s = arith.addf %a, %b : f32
        %i = kernel.index 1
        %k = arith.index_cast %i : index to i32
        %f = arith.sitofp %k : i32 to f32
        %t = arith.addf %s, %f : f32
        %c = arith.cmpf ogt, %t, %a : f32
        kernel.yield %t, %c : f32, i1
      }}""")
    t = x + bias + np.arange(cols, dtype=np.float32)
    check(ir, [x, bias], [(t.astype(np.float64), np.float32), (t > x, np.bool_)], rows * cols, alias=[(0, 0)])


@pytest.mark.parametrize("rows,cols", [(3, 5), (7, 16), (64, 65)])
@pytest.mark.parametrize("dim", [0, 1])
def test_position_where_loops_could_be_one(rows, cols, dim):
    """Nothing but the position tells rows and columns apart."""
    x = rand(rows, cols)
    ir = func([x], [tensor(x)], f"""kernel.cluster dims [{rows}, {cols}] parallel 2
      ins(%a = %x0 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}) {{
        %i = kernel.index {dim}
        %k = arith.index_cast %i : index to i32
        %f = arith.sitofp %k : i32 to f32
        %t = arith.addf %a, %f : f32
        kernel.yield %t : f32
      }}""")
    want = x + np.indices(x.shape)[dim].astype(np.float32)
    check(ir, [x], [(want.astype(np.float64), np.float32)], rows * cols, alias=[(0, 0)])


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sge", "ugt"])
@pytest.mark.parametrize("integer", ["i64", "i32"])
def test_position_against_row_value(predicate, integer):
    """Comparisons of the innermost position, also with numbers that are no position."""
    cols = 100
    targets = [0, 15, 16, 63, 64, 96, 99, 100, -1, -100, 2**31 - 1, -2**31]
    if integer == "i64":
        targets += [2**63 - 1, -2**63, 2**32, -2**32 + 5]
    target = np.array(targets, np.int64 if integer == "i64" else np.int32)
    rows, x = len(targets), rand(len(targets), cols)
    ir = func([x, target], [tensor(x), f"tensor<{rows}xf32>"], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, %t = %x1 at (d0, d1) -> (d0) : {tensor(target)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, at (d0, d1) -> (d0) : tensor<{rows}xf32>) {{
        %i = kernel.index 1
        %k = arith.index_cast %i : index to {integer}
        %c = arith.cmpi {predicate}, %k, %t : {integer}
        %z = arith.constant 0.0 : f32
        %s = arith.select %c, %a, %z : f32
        %r = kernel.reduce <add> %s over [1] : f32
        kernel.yield %s, %r : f32, f32
      }}""")
    position = np.arange(cols)[None].astype(target.dtype)
    compare = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sge": np.greater_equal,
               "ugt": lambda a, b: a.view(f"u{a.itemsize}") > b.view(f"u{b.itemsize}")}[predicate]
    want = np.where(compare(position, target[:, None]), x, 0).astype(np.float64)
    check(ir, [x, target], [(want, np.float32), (want.sum(1), np.float32)], rows, alias=[(0, 0)])


def test_statistic_over_operand_of_another():
    """A row's result may lie where another result of the same row still reads."""
    rows, cols = 9, 70
    x, w = rand(rows, cols), rand(rows, seed=1)
    ir = func([x, w], [tensor(w), tensor(w)], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, %b = %x1 at (d0, d1) -> (d0) : {tensor(w)})
      outs(at (d0, d1) -> (d0) : {tensor(w)}, at (d0, d1) -> (d0) : {tensor(w)}) {{
        %r = kernel.reduce <add> %a over [1] : f32
        %p = arith.mulf %r, %b : f32
        kernel.yield %r, %p : f32, f32
      }}""")
    total = x.astype(np.float64).sum(1)
    check(ir, [x, w], [(total, np.float32), (total * w, np.float32)], rows, alias=[(1, 0), (1, 1)])


def test_scalar():
    x = np.float32(2).reshape(())
    ir = func([x], ["tensor<f32>"], """kernel.cluster dims [] parallel 0
      ins(%a = %x0 at () -> (0) : tensor<f32>) outs(at () -> (0) : tensor<f32>) {
        %s = math.sqrt %a : f32
        kernel.yield %s : f32
      }""")
    check(ir, [x], [(np.sqrt(np.float64(2)).reshape(()), np.float32)], 1)


@pytest.mark.parametrize("rows,cols", [(1, 1), (4, 7), (3, 16), (5, 64), (9, 100), (6, 768), (2, 5000), (2, 60000)])
def test_softmax(rows, cols):
    x = rand(rows, cols) * 4
    if cols > 1:
        x[0, 0] = -np.inf
    ir = func([x], [tensor(x)], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}) {{
        %m = kernel.reduce <max> %a over [1] : f32
        %d = arith.subf %a, %m : f32
        %e = math.exp %d : f32
        %s = kernel.reduce <add> %e over [1] : f32
        %r = arith.divf %e, %s : f32
        kernel.yield %r : f32
      }}""")
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    got = check(ir, [x], [(e / e.sum(1, keepdims=True), np.float32)], rows, alias=[(0, 0)])
    assert cols == 1 or got[0][0, 0] == 0


def check_layer_norm(rows, cols, **options):
    x, w, bias = rand(rows, cols) + 3, rand(cols, seed=1), rand(cols, seed=2)
    stat = tensor(np.zeros(rows, np.float32))
    ir = func([x, w, bias], [tensor(x), stat, stat], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, %w = %x1 at (d0, d1) -> (d1) : {tensor(w)},
          %b = %x2 at (d0, d1) -> (d1) : {tensor(w)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(x)}, at (d0, d1) -> (d0) : {stat}, at (d0, d1) -> (d0) : {stat}) {{
        %n = arith.constant {1 / cols} : f32
        %eps = arith.constant 1.0e-5 : f32
        %s = kernel.reduce <add> %a over [1] : f32
        %mean = arith.mulf %s, %n : f32
        %d = arith.subf %a, %mean : f32
        %q = arith.mulf %d, %d : f32
        %v = kernel.reduce <add> %q over [1] : f32
        %var = arith.mulf %v, %n : f32
        %ve = arith.addf %var, %eps : f32
        %rstd = math.rsqrt %ve : f32
        %h = arith.mulf %d, %rstd : f32
        %hw = arith.mulf %h, %w : f32
        %y = arith.addf %hw, %b : f32
        kernel.yield %y, %mean, %rstd : f32, f32, f32
      }}""")
    z = x.astype(np.float64)
    mean, rstd = z.mean(1), 1 / np.sqrt(z.var(1) + 1e-5)
    y = (z - mean[:, None]) * rstd[:, None] * w + bias
    check(ir, [x, w, bias], [(y, np.float32), (mean, np.float32), (rstd, np.float32)], rows, alias=[(0, 0)], **options)


@pytest.mark.parametrize("rows,cols", [(4, 12), (5, 100), (6, 768), (2, 60001)])
def test_layer_norm(rows, cols):
    check_layer_norm(rows, cols)


@pytest.mark.parametrize("rows,cols", [(11000, 768), (11000, 769)])
def test_layer_norm_past_the_caches(rows, cols):
    """More than a cache holds: the result is written past it, if its rows begin with a line."""
    check_layer_norm(rows, cols, shifts=[4])


@pytest.mark.parametrize("blocks,rows,cols", [(1, 3, 5), (4, 8, 48), (3, 7, 100), (1, 2, 8200)])
def test_layer_norm_backward(blocks, rows, cols):
    """Row and column reductions in one cluster: dx, and per block the sums for dw and db."""
    g, x, w = rand(blocks * rows, cols), rand(blocks * rows, cols, seed=1), rand(cols, seed=2)
    z = x.astype(np.float64)
    mean, rstd = z.mean(1).astype(np.float32), (1 / np.sqrt(z.var(1) + 1e-5)).astype(np.float32)
    sums = tensor(np.zeros((blocks, cols), np.float32))
    full = f"(d0, d1, d2) -> (d0 * {rows * cols} + d1 * {cols} + d2)"
    row = f"(d0, d1, d2) -> (d0 * {rows} + d1)"
    ir = func([g, x, w, mean, rstd], [tensor(x), sums, sums], f"""kernel.cluster dims [{blocks}, {rows}, {cols}] parallel 1
      ins(%g = %x0 at {full} : {tensor(g)}, %a = %x1 at {full} : {tensor(x)}, %w = %x2 at (d0, d1, d2) -> (d2) : {tensor(w)},
          %m = %x3 at {row} : {tensor(mean)}, %r = %x4 at {row} : {tensor(rstd)})
      outs(at {full} : {tensor(x)}, at (d0, d1, d2) -> (d0 * {cols} + d2) : {sums},
           at (d0, d1, d2) -> (d0 * {cols} + d2) : {sums}) {{
        %n = arith.constant {1 / cols} : f32
        %d = arith.subf %a, %m : f32
        %h = arith.mulf %d, %r : f32
        %gw = arith.mulf %g, %w : f32
        %gwh = arith.mulf %gw, %h : f32
        %gh = arith.mulf %g, %h : f32
        %s1 = kernel.reduce <add> %gw over [2] : f32
        %s2 = kernel.reduce <add> %gwh over [2] : f32
        %c1 = arith.mulf %s1, %n : f32
        %c2 = arith.mulf %s2, %n : f32
        %t = arith.mulf %h, %c2 : f32
        %u = arith.addf %c1, %t : f32
        %v = arith.subf %gw, %u : f32
        %dx = arith.mulf %v, %r : f32
        %dw = kernel.reduce <add> %gh over [1] : f32
        %db = kernel.reduce <add> %g over [1] : f32
        kernel.yield %dx, %dw, %db : f32, f32, f32
      }}""")
    h = (z - mean[:, None]) * rstd[:, None].astype(np.float64)
    gw = g.astype(np.float64) * w
    dx = (gw - gw.mean(1, keepdims=True) - h * (gw * h).mean(1, keepdims=True)) * rstd[:, None]
    cut = lambda a: a.reshape(blocks, rows, cols).sum(1)
    check(ir, [g, x, w, mean, rstd],
          [(dx, np.float32), (cut(g * h), np.float32), (cut(g.astype(np.float64)), np.float32)],
          blocks, alias=[(0, 0), (1, 0)])


@pytest.mark.parametrize("batch,channels,size", [(4, 3, 10), (2, 5, 64), (8, 2, 33)])
def test_batch_norm(batch, channels, size):
    """A reduction over two dims that cannot be merged, then used inside both."""
    x = rand(batch, channels, size) + 1
    n = batch * size
    full = f"(d0, d1, d2) -> (d1 * {channels * size} + d0 * {size} + d2)"
    stat = tensor(np.zeros(channels, np.float32))
    ir = func([x], [tensor(x), stat], f"""kernel.cluster dims [{channels}, {batch}, {size}] parallel 1
      ins(%a = %x0 at {full} : {tensor(x)}) outs(at {full} : {tensor(x)}, at (d0, d1, d2) -> (d0) : {stat}) {{
        %n = arith.constant {1 / n} : f32
        %s = kernel.reduce <add> %a over [1, 2] : f32
        %mean = arith.mulf %s, %n : f32
        %d = arith.subf %a, %mean : f32
        %q = arith.mulf %d, %d : f32
        %v = kernel.reduce <add> %q over [1, 2] : f32
        %var = arith.mulf %v, %n : f32
        %sd = math.sqrt %var : f32
        %y = arith.divf %d, %sd : f32
        kernel.yield %y, %mean : f32, f32
      }}""")
    z = x.astype(np.float64)
    mean = z.mean((0, 2))
    y = (z - mean[:, None]) / np.sqrt(z.var((0, 2)))[:, None]
    check(ir, [x], [(y, np.float32), (mean, np.float32)], channels, alias=[(0, 0)])


@pytest.mark.parametrize("blocks,rows,cols", [(2, 4, 20), (2, 7, 64), (5, 7, 128)])
def test_column_centre_then_rows(blocks, rows, cols):
    """A row reduction made again after a column reduction ended."""
    x = rand(blocks * rows, cols)
    full = f"(d0, d1, d2) -> (d0 * {rows * cols} + d1 * {cols} + d2)"
    ir = func([x], [tensor(x)], f"""kernel.cluster dims [{blocks}, {rows}, {cols}] parallel 1
      ins(%a = %x0 at {full} : {tensor(x)}) outs(at {full} : {tensor(x)}) {{
        %m = kernel.reduce <max> %a over [2] : f32
        %d = arith.subf %a, %m : f32
        %c = kernel.reduce <add> %d over [1] : f32
        %u = arith.subf %d, %c : f32
        %r = kernel.reduce <min> %u over [2] : f32
        %y = arith.addf %u, %r : f32
        kernel.yield %y : f32
      }}""")
    z = x.astype(np.float64).reshape(blocks, rows, cols)
    d = z - z.max(2, keepdims=True)
    u = d - d.sum(1, keepdims=True)
    check(ir, [x], [((u + u.min(2, keepdims=True)).reshape(x.shape), np.float32)], blocks)


@pytest.mark.parametrize("blocks,rows,cols", [(3, 256, 64), (1, 96, 20), (2, 81, 5)])
def test_columns_over_many_rows(blocks, rows, cols):
    """What is made of two sums of few columns: on GPUs threads share columns."""
    x, y = rand(rows, blocks * cols), rand(rows, blocks * cols, seed=1) + 2
    full, column = f"(d0, d1, d2) -> (d0 * {cols} + d1 * {blocks * cols} + d2)", f"(d0, d1, d2) -> (d0 * {cols} + d2)"
    sums = tensor(np.zeros(blocks * cols, np.float32))
    ir = func([x, y], [sums, sums], f"""kernel.cluster dims [{blocks}, {rows}, {cols}] parallel 1
      ins(%a = %x0 at {full} : {tensor(x)}, %b = %x1 at {full} : {tensor(y)})
      outs(at {column} : {sums}, at {column} : {sums}) {{
        %s = kernel.reduce <add> %a over [1] : f32
        %t = kernel.reduce <max> %b over [1] : f32
        %q = arith.divf %s, %t : f32
        kernel.yield %s, %q : f32, f32
      }}""")
    s = x.astype(np.float64).sum(0)
    check(ir, [x, y], [(s, np.float32), (s / y.max(0), np.float32)], blocks)


@pytest.mark.parametrize("n", [3, 64, 1000, 4097])
@pytest.mark.parametrize("dtype,name", [(np.float32, "f32"), (np.float64, "f64"), (np.int64, "i64")])
def test_reduce_all(n, dtype, name):
    x = (rand(4, n) * 100).astype(dtype)
    kind, add = ("f", "addf") if dtype != np.int64 else ("i", "addi")
    ir = func([x], [f"tensor<4x{name}>", f"tensor<4x{name}>"], f"""kernel.cluster dims [4, {n}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * {n} + d1) : {tensor(x)})
      outs(at (d0, d1) -> (d0) : tensor<4x{name}>, at (d0, d1) -> (d0) : tensor<4x{name}>) {{
        %t = arith.{add} %a, %a : {name}
        %s = kernel.reduce <add> %t over [1] : {name}
        %m = kernel.reduce <max> %a over [1] : {name}
        kernel.yield %s, %m : {name}, {name}
      }}""")
    wide = x if dtype == np.int64 else x.astype(np.float64)
    check(ir, [x], [((2 * wide).sum(1), dtype), (wide.max(1), dtype)], 4, tolerance=3e-6)


def test_reduce_bool():
    x = np.random.default_rng(0).random((5, 40)) > 0.97
    ir = func([x], ["tensor<5xi1>"] * 2, f"""kernel.cluster dims [5, 40] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * 40 + d1) : {tensor(x)})
      outs(at (d0, d1) -> (d0) : tensor<5xi1>, at (d0, d1) -> (d0) : tensor<5xi1>) {{
        %any = kernel.reduce <max> %a over [1] : i1
        %all = kernel.reduce <min> %a over [1] : i1
        kernel.yield %any, %all : i1, i1
      }}""")
    check(ir, [x], [(x.any(1), np.bool_), (x.all(1), np.bool_)], 5)


@pytest.mark.parametrize("rows,cols", [(3, 5), (40, 33), (64, 96), (83, 256), (51, 1024)])
def test_transposed_operand(rows, cols):
    x, y = rand(cols, rows), rand(rows, cols, seed=1)
    ir = func([x, y], [tensor(y)], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d1 * {rows} + d0) : {tensor(x)},
          %b = %x1 at (d0, d1) -> (d0 * {cols} + d1) : {tensor(y)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(y)}) {{
        %s = arith.addf %a, %b : f32
        kernel.yield %s : f32
      }}""")
    check(ir, [x, y], [((x.T + y).astype(np.float64), np.float32)], rows)


@pytest.mark.parametrize("rows,cols", [(100, 50), (16, 64), (53, 512)])
def test_two_transposed_operands(rows, cols):
    """Tiles of several operands wait in memory, in blocks of 64 or 32, 16 and 1 rows."""
    x, y = rand(cols, rows), rand(cols, rows, seed=1)
    out = np.zeros((rows, cols), np.float32)
    ir = func([x, y], [tensor(out)], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d1 * {rows} + d0) : {tensor(x)},
          %b = %x1 at (d0, d1) -> (d1 * {rows} + d0) : {tensor(y)})
      outs(at (d0, d1) -> (d0 * {cols} + d1) : {tensor(out)}) {{
        %s = arith.subf %a, %b : f32
        kernel.yield %s : f32
      }}""")
    check(ir, [x, y], [((x.T - y.T).astype(np.float64), np.float32)], rows)


def test_transposed_result():
    x = rand(24, 40)
    out = np.zeros((40, 24), np.float32)
    ir = func([x], [tensor(out)], f"""kernel.cluster dims [24, 40] parallel 1
      ins(%a = %x0 at (d0, d1) -> (d0 * 40 + d1) : {tensor(x)}) outs(at (d0, d1) -> (d1 * 24 + d0) : {tensor(out)}) {{
        kernel.yield %a : f32
      }}""")
    check(ir, [x], [(x.T.astype(np.float64), np.float32)], 24)


@pytest.mark.parametrize("shift", [-3, 0, 5, 40])
def test_guarded(shift):
    """Reads 0 outside of the tensor, with the rank's coordinate in the map."""
    x = rand(64)
    out = np.zeros(32, np.float32)
    ir = func([x], [tensor(out)], f"""kernel.cluster dims [32] parallel 1
      ins(%a = %x0 at (d0)[s0] -> (d0 + s0 * 16 + ({shift})) guarded : {tensor(x)})
      outs(at (d0)[s0] -> (d0) : {tensor(out)}) {{
        %c = kernel.coord 0
        %i = arith.index_cast %c : index to i32
        %f = arith.sitofp %i : i32 to f32
        %s = arith.addf %a, %f : f32
        kernel.yield %s : f32
      }}""")
    for coordinate in (0, 1, 3):
        index = np.arange(32) + 16 * coordinate + shift
        value = np.where((index >= 0) & (index < 64), x[np.clip(index, 0, 63)], 0).astype(np.float64) + coordinate
        check(ir, [x], [(value, np.float32)], 32, coords=(coordinate,))


def test_folded_view():
    """floordiv and mod in a map: heads split out of a row."""
    x = rand(6, 48)
    out = np.zeros((4, 6, 12), np.float32)
    ir = func([x], [tensor(out)], f"""kernel.cluster dims [288] parallel 1
      ins(%a = %x0 at (d0) -> (((d0 floordiv 12) mod 6) * 48 + (d0 floordiv 72) * 12 + d0 mod 12) : {tensor(x)})
      outs(at (d0) -> (d0) : {tensor(out)}) {{
        kernel.yield %a : f32
      }}""")
    check(ir, [x], [(x.reshape(6, 4, 12).transpose(1, 0, 2).astype(np.float64), np.float32)], 288)


@pytest.mark.parametrize("cols", [101, 40004])
def test_cross_entropy(cols):
    """One-hot by comparing an index; the gradient over the logits, and the loss of each row."""
    rows = 6
    x = rand(rows, cols) * 3
    target = np.array([0, cols - 1, 5, -100, 64, 63], np.int64)
    full = f"(d0, d1) -> (d0 * {cols} + d1)"
    ir = func([x, target], [tensor(x), f"tensor<{rows}xf32>"], f"""kernel.cluster dims [{rows}, {cols}] parallel 1
      ins(%a = %x0 at {full} : {tensor(x)}, %t = %x1 at (d0, d1) -> (d0) : {tensor(target)})
      outs(at {full} : {tensor(x)}, at (d0, d1) -> (d0) : tensor<{rows}xf32>) {{
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1.0 : f32
        %ignore = arith.constant -100 : i64
        %m = kernel.reduce <max> %a over [1] : f32
        %d = arith.subf %a, %m : f32
        %e = math.exp %d : f32
        %s = kernel.reduce <add> %e over [1] : f32
        %i = kernel.index 1
        %k = arith.index_cast %i : index to i64
        %hit = arith.cmpi eq, %k, %t : i64
        %pick = arith.select %hit, %d, %zero : f32
        %picked = kernel.reduce <add> %pick over [1] : f32
        %ls = math.log %s : f32
        %loss = arith.subf %ls, %picked : f32
        %valid = arith.cmpi ne, %t, %ignore : i64
        %kept = arith.select %valid, %loss, %zero : f32
        %p = arith.divf %e, %s : f32
        %onehot = arith.select %hit, %one, %zero : f32
        %g = arith.subf %p, %onehot : f32
        %grad = arith.select %valid, %g, %zero : f32
        kernel.yield %grad, %kept : f32, f32
      }}""")
    z = x.astype(np.float64)
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    valid = target >= 0
    onehot = np.zeros_like(p)
    onehot[valid, target[valid]] = 1
    loss = np.where(valid, -np.log(p[np.arange(rows), np.where(valid, target, 0)]), 0)
    check(ir, [x, target], [((p - onehot) * valid[:, None], np.float32), (loss, np.float32)], rows, alias=[(0, 0)])


@pytest.mark.parametrize("batch,rows,cols", [(16, 51, 48), (32, 34, 40), (8, 32, 160)])
def test_transpose_into_rows_far_apart(batch, rows, cols):
    """Rows of the result lie a multiple of 1 or 4 KB apart; blocks of tiles end early."""
    x = rand(batch, cols, rows)
    out = tensor(np.zeros((rows, batch, cols), np.float32))
    ir = func([x], [out], f"""kernel.cluster dims [{batch}, {rows}, {cols}] parallel 2
      ins(%a = %x0 at (d0, d1, d2) -> (d0 * {rows * cols} + d2 * {rows} + d1) : {tensor(x)})
      outs(at (d0, d1, d2) -> (d1 * {batch * cols} + d0 * {cols} + d2) : {out}) {{
        kernel.yield %a : f32
      }}""")
    check(ir, [x], [(x.transpose(2, 0, 1).astype(np.float64), np.float32)], batch * rows, tolerance=0)


@pytest.mark.parametrize("batch,rows,cols", [(2, 40, 33), (3, 16, 16), (1, 100, 50), (2, 5, 64)])
@pytest.mark.parametrize("parallel", [1, 2])
def test_batched_transpose(batch, rows, cols, parallel):
    """Tiles with the tiled dim sequential or cut among trips; a bias along it."""
    x, bias = rand(batch, cols, rows), rand(rows, seed=1)
    out = tensor(np.zeros((batch, rows, cols), np.float32))
    ir = func([x, bias], [out], f"""kernel.cluster dims [{batch}, {rows}, {cols}] parallel {parallel}
      ins(%a = %x0 at (d0, d1, d2) -> (d0 * {rows * cols} + d2 * {rows} + d1) : {tensor(x)},
          %b = %x1 at (d0, d1, d2) -> (d1) : {tensor(bias)})
      outs(at (d0, d1, d2) -> (d0 * {rows * cols} + d1 * {cols} + d2) : {out}) {{
        %s = arith.addf %a, %b : f32
        kernel.yield %s : f32
      }}""")
    want = x.swapaxes(1, 2) + bias[:, None]
    check(ir, [x, bias], [(want.astype(np.float64), np.float32)], batch * (rows if parallel == 2 else 1),
          tolerance=1e-7)
