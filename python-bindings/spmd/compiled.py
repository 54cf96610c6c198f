"""spmd.compile: a training step that captures, compiles and runs itself."""
from __future__ import annotations

import contextlib
import functools
import shutil
import socket
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from safetensors.torch import save_file
from torch.utils import _pytree as pytree

from .agreement import StepAgreement
from .arrays import to_torch
from .capture import CaptureError, StepPackage, capture_call
from .capture.baked_values import baked_values, slots_of
from .capture.call import StepCall, name_of, takes
from .capture.code_names import users_hooks
from .capture.draws import default_seed, seeded_with
from .capture.gradients import with_gradient
from .capture.held import named_modules, whole
from .capture.left import check_reads_nothing_left
from .capture.optimizers import Optimizers
from .capture.package import OwnStates
from .capture.reached import CompiledFunction, Opaque
from .capture.result import unwrap
from .capture.scheduled import can_be_input, cycled_options, read_option
from .capture.sync_batch_norm import one_device
from .capture.trace import Empty, Output
from .checkpoint import Checkpoint
from .compiler import cache_folder, compile_package, plan_of, report_of
from .initialization import Initialize, check_replaceable, initialize, meta_names
from .interrupts import uninterrupted
from .livestate import LiveState, StateLostError, Valueless
from .loading import check_groups, load_into, name_list, notes_of, objects_file, read_objects, take_groups
from .looking import local_shards, select, state_dict, unshard
from .meshes import count_ranks, mesh_text
from .models import tensor_names
from .native import FAILED, OTHER_STATE
from .planning import Plan, read_plan
from .overrides import Overrides
from .parallel_mode import arguments_of
from .passes import Pass
from .precision import Precision
from .processes import Processes
from .programs import Need, Program, key_of, options_of, shapes_of
from .remarks import remark
from .runtime import RunError, Shard, Trainer
from .statefile import Revised, StateFile, opened
from .unitoptions import take_arguments_of_fsdp
from .units.choice import UnitChoice


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
    tensors of the model and the optimizer get their values back when they are used, whoever uses them (livestate.py).

    Attributes: `train_step`, the function it was made from; `batch_dims`; and, None before the first call, of the
    program that ran last: `package` (what was captured), `artifact` (the compiled folder), `trainer`.
    """

    def __init__(self, train_step: Callable, options: Sequence[str], batch_dims: dict[str, int | None] | None,
                 run_options: dict[str, Any], max_compiles: int, ranks: int | None, view: str, units: UnitChoice,
                 check_finite: bool = False, keep_grads: bool = False, precision: Precision | None = None,
                 launcher: str | None = None, overrides: Overrides = Overrides([], []), init: Initialize | None = None):
        functools.update_wrapper(self, train_step)
        function = train_step
        while isinstance(function, functools.partial):
            function = function.func
        self.__name__ = getattr(function, "__name__", None) or name_of(function)
        self._arguments = (options, batch_dims, run_options, max_compiles, ranks, view, units, check_finite,
                           keep_grads, precision, launcher, overrides, init)
        self._overrides = overrides
        self.train_step, self.batch_dims, self.max_compiles = train_step, batch_dims, max_compiles
        self.ranks, self.view, self.steps, self.compiles, self.check_finite = ranks, view, 0, 0, check_finite
        self._options, self._run_options, self._units = list(options), dict(run_options), units
        self._keep_grads, self._precision, self._lock = keep_grads, precision, threading.RLock()
        self._launcher, self._agreement, self._init = launcher, None, init
        self._programs: list[Program] = []
        self._current: Program | None = None
        self._live: LiveState | None = None
        self._structure: list[int] | None = None
        self._set_rng: dict[str, torch.Tensor] = {}
        self._resumed: Checkpoint | StateFile | Revised | None = None  # to be loaded at the next call,
        self._strict = True  # in this way
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._saving: Trainer | None = None  # which writes a checkpoint beside the training
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
            return self._step(lambda: self._resumed_call(StepCall(self.train_step, args, kwargs,
                                                                  self._current and self._current.call,
                                                                  self._precision, writes_batch=True)))

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
        self._finish_saving(waits=False)
        call = rows = make_call() if alone else None
        if alone:
            self._check_model(call)
            need = self._need(call)
        else:
            call, rows, need = self._agree(make_call)
        program = self._program_for(call, rows, need)
        self._load_resumed()
        live, trainer = self._live, program.trainer
        program.check_batch(rows)
        live.before_step(program.package.gradients)
        if live.was_loaded:
            self._follow_counters(program, _step_counts(call.optimizers))
        groups = call.optimizers.param_groups
        for name, group in program.hyper:
            trainer.set_hyper(name, group, float(read_option(groups[group], name)))
        with uninterrupted():
            try:
                arrays = trainer.run(rows.batch)
            except RunError as error:
                if error.code == FAILED:
                    live.lose(error, self.steps)
                raise
            self.steps += 1
            program.package.optimizer_numbers.put()
            live.after_step(program.package.gradients)
            for optimizer in call.optimizers.parts:
                optimizer._opt_called = True  # lr_scheduler.step() asks whether the optimizer has stepped before it
        if self.check_finite:
            self._check_finite(arrays, trainer)
        outputs = [to_torch(array, info.dtype) for array, info in zip(arrays, trainer.outputs)]

        def value(leaf: Any) -> Any:
            if not isinstance(leaf, Output):
                return leaf.make() if isinstance(leaf, Empty) else leaf
            return outputs[leaf.index].item() if leaf.scalar else outputs[leaf.index]

        program.leave(value)
        program.write_batch(value, rows)
        return unwrap(pytree.tree_map(value, program.package.result,
                                      is_leaf=lambda leaf: isinstance(leaf, (Empty, Output))))

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
        (structure, key), options = key_of(call), options_of(call.optimizers)
        restarts = self._current is not None and (structure != self._structure or self._live.is_replaced()
                                                  or self._live.trains_other(self._current.held.now()))
        gradients = with_gradient([*call.model.parameters(), *call.optimizers.parameters])
        need = Need(key, options, structure, gradients, self._live is None, restarts, None)
        if not restarts:  # a program on the state that is there first
            programs = sorted(self._programs, key=lambda p: p.home is not self._live.trainer)
            need.program = next((p for p in programs if p.serves(need)), None)
        return need

    def _program_for(self, call: StepCall, rows: StepCall, need: Need) -> Program:
        """The program that serves this call, compiled if there is none; its trainer has the state. `rows` is the call with
        the batch of this process."""
        program, drawn = need.program, None
        if need.restarts:
            remark(f"{self.__name__}: parameters or optimizer state were replaced; starting from the new ones")
            drawn = _rng(self._live.trainer)
            self._forget()
        if program is None:
            starts, known = self._live is None, [state for _, state in call.optimizers.states if state]
            counts = _step_counts(call.optimizers) if starts else []
            program = self._compile(call, rows, need)
            if starts:
                self._start_draws(program, drawn, counts, bool(known))
            self._programs.append(program)
            self._structure = need.structure
        if self._live is not None and self._live.trainer is not program.home:
            self._live.fetch_all()
            _write_rng(_rng(self._live.trainer), program.home)
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

    def _start_draws(self, program: Program, drawn: dict[str, torch.Tensor] | None, counts: list[int],
                     has_state: bool) -> None:
        """Random numbers go on after what has been `drawn`, or was set (`rng`), or after the steps that the optimizer
        has counted (`counts`); where it has taken steps and counts none, they begin, which is told."""
        optimizers, same = program.call.optimizers, [ref() for ref in self._optimizers]
        self._optimizers = [weakref.ref(part) for part in optimizers.parts]
        if self._resumed is not None and self._set_rng:
            pass  # comes with the values
        elif drawn or self._set_rng:
            _write_rng(drawn or self._set_rng, program.home)
            self._set_rng = {}
        elif counts:
            self._follow_counters(program, counts)
        elif _rng(program.home) and (has_state or self.steps and same == list(optimizers.parts)):
            remark(f"{self.__name__} draws random numbers, and starts from an optimizer that has taken steps and does not "
                   "count them: its draws (dropout masks) begin with those of step 0, as at the beginning of the training "
                   f"that is resumed\n  cure: set {self.__name__}.rng to what it was, {{'seed': …, 'step': …}}, before "
                   "the first call of a resumed training")

    def _follow_counters(self, program: Program, counts: list[int]) -> None:
        """The draws of the next step are those of a training that has taken the steps which the optimizer counts."""
        _write_rng({"step": torch.tensor(max(counts) // program.package.updates)}, program.home)

    @property
    def rng(self) -> dict[str, int]:
        """Where random numbers are: they are a function of the `seed` and of the `step` that is next. Empty for a step
        that draws none. It can be set, before the first call too, to go on where another training was."""
        if self._live is None:
            return {name: int(value) for name, value in self._set_rng.items()}
        return {name: int(value) for name, value in _rng(self._live.trainer).items()}

    @rng.setter
    def rng(self, value: dict[str, int]) -> None:
        unknown = sorted(set(value) - {"seed", "step"})
        if unknown or any(not isinstance(number, int) for number in value.values()):
            raise ValueError(f"rng is {value!r}; allowed: {{'seed': int, 'step': int}}, or one of them")
        tensors = {name: torch.tensor(number, dtype=torch.int64) for name, number in value.items()}
        with self._lock:
            if self._live is None:
                self._set_rng = tensors
            else:
                _write_rng(tensors, self._live.trainer)

    def _compile(self, call: StepCall, rows: StepCall, need: Need) -> Program:
        options = need.options
        if self.compiles >= self.max_compiles:
            raise RuntimeError(
                f"{self.__name__} was compiled {self.compiles} times, which is max_compiles; what was new each time:\n"
                + "\n".join(f"  {p.why or shapes_of(p.call)}" for p in self._programs)
                + f"\nnow: {self._current.what_is_new(call, need)}\n"
                "  cure: pad batches to few shapes, drop the last batch of an epoch, pass numbers that change as "
                "tensors, and what they decide as booleans ((i + 1) % k == 0, not i), or raise max_compiles")
        why = "" if self._current is None else self._current.what_is_new(call, need)
        if why:
            remark(f"{self.__name__} is compiled again: {why}")
        agreement = self._agreement
        together = agreement.processes.together
        seed = agreement.processes.gather_objects(default_seed())[0]
        full = call if agreement.processes.world == 1 else agreement.with_all_rows(rows)

        def capture() -> tuple[StepPackage, torch.nn.Module, list[str], dict[str, Any] | None]:
            captured = full if self.view == "global" else full.of_one_rank(self.ranks, self.batch_dims or {})
            with seeded_with(seed):
                package = self._capture(captured, self._scheduled(options, call.optimizers), need.gradients)
            if self.view == "local" and self.ranks > 1:
                check_reads_nothing_left(package.held)
            everything = whole(call.model, package.held)
            check_replaceable(everything)
            if agreement.processes.rank == 0:  # whose values all begin with
                self._check_values(everything, call.optimizers, package)
            words = [f"--ranks={self.ranks}", *self._options, *self._units.words(everything)]
            return package, everything, words, self._units.plan(everything, self.ranks, self._precision)

        package, everything, words, plan = together(capture)
        artifact = self._compile_once(package, words, plan)
        if self._live is not None:
            self._live.upload_constants()  # a program with other values of them could not share the state
        missing = set(agreement.processes.gather_objects(meta_names(everything))[0])
        trainer, home, states = self._load(artifact, package, missing)
        if missing:
            known = self._resumed.tensors if self._resumed is not None else ()
            initialize(everything, {names[0] for _, _, names in tensor_names(everything).values() if names[0] in missing
                                    and not any(name in known for name in names)}, self._init, seed, trainer.write)
        if self._live is None:
            self._live = LiveState(call.model, call.optimizers, package.held, trainer, self._lock, states,
                                   self.view)
        self.compiles += 1
        hyper = {(i["name"], i["group"]) for i in package.step["inputs"] if i["kind"] == "hyper"}
        baked = [{n: v for n, v in group.items() if (n, number) not in hyper} for number, group in enumerate(options)]
        is_read = lambda _, tensor: id(tensor) in package.read_left  # noqa: E731
        values = baked_values(call.train_step, call.model, package.held, call.others,
                              users_hooks(everything, call.optimizers), is_read)
        values += slots_of(package.left, dict(named_modules(call.model, everything)), package.held, is_read)
        return Program(call, need.key, baked, values, package.held, package, artifact, trainer, home, states, why)

    def _check_values(self, model: torch.nn.Module, optimizers: Optimizers, package: StepPackage) -> None:
        """Training begins with the values of parameters and buffers; those on the meta device are made (initialization.py).

        Raises:
          StateLostError: a value was lost, and nobody has loaded one.
          ValueError: optimizer state, or a tensor that belongs to no module, is on the meta device.
        """
        own = {id(tensor) for _, tensor, _ in tensor_names(model).values()}
        resumed = self._resumed.tensors if self._resumed is not None else {}
        lost = [name for name, value in self._valueless.items()
                if name not in resumed and id(value.tensor) in own and not value.is_written()]
        if lost:
            raise StateLostError(f"{name_list(lost)} lost their values when a step failed on the ranks, and have got no "
                                 "others since\n  cure: load_checkpoint(), or load_state_dict() of model and optimizer")
        anew = [name for name, parameter in self._stateless.items()
                if not optimizers.state_of(parameter) and not any(key.startswith("optimizer/") for key in resumed)]
        if anew:
            remark(f"{self.__name__}: the optimizer's state of {name_list(anew)} was lost when a step failed on the ranks, "
                   "and begins anew")
        self._valueless, self._stateless = {}, {}
        for name, tensor in package.weights.items():
            if tensor.is_meta and name.startswith(("optimizer/", "constant/")):
                raise ValueError(f"{name!r} is on the meta device, and has no value to begin with\n  cure: make it on the CPU; "
                                 "only parameters and buffers are initialized here")

    def _compile_once(self, package: StepPackage, words: list[str], plan: dict[str, Any] | None) -> Path:
        """The artifact. The first of several processes compiles it, and the others find it in the cache; where they have
        another one, the first that has that compiles, too."""
        processes = self._agreement.processes
        if processes.world == 1:
            return compile_package(package, words, plan, passes=self._overrides.all_passes())
        self._agreement.compare("what was captured", [package.digest()[:16], words, plan])
        caches = processes.gather_objects((socket.gethostname(), str(cache_folder())))
        turn = 0 if processes.rank == 0 else 1 if caches.index(caches[processes.rank]) == processes.rank else 2
        artifact = None
        for now in range(3):
            artifact = processes.together(lambda: compile_package(package, words, plan, processes.rank == 0,
                                                                          self._overrides.all_passes())
                                          if turn == now else artifact)
        return artifact

    def _scheduled(self, options: list[dict[str, str]], optimizers: Optimizers) -> list[str]:
        """The options that are inputs of the next program: those of earlier ones, what OneCycleLR and CyclicLR say they
        move, and every number that is not what it was in the last program."""
        groups = optimizers.param_groups
        names = [name for p in self._programs for name, _ in p.hyper if name != "lr"]
        names += [name for group in groups for name in cycled_options(group)]
        names += [name for given, own, group in zip(options, self._current.options if self._current else (), groups)
                  for name, value in own.items()
                  if given.get(name) not in (None, value) and name != "params" and can_be_input(read_option(group, name))]
        return list(dict.fromkeys(names))

    def _capture(self, call: StepCall, scheduled: list[str], gradients: frozenset[int]) -> StepPackage:
        """Options that cannot be inputs are constants of the program."""
        _check_frozen(call.model, gradients)
        with one_device() if self.view == "global" else contextlib.nullcontext():
            if scheduled:
                try:
                    return capture_call(call, self.batch_dims, self._keep_grads, scheduled_options=scheduled,
                                        gradients=gradients)
                except CaptureError as error:
                    remark(f"{self.__name__}: {', '.join(scheduled)} are constants of the program: {error}")
            return capture_call(call, self.batch_dims, self._keep_grads, gradients=gradients)

    def _load(self, artifact: Path, package: StepPackage, missing: set[str]) -> tuple[Trainer, Trainer, OwnStates]:
        """A trainer, the one whose state it trains, and which states that has: those of an earlier program where both hold
        the same tensors. What is `missing` among the weights is written to it next."""
        weights, states = package.weights, OwnStates.of(package)
        with tempfile.TemporaryDirectory(prefix="spmd.") as folder:
            constants, everything = Path(folder) / "constants.safetensors", Path(folder) / "weights.safetensors"
            homes = {p.home: p.states for p in self._programs if p.states.serve(states)}
            if homes:
                _save({n: t for n, t in weights.items() if n.startswith("constant/")}, constants)
            for home, its_states in homes.items():
                try:
                    return Trainer(artifact, weights=constants, shares=home, **self._run_options), home, its_states
                except RunError as error:
                    if error.code != OTHER_STATE:
                        raise
            processes = self._agreement.processes
            if processes.rank == 0:  # whose values all begin with
                _save({n: t for n, t in weights.items() if not t.is_meta}, everything)
            everything = processes.share_file(everything, Path(folder)) if processes.world > 1 else everything
            trainer = Trainer(artifact, weights=everything, written_next=bool(missing), **self._run_options)
            return trainer, trainer, states

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
            rng = {f"rng/{name}": value for name, value in _rng(program.home).items()}
            _save(rng | self._live.tensors(), folder / "weights.safetensors")
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
        with self._lock:
            program, objects = self._compiled(), objects or {}
            if self._live.is_replaced():
                raise RuntimeError(f"parameters or optimizer state were replaced since the last call of {self.__name__}\n"
                                   "  cure: save before that, or after the next call")
            self.finish_checkpoint()
            self._live.before_save()
            processes = self._agreement.processes
            files = dict([objects_file(objects, processes.rank)] if objects else [])
            self._live.trainer.save_checkpoint(
                folder, kind=kind, mode=mode, step=self.steps, keep=keep, files=files,
                notes=notes_of(program.call.optimizers, self._live.names, processes.world, list(objects)))
            self._saving = self._live.trainer if mode == "beside" else None
            return Path(folder) / f"step-{self.steps:08d}"

    def finish_checkpoint(self) -> None:
        """Waits until the checkpoint is there that is written beside the training, if one is. All processes of a job call
        this.

        Raises:
          RunError: it could not be written.
        """
        self._finish_saving(waits=True)

    def _finish_saving(self, waits: bool) -> None:
        with self._lock:
            if self._saving is None:
                return
            saving, self._saving = self._saving, None
            if not saving.finish_checkpoint(waits):
                self._saving = saving

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
        with self._lock:
            live = self._live
            if live is None or not live.lost:
                self.finish_checkpoint()
            if live is not None and (live.lost or live.is_replaced()):  # the next call starts from model and optimizer
                self._forget()
            if self._agreement is None:
                self._join()
            processes, objects = self._agreement.processes, objects or {}
            checkpoint = processes.together(lambda: opened(folder, map_location, revise_keys, callback,
                                                           lambda: Checkpoint(folder)))
            states = processes.together(lambda: read_objects(checkpoint, objects, processes.rank, processes.world))
            self._resumed, self._strict = checkpoint, strict
            if self._live is not None:
                self._resume_now()
            else:
                self._set_rng = {key[4:]: checkpoint.read_torch(key) for key in checkpoint.tensors if key.startswith("rng/")}
            for name, value in objects.items():
                value.load_state_dict(states[name])
            self.steps = checkpoint.step
            return checkpoint.step

    def _resume_now(self) -> None:
        checkpoint, optimizers = self._resumed, self._current.call.optimizers
        try:
            check_groups(checkpoint.notes, optimizers, checkpoint.describe())
            self._bind(self._current.call)
            self._load_resumed()
        finally:
            self._resumed = None
        take_groups(checkpoint.notes, optimizers)

    def _resumed_call(self, call: StepCall) -> StepCall:
        if self._resumed is not None:
            check_groups(self._resumed.notes, call.optimizers, self._resumed.describe())
            take_groups(self._resumed.notes, call.optimizers)
            self._bind(call)
            for name, parameter in call.model.named_parameters():  # the call begins with those that are loaded
                if f"optimizer/grad/{name}" in self._resumed.tensors and parameter.grad is None and not parameter.is_meta:
                    parameter.grad = torch.zeros_like(parameter)
        return call

    def _bind(self, call: StepCall) -> None:
        self._resumed_state = any(state for _, state in call.optimizers.states)
        if not isinstance(self._resumed, Checkpoint):
            self._resumed.bind(call.model, call.optimizers)

    def _load_resumed(self) -> None:
        """The ranks, which are there, take the checkpoint."""
        if self._resumed is None:
            return
        self._live.before_load()
        if not isinstance(self._resumed, Checkpoint):
            self._load_into_tensors(self._resumed)
            self._resumed, self._set_rng = None, {}
            return
        try:
            self._live.trainer.load_checkpoint(self._resumed.folder, strict=self._strict)
        except RunError as error:
            if error.code == FAILED:
                self._live.lose(error, self.steps)
            raise
        self._live.after_load()
        _write_rng(self._set_rng, self._live.trainer)
        self._resumed, self._set_rng = None, {}

    def _load_into_tensors(self, source: StateFile | Revised) -> None:
        """What a file has, or a checkpoint under other names, goes the way of what a user writes."""
        program, call = self._current, self._current.call
        load_into(source, call.model, call.optimizers, self._strict, self._resumed_state)
        counts = _step_counts(call.optimizers) if source.has_optimizer else []
        self._follow_counters(program, counts or [source.step * program.package.updates])
        drawn = {key[4:]: source.read_torch(key) for key in source.tensors if key.startswith("rng/")}
        _write_rng(drawn | self._set_rng, program.home)

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
            self._finish_saving(waits=True)
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


def _save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    save_file({n: t.detach().cpu().clone(memory_format=torch.contiguous_format) for n, t in tensors.items()}, path)


def _check_frozen(model: torch.nn.Module, gradients: frozenset[int]) -> None:
    for name, parameter in model.named_parameters():
        if id(parameter) in gradients and not parameter.requires_grad:
            raise ValueError(f"parameter {name!r} has a gradient, and is frozen\n  cure: clear it when the parameter is "
                             "frozen: p.grad = None")


def _state(call: StepCall, gradients: frozenset[int]) -> dict[str, str]:
    """What the processes of a job must call a step with alike, as text."""
    state = {"the number of tensors": str(len(call.batch)), "the default dtype": str(torch.get_default_dtype())}
    if gradients:
        names = [name for name, parameter in call.model.named_parameters() if id(parameter) in gradients]
        state["which parameters have a gradient"] = f"{len(gradients)} ({', '.join(names)})"
    for number, group in enumerate(options_of(call.optimizers)):
        state |= {f"{name} of param group {number}": value for name, value in group.items()}
    state |= {f"the dtype of batch input {name!r}": str(t.dtype) for name, t in zip(call.batch_names, call.batch)}
    return state | call.values() | {"train() of the model": str(call.model.training)}


def _step_counts(optimizers: Optimizers) -> list[int]:
    """How many steps the parameters have taken, of optimizers that count them."""
    return [int(state["step"]) for _, state in optimizers.states if "step" in state]


def _rng(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Seed and step counter of random numbers; empty when the step draws none."""
    return {i.name: to_torch(trainer.read("rng", i.name), i.dtype) for i in trainer.tensors if i.state == "rng"}


def _write_rng(drawn: dict[str, torch.Tensor], target: Trainer) -> None:
    """Another program goes on with the seed, and with the steps counted so far."""
    known = _rng(target)
    for name, value in drawn.items():
        if name in known:
            target.write("rng", name, value)


def _own_chip() -> str:
    """"sm_90" of this machine's GPUs."""
    if not torch.cuda.is_available():
        raise ValueError("target is 'cuda', and PyTorch finds no GPU here; name the kind of the one that it is for "
                         "(cuda:sm_80, cuda:sm_90, cuda:sm_100), or take target=\"host\"")
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def compile(train_step: Callable | None = None, *, ranks: int | None = None, policy: Any = None, mode: str | None = None,
            view: str = "global", gradient_divide_factor: float | None = None, accumulate: str = "sharded",
            target: str = "host", batch_dims: dict[str, int | None] | None = None, max_compiles: int = 8,
            options: Sequence[str] = (), threads: int | None = None, timeout: float | None = None,
            ignored_modules: Iterable[torch.nn.Module] | None = None,
            ignored_states: Iterable[Any] | None = None, check_finite: bool = False, keep_grads: bool = False, precision: Any = None, batch: str = "rows",
            launcher: str | None = None, module_override: Any = None, gm_transformation: Pass | None = None,
            passes: Sequence[Pass] = (), mesh: Any = None, param_init_fn: Initialize | None = None,
            parallel_mode: Any = None, **fsdp: Any) -> Any:
    """Compiles a training step for `ranks` ranks; as a decorator, with or without arguments, or given the function.

        @spmd.compile(ranks=4, policy=ModuleWrapPolicy({Block}))
        def train_step(model, optimizer, x, y): ...

    Random numbers are drawn with torch.initial_seed() as it is at the first call; the seed is not read again.

    Args:
      train_step: as for spmd.capture. Without it, a decorator is returned.
      ranks: how many ranks share parameters, gradients, optimizer state and batch. None: one for each process that
        torchrun, mpirun or srun has started; a single rank without them. Else a multiple of the processes.
      policy: which modules' parameters are gathered together: a --policy string, or one of FSDP's wrap policies, or any
        callable like them (docs/shard-units.md). None: what fully_shard and wrap have said, or one unit.
      mode: what units are where nothing else is said of them: "fully_shard" (the default), "shard_grad_op",
        "shard_optimizer", "hybrid", "replicate", or "default" beside options=["--memory-budget=…"]
        (docs/shard-units.md).
      view: what the step computes. "global": on the whole batch, whatever the number of ranks. "local": each rank on
        its rows of the batch, and gradients are averaged, as FSDP does.
      gradient_divide_factor: with view="local", what the sum of the ranks' gradients is divided by, as FSDP2's
        set_gradient_divide_factor; 1 adds them up. None: the number of ranks.
      accumulate: gradients that a call leaves to a later one (docs/python.md, gradient accumulation). "sharded": each call
        reduces what it adds, and each rank keeps its part. "unsharded": each rank adds up its own summands of all
        gradients, and the call that updates reduces once: fewer collectives, more memory.
      target: what kernels are for. "host": this machine's CPU. "cuda": this machine's GPUs, one for each rank;
        "cuda:CHIP" (cuda:sm_90) names their kind. "emulate:CHIP": the kernels of that GPU, run on the CPU with every
        access checked, which is slow.
      batch_dims: as for spmd.capture.
      max_compiles: how many programs (other shapes, Python values, baked options) the step may have.
      options: further options of spmd-compile, as strings.
      threads: CPU threads of all ranks together; by default one per core.
      timeout: seconds after which a collective that waits for a rank, and a step in which nothing ends, is an error.
      ignored_modules, ignored_states: modules and parameters that are in no unit, and whole on every rank.
      keep_grads: `p.grad` can be read after a step that clears gradients before it computes them
        (`zero_grad(); backward(); step()`); each rank then keeps its part of them between steps. Of one that clears them
        at its end, unshard_params(with_grads=True) has them, as the optimizer got them.
      precision: in which the model computes, and its gradients are reduced: MixedPrecisionPolicy, MixedPrecision, or
        text like "param=bf16,reduce=f32" (docs/precision.md). Parameters and optimizer state keep their types.
      check_finite: a loss that is nan or infinite is a NonFiniteError that names the step, when it is over.
      batch: what each of several processes calls the step with. "rows": its own rows, as with FSDP; the global batch is
        those of all, in the order of their ranks. "global": the global batch, the same in all.
      launcher: who started the processes: "torchrun", "mpirun", "mpiexec", "srun", "environment" (RANK, WORLD_SIZE,
        MASTER_ADDR, MASTER_PORT), "none": this one is alone. None: whose variables are set.
      module_override: objects with replacement(fqn, module), asked for each child of the model before the capture, or
        transform(program, flat_state), or both; or a dict of modules, or functions of the old one, by class or name.
      passes, gm_transformation: functions that change the partitioned program, or texts that name MLIR passes
        (docs/passes.md), in this order, after the transformations of module_override.
      mesh: how the ranks are arranged: a DeviceMesh of PyTorch's with one or two axes, its sizes, or text as for
        spmd-compile --mesh ("replicate:2,shard:4"). Of two axes units are cut along the second, and ranks have the same
        along the first. None: as fully_shard's meshes say, or in one row.
      param_init_fn: makes the values of a module on the meta device: a function of the module, called once for each
        that has tensors of its own, which are memory without values then. None: its reset_parameters().
      parallel_mode: instead of policy and mode, as torch.distributed._spmd has it: spmd.DataParallel("fully_shard"), or an
        object whose partition(model) gives the shard units, a dict of options by module.
      fsdp: further arguments of FullyShardedDataParallel and fully_shard, so that a call of theirs can be carried over:
        what means nothing here is told with a Remark, anything else is an error.

    Returns:
      A CompiledStep.

    Raises:
      ValueError: an option has another value than the allowed ones, which the message lists.
      TypeError: there is no such argument.
    """
    take_arguments_of_fsdp(fsdp, "spmd.compile")
    if param_init_fn is not None and not callable(param_init_fn):
        raise TypeError(f"param_init_fn is {param_init_fn!r}; expected a function of a module")
    if view not in ("global", "local"):
        raise ValueError(f"view is {view!r}; allowed: global, local")
    if accumulate not in ("sharded", "unsharded"):
        raise ValueError(f"accumulate is {accumulate!r}; allowed: sharded, unsharded")
    if gradient_divide_factor is not None and view == "global":
        raise ValueError("gradient_divide_factor is for view='local'; with view='global' gradients are those of the "
                         "loss, on any number of ranks")
    if target == "cuda":
        target = f"cuda:{_own_chip()}"
    if target != "host" and not target.startswith(("cuda:", "emulate:")):
        raise ValueError(f"target is {target!r}; allowed: host, cuda (this machine's GPUs), cuda:CHIP (cuda:sm_90), and "
                         "emulate:CHIP, the kernels of a GPU run on the CPU")
    if mesh is not None:
        mesh = mesh_text(mesh, "mesh")
        if ranks not in (None, count_ranks(mesh)):
            raise ValueError(f"ranks is {ranks}, and mesh, {mesh}, has {count_ranks(mesh)}; leave ranks out")
        ranks = count_ranks(mesh)
    for name in ("target", "ranks", "mesh"):
        if any(option.split("=")[0] == f"--{name}" for option in options):
            raise ValueError(f"options has --{name}; say {name}= instead")
    if batch not in ("rows", "global"):
        raise ValueError(f"batch is {batch!r}; allowed: rows, global")
    if parallel_mode is not None:
        said = arguments_of(parallel_mode, policy, mode)
        policy, mode, passes = said["policy"], said["mode"], (*said["passes"], *passes)
    units = UnitChoice(policy, tuple(ignored_modules or ()), tuple(ignored_states or ()), mode, mesh)
    words = [*([] if mode is None else [f"--mode={mode}"]), f"--target={target}",
             *([] if mesh is None else [f"--mesh={mesh}"]),
             *([] if view == "global" else [f"--view={view}"]),
             *([] if accumulate == "sharded" else [f"--accumulate={accumulate}"]),
             *([] if gradient_divide_factor is None
               else [f"--gradient-divide-factor={float(gradient_divide_factor)!r}"]), *options]
    computed = Precision.of(precision, "precision")
    overrides = Overrides.of(module_override, gm_transformation, passes)
    run_options = {k: v for k, v in (("threads", threads), ("timeout", timeout), ("batch", batch)) if v is not None}

    def wrap(function: Callable) -> CompiledStep:
        return CompiledStep(function, words, batch_dims, run_options, max_compiles, ranks, view, units,
                            check_finite, keep_grads, computed, launcher, overrides, param_init_fn)

    return wrap if train_step is None else wrap(train_step)
