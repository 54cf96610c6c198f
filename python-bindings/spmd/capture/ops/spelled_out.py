"""Operators that are traced as the arithmetic that they are, forward and, by autograd, backward: sampling at the places of a
grid, and the loss of connectionist temporal classification.

What they read is chosen by gather, along dims that no batch is in, so that each rank samples its own rows.
"""
from __future__ import annotations

from typing import Any, Sequence

import torch
from torch.nn import functional

_BILINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1
_IMPOSSIBLE = -1e30  # a logarithm of zero whose differences are numbers


def affine_grid(theta: torch.Tensor, size: Sequence[int], align_corners: bool) -> torch.Tensor:
    if len(size) != 4:
        raise NotImplementedError(f"affine_grid of {len(size)} dims, not of 4 ([batch, channels, height, width])")
    rows, columns = (torch.linspace(-1, 1, n, dtype=theta.dtype) * (1 if align_corners else (n - 1) / n) if n > 1
                     else torch.zeros(n, dtype=theta.dtype) for n in size[2:])
    base = torch.stack(torch.broadcast_tensors(columns, rows[:, None], torch.ones((), dtype=theta.dtype)), -1)
    return (base.flatten(0, 1) @ theta.transpose(1, 2)).unflatten(1, tuple(size[2:]))


def _position(place: torch.Tensor, size: int, padding: int, align_corners: bool) -> torch.Tensor:
    """In pixels, of a place between -1 and 1."""
    at = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
    if padding == _ZEROS:
        return at
    if padding != _BORDER:  # reflection
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        if span == 0:
            return torch.zeros_like(at)
        distance = (at - low).abs()
        flips = (distance / span).floor()
        rest = distance - flips * span
        at = torch.where(flips % 2 == 0, rest, span - rest) + low
    return at.clamp(0, size - 1)


def grid_sample(input: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, align_corners: bool) -> torch.Tensor:
    if mode not in (_BILINEAR, _NEAREST):
        raise NotImplementedError("grid_sample of mode 'bicubic', not 'bilinear' or 'nearest'")
    dtype = input.dtype
    if dtype in (torch.float16, torch.bfloat16):
        input, grid = input.float(), grid.float()
    height, width = input.shape[2:]
    x = _position(grid[..., 0], width, padding, align_corners)
    y = _position(grid[..., 1], height, padding, align_corners)
    pixels = input.flatten(2)

    def pixel(column: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        """[batch, channels, rows of the grid, columns of the grid]; zero where there is none."""
        is_inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        number = row.clamp(0, height - 1).long() * width + column.clamp(0, width - 1).long()
        number = number.flatten(1).unsqueeze(1).expand(-1, pixels.shape[1], -1)
        return pixels.gather(2, number).unflatten(2, column.shape[1:]) * is_inside.unsqueeze(1).to(pixels.dtype)

    if mode == _NEAREST:
        return pixel(x.detach().round(), y.detach().round()).to(dtype)
    left, top = x.detach().floor(), y.detach().floor()
    right_part, lower_part = (x - left).unsqueeze(1), (y - top).unsqueeze(1)
    upper = pixel(left, top) * (1 - right_part) + pixel(left + 1, top) * right_part
    lower = pixel(left, top + 1) * (1 - right_part) + pixel(left + 1, top + 1) * right_part
    return (upper * (1 - lower_part) + lower * lower_part).to(dtype)


def ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: int = 1, zero_infinity: bool = False) -> torch.Tensor:
    """The probability of all ways to say the labels, step by step: each label, with a blank before, between and after."""
    if log_probs.dim() == 2:
        inputs, labels = (torch.as_tensor(lengths).reshape(1) for lengths in (input_lengths, target_lengths))
        loss = ctc_loss(log_probs.unsqueeze(1), targets.reshape(1, -1), inputs, labels, blank, 0, zero_infinity)
        return _reduced(loss, labels, reduction) if reduction else loss[0]
    steps, batch, _ = log_probs.shape
    inputs, lengths = (torch.as_tensor(given).to(torch.int64) for given in (input_lengths, target_lengths))
    if targets.dim() == 1:  # one after the other
        firsts = lengths.cumsum(0) - lengths
        longest = int(lengths.max())
        place = firsts[:, None] + torch.arange(longest)
        targets = targets[place.clamp(max=max(len(targets) - 1, 0))]
    targets = targets.to(torch.int64)
    longest = targets.shape[1]
    targets = torch.where(torch.arange(longest) < lengths[:, None], targets, blank)  # whatever fills them up is no label
    labels = functional.pad(torch.stack([torch.full_like(targets, blank), targets], 2).flatten(1), (0, 1), value=blank)
    # From one label to the next without the blank between, unless both are one.
    skips = functional.pad((labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2]), (2, 0), value=False)[:, :labels.shape[1]]
    emitted = log_probs.transpose(0, 1).gather(2, labels.unsqueeze(1).expand(-1, steps, -1))
    first = torch.where(torch.arange(labels.shape[1]) < 2, emitted[:, 0], _IMPOSSIBLE)
    state = torch.where((torch.arange(labels.shape[1]) < 1) | (lengths[:, None] > 0), first, _IMPOSSIBLE)
    for step in range(1, steps):
        before = functional.pad(state, (2, 0), value=_IMPOSSIBLE)
        ways = torch.stack([state, before[:, 1:-1], torch.where(skips, before[:, :-2], _IMPOSSIBLE)])
        new = torch.logsumexp(ways, 0) + emitted[:, step]
        state = torch.where(step < inputs[:, None], new, state)
    last = (2 * lengths)[:, None]
    ends = torch.cat([state.gather(1, last), torch.where(lengths[:, None] > 0, state.gather(1, (last - 1).clamp(min=0)),
                                                         _IMPOSSIBLE)], 1)
    loss = -torch.logsumexp(ends, 1)
    is_impossible = loss.detach() > -_IMPOSSIBLE / 2
    loss = torch.where(is_impossible, 0.0 if zero_infinity else float("inf"), loss)
    return _reduced(loss, lengths, reduction)


def _reduced(loss: torch.Tensor, lengths: torch.Tensor, reduction: int) -> torch.Tensor:
    """0: none, 1: the mean of losses by label, 2: the sum."""
    if reduction == 1:
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    return loss.sum() if reduction == 2 else loss


SPELLED_OUT = {"affine_grid_generator": affine_grid, "grid_sampler_2d": grid_sample, "ctc_loss.Tensor": ctc_loss,
               "ctc_loss.IntList": ctc_loss}
