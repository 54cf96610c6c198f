"""A training step that captures, compiles and runs itself: what spmd.compile gives."""
from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch

from ..capture import StepPackage
from ..capture.call import CallOptions, StepCall, name_of, takes
from ..capture.world.closure_objects import CompiledFunction, Opaque
from ..capture.world.iterators import OtherTaken, put_aside
from ..compiler import report_of
from ..planning import Plan
from ..run.runtime import Shard, Trainer
from .make_program import save_tensors
from .options import TrainingOptions
from .programs import counts_taken
from .randomness import read_draws, write_draws
from .resuming import LoadOptions, load_checkpoint, save_checkpoint
from .run_step import NonFiniteError, run_step
from .state_views import local_shards, select, state_dict, unshard
from .training_state import TrainingState

__all__ = ["CompiledStep", "NonFiniteError"]


class _OfMethods(Opaque):
    """The compiled steps of one object, by those of its class: each object trains its own model. A copy of the object,
    and one that is loaded from a file, begins with none."""

    def __init__(self) -> None:
        self.steps: dict[CompiledStep, CompiledStep] = {}

    def __deepcopy__(self, memo: dict) -> _OfMethods:
        return _OfMethods()

    __copy__ = lambda self: _OfMethods()

    def __reduce__(self) -> tuple[Any, ...]:
        return _OfMethods, ()


class CompiledStep(CompiledFunction):
    """A training step compiled for N ranks; calls like the function it was made from (docs/python.md). One of a method
    is a method: each object has its own.

    The first call captures and compiles. From then on the ranks hold parameters, buffers and optimizer state; the
    tensors of the model and the optimizer get their values back when they are used, whoever uses them (live_state.py).

    Attributes:
      train_step: the function it was made from.
      batch_dims: as spmd.compile was given them.
      training_state: what the training holds between calls.
    """

    def __init__(self, train_step: Callable, options: TrainingOptions):
        functools.update_wrapper(self, train_step)
        function = train_step
        while isinstance(function, functools.partial):
            function = function.func
        self.__name__ = getattr(function, "__name__", None) or name_of(function)
        self.train_step, self.batch_dims = train_step, options.step.batch_dims
        self.training_state = TrainingState(self.__name__, options)

    def __get__(self, instance: Any, owner: type | None = None) -> CompiledStep:
        if instance is None:
            return self
        if not hasattr(instance, "__dict__"):
            raise TypeError(f"a {type(instance).__qualname__} has __slots__ and no __dict__, where its compiled "
                            f"{self.__name__} would be kept\n  hint: add '__dict__' to its __slots__")
        steps = vars(instance).setdefault("_spmd_compiled", _OfMethods()).steps
        if self not in steps:
            steps[self] = CompiledStep(self.train_step.__get__(instance, owner), self.training_state.options)
        return steps[self]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "last_train_step" in kwargs and not takes(self.train_step, "last_train_step"):
            kwargs.pop("last_train_step")  # a caller of _spmd says so; no work of a step is left for the next one
        training = self.training_state
        with training.lock:
            training.join()
            first: StepCall | None = None
            counts: list[tuple[int, bool]] = []

            def make_call() -> StepCall:
                nonlocal first
                if first is None:
                    options = CallOptions(training.options.step.precision, writes_batch=True, asks_batch=training.has_whole_batch,
                                          counts=True)
                    first = StepCall(self.train_step, args, kwargs, options, training.current and training.current.call,
                                     training.unused_values)
                call = first
                if first.takings:
                    call = first.taking(counts or counts_taken(first, [training.current, *training.programs]))
                return training.checkpoints.begin(call)

            try:
                while True:
                    try:
                        return run_step(training, make_call)
                    except OtherTaken as other:
                        counts = other.counts
            finally:
                if first is not None and first.takings:
                    training.unused_values = put_aside(first.takings, training.unused_values)

    @property
    def ranks(self) -> int | None:
        """How many ranks there are; None before the first call where the launcher decides."""
        return self.training_state.ranks

    @property
    def view(self) -> str:
        """What the step computes: "global" or "local"."""
        return self.training_state.view

    @property
    def compiles(self) -> int:
        """How many programs were compiled since the last reset()."""
        return self.training_state.compiles

    @property
    def steps(self) -> int:
        """Steps taken; load_checkpoint() sets the steps of the checkpoint."""
        return self.training_state.steps

    @steps.setter
    def steps(self, value: int) -> None:
        self.training_state.steps = value

    @property
    def max_compiles(self) -> int:
        """How many programs the step may have."""
        return self.training_state.max_compiles

    @max_compiles.setter
    def max_compiles(self, value: int) -> None:
        self.training_state.max_compiles = value

    @property
    def check_finite(self) -> bool:
        """Whether a loss that is nan or infinite is a NonFiniteError."""
        return self.training_state.check_finite

    @check_finite.setter
    def check_finite(self, value: bool) -> None:
        self.training_state.check_finite = value

    @property
    def rng(self) -> dict[str, int]:
        """Where random numbers are: they are a function of the `seed` and of the `step` that is next. Empty for a step
        that draws none. It can be set, before the first call too, to go on where another training was."""
        return {name: int(value) for name, value in self.training_state.draws().items()}

    @rng.setter
    def rng(self, value: dict[str, int]) -> None:
        unknown = sorted(set(value) - {"seed", "step"})
        if unknown or any(not isinstance(number, int) for number in value.values()):
            raise ValueError(f"rng is {value!r}; allowed: {{'seed': int, 'step': int}}, or one of them")
        tensors = {name: torch.tensor(number, dtype=torch.int64) for name, number in value.items()}
        training = self.training_state
        with training.lock:
            if training.live is None:
                training.randomness.given = tensors
            else:
                write_draws(tensors, training.live.trainer)

    @property
    def package(self) -> StepPackage | None:
        """What was captured for the program that ran last; None before the first call."""
        return self.training_state.current and self.training_state.current.package

    @property
    def artifact(self) -> Path | None:
        """The compiled folder of that program, in the cache: without weights, and with kernels for the processors of this job
        only. save() writes one that is complete."""
        return self.training_state.current and self.training_state.current.artifact

    @property
    def trainer(self) -> Trainer | None:
        """What runs the artifact."""
        return self.training_state.current and self.training_state.current.trainer

    @property
    def plan(self) -> Plan | None:
        """Memory of a rank by class and at the peak, collectives by unit; what package.plan() gives ahead of time."""
        return self.training_state.current and self.training_state.current.plan

    def report(self) -> str:
        """What spmd-compile says of the program: shard units, collectives and their bytes, the arena of a rank.

        Raises:
          RuntimeError: before the first call.
        """
        return report_of(self.training_state.current_program().artifact)

    def save(self, path: str | Path) -> Path:
        """Writes the artifact with the parameters, buffers and optimizer state of now, for spmd-run and spmd.load. It has
        kernels for all processors that spmd-compile knows, which are generated now.

        The folder appears whole or not at all; an older artifact of the name is replaced.

        Raises:
          FileExistsError: when something else has the name.
          RuntimeError: before the first call.
        """
        training, path = self.training_state, Path(path)
        program = training.current_program()
        if path.exists() and not (path / "manifest.json").is_file():
            raise FileExistsError(f"'{path}' is there and is no artifact; remove it or choose another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        with training.lock, tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as work:
            folder = Path(work) / path.name
            shutil.copytree(program.portable(), folder)
            rng = {f"rng/{name}": value for name, value in read_draws(program.home).items()}
            save_tensors(rng | training.live.tensors(), folder / "weights.safetensors")
            if path.exists():
                shutil.rmtree(path)
            folder.rename(path)
        return path

    @contextlib.contextmanager
    def unshard_params(self, units: Any = None, *, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
                       offload_to_cpu: bool = False, with_grads: bool = False) -> Iterator[None]:
        """Within it the parameters have their values, as FSDP's summon_full_params() gives them; then the ranks have them
        alone again. (Outside of it a parameter gets its value when it is used, and what was written goes to the ranks
        with the next step.)

        Args:
          units: modules, or their names; None: the model.
          recurse: also the units inside of these.
          writeback: what was written stays; else nothing of it does.
          rank0_only: only in the process of rank 0, whose values all get when they are written back.
          offload_to_cpu: the values are on the CPU. Refused for parameters on a GPU.
          with_grads: gradients, too, which the ranks keep with spmd.compile(keep_grads=True).

        Raises:
          RuntimeError: before the first call; the ranks keep no gradients.
        """
        training = self.training_state
        training.current_program()
        names = select(training, units, recurse)
        if offload_to_cpu and any(p.device.type != "cpu" for p in training.live.parameters(names)):
            raise NotImplementedError("offload_to_cpu=True for a model on a GPU\n  hint: keep the model on the CPU, where the "
                                      "ranks on GPUs need no copy of it; or read with state_dict()")
        with unshard(training, names, writeback, rank0_only, with_grads):
            yield

    def state_dict(self, kind: str = "full", *, rank0_only: bool = False) -> dict[str, Any]:
        """A copy of parameters, buffers, optimizer state and counters on the CPU, by the names that they have in
        checkpoints ("fc.weight", "optimizer/exp_avg/fc.weight", "rng/step"). Model and optimizer are left as they are.

        Args:
          kind: "full", whole tensors; "sharded", for each name the list of spmd.Shard that this process's ranks have.
          rank0_only: in other processes than that of rank 0 nothing.

        Raises:
          RuntimeError: before the first call.
        """
        self.training_state.current_program()
        return state_dict(self.training_state, kind, rank0_only)

    def local_shards(self, rank: int | None = None) -> dict[str, Shard]:
        """What a rank of this process (None: the first) has for itself of the state, by name: the elements `values` of
        the tensor as one row, from `first` on. What all ranks have alike is rank 0's.

        Raises:
          RuntimeError: before the first call.
          RunError: the rank is in another process.
        """
        self.training_state.current_program()
        return local_shards(self.training_state, rank)

    def save_checkpoint(self, folder: str | Path, *, kind: str = "full", mode: str = "wait", keep: int = 0,
                        objects: Mapping[str, Any] | None = None) -> Path:
        """Saves what a training needs to go on as FOLDER/step-00000100, which appears whole or not at all: parameters,
        buffers, optimizer state, step counts, counters of random numbers, options of param groups (docs/training.md).
        All processes of a job call this, with a folder that all of them see.

        Args:
          kind: "full", one file that PyTorch loads; "sharded", a file for each rank.
          mode: "wait"; or "beside": returns when the ranks' state is copied, which takes as much memory, and the copy is
            written while steps go on. It gets its name at the first step after that, with finish_checkpoint(), or when
            another is saved, or loaded. Of several processes only sharded ones.
          keep: the newest so many stay; 0: all.
          objects: schedulers, data loaders and whatever else has a state_dict(), by name; each process saves its own.

        Returns:
          The checkpoint's folder.

        Raises:
          RuntimeError: before the first call.
        """
        return save_checkpoint(self.training_state, folder, kind, mode, keep, objects or {})

    def finish_checkpoint(self) -> None:
        """Waits until the checkpoint is there that is written beside the training, if one is. All processes of a job call
        this.

        Raises:
          RunError: it could not be written.
        """
        self.training_state.checkpoints.finish(waits=True)

    def load_checkpoint(self, folder: str | Path, *, strict: bool = True, objects: Mapping[str, Any] | None = None,
                        map_location: Any = None, revise_keys: Sequence[tuple[str, str]] = (),
                        callback: Callable[[Any], Any] | None = None) -> int:
        """Goes on from the newest checkpoint in the folder that is whole, or from the folder when it is one: of any kind,
        number of ranks, units, mode and precision; or from a file of torch.save (a state dict, or {"model": …, "optimizer":
        …}, as many programs write it) or of safetensors. Before the first call the values come with that, when the ranks are
        there; of a folder each rank reads its bytes. All processes of a job call this.

        Args:
          strict: what the checkpoint lacks, and what it has besides, is an error; else the one stays as it is, and the
            other is left out. Another shape always is. An error lists all of them, and nothing has changed then.
          objects: what was saved, by name: load_state_dict() of each is called.
          map_location: torch.load's, of a file.
          revise_keys: pairs of a regular expression and what replaces it in names of parameters and buffers, as in
            mmengine: [(r"^module\\.", "")]. Where one does, each process reads everything.
          callback: is called with the Checkpoint, or with what torch.save was given, which it may change.

        Returns:
          Steps taken, which `steps` counts on from.
        """
        return load_checkpoint(self.training_state, folder,
                               LoadOptions(strict, objects or {}, map_location, revise_keys, callback))

    def sync(self) -> None:
        """Brings all parameters, buffers and optimizer state from the ranks into the model and the optimizer.

        Where one process has all ranks, or they share a host, nothing needs it: what is used comes by itself, and this
        makes the time when that happens plain. Of several hosts all processes call it, and then each may read.
        """
        if self.training_state.live is not None:
            self.training_state.live.fetch_all()

    def reset(self) -> None:
        """Ends the ranks: the next call starts from what model and optimizer hold then, with no program.

        After a failure that lost the state, tensors that were read just before the step have those values. The others of
        the model are nan (the least integer, False), and a call before they are loaded is a StateLostError; the
        optimizer's begin anew, which a Remark says.
        """
        training = self.training_state
        with training.lock:
            training.fetch_all()
            training.forget()
            training.compiles = 0

    def __repr__(self) -> str:
        training = self.training_state
        ranks = "1 rank in each process" if self.ranks is None else f"{self.ranks} rank{'s' * (self.ranks != 1)}"
        name = f"<spmd.compile({self.__name__}): {ranks}"
        if training.current is None:
            return name + ", not called yet>"
        lost = ", state lost" if training.live.lost else ""
        programs = len(training.programs)
        return (f"{name}, {programs} program{'s' * (programs != 1)}, {self.steps} steps, "
                f"{self.trainer.arena_bytes:,} bytes per rank{lost}>")
