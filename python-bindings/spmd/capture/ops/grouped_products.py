"""Products of groups of rows, each with a matrix of its own (the experts of a mixture), as two operators:

  spmd::grouped_mm(self [S, K], mat2 [G, K, N], groups [S]) -> [S, N]: row s is self[s] times mat2[groups[s]]
  spmd::grouped_outer(self [S, K], other [S, N], groups [S], num_groups) -> [G, K, N]: group g is the sum of the outer
      products of self[s] with other[s] over the rows s that are of it

A row whose number is none of a group gives zeros, and is in no sum. aten::_grouped_mm names groups by where they end,
rows being sorted by them, and knows only bf16 where it is traced; written by the group of each row, rows may come in
any order, so that each rank can keep its own.
"""
from __future__ import annotations

import torch

_library = torch.library.Library("spmd", "FRAGMENT")
_library.define("grouped_mm(Tensor self, Tensor mat2, Tensor groups) -> Tensor")
_library.define("grouped_outer(Tensor self, Tensor other, Tensor groups, int num_groups) -> Tensor")


def _rows_of(groups: torch.Tensor, number: int) -> torch.Tensor:
    return (groups == number).nonzero().squeeze(-1)


def _grouped_mm_cpu(self, mat2, groups):
    out = self.new_zeros(self.shape[0], mat2.shape[2])
    for number, matrix in enumerate(mat2):
        rows = _rows_of(groups, number)
        out[rows] = self[rows] @ matrix
    return out


def _grouped_outer_cpu(self, other, groups, num_groups):
    out = self.new_zeros(num_groups, self.shape[1], other.shape[1])
    for number in range(num_groups):
        rows = _rows_of(groups, number)
        out[number] = self[rows].t() @ other[rows]
    return out


_library.impl("grouped_mm", _grouped_mm_cpu, "CPU")
_library.impl("grouped_outer", _grouped_outer_cpu, "CPU")


@torch.library.register_fake("spmd::grouped_mm", lib=_library)
def _grouped_mm_fake(self, mat2, groups):
    return self.new_empty(self.shape[0], mat2.shape[2])


@torch.library.register_fake("spmd::grouped_outer", lib=_library)
def _grouped_outer_fake(self, other, groups, num_groups):
    return self.new_empty(num_groups, self.shape[1], other.shape[1])


class GroupedMm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, self, mat2, groups):
        ctx.save_for_backward(self, mat2, groups)
        return torch.ops.spmd.grouped_mm(self, mat2, groups)

    @staticmethod
    def backward(ctx, grad):
        self, mat2, groups = ctx.saved_tensors
        grad_self = torch.ops.spmd.grouped_mm(grad, mat2.transpose(1, 2), groups) if ctx.needs_input_grad[0] else None
        grad_mat2 = torch.ops.spmd.grouped_outer(self, grad, groups, mat2.shape[0]) \
            if ctx.needs_input_grad[1] else None
        return grad_self, grad_mat2, None


class _GroupedOuter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, self, other, groups, num_groups):
        ctx.save_for_backward(self, other, groups)
        return torch.ops.spmd.grouped_outer(self, other, groups, num_groups)

    @staticmethod
    def backward(ctx, grad):
        self, other, groups = ctx.saved_tensors
        grad_self = torch.ops.spmd.grouped_mm(other, grad.transpose(1, 2), groups) if ctx.needs_input_grad[0] else None
        grad_other = torch.ops.spmd.grouped_mm(self, grad, groups) if ctx.needs_input_grad[1] else None
        return grad_self, grad_other, None, None


def _groups(ends: torch.Tensor, rows: int) -> torch.Tensor:
    """The group of each row: how many groups end before it or at it."""
    return (ends <= torch.arange(rows, device=ends.device).unsqueeze(-1)).sum(-1)


def grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """aten::_grouped_mm. The dim that groups are of is the rows of `self`, the columns of `mat2`, or, of two matrices,
    what they are multiplied along; without one of these it is a product of batches."""
    if bias is not None or out_dtype not in (None, self.dtype):
        raise NotImplementedError("a grouped product with a bias, or another type of result")
    if self.dtype != mat2.dtype:
        raise RuntimeError(f"a grouped product of {self.dtype} by {mat2.dtype}, which eager PyTorch refuses: cast one")
    if self.dim() == 3 and mat2.dim() == 3:
        return torch.bmm(self, mat2)
    if self.dim() == 2 and mat2.dim() == 3:
        return GroupedMm.apply(self, mat2, _groups(offs, self.shape[0]))
    groups = _groups(offs, mat2.shape[1] if self.dim() == 3 else self.shape[1])
    if self.dim() == 3:
        return GroupedMm.apply(mat2.t(), self.transpose(1, 2), groups).t()
    return _GroupedOuter.apply(self.t(), mat2, groups, offs.shape[0])
