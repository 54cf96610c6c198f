"""Attention that also gives the logarithm of each row's sum of exponentials, with the gradients of both results."""
from __future__ import annotations

import torch

from .composites import spelled_out_attention


def with_column_of_logsumexp(grad_out, grad_logsumexp, out, value):
    """`grad_out`, `out` and `value` of an attention whose backward adds the gradient of the logsumexp.

    The gradient of the scores has the term grad_logsumexp x weights. A further column of the output gives the same term: values of
    1, an output of 0, and grad_logsumexp as its gradient. Without a gradient nothing is added.
    """
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    if grad_logsumexp is None:
        return grad_out, out, value
    return (torch.cat([grad_out, grad_logsumexp.unsqueeze(-1).to(out.dtype)], -1),
            torch.cat([out, torch.zeros_like(out[..., :1])], -1), torch.cat([value, torch.ones_like(value[..., :1])], -1))


class AttentionWithLogsumexp(torch.autograd.Function):
    """spmd::sdpa and its backward, with both results."""

    @staticmethod
    def forward(ctx, query, key, value, attn_mask, *options):
        out, logsumexp = torch.ops.spmd.sdpa(query, key, value, attn_mask, *options)
        ctx.save_for_backward(query, key, value, attn_mask, out, logsumexp)
        ctx.options = options
        ctx.set_materialize_grads(False)
        return out, logsumexp

    @staticmethod
    def backward(ctx, grad_out, grad_logsumexp):
        query, key, value, attn_mask, out, logsumexp = ctx.saved_tensors
        grad_out, out, wide = with_column_of_logsumexp(grad_out, grad_logsumexp, out, value)
        extra = (True,) if ctx.needs_input_grad[3] else ()
        grad_query, grad_key, grad_value, grad_mask = torch.ops.spmd.sdpa_backward(
            grad_out, query, key, wide, attn_mask, out, logsumexp, *ctx.options, *extra)
        return grad_query, grad_key, grad_value[..., :value.shape[-1]], grad_mask, None, None, None, None


def attention_with_logsumexp(query, key, value, attn_mask, scale):
    """Attention of 4-dim tensors, where groups of heads of `query` may share one of `key` and `value`; (out, logsumexp). A query
    that sees no key has zeros and -inf."""
    if query.dtype != torch.float64:
        return AttentionWithLogsumexp.apply(query, key, value, attn_mask, 0.0, False, scale, query.shape[1] != key.shape[1])
    out = spelled_out_attention(query, key, value, attn_mask, 0.0, False, scale)
    scores = products(query, key, query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is None:
        return out, scores.logsumexp(-1)
    is_added = attn_mask.dtype != torch.bool
    hidden = attn_mask == float("-inf") if is_added else ~attn_mask
    if is_added:
        scores = scores + attn_mask.masked_fill(hidden, 0)
    logsumexp = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).logsumexp(-1)
    return out, logsumexp.masked_fill(hidden.all(-1), float("-inf"))


def products(query, key, scale):
    """The scores of all heads of `query`, in its type."""
    groups = query.shape[1] // key.shape[1]
    keys = key if groups == 1 else key[:, :, None].expand(-1, -1, groups, -1, -1).flatten(1, 2)
    return query @ keys.mT * scale
