"""Random numbers as a function of the element: Philox4x32-10, as compiled steps draw them.

The key is the seed; the counter is (element index, stream, step). The same function in C++, with the reasons for it, is
include/spmd/Runtime/Core/Philox.h.
"""
from __future__ import annotations

import numpy as np

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_MASK, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def words(seed: int, step: int, index: np.ndarray, stream: int) -> list[np.ndarray]:
    """The four 32-bit words (as uint64) of every element `index` (integers) of draw `stream` in step `step`."""
    index = np.asarray(index).astype(np.uint64)
    seed, step, stream = (int(n) % 2**64 for n in (seed, step, stream))
    c0, c1 = index & _MASK, index >> _HALF
    c2, c3 = (np.full_like(index, n & 0xFFFFFFFF) for n in (stream, step))
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(_ROUNDS):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = ((product1 >> _HALF) ^ c1 ^ np.uint64(key0), product1 & _MASK,
                          (product0 >> _HALF) ^ c3 ^ np.uint64(key1), product0 & _MASK)
        key0, key1 = (key0 + _INCREMENTS[0]) & 0xFFFFFFFF, (key1 + _INCREMENTS[1]) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def uniform(seed: int, step: int, index: np.ndarray, stream: int, word: int = 0) -> np.ndarray:
    """float32 in [0, 1), multiples of 2**-24."""
    return (words(seed, step, index, stream)[word] >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
