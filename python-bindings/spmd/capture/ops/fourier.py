"""Fourier transforms of a step as matrix products, on pairs of real numbers: of n numbers with n * n coefficients where n is
small or prime, else as transforms of two factors of n with a product by roots of unity between them (Cooley and Tukey).

Angles are whole numbers of n-th parts of a turn, and cosines are computed in float64, so that what a transform loses are
the roundings of its sums.
"""
from __future__ import annotations

import math
from typing import Any, Sequence

import torch

_aten = torch.ops.aten
_DIRECT = 64  # up to this many numbers one product is cheapest
_Parts = tuple[torch.Tensor, torch.Tensor | None]


def _roots(rows: int, columns: int, n: int, sign: int, like: torch.Tensor) -> _Parts:
    """Cosine and sine of sign * row * column n-th parts of a turn."""
    steps = torch.arange(rows, device="cpu").unsqueeze(1) * torch.arange(columns, device="cpu") % n
    angle = steps.to(torch.float64) * (2 * math.pi / n)
    return torch.cos(angle).to(like.dtype), (torch.sin(angle) * sign).to(like.dtype)


def _times(x: _Parts, y: _Parts, product: Any) -> _Parts:
    (a, b), (c, d) = x, y
    if b is None:
        return product(a, c), product(a, d)
    return product(a, c) - product(b, d), product(a, d) + product(b, c)


def _transform(x: _Parts, sign: int) -> _Parts:
    """Of the last dim."""
    n = x[0].shape[-1]
    first = next((f for f in range(math.isqrt(n), 1, -1) if n % f == 0), 1) if n > _DIRECT else 1
    if first == 1:
        return _times(x, _roots(n, n, n, sign, x[0]), torch.matmul)
    second = n // first  # the number t is t1 * second + t2, the frequency k1 + first * k2

    def turned(parts: _Parts) -> _Parts:
        return tuple(part if part is None else part.transpose(-1, -2) for part in parts)

    table: _Parts = tuple(part if part is None else part.reshape(*part.shape[:-1], first, second) for part in x)
    table = turned(_transform(turned(table), sign))  # over t1: [k1, t2]
    table = _transform(_times(table, _roots(first, second, n, sign, x[0]), torch.mul), sign)
    return tuple(part.transpose(-1, -2).reshape(x[0].shape) for part in table)


def _along(x: _Parts, dim: int, sign: int) -> _Parts:
    moved: _Parts = tuple(part if part is None else part.movedim(dim, -1) for part in x)
    return tuple(part.movedim(-1, dim) for part in _transform(moved, sign))


def _scaled(x: _Parts, sizes: Sequence[int], normalization: int) -> _Parts:
    """`normalization`: 0 none, 1 by the root of how many numbers there are, 2 by how many."""
    count = math.prod(sizes)
    factor = (1.0, count**-0.5, 1 / count)[normalization]
    return x if factor == 1 else tuple(part * factor for part in x)


def _parts(pairs: Any) -> _Parts:
    return pairs.tensor.select(-1, 0), pairs.tensor.select(-1, 1)


def _complex_to_complex(func: Any, form: torch.Tensor, x: Any, dims: Sequence[int], normalization: int,
                        forward: bool) -> torch.Tensor:
    parts = _parts(x)
    for dim in dims:
        parts = _along(parts, dim, -1 if forward else 1)
    return torch.stack(_scaled(parts, [form.shape[dim] for dim in dims], normalization), -1)


def _real_to_complex(func: Any, form: torch.Tensor, x: torch.Tensor, dims: Sequence[int], normalization: int,
                     onesided: bool) -> torch.Tensor:
    parts = _along((x, None), dims[-1], -1)
    parts = tuple(part.narrow(dims[-1], 0, form.shape[dims[-1]]) for part in parts)
    for dim in dims[:-1]:
        parts = _along(parts, dim, -1)
    return torch.stack(_scaled(parts, [x.shape[dim] for dim in dims], normalization), -1)


def _complex_to_real(func: Any, form: torch.Tensor, x: Any, dims: Sequence[int], normalization: int, size: int) -> torch.Tensor:
    """The frequencies that are not there are the conjugates of those that are: each counts twice, but for the first, and
    for the last of an even number."""
    parts = _parts(x)
    for dim in dims[:-1]:
        parts = _along(parts, dim, 1)
    last, given = dims[-1], x.tensor.shape[dims[-1] % x.rank]
    once = torch.arange(given, device="cpu")
    twice = torch.where((once == 0) | (once * 2 == size), 1.0, 2.0).to(form.dtype)
    padded = (torch.nn.functional.pad(part.movedim(last, -1) * twice, (0, size - given)) for part in parts)
    real = _transform(tuple(padded), 1)[0].movedim(-1, last)
    return _scaled((real,), [form.shape[dim] for dim in dims], normalization)[0]


RULES = {_aten._fft_c2c.default: _complex_to_complex, _aten._fft_r2c.default: _real_to_complex,
         _aten._fft_c2r.default: _complex_to_real}
