"""What a step on GPUs gives, as tensors whose values are waited for when somebody looks at them.

The call of a compiled step returns when the step is issued, as one of PyTorch's does. Each tensor that it gives is of the
class that tensors of the model have while the ranks have their values (live_state.py): the first use waits for that step, and
reads it from what the runtime keeps of the last ones. Before that is overwritten, values that somebody may still ask for
are read.
"""
from __future__ import annotations

import threading
import weakref
from typing import Callable

import torch

from ..arrays import to_torch, torch_type
from ..interrupts import uninterrupted
from ..offloaded import set_slot, slot_of
from ..run.runtime import Trainer
from ..run_error import RunError
from .offloaded_class import offloaded_class


class DeferredOutputs:
    """Those of the step that `trainer` issued last. `lose` is told of a failure."""

    def __init__(self, trainer: Trainer, lock: threading.RLock, lose: Callable[[RunError], None]):
        self.trainer, self.lock, self.lose = trainer, lock, lose
        self.number, self._outputs = trainer.issued - 1, [_DeferredOutput(self, n) for n in range(len(trainer.outputs))]
        trainer.read_later(self.fetch_all)

    def tensors(self) -> list[torch.Tensor]:
        """Without values; of the caller's own."""
        return [output.make() for output in self._outputs]

    def fetch_all(self) -> None:
        """Reads those that are still there."""
        for output in self._outputs:
            output.fetch()


class _DeferredOutput:
    """One of them: what its tensor knows of where its value is."""

    is_kept = True
    can_clear = False

    def __init__(self, owner: DeferredOutputs, index: int):
        self.owner, self.index = owner, index
        self._tensor: Callable[[], torch.Tensor | None] = lambda: None

    def make(self) -> torch.Tensor:
        info = self.owner.trainer.outputs[self.index]
        tensor = torch.empty(info.shape, dtype=torch_type(info.dtype), device="cpu")
        self._tensor = weakref.ref(tensor)
        set_slot(tensor, self)
        tensor.__class__ = offloaded_class(torch.Tensor)
        return tensor

    def fetch(self) -> None:
        owner = self.owner
        with owner.lock, uninterrupted():
            tensor = self._tensor()
            if tensor is None or slot_of(tensor) is not self:
                return
            try:
                value = owner.trainer.late_result(self.index, owner.number)
            except RunError as error:
                owner.lose(error)
                raise
            set_slot(tensor, None)
            tensor.__class__ = torch.Tensor
            with torch.no_grad():
                tensor.copy_(to_torch(value, owner.trainer.outputs[self.index].dtype))
