"""kernel.uniform against numpy: the same bits at every width, on every CPU, for big indices and seeds."""
import os
import sys

import numpy as np
import pytest
from harness import check, tensor

sys.path.insert(0, os.path.join(os.environ["SPMD_SOURCE"], "python-bindings"))
from spmd import philox  # noqa: E402


@pytest.mark.parametrize("n", [1, 16, 100])
@pytest.mark.parametrize("seed, step, base, stream, word", [
    (0, 0, 0, 0, 0), (5, 1, 0, 2, 3), (2**53 - 1, 2**40 + 3, 2**35, 7, 1), (-1, 2, 2**32 - 50, 2**20, 2)])
def test_uniform(n, seed, step, base, stream, word):
    seeds, steps = np.array(seed, np.int64), np.array(step, np.int64)
    ir = f"""func.func @f(%x0: tensor<i64>, %x1: tensor<i64>) -> tensor<{n}xf32> {{
      %r = kernel.cluster dims [{n}] parallel 1
        ins(%s = %x0 at (d0) -> (0) : tensor<i64>, %t = %x1 at (d0) -> (0) : tensor<i64>)
        outs(at (d0) -> (d0) : tensor<{n}xf32>) {{
          %d = kernel.index 0
          %i = arith.index_cast %d : index to i64
          %b = arith.constant {base} : i64
          %e = arith.addi %i, %b : i64
          %u = kernel.uniform %s, %t, %e stream {stream} word {word}
          kernel.yield %u : f32
        }}
      return %r : tensor<{n}xf32>
    }}"""
    want = philox.uniform(seed, step, np.arange(base, base + n), stream, word)
    check(ir, [seeds, steps], [(want, np.float32)], n, tolerance=0)


def test_known_answers():
    """The vectors of Random123's own test suite."""
    def hexes(*given):
        return [f"{int(w):08x}" for w in philox.words(*given)]
    assert hexes(0, 0, np.array(0), 0) == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert hexes(2**64 - 1, 2**32 - 1, np.array(2**64 - 1, np.uint64), 2**32 - 1) == [
        "408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    assert hexes(0x299F31D0A4093822, 0x03707344, np.array(0x85A308D3243F6A88, np.uint64), 0x13198A2E) == [
        "d16cfe09", "94fdcceb", "5001e420", "24126ea1"]
