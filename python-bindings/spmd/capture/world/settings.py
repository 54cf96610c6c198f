"""What a step leaves in modules that is no traced value: train() or eval(), which parameters want a gradient, and flags,
texts and shapes in attributes (`self.initialized = True`). What a program begins with is in its key, or read
(captured_constants.py), so each of its calls leaves the same, which is set after the call, as eager would.
"""
from __future__ import annotations

import enum
import types
import weakref
from typing import Any, Callable, Iterable, Mapping, NamedTuple

import torch
from torch.nn.parallel import DistributedDataParallel

from ...torch_api.modules import parameters_of
from ..errors import CaptureError

_FLAGS = (bool, str, bytes, types.NoneType, enum.Enum, torch.Size, torch.dtype, torch.device)
UNSET = object()


class Setting(NamedTuple):
    """`value`: UNSET of an attribute that the step deletes. `name`: of an attribute of the module with the path `module`, or of the
    parameter whose `requires_grad` is set. `found`: the module that the trace has met, for one that the step only sets."""

    module: str
    name: str
    value: Any
    is_parameter: bool
    found: weakref.ref[torch.nn.Module]


def is_flag(value: Any) -> bool:
    """What no arithmetic is done with: a number may be a count, which no call could set (leaked_values.py)."""
    return isinstance(value, _FLAGS) or type(value) is tuple and all(isinstance(v, (int, float)) or is_flag(v) for v in value)


def settings_of(modules: Iterable[tuple[str, torch.nn.Module]], before: Mapping[int, Mapping[str, Any]],
                wanted: Mapping[int, bool]) -> list[Setting]:
    """What a traced step has set. `before`: by the ids of modules, their attributes; `wanted`: by the ids of parameters, whether
    each wanted a gradient."""
    found: list[Setting] = []
    for path, module in modules:
        if isinstance(module, DistributedDataParallel):  # when it reduces gradients, which is not how a compiled step does
            continue
        known = before.get(id(module), {})
        for name, value in vars(module).items():
            old = known.get(name, UNSET)
            if value is not old and is_flag(value) and (type(value) is not type(old) or value != old):
                found.append(Setting(path, name, value, False, weakref.ref(module)))
        found += (Setting(path, name, UNSET, False, weakref.ref(module)) for name in known if name not in vars(module))
        for name, parameter in parameters_of(module).items():
            if parameter is not None and wanted.get(id(parameter), parameter.requires_grad) != parameter.requires_grad:
                found.append(Setting(path, name, parameter.requires_grad, True, weakref.ref(module)))
    return found


def put(settings: Iterable[Setting], modules: Mapping[str, torch.nn.Module]) -> None:
    """After a call of the step, whose modules are these."""
    for one in settings:
        module = modules.get(one.module) or one.found()
        if module is None:
            continue
        if one.is_parameter:
            parameters_of(module)[one.name].requires_grad_(one.value)
        elif one.value is UNSET:
            vars(module).pop(one.name, None)
        else:
            vars(module)[one.name] = one.value


def check_unread(settings: Iterable[Setting], what_changes: Callable[[], tuple[str, Any] | None]) -> None:
    """Raises CaptureError where the step reads something that it sets itself: of a captured package each step begins with what
    it was. `what_changes`: of what the step reads, the path of one that is another now, and what it is."""
    flags = [(vars(module), one) for one in settings if not one.is_parameter and (module := one.found()) is not None]
    saved = [(attributes, one.name, attributes.get(one.name, UNSET)) for attributes, one in flags]
    try:
        for attributes, one in flags:
            attributes[one.name] = one.value
        found = what_changes()
    finally:
        for attributes, name, value in saved:
            if value is UNSET:
                del attributes[name]
            else:
                attributes[name] = value
    if found is not None:
        raise CaptureError(f"the step reads {found[0]!r} and leaves {found[1]!r} there, which the later steps of an artifact would not "
                           "see\n  hint: capture a step that finds it so already (take one eager step first), or make it a buffer of "
                           "the module (register_buffer)")
