"""SyncBatchNorm, whose own operators are for GPUs only, in the words of a collective and of arithmetic.

PyTorch synchronizes where there is a process group of several ranks and the module trains: then the statistics, and in
backward the sums over rows, are those of all ranks, and the gradients of weight and bias those of a rank's rows. Of
torch/nn/modules/_functions.py (SyncBatchNorm), for ranks that have as many rows each.
"""
from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Iterator

import torch
import torch.distributed as dist

from ...torch_api.modules import BatchNorm, check_sync_batch_norm
from ..observe import patches

_is_one_device: contextvars.ContextVar[bool] = contextvars.ContextVar("is_one_device", default=False)


@contextlib.contextmanager
def one_device() -> Iterator[None]:
    """While entered, a step is that of one device with the whole batch, whatever processes there are: nothing is to be
    synchronized."""
    token = _is_one_device.set(True)
    try:
        yield
    finally:
        _is_one_device.reset(token)


@contextlib.contextmanager
def sync_batch_norms() -> Iterator[None]:
    """While entered, SyncBatchNorm runs on any device."""
    with patches.replaced({patches.SYNC_BATCH_NORM: _forward}):
        yield


def _forward(self: torch.nn.SyncBatchNorm, input: torch.Tensor) -> torch.Tensor:
    if not self.training or _is_one_device.get() or not dist.is_initialized() \
            or dist.get_world_size(self.process_group) == 1:
        return BatchNorm.forward(self, input)
    check_sync_batch_norm(self, input)
    factor: Any = self.momentum
    if self.track_running_stats:
        self.num_batches_tracked.add_(1)
        factor = 1 / self.num_batches_tracked if factor is None else factor
    running = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
    return _SyncBatchNorm.apply(input, self.weight, self.bias, *running, self.eps, factor,
                                self.process_group or dist.group.WORLD)


def _over_channels(input: torch.Tensor) -> tuple[list[int], list[int]]:
    """The dimensions of everything but channels, and the shape of a number for each channel."""
    return [0, *range(2, input.dim())], [1, -1] + [1] * (input.dim() - 2)


class _SyncBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, factor, group):
        (dims, shape), ranks, channels = _over_channels(input), group.size(), input.shape[1]
        wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        mean = wide.mean(dims)
        variance = (wide - mean.view(shape)).square().mean(dims)
        stats = torch.ops._c10d_functional.all_gather_into_tensor(torch.stack([mean, variance]), ranks, group.group_name)
        means, variances = stats.view(ranks, 2, channels).unbind(1)
        mean = means.mean(0)
        variance = variances.mean(0) + (means - mean).square().mean(0)
        count = input.numel() // channels * ranks
        if running_mean is not None:
            for kept, value in ((running_mean, mean), (running_var, variance * (count / max(count - 1, 1)))):
                kept.copy_((1 - factor) * kept + factor * value.to(kept.dtype))
        scale = torch.rsqrt(variance + eps)
        ctx.save_for_backward(input, weight, mean, scale)
        ctx.group, ctx.count = group, count
        out = (wide - mean.view(shape)) * scale.view(shape)
        if weight is not None:
            out = out * weight.view(shape) + bias.view(shape)
        return out.to(input.dtype)

    @staticmethod
    def backward(ctx, grad):
        input, weight, mean, scale = ctx.saved_tensors
        dims, shape = _over_channels(input)
        wide, centered = grad.to(mean.dtype), input.to(mean.dtype) - mean.view(shape)
        sums = torch.stack([wide.sum(dims), (wide * centered).sum(dims)])
        grad_weight = grad_bias = None
        if weight is not None:
            grad_weight, grad_bias = (sums[1] * scale).to(weight.dtype), sums[0].to(weight.dtype)
        total, total_centered = (torch.ops._c10d_functional.all_reduce(sums, "sum", ctx.group.group_name) / ctx.count).unbind()
        grad_input = wide - total.view(shape) - centered * (scale.square() * total_centered).view(shape)
        grad_input = grad_input * (scale if weight is None else scale * weight).view(shape)
        return grad_input.to(input.dtype), grad_weight, grad_bias, None, None, None, None, None
