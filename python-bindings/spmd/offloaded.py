"""Offloaded tensors, whose values the ranks hold, for code that needs the values here first.

training/slots.py offloads tensors. This file has what the capture needs of that: the capture imports nothing of a training.
"""
from __future__ import annotations

from typing import Any, Iterable, Iterator, Protocol

import torch


class Owner(Protocol):
    """What holds many slots: the state of a compiled training."""

    def fetch_all(self) -> None:
        """Brings the values of all slots here."""


class Slot(Protocol):
    """The place of an offloaded tensor's value.

    Attributes:
      owner: what the slot belongs to.
      is_kept: false if the ranks do not keep the value, so that `fetch` raises.
      can_clear: zero_() of the tensor need not fetch the value first.
    """

    owner: Owner
    is_kept: bool
    can_clear: bool

    def fetch(self) -> None:
        """Brings the value into the tensor."""


class HasStates(Protocol):
    """The optimizers of a step (capture/optimizer/optimizers.py)."""

    @property
    def states(self) -> Iterable[tuple[torch.Tensor, dict[str, Any]]]: ...


def slot_of(tensor: torch.Tensor) -> Any:
    """The slot of an offloaded tensor; None if the tensor has its value."""
    return getattr(tensor, "_spmd_slot", None)


def set_slot(tensor: torch.Tensor, slot: Slot | None) -> None:
    """Notes where the value of a tensor is; None: in the tensor."""
    if slot is None:
        del tensor._spmd_slot
    else:
        tensor._spmd_slot = slot


def fetch(model: torch.nn.Module, optimizers: HasStates) -> None:
    """Brings everything of a model and its optimizers here, and what else a compiled step trains with them."""
    for slot in slots((*model.parameters(), *model.buffers(), *(state for _, state in optimizers.states))):
        slot.owner.fetch_all()


def fetch_tensors(tensors: Iterable[torch.Tensor]) -> None:
    """Brings tensors here, whichever compiled step has them."""
    for slot in slots(tensors):
        slot.fetch()


def slots(values: Any) -> Iterator[Any]:
    """The slots of the tensors that are away; another thread may bring one here at any time."""
    for value in values:
        if isinstance(value, torch.Tensor):
            slot = slot_of(value)
            if slot is not None:
                yield slot
        elif isinstance(value, (list, tuple)):
            yield from slots(value)
        elif isinstance(value, dict):
            yield from slots(value.values())
