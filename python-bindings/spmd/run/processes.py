"""The processes of a job, where torchrun, mpirun or srun has started several. Needs numpy only."""
from __future__ import annotations

import ctypes
import dataclasses
import os
import pickle
import socket
import sys
import weakref
from pathlib import Path
from typing import Any, Callable, TypeVar

import numpy as np

from .. import native
from ..run_error import RunError
from ..tools import find_runtime

Result = TypeVar("Result")

#: What has issued steps that nobody has waited for. A process waits for them, by settle(), before it waits for the others:
#: one that hangs in a step is named by that, and by nothing else.
UNFINISHED: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()


class ProcessError(RuntimeError):
    """Another process of the job has failed, and with it this one; the message says which and why."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """Which of several processes this is: what the `launcher` says ("torchrun", "mpirun", "mpiexec", "srun",
    "environment"; None: whoever started the process; "none": it is alone), or, with a `world_size`, process `rank` of so
    many, which meet at `address` ("HOST:PORT")."""

    launcher: str | None = None
    world_size: int = 0
    rank: int = 0
    address: str | None = None

    def native(self) -> native.Launch:
        return native.Launch(ctypes.sizeof(native.Launch), self.launcher and self.launcher.encode(), self.world_size,
                             self.rank, self.address and self.address.encode())


class Processes:
    """The processes of a job: every one makes the same calls in the same order. They wait for each other ten times as long
    as in a step (`timeout`), since a process may prepare its data, save or evaluate.

    Attributes: `rank`, which of them this is; `world`, how many there are; `native_cpu`, the spmd-compile --cpu of this
    one's processor, or "".
    """

    def __init__(self, launch: Launch = Launch(), timeout: float = 60):
        self.launch, self._library = launch, native.load(find_runtime())
        self._handle = ctypes.c_void_p()
        self._call("spmd_join", launch.native(), 10 * timeout, ctypes.byref(self._handle))
        self.rank: int = self._library.spmd_process(self._handle)
        self.world: int = self._library.spmd_num_processes(self._handle)
        self.native_cpu: str = self._library.spmd_native_cpu().decode()
        self._process, self._patience = os.getpid(), 10 * timeout

    @classmethod
    def find(cls, launcher: str | None, timeout: float) -> Processes:
        """Those that the launcher started; or those of torch.distributed, where the user's code started them and they
        have met there."""
        found = cls(Launch(launcher), timeout)
        distributed = sys.modules.get("torch.distributed")
        if found.world == 1 and launcher is None and distributed is not None and distributed.is_initialized() \
                and distributed.get_world_size() > 1:
            address = [_free_address()]
            distributed.broadcast_object_list(address, src=0)
            return cls(Launch(None, distributed.get_world_size(), distributed.get_rank(), address[0]), timeout)
        return found

    def gather(self, mine: bytes, waits: bool = False) -> list[bytes]:
        """The bytes of all processes, of which each has as many. `waits`: as long as the others live."""
        if self.world == 1:
            return [mine]
        if os.getpid() != self._process:
            raise RuntimeError(f"this process was forked from rank {self.rank} of the job and does not belong to it")
        for trainer in list(UNFINISHED):
            UNFINISHED.pop(trainer, None)
            trainer.settle()
        everything = ctypes.create_string_buffer(len(mine) * self.world)
        self._call("spmd_gather", self._handle, mine, len(mine), everything, 0 if waits else self._patience)
        return [everything.raw[i * len(mine):(i + 1) * len(mine)] for i in range(self.world)]

    def gather_objects(self, mine: Any, waits: bool = False) -> list[Any]:
        """What all processes have, which can be pickled."""
        return [pickle.loads(data) for data in self.gather_bytes(pickle.dumps(mine), waits)]

    def gather_bytes(self, mine: bytes, waits: bool = False) -> list[bytes]:
        """The bytes of all processes, of which each may have another number."""
        sizes = [int.from_bytes(size, "little") for size in self.gather(len(mine).to_bytes(8, "little"), waits)]
        longest = max(sizes)
        return [data[:size] for data, size in zip(self.gather(mine.ljust(longest, b"\0"), True), sizes)]

    def share_file(self, file: Path, folder: Path) -> Path:
        """The file that rank 0 has at `file`, for all processes: those that do not see it get a copy in `folder`."""
        size, file = self.gather_objects((file.stat().st_size if self.rank == 0 else 0, file), waits=True)[0]
        seen = file.is_file() and file.stat().st_size == size
        if all(self.gather_objects(seen)):
            return file
        data = ctypes.create_string_buffer(file.read_bytes() if self.rank == 0 else size, size)
        self._call("spmd_share", self._handle, 0, data, size)
        if not seen:
            file = folder / file.name
            file.write_bytes(data)
        return file

    def share_array(self, array: np.ndarray) -> None:
        """Puts what rank 0 has in a contiguous array into the arrays of all processes."""
        if self.world > 1:
            self._call("spmd_share", self._handle, 0, array.ctypes.data, array.nbytes)

    def together(self, body: Callable[[], Result]) -> Result:
        """What `body` gives, once it has ended well in all processes; else all raise: who failed its own exception.

        Raises:
          ProcessError: another process has failed.
        """
        if self.world == 1:
            return body()
        error: Exception | None = None
        try:
            result = body()
        except Exception as problem:
            error = problem
        self.raise_first(error)
        return result

    def raise_first(self, error: Exception | None) -> None:
        """Raises this process's error, or says that another has one."""
        texts = self.gather_objects(error and f"{type(error).__name__}: {error}", waits=True)
        if error is not None:
            raise error
        for rank, text in enumerate(texts):
            if text is not None:
                raise ProcessError(f"rank {rank}: {text}")

    def _call(self, function: str, *arguments: Any) -> None:
        status = native.Status()
        if getattr(self._library, function)(*arguments, ctypes.byref(status)) != native.OK:
            raise RunError(status)


def _free_address() -> str:
    """Where a process of this host can be met; another may take it in between."""
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    with socket.socket() as probe:
        probe.bind(("", 0))
        return f"{host}:{probe.getsockname()[1]}"
