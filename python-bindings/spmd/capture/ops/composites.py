"""Attention, dropout and RMS norm as one operator each.

Tracing below autograd dissolves scaled_dot_product_attention, dropout and rms_norm into whatever the device would run.
Replaced above autograd each stays one op forward and one backward, on every device alike: dropout as
aten.native_dropout (which draws.py then writes as arithmetic on a mask), attention as

  spmd::sdpa(query, key, value, attn_mask?, dropout_p, is_causal, scale?, enable_gqa) -> (out, logsumexp)
  spmd::sdpa_backward(grad_out, query, key, value, attn_mask?, out, logsumexp, ...) -> (grad_query, grad_key,
      grad_value, grad_mask or None)

(with dropout_p above 0, and in f64, it is products, a softmax and a dropout instead), and RMS norm as spmd::rms_norm and its
backward, with the schemas of aten::_fused_rms_norm, which is for GPUs only. Products of groups of rows are in
grouped_products.py, and what is no operator at all but arithmetic in spelled_out.py.

query is [B, H, T, D], key and value [B, H or H_kv, S, D]; out is contiguous [B, H, T, D] in query's dtype and
logsumexp is f32 [B, H, T], so that the backward need not repeat the forward. Both have real CPU implementations: a
captured graph can be run and compared with eager, bit by bit. (sdpa_backward's last argument says whether the mask's
gradient is wanted; in a step package the presence of that result says it.)
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch

from ..observe import patches
from .grouped_products import grouped_mm
from .spelled_out import SPELLED_OUT

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


def spelled_out_attention(query, key, value, attn_mask, dropout_p, is_causal, scale):
    """As products: which weights are dropped is drawn per weight, as for any dropout, and the one operator has no f64.
    A query that sees nothing gets zeros, as from scaled_dot_product_attention."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (t[:, :, None].expand(-1, -1, groups, -1, -1).flatten(1, 2) for t in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        rows, columns = (torch.arange(n, device=query.device) for n in scores.shape[-2:])
        causal = columns <= rows[:, None]
        attn_mask = causal if attn_mask is None else attn_mask & causal if attn_mask.dtype == torch.bool else \
            attn_mask.masked_fill(~causal, float("-inf"))
    hidden = None
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        hidden = ~attn_mask
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    elif attn_mask is not None:
        hidden = attn_mask == float("-inf")
        scores = scores + attn_mask.masked_fill(hidden, torch.finfo(scores.dtype).min / 2)
    weights = scores.softmax(-1)
    if hidden is not None:
        weights = weights.masked_fill(hidden, 0.0)
    return torch.dropout(weights, dropout_p, True) @ value


def _broadcast(query, key, value, enable_gqa):
    """All with the batch and the heads of the largest, as scaled_dot_product_attention has them; one head of key and
    value that all heads of query share stays one."""
    shares = not enable_gqa and key.shape[1] == value.shape[1] == 1 < query.shape[1]
    kept = 1 if enable_gqa or shares else 2
    shape = torch.broadcast_shapes(*(t.shape[:kept] for t in (query, key, value)))
    tensors = (t if t.shape[:kept] == shape else t.expand(*shape, *t.shape[kept:]) for t in (query, key, value))
    return *tensors, enable_gqa or shares


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    options = dropout_p, is_causal, scale, enable_gqa
    if not query.dim() == key.dim() == value.dim():  # dims are added in front, as products do
        dims = max(t.dim() for t in (query, key, value))
        query, key, value = (t[(None,) * (dims - t.dim())] for t in (query, key, value))
    if query.dim() == 2:  # [sequence, head dim]
        return _attention(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), attn_mask, *options).squeeze(0)
    if query.dim() == 3:  # [batch, sequence, head dim]: one head
        mask = attn_mask.unsqueeze(1) if attn_mask is not None and attn_mask.dim() == 3 else attn_mask
        return _attention(query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1), mask, *options).squeeze(1)
    if query.dim() > 4:  # [..., heads, sequence, head dim]: the first dims are one batch
        batch = torch.broadcast_shapes(*(t.shape[:-3] for t in (query, key, value)))
        flat = [t.expand(*batch, *t.shape[-3:]).flatten(0, -4) for t in (query, key, value)]
        mask = attn_mask if attn_mask is None or attn_mask.dim() < 4 else \
            attn_mask.expand(*batch, *attn_mask.shape[-3:]).flatten(0, -4)
        return _attention(*flat, mask, *options).unflatten(0, batch)
    query, key, value, enable_gqa = _broadcast(query, key, value, enable_gqa)
    if dropout_p or query.dtype == torch.float64:
        return spelled_out_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
    return Attention.apply(query, key, value, attn_mask, float(dropout_p), is_causal, scale, enable_gqa)


def _dropout(input, p, train):
    return aten.native_dropout(input, p, train)[0] if train and p else input


_NORM = "Tensor input, int[] normalized_shape"
_library.define(f"rms_norm({_NORM}, Tensor? weight, float? eps) -> (Tensor, Tensor)")
_library.define(f"rms_norm_backward(Tensor grad_out, {_NORM}, Tensor rstd, Tensor? weight, bool[2] output_mask)"
                " -> (Tensor, Tensor)")


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """As float32 when it is a half type."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _rms_norm_cpu(input, normalized_shape, weight, eps):
    x = _wide(input)
    dims = tuple(range(-len(normalized_shape), 0))
    rstd = (x.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    out = x * rstd
    return (out if weight is None else out * weight).to(input.dtype), rstd


def _rms_norm_backward_cpu(grad_out, input, normalized_shape, rstd, weight, output_mask):
    rank = len(normalized_shape)
    normalized, grad = _wide(input) * rstd, _wide(grad_out)
    scaled = grad if weight is None else grad * weight
    mean = (scaled * normalized).mean(tuple(range(-rank, 0)), keepdim=True)
    grad_input = ((scaled - normalized * mean) * rstd).to(input.dtype)
    grad_weight = (grad * normalized).flatten(0, -rank - 1).sum(0) if input.dim() > rank else grad * normalized
    return grad_input if output_mask[0] else None, grad_weight.to(weight.dtype) if output_mask[1] else None


_library.impl("rms_norm", _rms_norm_cpu, "CPU")
_library.impl("rms_norm_backward", _rms_norm_backward_cpu, "CPU")


@torch.library.register_fake("spmd::rms_norm", lib=_library)
def _rms_norm_fake(input, normalized_shape, weight, eps):
    statistics = [*input.shape[:-len(normalized_shape)], *[1] * len(normalized_shape)]
    return input.new_empty(input.shape), _wide(input).new_empty(statistics)


@torch.library.register_fake("spmd::rms_norm_backward", lib=_library)
def _rms_norm_backward_fake(grad_out, input, normalized_shape, rstd, weight, output_mask):
    return (input.new_empty(input.shape) if output_mask[0] else None,
            weight.new_empty(weight.shape) if output_mask[1] else None)


def _rms_norm(input, normalized_shape, weight=None, eps=None):
    return _RmsNorm.apply(input, list(normalized_shape), weight, torch.finfo(input.dtype).eps if eps is None else eps)


class _RmsNorm(torch.autograd.Function):
    """Joins the two operators: PyTorch's own are for GPUs only, and dissolve on the CPU."""

    @staticmethod
    def forward(ctx, input, normalized_shape, weight, eps):
        out, rstd = torch.ops.spmd.rms_norm(input, normalized_shape, weight, eps)
        ctx.save_for_backward(input, rstd, weight)
        ctx.normalized_shape = normalized_shape
        return out

    @staticmethod
    def backward(ctx, grad_out):
        input, rstd, weight = ctx.saved_tensors
        mask = [ctx.needs_input_grad[0], weight is not None and ctx.needs_input_grad[2]]
        grad_input, grad_weight = torch.ops.spmd.rms_norm_backward(grad_out, input, ctx.normalized_shape, rstd,
                                                                          weight, mask)
        return grad_input, None, grad_weight, None


_ONE_OP = {"rms_norm": _rms_norm, "scaled_dot_product_attention": _attention, "dropout": _dropout,
           "_grouped_mm": grouped_mm, **SPELLED_OUT}


@contextlib.contextmanager
def one_op_composites() -> Iterator[None]:
    """While entered, the composites are recorded as one op each, whoever calls them.

    The override sits in the dispatcher, above autograd: it catches direct imports and recomputation alike, and autocast
    has already cast the operands. It is process-wide, hence scoped.
    """
    with patches.replaced({patches.ONE_OP: _ONE_OP}):
        yield
