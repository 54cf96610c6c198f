"""Autocast under capture: a step is traced on CPU fakes, which autocast for another device would not touch.

The graph would silently stay in full precision, so entering such a region is an error.
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch


@contextlib.contextmanager
def only_autocast_of_the_traced_device() -> Iterator[None]:
    """While entered, torch.autocast for a device other than the CPU raises NotImplementedError."""
    original = torch.autocast.__enter__

    def enter(self):
        if self.device != "cpu":
            raise NotImplementedError(f"autocast for {self.device!r} in a captured step")
        return original(self)

    torch.autocast.__enter__ = enter
    try:
        yield
    finally:
        torch.autocast.__enter__ = original
