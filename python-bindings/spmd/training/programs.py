"""The programs of a compiled step: what each is for, what a call needs, and what has changed where none serves it."""
from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple

import torch

from ..capture import StepPackage
from ..capture.call import StepCall
from ..capture.observe.surroundings import surroundings
from ..capture.ops import custom_ops
from ..capture.optimizer.scheduled import option_names
from ..capture.world.unfollowed_hooks import AccumulationHooks
from ..capture.world.captured_constants import CapturedConstant, EarlierCalls, are_alike, begun_with, captured_constants, \
    changed as changed_value, slots_of
from ..capture.world.code_names import users_hooks
from ..capture.world.held import Held, named_modules, whole
from ..capture.world.leaked_values import Table, leave, note_values
from ..capture.world.settings import put
from ..capture.world.walk import NUMBERS
from ..capture.write.outputs import Output
from ..capture.write.package import OwnStates
from ..compiler import plan_of, report_of
from ..planning import Plan, read_plan
from ..run.runtime import Trainer
from ..torch_api.modules import GLOBAL_HOOKS, buffers_of, children_of, module_hooks_of, parameters_of, tensor_hooks_of
from ..torch_api.tracing import DisableTorchFunctionSubclass, pytree
from .batch_sizes import BatchSizes, OneSize
from .counted_numbers import CountedNumbers
from .live_state import Replaced


def found_at_beginning(call: StepCall, package: StepPackage, held: Held,
                       is_read: Callable[[str, torch.Tensor], bool]) -> list[CapturedConstant]:
    """What a call of the step finds that its program has as constants: what its code reads, and what is where it leaves something.
    `is_read`: whether the trace has read what an earlier call has left at a path."""
    everything = whole(call.model, held)
    hooks = [*custom_ops.functions(), *users_hooks(everything, call.optimizers.tables_of_hooks())]
    found = captured_constants(call.train_step, call.model, held, call.others, hooks, EarlierCalls(is_read, package.grown))
    if package.left or package.settings:
        modules = dict(named_modules(call.model, everything))
        found += [*slots_of(package.left, modules, held, is_read), *begun_with(package.settings, modules)]
    return found


@dataclasses.dataclass
class Program:
    """One compilation of the step: for batches of one set of shapes, one set of Python values and of constant options."""

    call: StepCall
    key: tuple[Any, ...]
    options: list[dict[str, str]]  # of each param group, those that are part of the program
    constants: list[CapturedConstant]  # what the step's code read from objects, dicts and modules
    held: Held  # what it reaches without an argument, as the last call found it
    package: StepPackage
    artifact: Path  # with kernels for the processors of this job
    portable: Callable[[], Path]  # makes it with kernels for all processors
    trainer: Trainer
    home: Trainer  # the trainer whose state it trains
    states: OwnStates  # which that one has
    why: str = ""  # it was compiled again
    is_like_another: bool = False  # it runs the artifact of another program
    sizes: BatchSizes | None = None  # of one that serves batches of several sizes; `key` is that of the largest

    def __post_init__(self) -> None:
        self.hyper = [(i["name"], i["group"]) for i in self.package.step["inputs"] if i["kind"] == "hyper"]
        self.counted = CountedNumbers(self.package)
        self.scheduled = [name for name, group in self.hyper if name != "lr" and (name, group) not in self.counted]
        self._held_key = self.held.key(look_at(self.call.model).ids)
        self._reads = {one.path for one in self.constants if isinstance(one.value, torch.Tensor)}
        own = list(whole(self.call.model, self.held).named_parameters(remove_duplicate=False))
        self._unfollowed = AccumulationHooks(own)  # none now: the capture has refused them
        taken, needed = self.package.gradients.taken, self.package.gradients.needed
        numbers = {name: id(parameter) for name, parameter in own if name in taken}
        self.taken = frozenset(numbers.values())  # of parameters, whose gradients may be there at a call,
        self.needed = frozenset(numbers[name] for name in needed)  # and must

    @property
    def plan(self) -> Plan:
        """Memory of a rank by class and at the peak, collectives by unit; what package.plan() gives ahead of time."""
        return read_plan(plan_of(self.artifact), report_of(self.artifact))

    def serves(self, need: Need) -> bool:
        """True for a call that the program computes."""
        return (need.key == self.key if self.sizes is None else self.sizes.find(need.key) is not None) \
            and self.takes_all_but_rows(need)

    def takes_all_but_rows(self, need: Need) -> bool:
        """Whether it can compute a call whose key is one of its own."""
        return self.takes(need.gradients) and not self._unfollowed \
            and len(need.options) == len(self.options) and all(
                given.get(name) == value for given, own in zip(need.options, self.options) for name, value in own.items()) \
            and self._finds_what_it_holds(need.structure) and changed_value(self.constants) is None \
            and not self.package.optimizer_numbers.what_is_new() and self.package.guards.hold(need.batch) \
            and self.package.reads.is_repeatable and self.package.reads.difference() is None

    def what_is_new(self, call: StepCall, need: Need) -> str:
        """Why a call that needs something else is not served."""
        key, options = need.key, need.options
        if key != self.key:
            before, now = shapes_of(self.call), shapes_of(call)
            return f"the batch is {now}, it was {before}" if before != now else \
                call.what_is_new(self.call) or \
                f"the default dtype is {key[-1]}, it was {self.key[-1]}" * (key[-1] != self.key[-1]) or \
                f"it is called in {_list_of(key[-2])}, it was in {_list_of(self.key[-2])}" * (key[-2] != self.key[-2]) or \
                "a param group has other parameters" * (key[-4] != self.key[-4]) or \
                "a module's train() or eval(), a parameter's requires_grad, or a hook is another"
        value = changed_value(self.constants)
        if value is not None:
            return f"'{value.path}' " + (f"is {value.get()!r}, it was {value.value!r}"
                                         if isinstance(value.value, NUMBERS)
                                         else "has another value")
        changed = [f"{name} of param group {number} is {given.get(name)}, it was {value}"
                   for number, (given, own) in enumerate(zip(options, self.options))
                   for name, value in own.items() if given.get(name) != value]
        if not self.package.reads.is_repeatable:
            changed.append("the step puts an object that it makes in a place that it reads")
        if (other := self.package.reads.difference()) is not None:
            changed.append(str(other))
        changed += filter(None, [self.package.optimizer_numbers.what_is_new(), self.package.guards.what_is_new(call.batch)])
        if not changed and not self.takes(need.gradients):
            return "it begins with gradients of earlier calls" if need.gradients else "it begins without gradients"
        if not changed and not self._holds_alike(need.structure):
            return "what the step reaches without an argument has another form, a module there another train() or eval(), or another hook"
        return "; ".join(changed) or "the optimizer has other param groups"

    def _holds_alike(self, model: list[int]) -> bool:
        held = self.held.now()
        return held is not None and held.key(model) == self._held_key

    def _is_read(self, path: str, tensor: torch.Tensor) -> bool:
        """Whether the trace has read what an earlier call has left at `path`."""
        return path in self._reads

    def takes(self, gradients: frozenset[int]) -> bool:
        """Whether it can begin with these gradients."""
        return self.package.gradients.ignored or self.needed <= gradients <= self.taken

    def replaces(self, other: Program) -> bool:
        """True where all calls that the other one computes, on a state of its own, are calls that this one does."""
        return self.home is not other.home and not self.package.guards and self.key == other.key and self.options == other.options \
            and (self.sizes is not None or other.sizes is None) \
            and not other.package.gradients.copied and other.taken <= self.taken and self.needed <= other.needed \
            and self._held_key == other._held_key and are_alike(self.constants, other.constants) \
            and self.package.reads.is_like(other.package.reads)

    def note_what_stands_in_places(self) -> None:
        """What others have put where the step leaves something, as the forward of an evaluation does, is as what an earlier call
        has left there: its form counts, unless the step reads it."""
        places = [left for left in self.package.left if isinstance(left.value, Output)]
        if places:
            state = whole(self.call.model, self.held)
            own = {*map(id, state.parameters()), *map(id, state.buffers()), *(id(t) for _, t in self.held.tensors.values())}
            modules = dict(named_modules(self.call.model, state))
            for left in places:
                if not isinstance(left.owner, Table) and left.owner not in modules:
                    continue  # the model has lost it: another program will be made
                value = (left.owner.entries if isinstance(left.owner, Table) else vars(modules[left.owner])).get(left.key)
                if isinstance(value, torch.Tensor) and id(value) not in own:
                    note_values(value)

    def leave(self, value: Callable[[Output], Any], size: OneSize) -> None:
        """Puts what the step leaves in attributes and in entries of dicts there, and appends what it appends."""
        def values(tree: Any) -> tuple[Any, list[Any]]:
            made: list[Any] = []

            def given(leaf: Any) -> Any:
                if isinstance(leaf, Output):
                    made.append(value(leaf))
                return made[-1] if isinstance(leaf, Output) else value(leaf)
            return pytree.tree_map(given, tree), made

        if size.left or size.settings:
            modules = dict(named_modules(self.call.model, whole(self.call.model, self.held)))
            for left in size.left:
                leave(left.owner if isinstance(left.owner, Table) else modules[left.owner], left.key, *values(left.value))
            put(size.settings, modules)
        for grown in self.package.grown:
            grown.append(*values(grown.items))

    def check(self, value: Callable[[Output], Any], number: int) -> None:
        """Raises where step `number`, which is over, is not what eager does."""
        for check in self.package.checks:
            if value(check.value):
                raise RuntimeError(f"step {number}: {check.message}")

    def of_size(self, key: tuple[Any, ...]) -> OneSize:
        """What is this program's, and what is the batch size's, of a call that it serves."""
        known = self.sizes and self.sizes.find(key)
        shapes = [info.shape for info in self.trainer.outputs] if self.package.written else []
        return known or OneSize(self.package.result, self.package.left, shapes, settings=self.package.settings)

    def check_batch(self, rows: StepCall, size: OneSize) -> None:
        """Raises where the batch that a call gives cannot take what the step writes into it."""
        for name, output in self.package.written:
            given, shape = rows.batch[rows.batch_names.index(name)], size.output_shapes[output.index]
            shares = [other for other, tensor in zip(rows.batch_names, rows.batch) if other != name
                      and tensor.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()]
            why = f"shares memory with batch input {shares[0]!r}" if shares else \
                f"is {list(given.shape)} here, and {list(shape)} on all ranks" if tuple(given.shape) != tuple(shape) else \
                "wants a gradient" if given.requires_grad else ""
            if why:
                raise ValueError(f"the step writes into batch input {name!r}, which {why}\n  hint: let it write into a copy, "
                                 f"{name} = {name}.clone()")

    def write_batch(self, value: Callable[[Output], Any], rows: StepCall) -> None:
        """What the step has changed in tensors of its batch is changed in those of the call."""
        with torch.no_grad():
            for name, output in self.package.written:
                rows.batch[rows.batch_names.index(name)].copy_(value(output))

    def _finds_what_it_holds(self, model: list[int]) -> bool:
        held = self.held.now()
        if held is None or held.key(model) != self._held_key:
            return False
        if not held.is_same(self.held):
            constants = found_at_beginning(self.call, self.package, held, self._is_read)
            if not are_alike(self.constants, constants):
                return False
            if any(isinstance(left.owner, Table) for left in self.package.left) and any(
                    one.value is not other.value for one, other in zip(self.constants, constants)
                    if not isinstance(one.value, (torch.Tensor, tuple, *NUMBERS))):
                return False  # the step leaves values in the objects that it has found when it was captured
            self.held, self.constants = held, constants
            self._unfollowed = AccumulationHooks(whole(self.call.model, held).named_parameters())
        return True


@dataclasses.dataclass
class Need:
    """What a call of the step needs, as one process sees it."""

    key: tuple[Any, ...]
    options: list[dict[str, str]]
    structure: list[int]
    gradients: frozenset[int]  # the ids of the parameters that have one
    batch: list[torch.Tensor]
    starts: bool  # there are no ranks
    restarts: bool  # the ranks' state is no longer that of model and optimizer
    program: Program | None  # that serves it
    replaced: Replaced | None = None  # what the optimizer has in place of the ranks' state, where no program is made

    _RESTART, _COMPILE = -2, -1

    def choice(self, programs: list[Program]) -> int:
        """The need as a number: the lower of two includes the other."""
        return self._RESTART if self.starts or self.restarts else self._COMPILE if self.program is None else \
            programs.index(self.program)

    def take(self, choice: int) -> None:
        """Needs what some process needs."""
        self.restarts |= choice == self._RESTART and not self.starts
        if choice < 0:
            self.program = None


def counts_taken(call: StepCall, programs: Iterable[Program | None]) -> list[tuple[int, bool]]:
    """How much of each of its iterators a call will probably take: as much as that of a program which it may want."""
    for program in programs:
        if program is not None and program.call.without_taken == call.without_taken and changed_value(program.constants) is None \
                and program.package.reads.difference() is None:
            return [taking.count for taking in program.call.takings]
    return [(0, False)] * len(call.takings)


class Look(NamedTuple):
    """What a model is made of at one time."""

    ids: list[int]  # of modules and tensors
    modes: tuple[Any, ...]  # what else a graph holds of it: which modules train, which parameters want a gradient, hooks
    parameters: list[torch.Tensor]


def look_at(model: torch.nn.Module) -> Look:
    """At every call, so it is one plain loop."""
    ids: list[int] = []
    parameters: list[torch.Tensor] = []
    modes: list[Any] = [tuple(hooks) for hooks in GLOBAL_HOOKS if hooks]
    seen: set[int] = set()
    stack = [model]
    with DisableTorchFunctionSubclass():
        while stack:
            module = stack.pop()
            if module is None or id(module) in seen:
                continue
            seen.add(id(module))
            ids.append(id(module))
            modes.append(module.training)
            for hooks in module_hooks_of(module):
                if hooks:
                    modes.append(tuple(hooks))
            for parameter in parameters_of(module).values():
                if parameter is not None:
                    parameters.append(parameter)
                    ids.append(id(parameter))
                    modes.append(parameter.requires_grad)
                    for hooks in tensor_hooks_of(parameter):
                        if hooks:
                            modes.append(tuple(hooks))
            for buffer in buffers_of(module).values():
                ids.append(id(buffer))
            stack.extend(children_of(module).values())
    return Look(ids, tuple(modes), parameters)


def key_of(call: StepCall, look: Look | None = None) -> tuple[Any, ...]:
    """All that a graph holds beside the model's tensors: equal for calls that one serves. `look`: at the model, if it is
    known."""
    modes = (look or look_at(call.model)).modes
    groups = tuple(tuple(map(id, group["params"])) for group in call.optimizers.param_groups)
    groups += tuple(str(dict(option_names(group))) for group in call.optimizers.groups_of_holders)
    return (*call.key(), groups, (modes, call.optimizers.hooks), surroundings(), torch.get_default_dtype())


def shapes_of(call: StepCall) -> str:
    return ", ".join(f"{name}{list(tensor.shape)}" for name, tensor in zip(call.batch_names, call.batch)) or "empty"


def _list_of(texts: tuple[str, ...]) -> str:
    return " and ".join(texts) or "nothing"


