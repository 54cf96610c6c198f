"""What a loaded artifact has: inputs, outputs, tensors of the state, collectives and commands."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Callable

from .. import native
from ..dtypes import NAMES as DTYPES
from ..tensor_info import TensorInfo


@dataclasses.dataclass(frozen=True)
class Shard:
    """What a rank has of a tensor: the elements from `first` on, of the tensor as one row; bf16 as uint16."""

    rank: int
    tensor: TensorInfo
    first: int
    values: Any  # of local_shards() of a compiled step a torch tensor


@dataclasses.dataclass(frozen=True)
class Collective:
    """A collective of one step; `bytes` each rank sends (of a reduce-scatter: receives)."""

    op: str
    communicator: str
    unit: str
    location: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the plan in the latest step: `bytes` it moves when it touches every operand once, `flops` of a
    matrix product, and the seconds it took."""

    op: str
    kernel: str
    location: str
    stream: int
    bytes: int
    flops: float
    seconds: float


class ArtifactInfo:
    """Reads what the runtime has for a `handle`. `call` calls a function of the runtime and raises its errors."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p, call: Callable[..., None]):
        self._library, self._handle, self._call = library, handle, call

    def inputs(self) -> list[TensorInfo]:
        """The inputs of a step, in order."""
        return self._tensors("input", "spmd_input")

    def outputs(self) -> list[TensorInfo]:
        """The outputs of a step, in order."""
        return self._tensors("output", "spmd_output")

    def tensors(self) -> list[TensorInfo]:
        """The tensors of the state, with all their names."""
        return self._tensors("tensor", "spmd_tensor_at")

    def collectives(self) -> list[Collective]:
        """The collectives of a step."""
        collectives = []
        for index in range(self._library.spmd_num_collectives(self._handle)):
            info = native.CollectiveInfo(ctypes.sizeof(native.CollectiveInfo))
            self._call("spmd_collective", self._handle, index, info)
            texts = (getattr(info, field).decode() for field in ("op", "communicator", "unit", "location"))
            collectives.append(Collective(*texts, info.bytes))
        return collectives

    def commands(self, rank: int) -> list[Command]:
        """The commands of the plan, with the time each took on `rank` in the latest step."""
        commands = []
        for index in range(self._library.spmd_num_commands(self._handle)):
            info = native.CommandInfo(ctypes.sizeof(native.CommandInfo))
            self._call("spmd_command", self._handle, rank, index, info)
            seconds = (info.end_nanoseconds - info.begin_nanoseconds) * 1e-9
            texts = (getattr(info, field).decode() for field in ("op", "kernel", "location"))
            commands.append(Command(*texts, info.stream, info.bytes, info.flops, seconds))
        return commands

    def _tensors(self, what: str, function: str) -> list[TensorInfo]:
        infos = []
        for index in range(getattr(self._library, f"spmd_num_{what}s")(self._handle)):
            info = native.TensorInfo(ctypes.sizeof(native.TensorInfo))
            self._call(function, self._handle, index, info)
            aliases = tuple(self._library.spmd_tensor_alias(self._handle, index, n).decode()
                            for n in range(info.num_aliases)) if what == "tensor" else ()
            saved = what != "tensor" or bool(self._library.spmd_tensor_is_saved(self._handle, index))
            infos.append(TensorInfo(info.name.decode(), info.state.decode(), DTYPES[info.dtype],
                                    tuple(info.shape[d] for d in range(info.rank)), aliases, saved))
        return infos
