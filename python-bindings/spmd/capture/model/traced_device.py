"""A step for a GPU is traced on the CPU, and no device is recorded.

Autocast for another device would not touch the CPU's fakes: the graph would silently stay in full precision. So entering such a
region is an error, unless it was made with enabled=False. The capture sees how a step makes a region. A decorator was made
before, and PyTorch disables all regions for CUDA where CUDA is missing: the source of the function tells.
"""
from __future__ import annotations

import ast
import contextlib
import inspect
import sys
import textwrap
from typing import Any, Iterator

import torch

from ..observe import patches
from ..observe.dispatch_mode import Handler, OpCall, Phase


class OnTheCpu(Handler):
    """Tensors that an operator makes for a device are made on the CPU."""

    phase = Phase.DEVICE

    def answer(self, call: OpCall) -> Any:
        if call.kwargs and call.kwargs.get("device") is not None:
            call.kwargs = {**call.kwargs, "device": torch.device("cpu")}
        return NotImplemented


@contextlib.contextmanager
def only_autocast_of_the_traced_device() -> Iterator[None]:
    """While entered, torch.autocast for a device other than the CPU raises NotImplementedError."""
    original, original_init = torch.autocast.__enter__, torch.autocast.__init__
    disabled: set[int] = set()  # ids; PyTorch's own flag is also off where the device is missing

    def init(self, device_type, dtype=None, enabled=True, *args, **kwargs):
        original_init(self, device_type, dtype, enabled, *args, **kwargs)
        (disabled.discard if enabled else disabled.add)(id(self))

    def enter(self):
        is_off = id(self) in disabled or _is_disabled_decorator(sys._getframe(1).f_locals.get("func"))
        if self.device != "cpu" and not is_off:
            raise NotImplementedError(f"autocast for {self.device!r} in a captured step")
        return original(self)

    with patches.replaced({patches.AUTOCAST_INIT: init, patches.AUTOCAST_ENTER: enter}):
        yield


def _is_disabled_decorator(function: Any) -> bool:
    """Whether the source of a decorated function says enabled=False of each autocast among its decorators."""
    if not inspect.isfunction(function):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return False
    decorators = getattr(tree.body[0], "decorator_list", [])
    regions = [d for d in decorators if isinstance(d, ast.Call) and ast.unparse(d.func).split(".")[-1] == "autocast"]
    return bool(regions) and all(any(word.arg == "enabled" and ast.unparse(word.value) == "False" for word in region.keywords)
                                 for region in regions)
