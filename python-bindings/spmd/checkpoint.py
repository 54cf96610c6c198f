"""Checkpoints without a trainer: what spmd-run --save, Trainer.save_checkpoint and train_step.save_checkpoint write, read
into numpy arrays, or into a model and an optimizer of plain PyTorch (docs/training.md)."""
from __future__ import annotations

import ctypes
import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import native
from .arrays import NUMPY, to_torch
from .runerror import RunError
from .tensorinfo import TensorInfo
from .tools import find_runtime

if TYPE_CHECKING:
    import torch


class Checkpoint:
    """The newest checkpoint in `folder` that is whole, or `folder` itself when it is one.

    Attributes:
      folder: of the checkpoint, "…/step-00000100".
      info: run.json, as a dict: "step", "kind", "program", "compiler", "ranks", "time", "notes", …
      step: steps taken when it was saved.
      tensors: what it has, by key: "fc.weight", "optimizer/exp_avg/fc.weight", "rng/step".

    Raises:
      RunError: no checkpoint of the folder is whole. Damaged ones that are newer are warnings.
    """

    def __init__(self, folder: str | os.PathLike, *, _handle: ctypes.c_void_p | None = None):
        self._library = native.load(find_runtime())
        self._handle = _handle or ctypes.c_void_p()
        if _handle is None:
            self._call("spmd_open_checkpoint", os.fsencode(folder), ctypes.byref(self._handle))
        self.folder = Path(os.fsdecode(self._library.spmd_checkpoint_folder(self._handle)))
        self.info: dict[str, Any] = json.loads(self._library.spmd_checkpoint_text(self._handle))
        self.step: int = self.info["step"]
        self.notes: dict[str, Any] = self.info.get("notes", {})
        self.tensors: dict[str, TensorInfo] = {}
        for index in range(self._library.spmd_num_checkpoint_tensors(self._handle)):
            info = native.TensorInfo()
            self._call("spmd_checkpoint_tensor", self._handle, index, info)
            self.tensors[info.name.decode()] = TensorInfo(info.name.decode(), "", native.DTYPES[info.dtype],
                                                          tuple(info.shape[d] for d in range(info.rank)))
        for index in range(self._library.spmd_num_checkpoint_notices(self._handle)):
            warnings.warn(self._library.spmd_checkpoint_notice(self._handle, index).decode(), stacklevel=3)

    def read(self, key: str) -> np.ndarray:
        """A whole tensor, whose bytes are compared with their hashes; bf16 as uint16."""
        if key not in self.tensors:
            raise KeyError(f"'{self.folder}' has no tensor {key!r}")
        info = self.tensors[key]
        array = np.empty(info.shape, NUMPY[info.dtype])
        self._call("spmd_read_checkpoint_tensor", self._handle, key.encode(), array.ctypes.data, array.nbytes)
        return array

    def read_torch(self, key: str) -> torch.Tensor:
        """The same as a torch tensor."""
        return to_torch(self.read(key), self.tensors[key].dtype)

    def read_file(self, name: str) -> bytes:
        """One of its other files."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call("spmd_read_checkpoint_file", self._handle, name.encode(), ctypes.byref(data), ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    @staticmethod
    def make(weights: str | os.PathLike, folder: str | os.PathLike, *, step: int = 0,
             notes: dict[str, Any] | None = None) -> Path:
        """Makes a checkpoint in the folder of what another program has trained for `step` steps: a safetensors file with
        parameters and buffers under their names, and optimizer state as "optimizer/exp_avg/NAME". Returns its folder."""
        status = native.Status()
        code = native.load(find_runtime()).spmd_import_checkpoint(os.fsencode(weights), os.fsencode(folder), step,
                                                                   json.dumps(notes or {}).encode(), ctypes.byref(status))
        if code != native.OK:
            raise RunError(status)
        return Path(folder) / f"step-{step:08d}"

    def close(self) -> None:
        if self._handle:
            self._library.spmd_close_checkpoint(self._handle)
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _call(self, function: str, *arguments: Any) -> None:
        status = native.Status()
        if getattr(self._library, function)(*arguments, ctypes.byref(status)) != native.OK:
            raise RunError(status)


def load(folder: str | os.PathLike, model: torch.nn.Module,
         optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] = (), *, strict: bool = True) -> int:
    """Loads a checkpoint into a model and its optimizer, or optimizers, of plain PyTorch: parameters, buffers, optimizer
    state, and options of param groups. Returns the steps taken.

    Raises:
      ValueError: tensors are missing, unexpected or of another shape, which are all listed, and nothing has changed; not
        `strict`: only the last.
    """
    from .loading import load_into
    with Checkpoint(folder) as checkpoint:
        load_into(checkpoint, model, (optimizer,) if hasattr(optimizer, "param_groups") else tuple(optimizer), strict)
        return checkpoint.step


def to_dcp(folder: str | os.PathLike, dcp_folder: str | os.PathLike, *, model: str = "model",
           optimizer: str = "optimizer") -> None:
    """Writes a checkpoint in the format of torch.distributed.checkpoint, as
    `dcp.save({"model": …, "optimizer": …})` does with the two state dicts of get_state_dict(). `model` and `optimizer` are
    the names that they have in it. The state is in memory meanwhile."""
    from .dcp import write
    with Checkpoint(folder) as checkpoint:
        write(checkpoint, Path(dcp_folder), model, optimizer)


def from_dcp(dcp_folder: str | os.PathLike, folder: str | os.PathLike, *, model: str | None = None,
             optimizer: str | None = None, step: int | None = None) -> Path:
    """Makes a checkpoint in the folder of one of torch.distributed.checkpoint, FSDP2's for one, which train_step, spmd-run
    and `load` go on from. The state is in memory meanwhile.

    Args:
      model, optimizer: under which names their state dicts were saved; None: found by the parameters that have state.
      step: steps taken; None: what the optimizer counts.

    Returns:
      The checkpoint's folder.

    Raises:
      ValueError: no model is in it.
    """
    from .dcp import read
    return read(Path(dcp_folder), Path(folder), model, optimizer, step, Checkpoint.make)
