"""DistributedDataParallel.no_sync() in a step, or around a call of it: it says when gradients are reduced, which changes no
number. A compiled step reduces them in each backward, which is told."""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch
from torch.nn.parallel import DistributedDataParallel

from ...remarks import remark
from ..observe import patches


def _tell() -> None:
    remark("no_sync() does not postpone the reduction of gradients here: each backward reduces a unit's gradients once "
           "and adds them to the rank's part; the sums are the same")


def tell_if_within(model: torch.nn.Module) -> None:
    """Tells of a call that is made within no_sync()."""
    if any(isinstance(module, DistributedDataParallel) and not module.require_backward_grad_sync
           for module in model.modules()):
        _tell()


@contextlib.contextmanager
def told_of_no_sync() -> Iterator[None]:
    """While entered, a step that is traced is told of what its no_sync() does not do."""
    original = DistributedDataParallel.no_sync

    def no_sync(self: DistributedDataParallel):
        _tell()
        return original(self)

    with patches.replaced({patches.NO_SYNC: no_sync}):
        yield
