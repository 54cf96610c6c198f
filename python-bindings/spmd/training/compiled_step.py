"""A training step that captures, compiles and runs itself: what spmd.compile gives."""
from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch

from ..arrays import to_torch
from ..capture import StepPackage
from ..capture.call import StepCall, name_of, takes
from ..capture.optimizer.gradients import with_gradient
from ..capture.optimizer.scheduled import read_option
from ..capture.write.outputs import Empty, Output
from ..capture.world.closure_objects import CompiledFunction, Opaque
from ..capture.world.iterators import OtherTaken, put_aside
from ..capture.write.result import unwrap
from ..compat.overrides import Overrides
from ..compiler import plan_of, report_of
from ..interrupts import uninterrupted
from ..native import FAILED
from ..planning import Plan, read_plan
from ..precision import Precision
from ..remarks import remark
from ..run.processes import Processes
from ..run.runtime import RunError, Shard, Trainer
from ..torch_api.optimizers import mark_called
from ..torch_api.tracing import pytree
from ..units.choice import UnitChoice
from .agreement import StepAgreement
from .batch_sizes import Dynamic, OneSize
from .deferred import LateOutputs
from .initialization import Initialize
from .live_state import LiveState, Valueless
from .make_program import make_program, save_tensors, served_too
from .programs import Need, Program, counts_taken, key_of, look_at, options_of
from .randomness import Randomness, follow_counters, read_draws, step_counts, write_draws
from .resuming import Checkpoints
from .state_views import local_shards, select, state_dict, unshard


class NonFiniteError(FloatingPointError):
    """The loss of a step is nan or infinite; with check_finite=True."""


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

    Attributes: `train_step`, the function it was made from; `batch_dims`; and, None before the first call, of the
    program that ran last: `package` (what was captured), `artifact` (the compiled folder), `trainer`.
    """

    def __init__(self, train_step: Callable, options: Sequence[str], batch_dims: dict[str, int | None] | None,
                 run_options: dict[str, Any], max_compiles: int, ranks: int | None, view: str, units: UnitChoice,
                 check_finite: bool = False, keep_grads: bool = False, precision: Precision | None = None,
                 launcher: str | None = None, overrides: Overrides = Overrides([], []), init: Initialize | None = None,
                 dynamic: Dynamic | None = None):
        functools.update_wrapper(self, train_step)
        function = train_step
        while isinstance(function, functools.partial):
            function = function.func
        self.__name__ = getattr(function, "__name__", None) or name_of(function)
        self._arguments = (options, batch_dims, run_options, max_compiles, ranks, view, units, check_finite,
                           keep_grads, precision, launcher, overrides, init, dynamic)
        self._overrides = overrides
        self.train_step, self.batch_dims, self.max_compiles = train_step, batch_dims, max_compiles
        self.ranks, self.view, self.steps, self.compiles, self.check_finite = ranks, view, 0, 0, check_finite
        self._options, self._run_options, self._units = list(options), dict(run_options), units
        self._keep_grads, self._precision, self._lock = keep_grads, precision, threading.RLock()
        self._launcher, self._agreement, self._init, self._dynamic = launcher, None, init, dynamic
        self._differs = ""  # the shapes of the batches that processes pass, where they are not the same
        self._other_steps: list[tuple[Any, ...]] = []  # keys of calls whose batch size no program for several serves
        self._programs: list[Program] = []
        self._current: Program | None = None
        self._live: LiveState | None = None
        self._structure: list[int] | None = None
        self._left_over: list[tuple[Any, list[Any]]] = []  # of iterators, what a call has taken and no step has used
        self._randomness, self._checkpoints = Randomness(self.__name__), Checkpoints()
        self._valueless: dict[str, Valueless] = {}  # what a lost state has left without a value,
        self._stateless: dict[str, torch.Tensor] = {}  # and without optimizer state

    def __get__(self, instance: Any, owner: type | None = None) -> CompiledStep:
        if instance is None:
            return self
        if not hasattr(instance, "__dict__"):
            raise TypeError(f"a {type(instance).__qualname__} has __slots__ and no __dict__, where its compiled "
                            f"{self.__name__} would be kept\n  cure: add '__dict__' to its __slots__")
        steps = vars(instance).setdefault("_spmd_compiled", _OfMethods()).steps
        if self not in steps:
            steps[self] = CompiledStep(self.train_step.__get__(instance, owner), *self._arguments)
        return steps[self]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "last_train_step" in kwargs and not takes(self.train_step, "last_train_step"):
            kwargs.pop("last_train_step")  # a caller of _spmd says so; no work of a step is left for the next one
        with self._lock:
            if self._agreement is None:
                self._join()
            first: StepCall | None = None
            counts: list[tuple[int, bool]] = []

            def make_call() -> StepCall:
                nonlocal first
                if first is None:
                    first = StepCall(self.train_step, args, kwargs, self._current and self._current.call, self._precision,
                                     writes_batch=True, asks_batch=self._asks_batch(), left=self._left_over)
                call = first
                if first.takings:
                    call = first.taking(counts or counts_taken(first, [self._current, *self._programs]))
                return self._checkpoints.begin(call)

            try:
                while True:
                    try:
                        return self._step(make_call)
                    except OtherTaken as other:
                        counts = other.counts
            finally:
                if first is not None and first.takings:
                    self._left_over = put_aside(first.takings, self._left_over)

    def _asks_batch(self) -> bool:
        """Whether one process has the batch that the step means, and not ranks' parts of it."""
        return self._agreement.processes.world == 1 and (self.view == "global" or self.ranks == 1)

    def _join(self) -> None:
        """Meets the other processes, if a launcher has started several."""
        processes = Processes.find(self._launcher, self._run_options.get("timeout", 60))
        ranks = processes.world if self.ranks is None else self.ranks
        if ranks % processes.world:
            raise ValueError(f"ranks is {ranks}, and there are {processes.world} processes, which each hold as many of them"
                             f"\n  cure: leave ranks out, which gives each process one; or a multiple of {processes.world}")
        self.ranks = ranks
        self._run_options["launch"] = processes.launch
        self._agreement = StepAgreement(processes, self.batch_dims or {}, self._run_options["batch"])

    def _step(self, make_call: Callable[[], StepCall]) -> Any:
        alone = self._agreement.processes.world == 1
        self._checkpoints.finish(self, waits=False)
        call = rows = make_call() if alone else None
        if alone:
            self._check_model(call)
            need = self._need(call)
        else:
            call, rows, need = self._agree(make_call)
        program = self._program_for(call, rows, need)
        if self._checkpoints.source is not None:
            need.replaced = None  # what is loaded may be other tensors
        self._checkpoints.take(self)
        live, trainer = self._live, program.trainer
        size = program.of_size(need.key)
        program.check_batch(rows, size)
        if size.rows is not None and self._differs:
            raise ValueError(f"the processes pass batches of different numbers of rows, {self._differs}, and with view='local' "
                             "each rank has as many\n  cure: drop the last rows of an epoch, or pad them and mask the loss")
        live.before_step(program.package.gradients, need.replaced)
        if live.was_loaded:
            follow_counters(program, step_counts(call.optimizers))
        groups = call.optimizers.param_groups
        for name, group in program.hyper:
            trainer.set_hyper(name, group, float(read_option(groups[group], name)))
        with uninterrupted():
            try:
                trainer.issue(rows.batch if size.rows is None else program.sizes.batch(rows, size))
                device = trainer.device_of(rows.batch)
                outputs = self._late_outputs(program, size, rows.batch)
                arrays = None if outputs else trainer.results()
            except RunError as error:
                if error.code == FAILED:
                    live.lose(error, self.steps)
                raise
            self.steps += 1
            program.package.optimizer_numbers.put()
            live.after_step(program.package.gradients)
            for optimizer in call.optimizers.parts:
                mark_called(optimizer)
        if size.rows is not None:
            arrays = program.sizes.outputs(arrays, size)
        if self.check_finite:
            self._check_finite(arrays, trainer)
        outputs = outputs or [to_torch(array, info.dtype).to(device or "cpu") for array, info in zip(arrays, trainer.outputs)]

        def value(leaf: Any) -> Any:
            if not isinstance(leaf, Output):
                return leaf.make().to(device or "cpu") if isinstance(leaf, Empty) else leaf
            return outputs[leaf.index].item() if leaf.scalar else outputs[leaf.index]

        program.check(value, self.steps - 1)
        program.leave(value, size)
        program.write_batch(value, rows)
        program.package.seeds.put()
        return unwrap(pytree.tree_map(value, size.result,
                                      is_leaf=lambda leaf: isinstance(leaf, (Empty, Output))))

    def _late_outputs(self, program: Program, size: OneSize, batch: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """What the step gives, where nothing looks at it in this call: on the GPU of the batch, where PyTorch waits for it,
        or kept by the runtime for a later look."""
        trainer, package = program.trainer, program.package
        if self.check_finite or size.rows is not None or not trainer.outputs:
            return None
        is_on_device = trainer.device_of(batch) is not None
        if is_on_device and trainer.collectives:  # where ranks fail together, nothing may be given of their step
            return None
        is_kept = not (package.written or size.left or package.grown) \
            and all(trainer.steps_kept(n) > 1 for n in range(len(trainer.outputs)))
        if not (is_on_device or is_kept) or trainer.looks_at_rows:
            return None
        lose = weakref.WeakMethod(self._lose_later)
        trainer.on_failure = lambda error: (method := lose()) and method(error)
        if is_on_device:
            return trainer.torch_results(batch)[0]
        return LateOutputs(trainer, self._lock, trainer.on_failure).tensors()

    def _lose_later(self, error: RunError) -> None:
        """A step has failed after the call of it returned."""
        if self._live is not None and self._live.lost is None:
            self._live.lose(error, self.steps - 1)

    def _check_finite(self, arrays: list[np.ndarray], trainer: Trainer) -> None:
        """Raises when the loss is not finite, which Python sees once the step is over."""
        for array, info in zip(arrays, trainer.outputs):
            value = to_torch(array, info.dtype)
            if info.state == "loss" and not value.isfinite().all():
                raise NonFiniteError(f"the loss of step {self.steps - 1} of {self.__name__} is {value.tolist()}; "
                                     "parameters and optimizer state are those after its update\n  cure: load a "
                                     "checkpoint of an earlier step, and look at the batch, the learning rate and "
                                     "clipping")

    def _check_model(self, call: StepCall) -> None:
        if self._current is None:
            return
        first = self._current.call
        if call.model is not first.model or not call.optimizers.is_same(first.optimizers):
            raise ValueError(f"{self.__name__} was compiled for another model or optimizer; call reset() first, or "
                             "compile the function once for each")
        self._live.check()

    def _agree(self, make_call: Callable[[], StepCall]) -> tuple[StepCall, StepCall, Need]:
        """Of several processes: the call on the batch of all, this one's with its rows, and what all need."""
        agreement, call, need, state, choice, error = self._agreement, None, None, {}, 0, None
        try:
            call = make_call()
            self._check_model(call)
            need = self._need(agreement.global_call(call))
            state, choice = _state(call, need.gradients), need.choice(self._programs)
        except Exception as problem:
            error = problem
        shapes, choice = agreement.meet(call, state, choice, error)
        self._differs = "" if shapes is None else ", ".join(sorted({str(list(map(list, one))) for one in shapes}))
        everyones = agreement.global_call(call, shapes)
        if shapes is not None:  # the need is that of another batch
            need = self._need(everyones)
            choice = min(agreement.processes.gather_objects(need.choice(self._programs)))
        need.take(choice)
        if self.steps == 0:
            agreement.warn_of_equal_rows(call)
        return everyones, call, need

    def _need(self, call: StepCall) -> Need:
        self._overrides.replace_modules(call.model)
        look, options = look_at(call.model), options_of(call.optimizers)
        key, structure = key_of(call, look), look.ids
        replaced = self._live.replaced_states() if self._current is not None and self._live is not None else None
        restarts = self._current is not None and (structure != self._structure or self._live.is_replaced(replaced)
                                                  or self._live.trains_other(self._current.held.now()))
        gradients = with_gradient([*look.parameters, *call.optimizers.parameters])
        need = Need(key, options, structure, gradients, call.batch, self._live is None, restarts, None, replaced)
        for program in self._programs if self.view == "global" else []:  # with a local view what calls have left is not read
            program.note_what_stands_in_places()
        if not restarts:  # a program on the state that is there first
            programs = sorted(self._programs, key=lambda p: p.home is not self._live.trainer)
            need.program = next((p for p in programs if p.serves(need)), None)
        return need

    def _program_for(self, call: StepCall, rows: StepCall, need: Need) -> Program:
        """The program that serves this call, compiled if there is none; its trainer has the state. `rows` is the call with
        the batch of this process."""
        if need.program is None and not need.restarts:
            need.program = served_too(self, call, need)
        program, drawn = need.program, None
        if program is None:
            need.replaced = None  # a capture may put other tensors there
        if need.restarts:
            remark(f"{self.__name__}: parameters or optimizer state were replaced; starting from the new ones")
            drawn = read_draws(self._live.trainer)
            self._forget()
        if program is None:
            starts, known = self._live is None, [state for _, state in call.optimizers.states if state]
            counts = step_counts(call.optimizers) if starts else []
            program = make_program(self, call, rows, need)
            if starts:
                self._randomness.start(program, drawn, counts, bool(known), self._checkpoints.source is not None,
                                       self.steps)
            self._programs.append(program)
            self._structure = need.structure
        if self._live is not None and self._live.trainer is not program.home:
            self._live.fetch_all()
            write_draws(read_draws(self._live.trainer), program.home)
            self._live.release()
            self._live = LiveState(call.model, call.optimizers, program.held, program.home, self._lock,
                                   program.states, self.view, is_fresh=False)
        self._live.take(program.held)
        self._current = program
        if need.program is None:
            self._drop(other for other in self._programs if program.replaces(other))
        return program

    def _drop(self, programs: Iterable[Program]) -> None:
        """Ends programs that no call needs any more, and the ranks of those whose state nobody trains."""
        for program in list(programs):
            self._programs.remove(program)
            if program.trainer is not program.home or all(p.home is not program.home for p in self._programs):
                program.trainer.close()

    @property
    def rng(self) -> dict[str, int]:
        """Where random numbers are: they are a function of the `seed` and of the `step` that is next. Empty for a step
        that draws none. It can be set, before the first call too, to go on where another training was."""
        if self._live is None:
            return {name: int(value) for name, value in self._randomness.given.items()}
        return {name: int(value) for name, value in read_draws(self._live.trainer).items()}

    @rng.setter
    def rng(self, value: dict[str, int]) -> None:
        unknown = sorted(set(value) - {"seed", "step"})
        if unknown or any(not isinstance(number, int) for number in value.values()):
            raise ValueError(f"rng is {value!r}; allowed: {{'seed': int, 'step': int}}, or one of them")
        tensors = {name: torch.tensor(number, dtype=torch.int64) for name, number in value.items()}
        with self._lock:
            if self._live is None:
                self._randomness.given = tensors
            else:
                write_draws(tensors, self._live.trainer)

    @property
    def package(self) -> StepPackage | None:
        """What was captured."""
        return self._current and self._current.package

    @property
    def artifact(self) -> Path | None:
        """The compiled folder, in the cache and without weights; save() writes one that is complete."""
        return self._current and self._current.artifact

    @property
    def trainer(self) -> Trainer | None:
        """What runs the artifact."""
        return self._current and self._current.trainer

    @property
    def plan(self) -> Plan | None:
        """Memory of a rank by class and at the peak, collectives by unit; what package.plan() gives ahead of time."""
        return self._current and read_plan(plan_of(self.artifact), self.report())

    def report(self) -> str:
        """What spmd-compile says of the program: shard units, collectives and their bytes, the arena of a rank.

        Raises:
          RuntimeError: before the first call.
        """
        return report_of(self._compiled().artifact)

    def save(self, path: str | Path) -> Path:
        """Writes the artifact with the parameters, buffers and optimizer state of now, for spmd-run and spmd.load.

        The folder appears whole or not at all; an older artifact of the name is replaced.

        Raises:
          FileExistsError: when something else has the name.
          RuntimeError: before the first call.
        """
        program, path = self._compiled(), Path(path)
        if path.exists() and not (path / "manifest.json").is_file():
            raise FileExistsError(f"'{path}' is there and is no artifact; remove it or choose another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as work:
            folder = Path(work) / path.name
            shutil.copytree(program.artifact, folder)
            rng = {f"rng/{name}": value for name, value in read_draws(program.home).items()}
            save_tensors(rng | self._live.tensors(), folder / "weights.safetensors")
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
        self._compiled()
        names = select(self, units, recurse)
        if offload_to_cpu and any(p.device.type != "cpu" for p in self._live.parameters(names)):
            raise NotImplementedError("offload_to_cpu=True for a model on a GPU\n  cure: keep the model on the CPU, where the "
                                      "ranks on GPUs need no copy of it; or read with state_dict()")
        with unshard(self, names, writeback, rank0_only, with_grads):
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
        self._compiled()
        return state_dict(self, kind, rank0_only)

    def local_shards(self, rank: int | None = None) -> dict[str, Shard]:
        """What a rank of this process (None: the first) has for itself of the state, by name: the elements `values` of
        the tensor as one row, from `first` on. What all ranks have alike is rank 0's.

        Raises:
          RuntimeError: before the first call.
          RunError: the rank is in another process.
        """
        self._compiled()
        return local_shards(self, rank)

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
        return self._checkpoints.save(self, folder, kind, mode, keep, objects)

    def finish_checkpoint(self) -> None:
        """Waits until the checkpoint is there that is written beside the training, if one is. All processes of a job call
        this.

        Raises:
          RunError: it could not be written.
        """
        self._checkpoints.finish(self, waits=True)

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
        return self._checkpoints.load(self, folder, strict, objects, map_location, revise_keys, callback)

    def sync(self) -> None:
        """Brings all parameters, buffers and optimizer state from the ranks into the model and the optimizer.

        Where one process has all ranks, or they share a host, nothing needs it: what is used comes by itself, and this
        makes the time when that happens plain. Of several hosts all processes call it, and then each may read.
        """
        if self._live is not None:
            self._live.fetch_all()

    def reset(self) -> None:
        """Ends the ranks: the next call starts from what model and optimizer hold then, with no program.

        After a failure that lost the state, tensors that were read just before the step have those values. The others of
        the model are nan (the least integer, False), and a call before they are loaded is a StateLostError; the
        optimizer's begin anew, which a Remark says.
        """
        with self._lock:
            if self._live is not None and self._live.lost is None:
                self._live.fetch_all()
            self._forget()
            self.compiles = 0

    def _forget(self) -> None:
        try:
            self._checkpoints.finish(self, waits=True)
        except RunError as error:
            if self._live is None or not self._live.lost:
                raise
            remark(f"{self.__name__}: the checkpoint that was being written is not there: {error}")
        if self._live is not None:
            if self._live.lost is None:
                self._live.fetch_all()
            self._live.release()
            self._valueless |= self._live.without_value
            self._stateless |= self._live.without_state
        programs, self._programs = self._programs, []
        self._current = self._live = self._structure = None
        for program in programs:
            program.trainer.close()

    def _compiled(self) -> Program:
        if self._current is None:
            raise RuntimeError(f"{self.__name__} has not been called yet, so there is no program")
        return self._current

    def __repr__(self) -> str:
        ranks = "1 rank in each process" if self.ranks is None else f"{self.ranks} rank{'s' * (self.ranks != 1)}"
        name = f"<spmd.compile({self.__name__}): {ranks}"
        if self._current is None:
            return name + ", not called yet>"
        lost = ", state lost" if self._live.lost else ""
        return (f"{name}, {len(self._programs)} program{'s' * (len(self._programs) != 1)}, {self.steps} steps, "
                f"{self.trainer.arena_bytes:,} bytes per rank{lost}>")


def _state(call: StepCall, gradients: frozenset[int]) -> dict[str, str]:
    """What the processes of a job must call a step with alike, as text."""
    state = {}
    if call.takings:
        taken = [f"{values} value{'s' * (values != 1)}{' and the end' * ends}" for values, ends in (t.count for t in call.takings)]
        state["what the step takes of its iterators"] = ", ".join(taken)
    state |= {"the number of tensors": str(len(call.batch)), "the default dtype": str(torch.get_default_dtype())}
    if gradients:
        names = [name for name, parameter in call.model.named_parameters() if id(parameter) in gradients]
        state["which parameters have a gradient"] = f"{len(gradients)} ({', '.join(names)})"
    for number, group in enumerate(options_of(call.optimizers)):
        state |= {f"{name} of param group {number}": value for name, value in group.items()}
    state |= {f"the dtype of batch input {name!r}": str(t.dtype) for name, t in zip(call.batch_names, call.batch)}
    return state | call.values() | {"train() of the model": str(call.model.training)}
