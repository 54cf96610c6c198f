"""torch.distributed's DeviceMesh in a step: which ranks there are and how they are arranged is neither a tensor nor a number
that the step computes with. One that a step makes when it first needs it is made once, as in eager, when the step is
captured, and may stay where the step keeps it (host_state.py)."""
from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Callable, Iterator

import torch

from ...torch_api.tracing import DisableTorchFunction, FakeTensor, disable_current_modes, pytree
from ..errors import CaptureError
from ..observe import patches

_MODULE = "torch.distributed.device_mesh"


def is_made_of_meshes(value: Any) -> bool:
    """A mesh, or a dict, list or tuple of some and of nothing else."""
    module = sys.modules.get(_MODULE)
    if module is None:
        return False
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
    return len(entries) > 0 and all(isinstance(entry, module.DeviceMesh) for entry in entries)


@contextlib.contextmanager
def meshes_outside(value_of: Callable[[torch.Tensor], torch.Tensor | None]) -> Iterator[None]:
    """While entered, meshes are made and cut as outside of a trace. `value_of`: what a traced tensor holds, where that
    is known: a mesh is made of the numbers of ranks."""
    def outside(patch: patches.Patch) -> Any:
        method = vars(patch.find_owner())[patch.name]
        is_bound = isinstance(method, (staticmethod, classmethod))
        return type(method)(_outside(method.__func__, value_of)) if is_bound else _outside(method, value_of)

    with patches.replaced({patch: outside(patch) for patch in patches.mesh_methods()}):
        yield


def _outside(function: Callable, value_of: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map_only(FakeTensor, real, (args, kwargs))
        with disable_current_modes(), DisableTorchFunction():
            return function(*args, **kwargs)

    def real(tensor: FakeTensor) -> torch.Tensor:
        value = value_of(tensor)
        if value is None:
            raise CaptureError("the step makes a DeviceMesh from a tensor with data-dependent values\n  hint: make the mesh "
                               "before the first step")
        return value

    return call
