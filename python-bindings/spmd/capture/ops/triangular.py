"""Triangular systems (torch.linalg.solve_triangular) as products of matrices: linear attention by gated delta rules solves
one for each chunk of a sequence.

The inverse of [[P, 0], [C, Q]] is [[P⁻¹, 0], [-Q⁻¹ C P⁻¹, Q⁻¹]]: blocks of the diagonal are inverted, of size 1 first, then
of twice the size, all of one size at once. Rounding is that of an inverse: what is off grows with the condition of the
matrix, as for substitution (Higham, Accuracy and Stability of Numerical Algorithms, 14.2), and not bit by bit the same.
"""
from __future__ import annotations

import torch


def solve_triangular(A: torch.Tensor, B: torch.Tensor, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> torch.Tensor:
    """X of A X = B, or of X A = B without `left`; of A only the triangle counts that `upper` says, and with `unitriangular`
    not its diagonal."""
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    if upper:
        return (_inverse(A.flip(-2, -1), unitriangular) @ B.flip(-2)).flip(-2)
    return _inverse(A, unitriangular) @ B


def _inverse(lower: torch.Tensor, unitriangular: bool) -> torch.Tensor:
    rows, batch = lower.shape[-1], lower.shape[:-2]
    size = 1 << max(rows - 1, 0).bit_length()
    if size != rows:  # with ones on the diagonal
        lower = torch.nn.functional.pad(lower, (0, size - rows, 0, size - rows))
        filled = torch.arange(size, device=lower.device) >= rows
        lower = lower + torch.diag_embed(filled.to(lower.dtype))
    diagonal = lower.diagonal(dim1=-2, dim2=-1)
    inverse = (torch.ones_like(diagonal) if unitriangular else diagonal.reciprocal()).reshape(*batch, size, 1, 1)
    step = 1
    while step < size:
        pairs = size // (2 * step)
        blocks = lower.reshape(*batch, pairs, 2 * step, pairs, 2 * step).diagonal(dim1=-4, dim2=-2).movedim(-1, -3)
        first, second = inverse.reshape(*batch, pairs, 2, step, step).unbind(-3)
        below = -(second @ blocks[..., step:, :step] @ first)
        inverse = torch.cat([torch.cat([first, torch.zeros_like(first)], -1), torch.cat([below, second], -1)], -2)
        step *= 2
    return inverse.reshape(*batch, size, size)[..., :rows, :rows]
