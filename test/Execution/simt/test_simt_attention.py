"""kernel.attention and its backward on GPUs, as ../host/kernels/test_attention.py tests them on CPUs."""
import pytest
from kernels import on_gpu

import test_attention as attention


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    on_gpu(monkeypatch, attention)


@pytest.mark.parametrize("case", [
    (2, 3, 3, 8, 8, 4, 4, True),
    (1, 4, 2, 100, 70, 20, 24, False),
    (1, 1, 1, 70, 140, 16, 80, True),
    (1, 2, 1, 1, 57, 48, 50, False),
    (11, 12, 12, 40, 40, 8, 8, True),       # heads enough for tiles of 64 rows
    (1, 1, 1, 20, 20, 360, 360, True),      # so wide that keys and values take turns in one tile
    (1, 1, 1, 20, 20, 16, 900, False),      # and P and dS in another
])
@pytest.mark.sample(2)
def test_attention(case):
    attention.run_case(case)


def test_additive_mask():
    attention.test_additive_mask((1, 2, 1, 40, 70, 20, 24, False))


def test_bool_mask():
    attention.test_bool_mask((1, 2, 1, 40, 70, 20, 24, False))


@pytest.mark.parametrize("shape", [(1, 1), ("b", "h"), (1, "h")])
@pytest.mark.sample(2)
def test_mask_gradient(shape):
    attention.test_mask_gradient((2, 4, 2, 20, 35, 12, 8, False), shape)


@pytest.mark.parametrize("low, high", [(-3, 0), (-300, -40), (5, 29), (-1000, 7)])
@pytest.mark.sample(2)
def test_window(low, high):
    attention.test_window(low, high, (60, 70, 8, 8))


def test_padding_and_documents():
    attention.test_padding_and_documents()


@pytest.mark.parametrize("case", [(2, 3, 3, 8, 8, 4, 4, True), (1, 4, 2, 100, 70, 20, 24, False)])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.sample(2)
def test_narrow(case, dtype):
    attention.run_case(case, dtype=dtype)


def test_packed():
    attention.test_packed()


def test_row_that_sees_nothing():
    attention.test_row_that_sees_nothing()


# On tensor cores P and dS are rounded before they are multiplied with.
WARP_CASES = [
    (2, 3, 3, 8, 8, 8, 8, True),
    (1, 4, 2, 100, 70, 24, 40, False),      # columns up to a multiple of 16
    (1, 2, 1, 70, 140, 64, 64, True),
    (1, 2, 1, 1, 57, 48, 48, False),
    (2, 12, 4, 130, 130, 16, 16, True),     # heads enough for tiles of 64 rows; groups of query heads
    (1, 1, 1, 20, 40, 64, 256, True),
    (1, 1, 1, 20, 20, 360, 360, True),      # too wide: fused multiply-adds
]


@pytest.mark.parametrize("case", WARP_CASES)
@pytest.mark.sample(2)
def test_tensor_cores(case):
    attention.run_case(case, dtype="bf16", weight_roundings=1)


@pytest.mark.parametrize("case", WARP_CASES[1:3])
def test_tensor_cores_in_f16(case):
    attention.run_case(case, dtype="f16", weight_roundings=1)


@pytest.mark.parametrize("shape", [(1, 1), (2, 4), (1, 4)])
@pytest.mark.sample(2)
def test_mask_gradient_on_tensor_cores(shape):
    mask = attention.rand(*shape, 40, 70, seed=5)
    mask[:, :, :, 3] = -attention.np.inf
    plane = 40 * 70
    use = attention.tensor_mask(mask, batch=shape[1] * plane if shape[0] > 1 else 0, head=plane if shape[1] > 1 else 0)
    attention.run_case((2, 4, 2, 40, 70, 16, 24, False), mask, use, [mask], mask_grad=shape, dtype="bf16",
                       weight_roundings=1)


@pytest.mark.parametrize("low, high", [(-3, 0), (-300, -40), (5, 29)])
@pytest.mark.sample(2)
def test_window_on_tensor_cores(low, high):
    mask = attention.tril(60, 70, high) & ~attention.tril(60, 70, low - 1)
    attention.run_case((1, 2, 1, 60, 70, 16, 24, False), mask, attention.WINDOW.format(low=low, high=high), dtype="bf16",
                       weight_roundings=1)
