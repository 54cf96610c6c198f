"""Runs an artifact of spmd-compile on the ranks of this process. Needs numpy only."""
from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import functools
import itertools
import json
import os
import sys
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, Callable, Sequence

import numpy as np

from .. import native
from ..arrays import NUMPY, is_torch, to_numpy, to_torch, torch_type
from ..dtypes import NAMES as DTYPES
from ..run_error import RunError
from ..state.checkpoint import Checkpoint, is_safetensors, to_safetensors
from ..state.differences import remark_on_tensors
from ..tensor_info import TensorInfo
from ..tools import find_runtime
from . import devices
from .artifact_info import ArtifactInfo, Command, Shard
from .processes import UNFINISHED, Launch
from .result_tree import rebuild

SAVE_MODES = ("wait", "beside")
_STEPS_AHEAD = 8  # of the device: kSteps of lib/Runtime/Cuda/StepRing.h


class Trainer:
    """A compiled training step with its parameters and optimizer state on N ranks.

        trainer = spmd.load("gpt2.spmd")
        loss = trainer.step(x, y)

    Args:
      artifact: the folder that spmd-compile wrote. It holds native code: load only what you would run.
      ranks: must be what it was compiled for; None takes that.
      threads: of all ranks together; None: one per core.
      timeout: seconds after which a collective that waits for a rank, and a step in which nothing ends, is an error.
      weights: a safetensors file; None: the artifact's own.
      profile: note when each command runs, for `commands`.
      batch: what each of several processes gives to a step. "rows": its own rows, and the global batch is those of all
        processes, in their order. "global": the global batch, the same in all. Of one process both are the same.
      launch: which of several processes this is; None: what the launcher (torchrun, mpirun, srun) says.
      library: the runtime's shared library; None: see spmd.tools.find_runtime.
      written_next: tensors that the weights lack are zero, and written before the first step (`write`,
        `load_checkpoint`); else one that is missing is an error.
      flight_record: a folder; when a step fails, what each rank did last is written to rank-N.json there.
      shares: a trainer whose parameters and optimizer state this one trains too, as another program (for a batch of
        another shape). Both artifacts must hold the same state; `weights` is not read then.

    Raises:
      RunError: when the artifact or the weights cannot be used, or the state of `shares` is another.
      ToolError: when the runtime's library is not found.
    """

    def __init__(self, artifact: str | os.PathLike, *, ranks: int | None = None, threads: int | None = None,
                 timeout: float | None = None, weights: str | os.PathLike | None = None,
                 library: str | os.PathLike | None = None, shares: "Trainer | None" = None,
                 profile: bool = False, batch: str = "rows", launch: Launch | None = None, written_next: bool = False,
                 flight_record: str | os.PathLike | None = None):
        if batch not in native.BATCHES:
            raise ValueError(f"batch is {batch!r}; allowed: {', '.join(native.BATCHES)}")
        self._handle = ctypes.c_void_p()
        self._process, self._at_exit = os.getpid(), None
        _OPEN[next(_numbers)] = self
        self._place: tuple[native.Place, int] | None = None
        self.issued = 0  # steps
        self.on_failure: Callable[[RunError], None] | None = None  # told where a read finds that a step has failed
        self._unread: collections.deque[tuple[int, Callable[[], None]]] = collections.deque()
        if shares is not None:
            shares._read_now(0)  # its ranks may start anew
        self._lent: collections.deque = collections.deque(maxlen=_STEPS_AHEAD + 1)  # by step, what it may still read
        self._library = native.load(library or find_runtime())
        options = native.Options()
        self._library.spmd_options_init_sized(options, ctypes.sizeof(options))
        options.ranks, options.threads = ranks or 0, threads or 0
        if timeout is not None:
            options.timeout_seconds = timeout
        options.weights = os.fsencode(weights) if weights is not None else None
        options.profile, options.batch = int(profile), native.BATCHES.index(batch)
        options.launch = ctypes.pointer((launch or Launch()).native())
        options.written_next = int(written_next)
        options.flight_record = os.fsencode(flight_record) if flight_record is not None else None
        options.shares = shares._open() if shares is not None else None
        self._call("spmd_load", os.fsencode(artifact), options, ctypes.byref(self._handle))
        self.ranks: int = self._library.spmd_ranks(self._handle)
        self.threads: int = self._library.spmd_threads(self._handle)
        self.arena_bytes: int = self._library.spmd_arena_bytes(self._handle)
        self.cpu: str = self._library.spmd_cpu(self._handle).decode()
        self.warnings = [self._library.spmd_warning(self._handle, index).decode()
                         for index in range(self._library.spmd_num_warnings(self._handle))]
        artifact_info = ArtifactInfo(self._library, self._handle, self._call)
        self.inputs, self.outputs = artifact_info.inputs(), artifact_info.outputs()
        self.tensors = artifact_info.tensors()
        self._by_name = {(i.state, name): i for i in self.tensors for name in (i.name, *i.aliases)}
        self.collectives = artifact_info.collectives()
        self.result_tree: str = self._library.spmd_result_tree(self._handle).decode()

    def run(self, batch: Sequence[Any]) -> list[np.ndarray]:
        """One training step on a batch: a tensor per input in order, outputs in order.

        Raises:
          RunError: for another dtype or shape than the artifact's, ids that are no rows of their table (nothing has run
            then), or a rank that failed.
        """
        self.issue(batch)
        return self.results()

    def issue(self, batch: Sequence[Any], *, stream: int | None = None) -> None:
        """Like run, but does not look at what the step gives: on GPUs it returns when the step is issued, and a step that
        fails is an error of a later call.

        Tensors on the GPU of the one rank of this process, PyTorch's and what speaks DLPack, are copied there, behind what
        the caller's stream has, and what that gets later comes behind the copies: the tensors may be written or freed as
        if the step had run on that stream (docs/gpus.md).

        Args:
          stream: the caller's stream on that GPU, as DLPack numbers them; None: PyTorch's current one. Where there is
            none of these, the tensors stay as they are until the step is over, as long as they live.
        """
        if os.getpid() != self._process:
            raise RuntimeError(f"the ranks are threads of process {self._process}, which this one was forked from; "
                               "load the artifact in the process that trains")
        self._read_now(_STEPS_AHEAD)
        where = [devices.place_of(value) for value in batch]
        if any(where) and self._own_place()[0].kind != devices.HOST:
            self._issue_on(batch, where, stream)
            return
        arrays = [to_numpy(value) for value in batch]
        tensors = (native.Tensor * len(arrays))()
        for tensor, (array, dtype) in zip(tensors, arrays):
            _describe(tensor, array.ctypes.data, dtype, array.shape)
        self._lent.append(None)
        self._call("spmd_step", self._open(), tensors, len(arrays))
        self.issued += 1

    def _issue_on(self, batch: Sequence[Any], where: Sequence[tuple[int, int] | None], stream: int | None) -> None:
        """A step with tensors on a GPU."""
        own = self._own_place()[1]
        known = [devices.current_stream(value) for value, place in zip(batch, where) if place]
        stream = next((s for s in (stream, *known) if s is not None), own)
        tensors, places, kept = (native.Tensor * len(batch))(), (native.Place * len(batch))(), []
        for number, (value, place) in enumerate(zip(batch, where)):
            places[number] = native.Place(*(place or (devices.HOST, 0)))
            name = self.inputs[number].name if number < len(self.inputs) else str(number)
            if place:
                given = devices.take(value, stream, f"input {name!r}")
                _describe(tensors[number], given.data, given.dtype, given.shape)
                kept.append(given)
            else:
                array, dtype = to_numpy(value)
                _describe(tensors[number], array.ctypes.data, dtype, array.shape)
                kept.append(array)
        # A library whose stream is not known may give memory to others as soon as it is let go: it is kept until the step
        # is over, as it is when so many have been issued after it.
        self._lent.append(kept if stream == own else None)
        self._call("spmd_step_on", self._open(), tensors, places, len(batch), stream)
        self.issued += 1

    def _own_place(self) -> tuple[native.Place, int]:
        """Where the one rank of this process computes, and a stream there for those who have none."""
        if self._place is None:
            place, stream = native.Place(), ctypes.c_int64()
            self._call("spmd_rank_place", self._open(), ctypes.byref(place), ctypes.byref(stream))
            self._place = place, stream.value
        return self._place

    def results(self, ago: int = 0) -> list[np.ndarray]:
        """The outputs of the step `ago` before the latest, which this waits for and for no later one: on GPUs those of up to
        eight steps are kept (`steps_kept`).

        Raises:
          RunError: they are not kept; or a step up to that one has failed.
        """
        outputs = [self.result(number, ago) for number in range(len(self.outputs))]
        if not ago:
            self._lent.clear()
        return outputs

    def result(self, number: int, ago: int = 0) -> np.ndarray:
        """One of them."""
        key = ("spmd_read_output_ago", number, ago) if ago else ("spmd_read_output", number)
        return self._read(key[0], self.outputs[number], *key[1:])

    def late_result(self, number: int, step: int) -> np.ndarray:
        """One that is kept (`steps_kept`), of a step that is one of the last: this process reads it alone."""
        return self._read("spmd_read_output_ago", self.outputs[number], number, self.issued - 1 - step)

    def read_later(self, read: Callable[[], None]) -> None:
        """`read` is called before what the latest step gave, which is kept, is overwritten, and before the trainer is
        closed."""
        self._unread.append((self.issued - 1, read))
        UNFINISHED[self] = None

    def settle(self) -> None:
        """Waits for the latest step, of which somebody reads later what it gave."""
        if self._handle and self.issued and self.outputs:
            self.late_result(0, self.issued - 1)

    def _read_now(self, kept: int) -> None:
        """Reads what of the last `kept` steps and one that is issued now is the oldest."""
        while self._unread and self.issued - self._unread[0][0] >= kept:
            self._unread.popleft()[1]()

    @functools.cached_property
    def looks_at_rows(self) -> bool:
        """Whether steps look at row numbers that they compute: a bad one is an error when the step is over."""
        return any(command.op == "check_index" for command in self.commands())

    def steps_kept(self, number: int = 0) -> int:
        """Of how many of the last steps an output can be read."""
        return self._library.spmd_steps_kept(self._open(), number)

    def copy_output(self, number: int, out: Any, *, stream: int | None = None) -> None:
        """Copies an output of the latest step to `out`, a tensor on the GPU of the one rank of this process, without the
        host. This returns when the copy is issued, behind the step: what `stream` (of None: PyTorch's current one) gets
        later sees it. Of another library's tensor without a stream it returns when it is done.

        Raises:
          RunError: where each rank has a part of the output (`is_output_whole`).
        """
        self._copy("spmd_copy_output", self.outputs[number], f"output {number}", out, stream, number)

    def is_output_whole(self, number: int) -> bool:
        """Whether each rank has all of an output."""
        return bool(self._library.spmd_is_output_whole(self._open(), number))

    def copy_tensor(self, state: str, name: str, out: Any, *, stream: int | None = None) -> None:
        """Copies a full tensor of the state in the same way.

        Raises:
          RunError: where the one rank of this process has a part of it (`is_tensor_whole`).
        """
        self._copy("spmd_copy_tensor", self._info(state, name), f"{state} {name!r}", out, stream, state.encode(), name.encode())

    def is_tensor_whole(self, state: str, name: str) -> bool:
        """Whether the one rank of this process has all of a tensor of the state."""
        return bool(self._library.spmd_is_tensor_whole(self._open(), state.encode(), name.encode()))

    def _copy(self, function: str, info: TensorInfo, what: str, out: Any, stream: int | None, *key: Any) -> None:
        place, own = self._own_place()
        if place.kind == devices.HOST:
            raise ValueError(f"{what} can be copied to a tensor on a GPU only if the process has one rank, which runs on "
                             "that GPU; read it to the host")
        if (where := devices.place_of(out)) != (place.kind, place.number):
            raise ValueError(f"{what} is copied to a tensor on GPU {place.number}, where the rank of this process computes; "
                             f"this one is on {'GPU ' + str(where[1]) if where else 'the host'}")
        known = devices.current_stream(out) if stream is None else stream
        to = devices.take(out, own if known is None else known, f"the tensor for {what}", writes=True)
        if (to.dtype, to.shape) != (info.dtype, info.shape):
            raise ValueError(f"{what} is {info.dtype}{list(info.shape)}, not {to.dtype}{list(to.shape)}")
        bytes_ = int(np.prod(info.shape, dtype=np.int64)) * np.dtype(NUMPY[info.dtype]).itemsize
        self._call(function, self._open(), *key, to.data, bytes_, own if known is None else known)

    def copies_tensor(self, state: str, name: str, out: Any) -> bool:
        """Whether a tensor of the state can be copied there (`copy_tensor`), and nothing is to be found out by waiting for
        the latest step."""
        place = devices.place_of(out)
        return place is not None and place == (self._own_place()[0].kind, self._own_place()[0].number) \
            and self.is_tensor_whole(state, name) and not (self.looks_at_rows or self.collectives)

    def device_of(self, batch: Sequence[Any]) -> Any:
        """The GPU of a batch's torch tensors, where the one rank of this process computes on it: there a step's outputs
        are copied for the caller. Else None."""
        device = next((value.device for value in batch if is_torch(value) and value.is_cuda), None)
        return None if device is None or self._own_place()[0].kind == devices.HOST else device

    def torch_results(self, batch: Sequence[Any]) -> tuple[list[Any], Any]:
        """The outputs of the latest step as torch tensors, and where: on the GPU of the batch, else on the host. It is not
        waited for on a GPU, unless ranks meet in it: a step in which one of them failed must give nothing."""
        device = self.device_of(batch)
        if device is None or self.collectives:
            return [to_torch(array, info.dtype).to(device or "cpu") for array, info in zip(self.results(), self.outputs)], device
        torch, tensors = sys.modules["torch"], []
        for number, info in enumerate(self.outputs):
            if self.is_output_whole(number):
                tensors.append(torch.empty(info.shape, dtype=torch_type(info.dtype), device=device))
                self.copy_output(number, tensors[-1])
            else:
                tensors.append(to_torch(self._read("spmd_read_output", info, number), info.dtype).to(device))
        return tensors, device

    def step(self, *batch: Any, **named: Any) -> Any:
        """Like run, with inputs also by name; gives what the training step returned (an artifact that does not say how
        that was built gives the list of outputs).

        Tensors of the result are torch tensors when a torch tensor was given, else numpy arrays. Where one was given on the
        GPU of the one rank of this process, they are there, too, and the caller's own; the step is then issued, and PyTorch
        waits for it where it reads them.
        """
        names = [info.name for info in self.inputs]
        given = dict(zip(names, batch))
        if len(batch) > len(names) or set(given) & set(named) or set(given) | set(named) != set(names):
            raise TypeError(f"step takes {', '.join(names)}; got {len(batch)} in order and "
                            f"{', '.join(named) or 'none'} by name")
        values = [(given | named)[name] for name in names]
        self.issue(values)
        convert: Callable[[np.ndarray, str], Any] = lambda array, dtype: array
        if any(map(is_torch, values)):
            outputs, device = self.torch_results(values)
            convert = lambda array, dtype: to_torch(array, dtype).to(device or "cpu")
        else:
            outputs = self.results()
        return rebuild(json.loads(self.result_tree), outputs, convert) if self.result_tree else outputs

    def commands(self, rank: int = 0) -> list[Command]:
        """The commands of the plan, with the time each took on `rank` in the latest step (0 without `profile`)."""
        return ArtifactInfo(self._library, self._open(), self._call).commands(rank)

    def set_hyper(self, name: str, group: int, value: float) -> None:
        """Sets a hyper-parameter ("lr") of a param group for the following steps."""
        self._call("spmd_set_hyper", self._open(), name.encode(), group, value)

    def read(self, state: str, name: str, out: np.ndarray | None = None) -> np.ndarray:
        """A full tensor of the state, by any of its names; bf16 as uint16. `out`: a contiguous array to put it in."""
        return self._read("spmd_read_tensor", self._info(state, name), state.encode(), name.encode(), out=out)

    def write(self, state: str, name: str, value: Any) -> None:
        """Replaces a full tensor of the state."""
        info = self._info(state, name)
        array, dtype = to_numpy(value)
        if dtype != info.dtype or array.shape != info.shape:
            raise ValueError(f"{state} {name!r} is {info.dtype}{list(info.shape)}, not {dtype}{list(array.shape)}")
        self._call("spmd_write_tensor", self._open(), state.encode(), name.encode(), array.ctypes.data, array.nbytes)

    @property
    def reads_alone(self) -> bool:
        """False where ranks are on several hosts: then all processes read together."""
        return bool(self._library.spmd_reads_alone(self._open()))

    def local_shards(self, rank: int) -> list[Shard]:
        """What a rank of this process has of the state for itself; what all ranks have alike is rank 0's."""
        count, shards = ctypes.c_size_t(), []
        self._call("spmd_num_shards", self._open(), rank, ctypes.byref(count))
        for index in range(count.value):
            info = native.ShardInfo(ctypes.sizeof(native.ShardInfo))
            self._call("spmd_shard", self._open(), rank, index, info)
            of = self._info(info.state.decode(), info.name.decode())
            values = np.empty(info.count, NUMPY[of.dtype])
            self._call("spmd_read_shard", self._open(), rank, index, values.ctypes.data, values.nbytes)
            shards.append(Shard(rank, of, info.first, values))
        return shards

    def save_parameters(self, path: str | os.PathLike, with_optimizer: bool = False) -> None:
        """Saves full parameters and buffers as safetensors, under all their names; the file appears whole or not."""
        self._call("spmd_save", self._open(), os.fsencode(path), int(with_optimizer))

    def save_checkpoint(self, folder: str | os.PathLike, *, kind: str = "full", mode: str = "wait", step: int = 0,
                        keep: int = 0, notes: str = "{}", files: dict[str, bytes] | None = None) -> None:
        """Saves all of the state, and what the runtime knows of the run, as FOLDER/step-00000100, in place of one that is
        there; it appears whole or not at all (docs/training.md). All processes of a job call this.

        Args:
          kind: "full", one file that PyTorch loads; "sharded", a file for each rank.
          mode: "wait"; or "beside": returns when the state is copied, which takes that memory, and the copy is written while
            steps go on, until finish_checkpoint(). Of several processes only sharded ones.
          step: steps taken, which gives the checkpoint its name.
          keep: the newest so many stay; 0: all.
          notes: JSON that the checkpoint keeps.
          files: further files of this process, by a name that no other process has.
        """
        options = native.SaveOptions()
        self._library.spmd_save_options_init_sized(options, ctypes.sizeof(options))
        extra = (native.File * len(files or ()))(*((name.encode(), data, len(data)) for name, data in (files or {}).items()))
        options.kind, options.step, options.keep, options.notes = kind.encode(), step, keep, notes.encode()
        if mode not in SAVE_MODES:
            raise ValueError(f"mode is {mode!r}; allowed: {', '.join(SAVE_MODES)}")
        options.files, options.num_files, options.beside = extra, len(extra), int(mode == "beside")
        if mode == "beside" and self._at_exit is None:
            self._at_exit = weakref.WeakMethod(self._finish_at_exit)
            atexit.register(_call_if_alive, self._at_exit)
        self._call("spmd_save_checkpoint", self._open(), os.fsencode(folder), options)

    def finish_checkpoint(self, waits: bool = True) -> bool:
        """Gives the checkpoint that is written beside the run its name; not `waits`: only if it is written. False: it is not
        yet. All processes of a job call this.

        Raises:
          RunError: it could not be written.
        """
        finished = ctypes.c_int32()
        self._call("spmd_finish_checkpoint", self._open(), int(waits), ctypes.byref(finished))
        return bool(finished.value)

    def _finish_at_exit(self) -> None:
        if self._handle and os.getpid() == self._process:
            self.finish_checkpoint()

    def load_checkpoint(self, folder: str | os.PathLike, *, strict: bool = True) -> Checkpoint:
        """Loads the newest checkpoint in the folder that is whole, of any number of ranks and units; each rank reads its
        bytes. All processes of a job call this.

        Args:
          strict: what the checkpoint lacks, and what it has besides, is an error; else the one stays as it is, and the
            other is left out. Another shape always is. An error lists all of them, and nothing has changed then.
        """
        handle = ctypes.c_void_p()
        self._call("spmd_load_checkpoint", self._open(), os.fsencode(folder), int(strict), ctypes.byref(handle))
        loaded = Checkpoint(folder, handle=handle)
        if not strict:
            remark_on_tensors(loaded, self.tensors)
        return loaded

    def close(self) -> None:
        """Ends the ranks and frees their memory; the trainer cannot be used afterwards."""
        if self._handle and os.getpid() == self._process:  # a forked child has no ranks to end
            with contextlib.suppress(RunError):
                self._read_now(0)
            self._library.spmd_close(self._handle)
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("the trainer is closed")
        return self._handle

    def _call(self, function: str, *arguments: Any) -> None:
        status = native.Status()
        if getattr(self._library, function)(*arguments, ctypes.byref(status)) != native.OK:
            flight = self._library.spmd_describe_flight(self._handle) if self._handle else b""
            if status.code == native.FAILED:
                UNFINISHED.pop(self, None)  # it is known what its steps have come to
            raise RunError(status, flight.decode(errors="replace"))

    def _info(self, state: str, name: str) -> TensorInfo:
        info = self._by_name.get((state, name))
        if info is None:
            raise KeyError(f"no {state} {name!r}")
        return info

    def _read(self, function: str, info: TensorInfo, *key: Any, out: np.ndarray | None = None) -> np.ndarray:
        array = np.empty(info.shape, NUMPY[info.dtype]) if out is None else out
        if array.shape != info.shape or array.dtype != NUMPY[info.dtype]:
            raise ValueError(f"{info.state} {info.name!r} is {info.dtype}{list(info.shape)}, not "
                             f"{array.dtype}{list(array.shape)}")
        try:
            self._call(function, self._open(), *key, array.ctypes.data, array.nbytes)
        except RunError as error:
            if error.code == native.FAILED and self.on_failure is not None:
                self.on_failure(error)
            raise
        return array


def load(artifact: str | os.PathLike, **options: Any) -> Trainer:
    """The artifact as a Trainer, with its options. `weights` may be torch.save's, too: its parameters and buffers. What a
    user of them should know becomes a Python warning: tensors that the artifact has no place for, random state that they
    leave out."""
    weights = options.get("weights")
    if weights is not None and not is_safetensors(weights):  # torch.save's
        with tempfile.TemporaryDirectory(prefix="spmd.") as work:
            options["weights"] = Path(work) / "weights.safetensors"
            to_safetensors(weights, options["weights"])
            trainer = Trainer(artifact, **options)
    else:
        trainer = Trainer(artifact, **options)
    for text in trainer.warnings:
        warnings.warn(text, stacklevel=2)
    return trainer


def _describe(tensor: native.Tensor, data: int, dtype: str, shape: Sequence[int]) -> None:
    """Fills in what a tensor is."""
    tensor.data, tensor.dtype, tensor.rank = data, DTYPES.index(dtype), len(shape)
    tensor.shape = (ctypes.c_int64 * len(shape))(*shape)


#: Those that may still have ranks, in the order in which they were made.
_OPEN: weakref.WeakValueDictionary[int, Trainer] = weakref.WeakValueDictionary()
_numbers = itertools.count()


@atexit.register
def _close_all() -> None:
    """Threads of ranks have to end before the process takes down the libraries that they call, and a trainer that is part
    of a cycle outlives that. Those of several processes end in the same order."""
    for _, trainer in sorted(_OPEN.items(), reverse=True):
        trainer.close()


def _call_if_alive(method: weakref.WeakMethod) -> None:
    if (function := method()) is not None:
        function()
