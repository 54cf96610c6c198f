"""The emulator runs kernels written by hand: what they compute, and that every check finds what it is for."""
import re

import numpy as np
import pytest
from simt import CheckFailed, compile_emulated, emulate, read

RNG = np.random.default_rng(1)


def reduce_arrays():
    return [RNG.standard_normal((5, 300), np.float32)], [((5,), np.float32)]


def test_block_reduction():
    inputs, outputs = reduce_arrays()
    library = compile_emulated(read("reduce.mlir"))
    (got,) = emulate(library, inputs, outputs, 5)
    assert np.allclose(got, inputs[0].astype(np.float64).sum(1), rtol=1e-5)
    counts = library.counts()
    assert (counts.kernels, counts.launches, counts.blocks, counts.threads) == (1, 1, 5, 5 * 64)


def test_elementwise_in_place():
    x = RNG.standard_normal(266, np.float32)
    library = compile_emulated(read("elementwise.mlir"))
    for options in ({}, {"alias": [(0, 0)]}):
        (got,) = emulate(library, [x], [((266,), np.float32)], 3, coords=(2,), **options)
        assert np.allclose(got, np.exp(x.astype(np.float64)) * 3 + 2, rtol=1e-6)


def test_transpose():
    x = RNG.standard_normal((64, 32), np.float32)
    (got,) = emulate(compile_emulated(read("transpose.mlir")), [x], [((32, 64), np.float32)], 2)
    assert (got == x.T).all()
