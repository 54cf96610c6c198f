"""Attention over packed documents of any length, torch.nn.attention.varlen.varlen_attn(), as the attention operator.

The documents of a row of tokens are given by where they end (`cu_seq`). The number of tokens is part of the program, the ends are
values: a pair of tokens counts if as many documents end before the one as before the other.
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch

from ...torch_api import flex_attention as api
from ..errors import error_at, users_frames
from ..observe import patches
from .attention_with_logsumexp import attention_with_logsumexp


def _documents(ends: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The number of each token's document; that of `ends` for tokens after the last end."""
    return (ends <= tokens.unsqueeze(-1)).sum(-1)


def _mask(query_ends: torch.Tensor, key_ends: torch.Tensor, window: tuple[int, int], q_len: int, kv_len: int) -> torch.Tensor:
    """Which keys a query attends to. The last query of a document is at the place of its last key."""
    device = query_ends.device
    queries, keys = torch.arange(q_len, device=device), torch.arange(kv_len, device=device)
    of_query, of_key = _documents(query_ends, queries), _documents(key_ends, keys)
    count = query_ends.shape[0]
    places = queries
    if query_ends is not key_ends:
        document = of_query.clamp(max=count - 1)
        places = queries + (key_ends[document] - query_ends[document]).to(queries.dtype)
    mask = torch.where(of_query < count, of_query, -1).unsqueeze(-1) == of_key
    left, right = window
    if right >= 0:
        mask = mask & (keys <= places.unsqueeze(-1) + right)
    if left >= 0:
        mask = mask & (keys >= places.unsqueeze(-1) - left)
    return mask


def _varlen_attention(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None, window_size=None,
                      enable_gqa=False, seqused_k=None, block_table=None, num_splits=None):
    for name, given in (("seqused_k", seqused_k), ("block_table", block_table)):
        if given is not None:
            raise error_at(users_frames(), f"varlen_attn with {name} is not supported: it has no gradients", f"leave {name} out")
    if cu_seq_k is None:
        raise error_at(users_frames(), "varlen_attn with cu_seq_k=None is not supported", "pass cu_seq_q as cu_seq_k, too")
    query_ends = cu_seq_q[1:]
    key_ends = query_ends if cu_seq_k is cu_seq_q else cu_seq_k[1:]
    window = tuple(window_size or (-1, -1))
    if is_causal and window[1] < 0:  # PyTorch 2.10 says it by this argument, later releases by a window
        window = (window[0], 0)
    mask = _mask(query_ends, key_ends, window, query.shape[0], key.shape[0])
    heads = (t.transpose(0, 1).unsqueeze(0) for t in (query, key, value))
    out, logsumexp = attention_with_logsumexp(*heads, mask, scale)
    return out.squeeze(0).transpose(0, 1), logsumexp.squeeze(0), query.new_empty(0)


@contextlib.contextmanager
def varlen_attention_in_graph() -> Iterator[None]:
    """While entered, varlen_attn() is traced as attention."""
    if not api.is_varlen_attention_loaded():
        yield
        return
    with patches.replaced({patches.VARLEN_ATTENTION: {api.VARLEN_OPERATOR: _varlen_attention}}):
        yield
