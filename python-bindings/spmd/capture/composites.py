"""Attention and dropout as one operator each.

Tracing below autograd dissolves scaled_dot_product_attention and dropout into whatever the device would run. Replaced
above autograd each stays one op forward and one backward, on every device alike: dropout as aten.native_dropout,
attention as

  spmd::sdpa(query, key, value, attn_mask?, dropout_p, is_causal, scale?, enable_gqa) -> (out, logsumexp)
  spmd::sdpa_backward(grad_out, query, key, value, attn_mask?, out, logsumexp, ...) -> (grad_query, grad_key,
      grad_value, grad_mask or None)

query is [B, H, T, D], key and value [B, H or H_kv, S, D]; out is contiguous [B, H, T, D] in query's dtype and
logsumexp is f32 [B, H, T], so that the backward need not repeat the forward. Both have real CPU implementations: a
captured graph can be run and compared with eager, bit by bit. (sdpa_backward's last argument says whether the mask's
gradient is wanted; in a step package the presence of that result says it.)
"""
from __future__ import annotations

import contextlib
import warnings
from typing import Iterator

import torch

aten = torch.ops.aten

_ARGUMENTS = "Tensor query, Tensor key, Tensor value, Tensor? attn_mask"
_SAVED = "Tensor out, Tensor logsumexp"
_OPTIONS = "float dropout_p, bool is_causal, float? scale, bool enable_gqa"
_library = torch.library.Library("spmd", "DEF")
_library.define(f"sdpa({_ARGUMENTS}, {_OPTIONS}) -> (Tensor, Tensor)")
_library.define(f"sdpa_backward(Tensor grad_out, {_ARGUMENTS}, {_SAVED}, {_OPTIONS}, bool mask_gradient=False)"
                " -> (Tensor, Tensor, Tensor, Tensor)")


def _additive(mask: torch.Tensor | None, query: torch.Tensor) -> torch.Tensor | None:
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=query.dtype, device=query.device).masked_fill(~mask, float("-inf"))


def _sdpa_cpu(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    out, logsumexp = aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p, is_causal, attn_mask=_additive(attn_mask, query), scale=scale)
    return out.contiguous(), logsumexp.contiguous()


def _mask_gradient(grad_out, query, key, value, mask, out, logsumexp, is_causal, scale):
    """d loss / d attn_mask: the gradient of the scores, summed over what the mask was broadcast along."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    groups = query.shape[1] // key.shape[1]
    key, value = (t.repeat_interleave(groups, 1) if groups > 1 else t for t in (key, value))
    scores = query @ key.transpose(-2, -1) * scale + mask
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not(), float("-inf"))
    weights = (scores - logsumexp.unsqueeze(-1)).exp()
    grad_scores = weights * (grad_out @ value.transpose(-2, -1) - (grad_out * out).sum(-1, keepdim=True))
    return grad_scores.sum_to_size(mask.shape)


def _sdpa_backward_cpu(grad_out, query, key, value, attn_mask, out, logsumexp, dropout_p, is_causal, scale, enable_gqa,
                       mask_gradient=False):
    grads = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask=_additive(attn_mask, query),
        scale=scale)
    grad_mask = _mask_gradient(grad_out, query, key, value, attn_mask, out, logsumexp, is_causal, scale) \
        if mask_gradient else None
    return (*(g.clone(memory_format=torch.contiguous_format) for g in grads), grad_mask)


_library.impl("sdpa", _sdpa_cpu, "CPU")
_library.impl("sdpa_backward", _sdpa_backward_cpu, "CPU")


@torch.library.register_fake("spmd::sdpa", lib=_library)
def _sdpa_fake(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    return query.new_empty(query.shape[:-1] + value.shape[-1:]), query.new_empty(query.shape[:-1], dtype=torch.float32)


@torch.library.register_fake("spmd::sdpa_backward", lib=_library)
def _sdpa_backward_fake(grad_out, query, key, value, attn_mask, out, logsumexp, dropout_p, is_causal, scale, enable_gqa,
                        mask_gradient=False):
    grads = tuple(t.new_empty(t.shape) for t in (query, key, value))
    return (*grads, attn_mask.new_empty(attn_mask.shape) if mask_gradient else None)


class Attention(torch.autograd.Function):
    """Joins the two operators; its node's name shows in the provenance of the backward."""

    @staticmethod
    def forward(ctx, query, key, value, attn_mask, *options):
        out, logsumexp = torch.ops.spmd.sdpa(query, key, value, attn_mask, *options)
        ctx.save_for_backward(query, key, value, attn_mask, out, logsumexp)
        ctx.options = options
        return out

    @staticmethod
    def backward(ctx, grad_out):
        mask_gradient = ctx.needs_input_grad[3]
        extra = (True,) if mask_gradient else ()
        grads = torch.ops.spmd.sdpa_backward(grad_out, *ctx.saved_tensors, *ctx.options, *extra)
        return (*grads, None, None, None, None)


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if dropout_p:
        raise NotImplementedError("attention with dropout_p > 0 has no one-op form")
    if query.dim() != 4:
        raise NotImplementedError(f"attention over {query.dim()} dims, not 4 dims ([batch, heads, sequence, head dim])")
    return Attention.apply(query, key, value, attn_mask, float(dropout_p), is_causal, scale, enable_gqa)


def _dropout(input, p, train):
    return aten.native_dropout(input, p, train)[0] if train and p else input


_ONE_OP = {"scaled_dot_product_attention": _attention, "dropout": _dropout}
_AUTOGRAD_KEYS = ("AutogradCPU", "AutogradCUDA", "AutogradMeta", "AutogradPrivateUse1")


@contextlib.contextmanager
def one_op_composites() -> Iterator[None]:
    """While entered, the composites are recorded as one op each, whoever calls them.

    The override sits in the dispatcher, above autograd: it catches direct imports and recomputation alike, and autocast
    has already cast the operands. It is process-wide, hence scoped.
    """
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "overriding a previously registered kernel" is what is meant
            for key in _AUTOGRAD_KEYS:
                for name, function in _ONE_OP.items():
                    library.impl(name, function, key)
        yield
    finally:
        library._destroy()
