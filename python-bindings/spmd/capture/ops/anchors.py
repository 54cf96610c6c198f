"""Places with names in a step, which passes over the partitioned program find (docs/passes.md).

    spmd::anchor(input, name) -> Tensor

gives its input. In the graph it is one node, and in backward another, of the gradient: "name.backward".
"""
from __future__ import annotations

import torch

from ...torch_api.tracing import FakeTensor

_library = torch.library.Library("spmd", "FRAGMENT")
_library.define("anchor(Tensor self, str name) -> Tensor")
_library.impl("anchor", lambda self, name: self.clone(), "CompositeExplicitAutograd")


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor: torch.Tensor, name: str) -> torch.Tensor:
        ctx.name = name
        return torch.ops.spmd.anchor(tensor, name)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return torch.ops.spmd.anchor(gradient, f"{ctx.name}.backward"), None


def anchor(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """The tensor itself, at a place that passes find: `program.find("aten.anchor", name=name)`, and
    `name=f"{name}.backward"` for its gradient. In eager, and where no pass looks for it, it does nothing.

    Raises:
      TypeError: for what is no tensor, or no name.
    """
    if not isinstance(tensor, torch.Tensor) or not isinstance(name, str) or not name:
        raise TypeError(f"anchor({type(tensor).__name__}, {name!r}): expected a tensor and a name")
    return _Anchor.apply(tensor, name) if isinstance(tensor, FakeTensor) else tensor
