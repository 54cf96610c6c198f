"""gather_rows, scatter_rows, sort, copy and segmented on GPUs, as ../host/kernels/test_movement.py tests them on CPUs.
Where threads share no sum the bits are the CPU's."""
import numpy as np
import pytest
from kernels import on_gpu
from simt import host

import test_movement as movement


@pytest.fixture
def exactly(monkeypatch):
    on_gpu(monkeypatch, movement, same_bits=True)


@pytest.fixture
def closely(monkeypatch):
    on_gpu(monkeypatch, movement)


@pytest.mark.parametrize("rows, size, ids, id_type", [(5, 3, 4, np.int32), (65, 16, 24, np.int64), (1000, 100, 64, np.int64)])
def test_gather_rows(exactly, rows, size, ids, id_type):
    movement.test_gather_rows(rows, size, ids, id_type)


def test_gather_rows_of_several_tables(exactly):
    movement.test_gather_rows_of_several_tables()


@pytest.mark.parametrize("rows, size, ids, into", [(5, 3, 7, True), (65, 16, 200, False), (1000, 100, 64, True)])
def test_scatter_rows(exactly, rows, size, ids, into):
    movement.test_scatter_rows(rows, size, ids, into)


@pytest.mark.parametrize("kind, batch, rows, size", [("set", 3, 5, 20), ("mul", 70, 2, 3), ("max", 1, 6, 1)])
def test_scatter_rows_kinds(exactly, kind, batch, rows, size):
    movement.test_scatter_rows_kinds(kind, batch, rows, size)


@pytest.mark.parametrize("ids, rows, size, spread", [
    (5000, 40, 12, 0.02),   # nearly all ids are one: more hits than a block's list holds
    (5000, 300, 12, 1.0),   # more ids than one turn looks at
    (300, 3, 5000, 0.5),    # rows longer than a block is wide
    (50, 3000, 1, 1.0),     # more rows in a block than threads
])
def test_scatter_many(exactly, ids, rows, size, spread):
    rng = np.random.default_rng([ids, rows, size])
    src, start = (rng.standard_normal((n, size)).astype(np.float32) for n in (ids, rows))
    index = np.where(rng.random(ids) < spread, rng.integers(0, rows, ids), 1)
    want = start.copy()
    for i, row in enumerate(index):
        want[row] += src[i]
    types = ", ".join(map(host.tensor, (src, index, start)))
    ir = f"""func.func @f(%g: {host.tensor(src)}, %i: {host.tensor(index)}, %s: {host.tensor(start)}) -> {host.tensor(start)} {{
      %0 = kernel.scatter_rows <add> %g, %i into %s rows {rows} : ({types}) -> {host.tensor(start)}
      return %0 : {host.tensor(start)}
    }}"""
    movement.check(ir, [src, index, start], [(want, np.float32)], min(64, rows), tolerance=0, alias=[(2, 0)])


@pytest.mark.parametrize("rows, size, dtype, descending", [
    (3, 1, np.int64, False), (300, 2, np.float32, True), (5, 33, np.float32, False), (2, 500, np.int64, True)])
def test_sort(exactly, rows, size, dtype, descending):
    movement.test_sort(rows, size, dtype, descending)


def test_sort_of_rows_too_long_for_shared_memory(exactly):
    movement.test_sort(1, 30000, np.float32, False)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_puts_nan_after_infinity(exactly, descending):
    movement.test_sort_puts_nan_after_infinity(descending)


@pytest.mark.parametrize("rows", [6, 50])
def test_copy(exactly, rows):
    movement.test_copy(rows)


def test_copy_flat(exactly):
    movement.test_copy_flat()


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_segmented(exactly, rank):
    movement.test_segmented(rank)


STARTS, ENDS = [0, 20000, 20480, 1_100_000], [19999, 20450, 1_099_001, 1_500_000]


@pytest.mark.parametrize("position", [0, 3])
def test_segmented_of_many_blocks(exactly, position):
    """Stretches with several accesses in flight, at places that are multiples of an access and not."""
    chunk = 1_200_000
    p, g = (movement.rand(chunk, seed=i) for i in range(2))
    place = np.arange(chunk) + position
    want = np.zeros(chunk, np.float32)
    for factor, (start, end) in enumerate(zip(STARTS, ENDS)):
        inside = (place >= start) & (place < end)
        want[inside] = p[inside] * np.float32(factor + 1) + g[inside]
    t = host.tensor(p)
    ir = f"""func.func @f(%p: {t}, %g: {t}) -> {t} {{
      %0 = kernel.segmented chunk {chunk} position () -> ({position}) segments {STARTS} to {ENDS}
          elements(%a = %p : {t}, %b = %g : {t}) outs({t}) {{
        %f = kernel.segment_constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : f32
        %x = arith.mulf %a, %f : f32
        %y = arith.addf %x, %b : f32
        kernel.yield %y : f32
      }}
      return %0 : {t}
    }}"""
    movement.check(ir, [p, g], [(want, np.float32)], chunk, tolerance=0, alias=[(0, 0)])


@pytest.mark.parametrize("rank, pieces", [(0, 3), (2, 1), (3, 3)])
def test_segment_norms(closely, rank, pieces):
    movement.test_segment_norms(rank, pieces)


def test_segment_norms_of_long_segments(closely):
    starts, ends = [0, 1003, 1100, 300_000], [1001, 1100, 290_002, 350_000]
    chunk, pieces = 350_000, 2
    g = movement.rand(chunk)
    want = np.zeros((4, pieces))
    for s, (low, high) in enumerate(zip(starts, ends)):
        for piece in range(pieces):
            part = g[low + (high - low) * piece // pieces:low + (high - low) * (piece + 1) // pieces]
            want[s, piece] = (part.astype(np.float64) ** 2).sum()
    out = host.tensor(want.astype(np.float32))
    ir = f"""func.func @f(%g: {host.tensor(g)}) -> {out} {{
      %0 = kernel.segmented chunk {chunk} position () -> (0) segments {starts} to {ends} pieces {pieces}
          elements(%a = %g : {host.tensor(g)}) outs({out}) {{
        %q = arith.mulf %a, %a : f32
        %s = kernel.reduce <add> %q over [0] : f32
        kernel.yield %s : f32
      }}
      return %0 : {out}
    }}"""
    movement.check(ir, [g], [(want, np.float32)], 4 * pieces)
