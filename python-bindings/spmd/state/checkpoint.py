"""Checkpoints without a trainer: what spmd-run --save, Trainer.save_checkpoint and train_step.save_checkpoint write, read
into numpy arrays, or into a model and an optimizer of plain PyTorch (docs/training.md)."""
from __future__ import annotations

import ctypes
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import native
from ..arrays import NUMPY, to_torch
from ..dtypes import NAMES as DTYPES
from ..remarks import remark
from ..run_error import RunError
from ..tensor_info import TensorInfo
from ..tools import find_runtime
from .untrained_file import NAME, NOTE, UntrainedFile

if TYPE_CHECKING:
    import torch

    from .state_file import StateFile


class Checkpoint:
    """The newest checkpoint in `folder` that is whole, or `folder` itself when it is one.

    Args:
      handle: the runtime's, if the runtime has opened the checkpoint.

    Attributes:
      folder: of the checkpoint, "…/step-00000100".
      info: run.json, as a dict: "step", "kind", "program", "compiler", "ranks", "time", "notes", …
      step: steps taken when it was saved.
      tensors: what it has, by key: "fc.weight", "optimizer/exp_avg/fc.weight", "rng/step".
      untrained: the keys of those that no rank had, optimizer state of parameters that were frozen.

    Raises:
      RunError: no checkpoint of the folder is whole. Damaged ones that are newer are warnings.
    """

    def __init__(self, folder: str | os.PathLike, *, handle: ctypes.c_void_p | None = None):
        self._library = native.load(find_runtime())
        self._handle = handle or ctypes.c_void_p()
        if handle is None:
            self._call("spmd_open_checkpoint", os.fsencode(folder), ctypes.byref(self._handle))
        self.folder = Path(os.fsdecode(self._library.spmd_checkpoint_folder(self._handle)))
        self.info: dict[str, Any] = json.loads(self._library.spmd_checkpoint_text(self._handle))
        self.step: int = self.info["step"]
        self.notes: dict[str, Any] = self.info.get("notes", {})
        self.tensors: dict[str, TensorInfo] = {}
        for index in range(self._library.spmd_num_checkpoint_tensors(self._handle)):
            info = native.TensorInfo(ctypes.sizeof(native.TensorInfo))
            self._call("spmd_checkpoint_tensor", self._handle, index, info)
            self.tensors[info.name.decode()] = TensorInfo(info.name.decode(), "", DTYPES[info.dtype],
                                                          tuple(info.shape[d] for d in range(info.rank)))
        self._untrained = UntrainedFile(self.read_file(NAME)) if self.notes.get(NOTE) else None
        self.untrained = frozenset(self._untrained.tensors if self._untrained else ())
        self.tensors |= self._untrained.tensors if self._untrained else {}
        for index in range(self._library.spmd_num_checkpoint_notices(self._handle)):
            warnings.warn(self._library.spmd_checkpoint_notice(self._handle, index).decode(), stacklevel=3)

    def read(self, key: str) -> np.ndarray:
        """A whole tensor, whose bytes are compared with their hashes; bf16 as uint16."""
        if key not in self.tensors:
            raise KeyError(f"'{self.folder}' has no tensor {key!r}")
        if key in self.untrained:
            return self._untrained.read(key)
        info = self.tensors[key]
        array = np.empty(info.shape, NUMPY[info.dtype])
        self._call("spmd_read_checkpoint_tensor", self._handle, key.encode(), array.ctypes.data, array.nbytes)
        return array

    def read_torch(self, key: str) -> torch.Tensor:
        """The same as a torch tensor."""
        return to_torch(self.read(key), self.tensors[key].dtype)

    def describe(self) -> str:
        """For people."""
        return f"checkpoint '{self.folder}'"

    @property
    def has_optimizer(self) -> bool:
        """It has optimizer state."""
        return any(key.startswith("optimizer/") for key in self.tensors)

    def read_file(self, name: str) -> bytes:
        """One of its other files."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call("spmd_read_checkpoint_file", self._handle, name.encode(), ctypes.byref(data), ctypes.byref(size))
        return ctypes.string_at(data, size.value)

    @staticmethod
    def make(weights: str | os.PathLike, folder: str | os.PathLike, *, step: int | None = None,
             notes: dict[str, Any] | None = None, model: torch.nn.Module | None = None,
             optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] = ()) -> Path:
        """Makes a checkpoint in the folder of what another program has trained for `step` steps (None: what the file says, or
        0). Returns its folder.

        Args:
          weights: a safetensors file with parameters and buffers under their names, and optimizer state as
            "optimizer/exp_avg/NAME"; or a file of torch.save: a state dict, or {"model": …, "optimizer": …}.
          model, optimizer: name the state of an optimizer's state dict, which has numbers; without them it is left out,
            with a Remark, where the optimizer was not made of named parameters.
        """
        if not is_safetensors(weights):
            with tempfile.TemporaryDirectory(prefix="spmd.") as work:
                file = _convert(weights, Path(work) / "state.safetensors", model, optimizer)
                return Checkpoint.make(Path(work) / "state.safetensors", folder, notes=file.notes if notes is None else notes,
                                       step=file.step if step is None else step)
        status, step = native.Status(), step or 0
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
         optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] = (), *, strict: bool = True,
         map_location: Any = None, revise_keys: Sequence[tuple[str, str]] = (),
         callback: Callable[[Any], Any] | None = None) -> int:
    """Loads a checkpoint, or a file of torch.save or of safetensors, into a model and its optimizer, or optimizers, of plain
    PyTorch: parameters, buffers, optimizer state, and options of param groups. Returns the steps taken. Arguments as those
    of train_step.load_checkpoint.

    Raises:
      ValueError: tensors are missing, unexpected, of another shape or type, which are all listed, and nothing has changed;
        not `strict`: only the last two.
    """
    from .loading import Target, load_into
    from .state_file import by_names_of, opened
    source, together = opened(folder, map_location, revise_keys, callback, lambda: Checkpoint(folder)), _together(optimizer)
    if not isinstance(source, Checkpoint):
        source.bind(model, together)
    has_state = any(state for _, state in together.states)
    load_into(by_names_of(model, source), Target(model, model, together, has_state), strict)
    return source.step


def to_safetensors(file: str | os.PathLike, target: str | os.PathLike) -> None:
    """Writes the parameters and buffers in a file of torch.save as a safetensors file, for spmd-run --weights."""
    _convert(file, Path(target), None, (), with_optimizer=False)


def _convert(file: str | os.PathLike, target: Path, model: torch.nn.Module | None, optimizer: Any,
             with_optimizer: bool = True) -> StateFile:
    from safetensors.torch import save_file
    from .state_file import StateFile
    found = StateFile(file)
    if model is not None:
        found.bind(model, _together(optimizer))
    keys = [key for key in found.tensors if with_optimizer or not key.startswith("optimizer/")]
    if with_optimizer and found.has_optimizer and not any(key.startswith("optimizer/") for key in keys):
        remark(f"'{file}' has optimizer state by number, which is left out\n  hint: Checkpoint.make(…, model=, optimizer=)")
    save_file({key: found.read_torch(key).contiguous().clone() for key in keys}, target)
    return found


def _together(optimizer: Any) -> Any:
    from ..capture.optimizer.optimizers import Optimizers
    return Optimizers((optimizer,) if hasattr(optimizer, "param_groups") else tuple(optimizer))


def is_safetensors(file: str | os.PathLike) -> bool:
    """Or no file at all, of which the runtime says so."""
    try:
        with open(file, "rb") as stream:
            return stream.read(9)[8:9] == b"{"
    except OSError:
        return True


def to_dcp(folder: str | os.PathLike, dcp_folder: str | os.PathLike, *, model: str = "model",
           optimizer: str = "optimizer") -> None:
    """Writes a checkpoint in the format of torch.distributed.checkpoint, as
    `dcp.save({"model": …, "optimizer": …})` does with the two state dicts of get_state_dict(). `model` and `optimizer` are
    the names that they have in it. The state is in memory meanwhile."""
    from .dcp import write
    with Checkpoint(folder) as checkpoint:
        write(checkpoint, checkpoint.info, Path(dcp_folder), model, optimizer)


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
