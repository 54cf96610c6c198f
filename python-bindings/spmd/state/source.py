"""What the values of a training are loaded from: the interface of a checkpoint (checkpoint.py), of a file of another
program (state_file.py), and of either under revised names."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..tensor_info import TensorInfo

if TYPE_CHECKING:
    import torch


class Source(Protocol):
    """Tensors by key ("fc.weight", "optimizer/exp_avg/fc.weight", "rng/step") and what is known besides them.

    Attributes:
      folder: where it is; a file or a folder.
      step: steps taken.
      notes: options of param groups, and names of objects with a state.
      tensors: what it has, by key.
      has_optimizer: true if it has optimizer state.
    """

    folder: Path
    notes: dict[str, Any]
    tensors: dict[str, TensorInfo]

    @property
    def step(self) -> int: ...

    @property
    def has_optimizer(self) -> bool: ...

    def describe(self) -> str:
        """For error messages."""

    def read_torch(self, key: str) -> torch.Tensor:
        """The value of a tensor."""


class FolderSource(Source, Protocol):
    """A source with further files."""

    def read_file(self, name: str) -> bytes:
        """The content of one of its files."""
