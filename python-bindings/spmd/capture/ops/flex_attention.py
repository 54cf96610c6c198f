"""FlexAttention as the attention operator of composites.py, with a mask that is made of positions.

A `score_mod` that adds to the scores becomes an additive mask (score_functions.py).

flex_attention() checks its arguments and calls a higher-order operator, in whose place `_Operator` stands during a trace. A
`mask_mod` is called once, over all positions at once, as PyTorch's dense formula calls it. Its result is an expression over
positions and captured tensors, which attention kernels compute where the scores are: no plan has a value of queries x keys.

[Note: tables of blocks] A BlockMask also has tables of the blocks that a GPU computes: full blocks, to which `mask_mod` is not
applied, and partial blocks. create_block_mask() makes both tables of `mask_mod` itself, so `mask_mod` says everything. That is
known for what create_block_mask() makes during the trace, and is checked block by block for a BlockMask whose tables are real
tensors. The tables of any other BlockMask are part of its mask, as on a GPU.
"""
from __future__ import annotations

import contextlib
import functools
import math
from typing import Any, Callable, Iterator, NamedTuple

import torch

from ...torch_api import flex_attention as api
from ...torch_api.tracing import FakeTensor, disable_current_modes
from ..errors import error_at, users_frames
from ..observe import patches
from .attention_with_logsumexp import attention_with_logsumexp
from .score_functions import added_to_scores

_MOST_PAIRS = 1 << 22  # pairs of a query and a key that are checked at once


class _Blocks(NamedTuple):
    """What flex_attention() passes of a BlockMask."""

    q_len: int
    kv_len: int
    partial_count: torch.Tensor
    partial_indices: torch.Tensor
    full_count: torch.Tensor | None
    full_indices: torch.Tensor | None
    q_block: int
    kv_block: int
    mask_mod: Callable

    @classmethod
    def of(cls, given: tuple) -> _Blocks:
        return cls(*given[:6], *given[-3:])

    def tables(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        yield self.partial_count, self.partial_indices
        if self.full_count is not None:
            yield self.full_count, self.full_indices


def _listed(count: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Whether a block is among the first `count` of its row of `indices`: [batch, heads, query blocks, key blocks]."""
    places = torch.arange(indices.shape[-1], device=indices.device)
    is_listed = places < count.unsqueeze(-1)
    return ((indices.unsqueeze(-1) == places) & is_listed.unsqueeze(-1)).any(-2)


def _over_blocks(table: torch.Tensor, blocks: _Blocks, q_len: int, kv_len: int) -> torch.Tensor:
    """`table` of blocks as a mask of positions."""
    batch, heads, rows, columns = table.shape
    wide = table[:, :, :, None, :, None].expand(batch, heads, rows, blocks.q_block, columns, blocks.kv_block)
    return wide.reshape(batch, heads, rows * blocks.q_block, columns * blocks.kv_block)[:, :, :q_len, :kv_len]


def _allowed(mask_mod: Callable, batch: int, heads: int, queries: torch.Tensor, kv_len: int) -> torch.Tensor:
    """`mask_mod` at all positions: [batch, heads, queries, keys]."""
    device = queries.device
    positions = torch.arange(batch, device=device), torch.arange(heads, device=device), queries, torch.arange(kv_len, device=device)
    with api.indexing_by_positions():
        mask = api.over_positions(mask_mod, has_score=False)(*positions)
    if mask.dtype != torch.bool:
        raise error_at(users_frames(), f"a mask_mod gives {mask.dtype}, expected torch.bool",
                       "return a comparison, or several joined by & and |")
    return mask


def _changed(score_mod: Callable, scores: torch.Tensor) -> torch.Tensor:
    """`score_mod` of all scores."""
    positions = (torch.arange(size, device=scores.device) for size in scores.shape)
    with api.indexing_by_positions():
        return api.over_positions(score_mod, has_score=True)(scores, *positions)


def _has_all_blocks(blocks: _Blocks) -> bool:
    """Whether tables of real tensors are those of `mask_mod` (see the note)."""
    batch, heads = blocks.partial_count.shape[:2]
    partial, *full = (_listed(*table) for table in blocks.tables())
    columns = partial.shape[-1]
    rows = max(1, _MOST_PAIRS // (batch * heads * blocks.kv_len * blocks.q_block))  # of blocks
    for first in range(0, partial.shape[-2], rows):
        queries = torch.arange(first * blocks.q_block, min((first + rows) * blocks.q_block, blocks.q_len))
        mask = _allowed(blocks.mask_mod, batch, heads, queries, blocks.kv_len)
        pad = (0, columns * blocks.kv_block - blocks.kv_len, 0, -len(queries) % blocks.q_block)
        cut = torch.nn.functional.pad(mask, pad).unflatten(-1, (columns, -1)).unflatten(-3, (-1, blocks.q_block))
        seen = cut.any(-1).any(-2)
        here = slice(first, first + rows)
        covered = partial[:, :, here]
        if full:
            if (full[0][:, :, here] & ~cut.all(-1).all(-2)).any():
                return False
            covered = covered | full[0][:, :, here]
        if (seen & ~covered).any():
            return False
    return True


class _Operator:
    """Stands in the place of the higher-order operator during one trace."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[torch.Tensor, Callable]] = {}  # tables by id
        self._checked: dict[int, tuple[torch.Tensor, Callable, bool]] = {}

    def make_tables(self, make: Callable) -> Callable:
        def made(*args: Any, **kwargs: Any) -> Any:
            result = make(*args, **kwargs)
            self._made[id(result.kv_indices)] = result.kv_indices, result.mask_mod
            return result
        return made

    def _says_everything(self, blocks: _Blocks) -> bool:
        key = id(blocks.partial_indices)
        if key in self._made and self._made[key][1] is blocks.mask_mod:
            return True
        if any(isinstance(t, FakeTensor) for table in blocks.tables() for t in table):
            return False
        if key not in self._checked or self._checked[key][1] is not blocks.mask_mod:
            with disable_current_modes():
                try:
                    holds = _has_all_blocks(blocks)
                except Exception:  # mask_mod reads tensors of the step, which have no values
                    holds = False
            self._checked[key] = blocks.partial_indices, blocks.mask_mod, holds
        return self._checked[key][2]

    def _mask(self, blocks: _Blocks, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
        q_len, kv_len = query.shape[-2], key.shape[-2]
        mask = None
        if not api.is_everything(blocks.mask_mod):
            queries = torch.arange(q_len, device=query.device)
            mask = _allowed(blocks.mask_mod, query.shape[0], query.shape[1], queries, kv_len)
        if api.has_no_blocks(blocks.q_block) or self._says_everything(blocks):
            return mask
        partial, *full = (_over_blocks(_listed(*table), blocks, q_len, kv_len) for table in blocks.tables())
        mask = partial if mask is None else partial & mask
        return mask | full[0] if full else mask

    def __call__(self, query, key, value, score_mod, block_mask, scale, kernel_options, score_buffers=(), mask_buffers=()):
        if torch.is_autocast_enabled(query.device.type):
            dtype = torch.get_autocast_dtype(query.device.type)
            query, key, value = (t.to(dtype) for t in (query, key, value))
        if key.shape[0] != query.shape[0]:
            key, value = (t.expand(query.shape[0], *t.shape[1:]) for t in (key, value))
        mask = self._mask(_Blocks.of(block_mask), query, key)
        added = None if api.is_identity(score_mod) else added_to_scores(
            functools.partial(_changed, score_mod), (*query.shape[:-1], key.shape[-2]), query)
        if added is not None:
            mask = added if mask is None else torch.where(mask, added, float("-inf"))
        out, logsumexp = attention_with_logsumexp(query, key, value, mask, scale)
        return out, logsumexp / math.log(2), query.new_empty(0)  # statistics are in powers of two


@contextlib.contextmanager
def flex_attention_in_graph() -> Iterator[None]:
    """While entered, flex_attention() is traced as attention, with gradients on every device."""
    if not api.is_flex_attention_loaded():
        yield
        return
    operator = _Operator()
    with patches.replaced({patches.FLEX_VALIDATE_DEVICE: lambda *tensors: None, patches.FLEX_CALLS_OPERATOR: True,
                           patches.FLEX_OPERATOR: operator,
                           patches.FLEX_MAKE_TABLES: operator.make_tables(patches.FLEX_MAKE_TABLES.value())}):
        yield
