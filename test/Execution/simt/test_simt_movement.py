"""gather_rows, scatter_rows, sort, copy and segmented on GPUs, as ../host/kernels/test_movement.py tests them on CPUs.
Where threads share no sum the bits are the CPU's."""
import numpy as np
import pytest
from kernels import on_gpu

import test_movement as movement


@pytest.fixture
def exactly(monkeypatch):
    on_gpu(monkeypatch, movement, same_bits=True)


@pytest.fixture
def closely(monkeypatch):
    on_gpu(monkeypatch, movement)


@pytest.mark.parametrize("rows, size, ids, id_type",
                         [(5, 3, 4, np.int32), (65, 16, 24, np.int64), (1000, 100, 64, np.int64)])
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
    movement.test_scatter_many(ids, rows, size, spread)


def test_grouped_gemm(exactly):
    movement.test_grouped_gemm(40, 67, 85, 4, False)


def test_grouped_gemm_of_transposed_matrices(closely):
    movement.test_grouped_gemm(5, 3, 7, 2, True)


def test_grouped_outer(exactly):
    movement.test_grouped_outer(40, 67, 85, 4)


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


@pytest.mark.parametrize("position", [0, 3])
def test_segmented_of_many_blocks(exactly, position):
    """Stretches with several accesses in flight, at places that are multiples of an access and not."""
    movement.test_segmented_of_many_blocks(1_200_000, position)


@pytest.mark.parametrize("rank, pieces", [(0, 3), (2, 1), (3, 3)])
def test_segment_norms(closely, rank, pieces):
    movement.test_segment_norms(rank, pieces)


def test_segment_norms_of_long_segments(closely):
    movement.test_segment_norms_of_long_segments(350_000)
