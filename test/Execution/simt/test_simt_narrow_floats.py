"""bf16 on GPUs, as ../host/kernels/test_narrow_floats.py tests it on CPUs: the same numbers to the bit."""
import pytest
from kernels import on_gpu

import test_narrow_floats as narrow_floats


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    on_gpu(monkeypatch, narrow_floats)
    monkeypatch.setattr(narrow_floats, "runnable_cpus", lambda: ["any"])


def test_arithmetic():
    narrow_floats.test_arithmetic_rounds_once("bf16")


def test_functions():
    narrow_floats.test_functions_are_those_of_f32("bf16")


def test_roundings_between_ops():
    narrow_floats.test_rounding_stays_between_the_ops_of_a_kernel()


@pytest.mark.parametrize("rows,cols", [(40, 72), (3, 1000), (17, 17)])
def test_row_sums(rows, cols):
    narrow_floats.test_row_sums_of_a_transposed_operand(rows, cols)


def test_copy():
    narrow_floats.test_copy_pads_with_zeros()
