"""Making a program of a training: capture, compilation, the ranks that run it and the values they begin with."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import socket
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from ..capture import CaptureError, StepPackage, capture_call
from ..capture.call import CaptureOptions, StepCall
from ..capture.ops.draws import default_seed, seeded_with
from ..capture.ops.sync_batch_norm import one_device
from ..capture.optimizer.optimizers import Optimizers
from ..capture.optimizer.scheduled import can_be_input, cycled_options, read_option
from ..capture.world.captured_constants import CapturedConstant
from ..capture.world.held import whole
from ..capture.world.leaked_values import check_reads_nothing_left
from ..capture.write.batch_sizes import OtherStep, capture_sizes, count_rows
from ..capture.write.package import OwnStates
from ..compiler import CompileError, cache_folder, compile_package
from ..models import tensor_names
from ..native import OTHER_STATE
from ..remarks import remark
from ..run.runtime import Trainer
from ..run_error import RunError
from .batch_sizes import BatchSizes, NewSizes, RankRows
from .initialization import check_replaceable, initialize, meta_names
from .live_state import RanksState
from .programs import Need, Program, found_at_beginning, key_of, shapes_of
from .training_state import TrainingState


def make_program(training: TrainingState, call: StepCall, rows: StepCall, need: Need) -> Program:
    """Captures and compiles what the call needs, and gives the ranks their state. `rows` is the call with the batch of
    this process."""
    options = training.options
    if any(ends for _, ends in (taking.count for taking in call.takings)):  # the step may end by that
        _capture(training, rows, _scheduled(training, need.options, call.optimizers), need.gradients)
    why = "" if training.current is None else training.current.what_is_new(call, need)
    processes = training.processes
    seed = processes.gather_objects(default_seed())[0]
    full = call if processes.world == 1 else training.agreement.with_all_rows(rows)

    def capture() -> tuple[StepPackage, torch.nn.Module, list[str], dict[str, Any] | None]:
        captured = full if training.view == "global" else full.of_one_rank(training.ranks, training.batch_dims)
        with seeded_with(seed):
            package = _capture(training, captured, _scheduled(training, need.options, call.optimizers), need.gradients)
        if training.view == "local" and training.ranks > 1:
            check_reads_nothing_left(package.held)
        everything = whole(call.model, package.held)
        check_replaceable(everything)
        if processes.rank == 0:  # whose values all begin with
            training.lost_values.check(everything, call.optimizers, training.checkpoints.resumed, training.name)
            _check_on_cpu(package)
        units = options.compile.units
        words = [f"--ranks={training.ranks}", *options.compile.words, *units.words(everything)]
        return package, everything, words, units.plan(everything, training.ranks, options.step.precision)

    package, everything, words, plan = processes.together(capture)
    hyper = {(i["name"], i["group"]) for i in package.step["inputs"] if i["kind"] == "hyper"}
    fixed = [{n: v for n, v in group.items() if (n, number) not in hyper} for number, group in enumerate(need.options)]
    is_read = lambda _, tensor: id(tensor) in package.read_left  # noqa: E731
    if (twin := _with_equal_graph(training, package)) is not None:
        return _like(training, twin, call, need, package, fixed, found_at_beginning(call, package, package.held, is_read))
    _check_compiles(training, call, need)
    if why:
        remark(f"{training.name} is compiled again: {why}")
    artifact, package, sizes = _compile_for_sizes(training, full, need, package, words, plan)
    if sizes is None:
        artifact = _compile_once(training, package, words, plan)
    portable = functools.partial(compile_package, package, words, plan, False, options.compile.overrides.all_passes())
    if training.live is not None:
        training.live.upload_constants()  # a program with other values of them could not share the state
    missing = set(processes.gather_objects(meta_names(everything))[0])
    trainer, home, states = _load(training, artifact, package, missing)
    if missing:
        known = training.checkpoints.resumed
        initialize(everything, {names[0] for _, _, names in tensor_names(everything).values() if names[0] in missing
                                and not any(name in known for name in names)}, options.run.init, seed, trainer.write)
    if training.live is None:
        training.hand_over(call, package.held, RanksState(trainer, states, training.view == "local"))
    training.compiles += 1
    values = found_at_beginning(call, package, package.held, is_read)
    program = Program(call, need.key, fixed, values, package.held, package, artifact, portable, trainer, home, states, why)
    if sizes is not None:
        sizes.put(program, need.key)
    return program


def _check_compiles(training: TrainingState, call: StepCall, need: Need) -> None:
    """Raises where the step may not be compiled once more."""
    if training.compiles >= training.max_compiles:
        raise RuntimeError(
            f"{training.name} was compiled {training.compiles} times, the limit max_compiles; reason of each compilation:\n"
            + "\n".join(f"  {p.why or shapes_of(p.call)}" for p in training.programs if not p.is_like_another)
            + f"\nnow: {training.current.what_is_new(call, need)}\n  hint: pass dynamic_batch=, the largest number of rows; "
              "pad batches to few shapes; drop the last batch of an epoch; pass changing numbers as tensors, and decisions "
              "as booleans ((i + 1) % k == 0, not i); or raise max_compiles")


def _with_equal_graph(training: TrainingState, package: StepPackage) -> Program | None:
    """The program whose graph and constants are those of a package: what was new for Python is nothing new for the ranks."""
    def is_equal(program: Program) -> bool:
        return program.sizes is None and program.package.digest() == package.digest() and _constants_of(program.package, package) \
            and program.package.gradients == package.gradients
    found = next((number for number, program in enumerate(training.programs) if is_equal(program)), None)
    everyones = training.processes.gather_objects(found)
    return None if found is None or any(number != found for number in everyones) else training.programs[found]


def _constants_of(package: StepPackage, other: StepPackage) -> bool:
    """Whether the constants of two packages are the same."""
    return all(torch.equal(tensor, other.weights[name]) for name, tensor in package.weights.items() if name.startswith("constant/"))


_MOST_LIKE_ONE = 16  # programs that differ in Python's values only


def _like(training: TrainingState, twin: Program, call: StepCall, need: Need, package: StepPackage, options: list[dict[str, str]],
          constants: list[CapturedConstant]) -> Program:
    """A program that runs another one's artifact, for calls in which Python reads other values."""
    alike = [program for program in training.programs if program.trainer is twin.trainer]
    if len(alike) == 3:
        remark(f"{training.name} is traced again, and nothing else is new for the ranks: {training.current.what_is_new(call, need)}; each "
               "value costs a trace\n  hint: read it outside of the step")
    if len(alike) >= _MOST_LIKE_ONE:
        training.programs.remove(next(program for program in alike if program is not training.current))
    return dataclasses.replace(twin, call=call, key=need.key, options=options, constants=constants, held=package.held, package=package,
                               why="", is_like_another=True)


def _check_on_cpu(package: StepPackage) -> None:
    """Raises for values on the meta device that nothing makes (initialization.py makes parameters and buffers)."""
    for name, tensor in package.weights.items():
        if tensor.is_meta and name.startswith(("optimizer/", "constant/")):
            raise ValueError(f"{name!r} is on the meta device, and has no value to begin with\n  hint: make it on the CPU; "
                             "only parameters and buffers are initialized here")


def _compile_once(training: TrainingState, package: StepPackage, words: list[str], plan: dict[str, Any] | None) -> Path:
    """The artifact, with kernels for the processors of this job. The first of several processes compiles it, and the
    others find it in the cache; where they have another one, the first that has that compiles, too."""
    processes, passes = training.processes, training.options.compile.overrides.all_passes()
    words = [*words, *_native_kernels(training)]
    if processes.world == 1:
        return compile_package(package, words, plan, passes=passes)
    training.agreement.compare("what was captured", [package.digest()[:16], words, plan])
    caches = processes.gather_objects((socket.gethostname(), str(cache_folder())))
    turn = 0 if processes.rank == 0 else 1 if caches.index(caches[processes.rank]) == processes.rank else 2
    artifact = None
    for now in range(3):
        artifact = processes.together(lambda: compile_package(package, words, plan, processes.rank == 0, passes)
                                      if turn == now else artifact)
    return artifact


def _native_kernels(training: TrainingState) -> list[str]:
    """The option that leaves out kernels for processors which no process of the job has."""
    levels = set(training.processes.gather_objects(training.processes.native_cpu))
    if "" in levels or any(word.startswith("--target=cuda") for word in training.options.compile.words):
        return []
    return [f"--cpu={','.join(sorted(levels))}"]


def _compile_for_sizes(training: TrainingState, call: StepCall, need: Need, captured: StepPackage, words: list[str],
                       plan: dict[str, Any] | None) -> tuple[Path | None, StepPackage, NewSizes | None]:
    """An artifact for batches of several sizes, its package and the sizes; of a step that has one program for each, what
    was `captured`.

    Raises:
      CaptureError, CompileError: there is no such program, and the user has asked for one.
    """
    nothing = None, captured, None
    if training.dynamic is None or need.key in training.single_sizes:
        return nothing
    dims = training.batch_dims
    try:
        world, gives_rows = training.processes.world, training.trainer_options["batch"] == "rows"
        if world > 1 and gives_rows and training.view == "global":
            raise CaptureError("with several processes and view='global', dynamic_batch requires whole batches: padding "
                               "rows follow the rows of all processes\n  hint: use batch=\"global\", so that every process "
                               "passes the whole batch; or view=\"local\", which pads each rank's rows; or omit "
                               "dynamic_batch")
        rows, ranks = count_rows(call, dims), _rank_rows(training)
        size = training.dynamic.size_for(rows)
        if size is None:
            return nothing
        each = ranks.each(size)
        scheduled = _scheduled(training, need.options, call.optimizers)
        with seeded_with(default_seed()):
            package, sized = training.processes.together(lambda: capture_sizes(
                lambda one: _capture(training, one, scheduled, need.gradients), ranks.captured(call), each, dims))
        here = ranks.parts if world == 1 or not gives_rows else ranks.parts // world
        sizes = BatchSizes(package, sized, ranks, RankRows(here, dims))
        artifact = _compile_once(training, package, words, plan)
    except OtherStep as error:
        _refuse_sizes(training, error)
        training.single_sizes.append(need.key)
        return nothing
    except (CaptureError, CompileError) as error:
        _refuse_sizes(training, error)
        training.dynamic = None
        return nothing
    key = key_of(ranks.padded(call, each))
    return artifact, package, NewSizes(sizes, key, ranks.each(rows), captured)


def _rank_rows(training: TrainingState) -> RankRows:
    return RankRows(training.ranks if training.view == "local" else 1, training.batch_dims)


def _refuse_sizes(training: TrainingState, error: Exception) -> None:
    if not training.dynamic.falls_back:
        raise error
    remark(f"{training.name} is compiled for each batch size by itself: {error}")


def served_too(training: TrainingState, call: StepCall, need: Need) -> Program | None:
    """The program for several batch sizes that serves this one, too, once it has been captured; None if none does."""
    if training.dynamic is None or need.key in training.single_sizes or all(p.sizes is None for p in training.programs):
        return None
    dims = training.batch_dims
    ranks = _rank_rows(training)
    try:
        rows = count_rows(call, dims)
        size = training.dynamic.size_for(rows)
        key = None if size is None else key_of(ranks.padded(call, ranks.each(size)))
        own = ranks.captured(call).traced_each()
    except CaptureError:  # which another program is compiled for, or refused
        return None
    program = next((p for p in training.programs if p.sizes is not None and p.key == key and p.takes_all_but_rows(need)), None)
    if program is None:
        return None
    scheduled = program.scheduled
    with seeded_with(default_seed()):
        captured = _capture(training, own, scheduled, need.gradients)
    if why := program.sizes.sized.why_not(captured, ranks.each(rows)):
        _refuse_sizes(training, OtherStep(rows, why))
        training.single_sizes.append(need.key)
        return None
    program.sizes.add(need.key, ranks.each(rows), captured, [info.shape for info in program.trainer.outputs])
    return program


def _scheduled(training: TrainingState, options: list[dict[str, str]], optimizers: Optimizers) -> list[str]:
    """The options that are inputs of the next program: those of earlier ones, what OneCycleLR and CyclicLR say they
    move, and every number that is not what it was in the last program."""
    groups = optimizers.param_groups
    names = [name for p in training.programs for name in p.scheduled]
    names += [name for group in groups for name in cycled_options(group)]
    names += [name for given, own, group in zip(options, training.current.options if training.current else (), groups)
              for name, value in own.items()
              if given.get(name) not in (None, value) and name != "params" and can_be_input(read_option(group, name))]
    return list(dict.fromkeys(names))


def _capture(training: TrainingState, call: StepCall, scheduled: list[str], gradients: frozenset[int]) -> StepPackage:
    """Options that cannot be inputs are constants of the program."""
    _check_frozen(call.model, gradients)
    counted = dict.fromkeys(number for program in training.programs for number in program.counted.by_input.values())
    options = CaptureOptions(training.batch_dims, training.options.step.keep_grads, gradients=gradients, counted=tuple(counted))
    with one_device() if training.view == "global" else contextlib.nullcontext():
        if scheduled:
            try:
                return capture_call(call, dataclasses.replace(options, scheduled=tuple(scheduled)))
            except CaptureError as error:
                remark(f"{training.name}: {', '.join(scheduled)} are constants of the program: {error}")
        return capture_call(call, options)


_GRADIENT = "optimizer/grad/"  # keys of gradients among the weights


def _load(training: TrainingState, artifact: Path, package: StepPackage,
          missing: set[str]) -> tuple[Trainer, Trainer, OwnStates]:
    """A trainer, the one whose state it trains, and which states that has: those of an earlier program where both hold
    the same tensors. What is `missing` among the weights is written to it next."""
    weights, states, gradients = package.weights, OwnStates.of(package), {}
    if package.first_step is not None:  # the runtime takes a first step where it is given no optimizer state, and a gradient is one
        gradients = {name: tensor for name, tensor in weights.items() if name.startswith(_GRADIENT)}
        weights = {name: tensor for name, tensor in weights.items() if name not in gradients}
        if known := next((name for name in weights if name.startswith("optimizer/")), None):
            raise CaptureError(f"an optimizer begins with this step, and {known!r} of another one exists already\n  hint: take one step in "
                               "eager PyTorch that updates all parameters, before the first compiled one")
    with tempfile.TemporaryDirectory(prefix="spmd.") as folder:
        constants, everything = Path(folder) / "constants.safetensors", Path(folder) / "weights.safetensors"
        # A program of the first step runs on state that no other program has.
        homes = {p.home: p.states for p in training.programs if p.states.serve(states)} if package.first_step is None else {}
        if homes:
            save_tensors({n: t for n, t in weights.items() if n.startswith("constant/")}, constants)
        for home, its_states in homes.items():
            try:
                return Trainer(artifact, weights=constants, shares=home, **training.trainer_options), home, its_states
            except RunError as error:
                if error.code != OTHER_STATE:
                    raise
        processes = training.processes
        if processes.rank == 0:  # whose values all begin with
            save_tensors({n: t for n, t in weights.items() if not t.is_meta}, everything)
        everything = processes.share_file(everything, Path(folder)) if processes.world > 1 else everything
        try:
            trainer = Trainer(artifact, weights=everything, written_next=bool(missing or gradients), **training.trainer_options)
        except RunError as error:
            _refuse_shapes(package, None, error)
            raise
        _refuse_shapes(package, [(info.state, info.name, list(info.shape)) for info in trainer.tensors])
        for name, tensor in gradients.items():
            trainer.write("grad", name.removeprefix(_GRADIENT), tensor.detach().cpu())
        return trainer, trainer, states


def _refuse_shapes(package: StepPackage, places: list[tuple[str, str, list[int]]] | None, cause: Exception | None = None) -> None:
    """The runtime has one buffer for the states of one name in a shard unit, of its parameters' shapes or of another one.
    `places`: the states that the runtime has, with parameter and shape; None where it has rejected the weights.

    Raises:
      CaptureError: a state has another shape there.
    """
    shapes = {i["name"]: i["shape"] for i in package.step["inputs"] if i["kind"] == "param"}
    states = [i for i in package.step["inputs"] if i["kind"] == "state"]
    for one in states:
        has_other = one["shape"] not in (shapes[one["of"]], [])
        alike = next((i["of"] for i in states if i["state"] == one["state"] and i["shape"] == shapes[i["of"]]), None)
        is_there = places is not None and all(shape == one["shape"] for *key, shape in places if key == [one["state"], one["of"]])
        if has_other and alike and not is_there:
            raise CaptureError(f"optimizer state {one['state']!r} has shape {one['shape']} for parameter {one['of']!r} of shape "
                               f"{shapes[one['of']]}, and the parameter's shape for {alike!r}; states of one name in a shard unit "
                               "must all have their parameters' shapes, or all another one\n  hint: give one of the two states "
                               "another name, or make the two parameters different shard units") from cause


def save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    save_file({n: t.detach().cpu().clone(memory_format=torch.contiguous_format) for n, t in tensors.items()}, path)


def _check_frozen(model: torch.nn.Module, gradients: frozenset[int]) -> None:
    for name, parameter in model.named_parameters():
        if id(parameter) in gradients and not parameter.requires_grad:
            raise ValueError(f"parameter {name!r} has a gradient, and is frozen\n  hint: clear it when the parameter is "
                             "frozen: p.grad = None")
