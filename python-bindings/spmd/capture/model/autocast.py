"""Autocast under capture: a step is traced on CPU fakes, which autocast for another device would not touch.

The graph would silently stay in full precision, so entering such a region is an error, unless it was made with
enabled=False in the step.
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch

from ..observe import patches


@contextlib.contextmanager
def only_autocast_of_the_traced_device() -> Iterator[None]:
    """While entered, torch.autocast for a device other than the CPU raises NotImplementedError."""
    original, original_init = torch.autocast.__enter__, torch.autocast.__init__
    disabled: set[int] = set()  # ids; PyTorch's own flag is also off where the device is missing

    def init(self, device_type, dtype=None, enabled=True, *args, **kwargs):
        original_init(self, device_type, dtype, enabled, *args, **kwargs)
        (disabled.discard if enabled else disabled.add)(id(self))

    def enter(self):
        if self.device != "cpu" and id(self) not in disabled:
            raise NotImplementedError(f"autocast for {self.device!r} in a captured step")
        return original(self)

    with patches.replaced({patches.AUTOCAST_INIT: init, patches.AUTOCAST_ENTER: enter}):
        yield
