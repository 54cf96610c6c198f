"""Tensors whose values the ranks hold, for those who must have them here first; live_state.py takes them away."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator

import torch

if TYPE_CHECKING:
    from .capture.optimizer.optimizers import Optimizers
    from .training.live_state import Slot


def fetch(model: torch.nn.Module, optimizers: Optimizers) -> None:
    """Brings everything of a model and its optimizers here, and what else a compiled step trains with them."""
    for slot in slots((*model.parameters(), *model.buffers(), *(state for _, state in optimizers.states))):
        slot.owner.fetch_all()


def fetch_tensors(tensors: Iterable[torch.Tensor]) -> None:
    """Brings tensors here, whichever compiled step has them."""
    for slot in slots(tensors):
        slot.fetch()


def slots(values: Any) -> Iterator[Slot]:
    """The slots of the tensors that are away; another thread may bring one here at any time."""
    for value in values:
        if isinstance(value, torch.Tensor):
            slot = getattr(value, "_spmd_slot", None)
            if slot is not None:
                yield slot
        elif isinstance(value, (list, tuple)):
            yield from slots(value)
        elif isinstance(value, dict):
            yield from slots(value.values())
