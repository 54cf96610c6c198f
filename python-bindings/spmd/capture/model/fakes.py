"""Puts fake tensors into the user's own model and optimizer for the time of a trace, and takes them out again.

The user's step then runs unmodified: model.parameters(), .grad, optimizer.param_groups and optimizer.state all hold
fakes that are the very objects the tracer knows as graph inputs.
"""
from __future__ import annotations

import contextlib
import dataclasses
from collections import defaultdict
from typing import Any, Callable, Collection, Iterator

import torch

from ...models import DTYPES, tensor_names
from ...offloaded import slots
from ...precision import Precision
from ...torch_api.modules import buffers_of, children_of, parameters_of
from ...torch_api.tracing import FakeTensor, FakeTensorMode
from ..errors import CaptureError
from ..observe import patches
from ..observe.refusals import Refusals
from ..ops.draws import default_seed
from ..optimizer.adafactor import count_in_tensors
from ..optimizer.first_step import Beginning, check_keys, is_of_torch, materialize
from ..optimizer.kept_gradients import kept_gradients
from ..optimizer.masters import MASTER, state_in, stepping_masters, wanted_masters
from ..optimizer.number_snapshot import Numbers
from ..optimizer.optimizer_numbers import OptimizerNumbers, all_numbers, own_attributes
from ..optimizer.optimizer_state import choose_implementation
from ..optimizer.optimizers import Optimizers
from ..optimizer.replaced_state import write_replaced
from ..values.known_values import SYMBOLS
from ..world.environment import Environment
from ..world.held import named_modules, whole
from ..world.host_state import copied
from ..world.leaked_values import LeakedValue, left_in_modules, put_blanks
from ..world.reads.undone import undone
from ..world.settings import Setting, settings_of
from .counted_inputs import CountedInputs
from .hooks import copy_hooks
from .inputs import Input
from .run import Run


class ReplacedGradient(CaptureError):
    """A step that adds to a gradient of an earlier call, and then begins another one."""


class FakeStep:
    """Fake twins of a model, its optimizer and a batch.

    with FakeStep(...).installed() as step: the twins are in place, `inputs` lists them in graph order, and `foreign`
    tells which real tensors must not turn up in a trace.
    """

    def __init__(self, model: torch.nn.Module, optimizers: Optimizers, batch: list[tuple[str, torch.Tensor]], environment: Environment,
                 run: Run, precision: Precision | None = None):
        # Real tensors that the step closes over are constants of the graph; the device is always the CPU, so that a
        # step for a GPU is traced on a machine without one and gives the same graph.
        self.refusals = Refusals()
        self.mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.refusals.shape_env(), static_shapes=True)
        self.model, self.optimizers, self.held, self.run = model, optimizers, environment.held, run
        self.whole = whole(model, self.held)
        self.inputs: list[Input] = []
        self.foreign: dict[int, str] = {}
        self.numbers: set[int] = set()  # ids of fakes that stand for Python numbers: learning rates
        self.blanks: dict[int, torch.Tensor] = {}  # what earlier calls have left, by id (leaked_values.py)
        self._read_left = environment.read_left  # those that have none
        self._batch = batch
        self._precision = precision
        self._kept = kept_gradients(model, precision)
        self._had_state: set[Any] = set()  # keys of the optimizers' state
        self._beginnings: list[tuple[torch.optim.Optimizer, Beginning]] = []  # of optimizers that have taken no step
        self._before_first, self._unstepped = list[Numbers](), environment.unstepped
        self.counted = CountedInputs(optimizers, environment.counted, self.fake)
        self._stepped: dict[str, torch.Tensor] = {}  # gradients as optimizers got them
        self._first_state: list[tuple[torch.Tensor, str, torch.Tensor]] = []
        self._fakes: dict[int, torch.Tensor] = {}
        self._reals: dict[int, torch.Tensor] = {}  # also keeps them alive, so that ids stay theirs
        self._tensors = tensor_names(self.whole)
        self._sentinels: list[tuple[torch.Tensor, torch.Tensor, str]] = []
        self._cleared: set[str] = set()  # gradients that are zero after the step
        self._real_gradients = {names[0]: tensor.grad for kind, tensor, names in self._tensors.values()
                                if kind == "param" and names[0] in run.gradients and not list(slots((tensor.grad,)))}

    def fake(self, real: torch.Tensor) -> torch.Tensor:
        """The fake twin of a real tensor: same shape, strides, dtype and kind, with its hooks; on the CPU."""
        if id(real) not in self._fakes:
            with self.mode:
                twin = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="cpu")
                twin = torch.nn.Parameter(twin, real.requires_grad) if isinstance(real, torch.nn.Parameter) \
                    else twin.requires_grad_(real.requires_grad)
            if id(real) in self._kept:
                twin.grad_dtype = self._kept[id(real)]
            copy_hooks(real, twin)
            self._fakes[id(real)] = twin
            self._reals[id(twin)] = real
        return self._fakes[id(real)]

    def own_of(self, twin: Any) -> torch.Tensor | None:
        """The parameter or buffer whose twin this is."""
        return next((i.real for i in self.inputs if i.kind in ("param", "buffer") and i.fake is twin), None)

    def twin(self, real: torch.Tensor) -> torch.Tensor | None:
        """Of a tensor that has one."""
        return self._fakes.get(id(real))

    def real_of(self, twin: torch.Tensor) -> torch.Tensor:
        """The tensor that a twin stands for; another one is itself."""
        return self._reals.get(id(twin), twin)

    def parameters(self) -> list[torch.Tensor]:
        """The fake parameters, in registration order."""
        return [i.fake for i in self.inputs if i.kind == "param"]

    @contextlib.contextmanager
    def installed(self) -> Iterator["FakeStep"]:
        """The model, the optimizer and torch are as they were, down to the last attribute, when this is left."""
        modules = dict(named_modules(self.model, self.whole)) | dict(self._watched())
        for path, module in modules.items():
            if isinstance(module, torch.jit.ScriptModule):
                raise CaptureError(f"module {path!r} is TorchScript: its tensors cannot be replaced for a trace\n  hint: "
                                   "pass the module from which it was scripted")
        with contextlib.ExitStack() as undo:
            for module in modules.values():
                undo.callback(_restore, vars(module), dict(vars(module)))
                put_blanks(vars(module), self.blank)
                for own in (parameters_of(module), buffers_of(module), children_of(module)):
                    undo.callback(_restore, own, dict(own))
            for part in (*self.optimizers.parts, *self.optimizers.holders):
                undo.callback(_restore, vars(part), dict(vars(part)))
                undo.callback(part.param_groups.__setitem__, slice(None), list(part.param_groups))
            for group in (*self.optimizers.param_groups, *self.optimizers.groups_of_holders):
                undo.callback(_restore, group, dict(group))
            undo.callback(self.counted.end)
            undo.enter_context(patches.replaced({patches.FOREACH_TYPES: [*patches.FOREACH_TYPES.value(), FakeTensor]}))
            self._install_model()
            self._install_sentinels(undo)
            self._install_optimizers()
            self._install_rng()
            self._install_batch()
            self._groups_before = len(self.optimizers.param_groups)
            self._children_before = [(path, m, dict(children_of(m))) for path, m in modules.items()]
            self._modules_before = {id(m): dict(vars(m)) for m in modules.values()}
            yield self

    def blanks_met(self, number: int | None) -> dict[int, torch.Tensor]:
        """By its id, what the blank with the id `number` stands for; without one, all that was left."""
        return {id(real): real for blank, real in self.blanks.items() if number in (blank, None)}

    def blank(self, real: torch.Tensor) -> torch.Tensor:
        """What stands for a tensor that an earlier call has left: of its form, without a value."""
        if id(real) in self._read_left:
            return real
        with self.mode:
            blank = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="cpu")
        self.blanks[id(blank)] = real
        self.foreign[id(blank)] = "what an earlier call has left"
        return blank

    def first_step_differs(self, stepped: Collection[int], inputs: Collection[tuple[Input, Any]]) -> bool:
        """True where an optimizer has taken no step and computes its first one otherwise than all later ones. `stepped`: the
        ids of the optimizers whose step() was traced; others count where `inputs`, those of the graph, have state."""
        has_state = any(i.kind == "state" and i.state != "grad" for i, _ in inputs)
        return any(has_state or id(optimizer) in stepped for optimizer, _ in self._beginnings)

    def unstepped(self, stepped: Collection[int], with_state: bool) -> set[int]:
        """The ids of optimizers that have taken no step, were traced as after a first step, and of which the step calls no step().
        `with_state`: also of those whose first step makes tensors."""
        return {id(optimizer) for optimizer, beginning in self._beginnings if with_state or not beginning.values} - set(stepped)

    def _install_model(self) -> None:
        for kind, tensor, names in self._tensors.values():
            if tensor.dtype not in DTYPES:
                raise CaptureError(f"{'parameter' if kind == 'param' else 'buffer'} {names[0]!r} has dtype "
                                   f"{tensor.dtype}, which has no counterpart\n  hint: hold complex numbers as pairs "
                                   "of real ones")
            self.inputs.append(Input(kind, names[0], self.fake(tensor), tensor))
            self.foreign[id(tensor)] = f"{'parameter' if kind == 'param' else 'buffer'} {names[0]!r}"
        for module in self.whole.modules():
            for own in (parameters_of(module), buffers_of(module)):
                for name, tensor in own.items():
                    if tensor is not None:
                        own[name] = self.fake(tensor)

    def _install_sentinels(self, undo: contextlib.ExitStack) -> None:
        """Real parameters get a recognizable .grad: a user's own list of them must not go unnoticed.

        Without it, clip_grad_norm_(my_list) would find no gradients and record nothing at all. Expanded zeros take no
        memory.
        """
        for kind, tensor, names in self._tensors.values():
            if kind == "param":
                undo.callback(setattr, tensor, "grad", tensor.grad)
                if tensor.requires_grad and not isinstance(tensor, FakeTensor):
                    sentinel = torch.zeros((), dtype=tensor.grad_dtype, device=tensor.device).expand(tensor.shape)
                    tensor.grad = sentinel
                    self._sentinels.append((tensor, sentinel, names[0]))
                    self.foreign[id(sentinel)] = f"the gradient of parameter {names[0]!r}"

    def _install_optimizers(self) -> None:
        initial: dict[int, float | None] = {}
        hyper = []
        self._masters = wanted_masters(self.model, self._precision)
        for index, group in enumerate(self.optimizers.param_groups):
            with self.mode:
                hyper += (Input("hyper", name, tensor, group=index, value=value)
                          for name, value, tensor in self.run.scheduled.install(group))
        shared = {id(part.state): part for part in self.optimizers.parts}
        for holder in self.optimizers.holders:
            self._check_without_state(holder)
        for optimizer in self.optimizers.parts:
            initial |= self._install_state(optimizer)
        for group in self.optimizers.groups_of_holders:
            group["params"] = [self.fake(p) for p in group["params"]]
        for holder in self.optimizers.holders:
            if "state" in vars(holder):
                part = shared.get(id(holder.state))
                holder.state = defaultdict(dict) if part is None else part.state
        for index, group in enumerate(self.optimizers.param_groups):
            if group.get("lr") is None:  # the optimizer has a schedule of its own
                continue
            value, is_number = float(group["lr"]), not isinstance(group["lr"], torch.Tensor)
            with self.mode:  # float64, so that what is computed from it is what eager computes in Python floats
                group["lr"] = torch.empty((), dtype=torch.float64)
            hyper.append(Input("hyper", "lr", group["lr"], group=index, value=value))
            if is_number:
                self.numbers.add(id(group["lr"]))
        for kind, tensor, own_names in self._tensors.values():
            if kind == "param":
                self._add_states(own_names[0], self.fake(tensor), initial)
        hyper += (Input("hyper", number.name, tensor, group=number.index, value=value) for number, tensor, value in
                  self.counted.install(self._name_of, self.real_of, self.mode, self.run.is_first))
        self.inputs += hyper
        if self.run.is_first:
            masters = {p: state[MASTER] for p, state in self.optimizers.states if id(p) in self._masters}
            self._first_state = [(p, name, value) for p, state in self.optimizers.states for name, value in state.items()
                                 if isinstance(value, torch.Tensor) and value is not masters.get(p)]
            for optimizer in self.optimizers.parts:
                optimizer.state = defaultdict(dict, {p: {MASTER: masters[p]} for p in optimizer.state if p in masters})
            for optimizer, beginning in self._beginnings:
                beginning.undo()
                self._before_first.append(Numbers.of(optimizer))

    def _install_state(self, optimizer: torch.optim.Optimizer) -> dict[int, float | None]:
        """Fakes in the place of one optimizer's parameters and state; what the states begin with that it makes."""
        names = {id(t): n[0] for _, t, n in self._tensors.values()}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if id(p) not in names:
                    raise CaptureError(f"the optimizer updates a tensor of shape {list(p.shape)} that is no parameter "
                                       "of the model\n  hint: register it in the model, or leave it out")
        fuses = not any(id(p) in self._kept for group in optimizer.param_groups for p in group["params"])
        made_capturable = choose_implementation(optimizer, bool(self.run.scheduled), fuses)
        check_keys(optimizer)
        count_in_tensors(optimizer)
        warm = any(state for state in optimizer.state.values() if isinstance(state, dict))
        vars(optimizer).update((k, copied(v)) for k, v in own_attributes(optimizer).items())
        self._had_state |= {key for key, state in optimizer.state.items() if state}
        for group in optimizer.param_groups:
            group.update((k, copied(v)) for k, v in group.items() if k != "params")
            group["params"] = [self.fake(p) for p in group["params"]]
        known = {self.fake(p) if isinstance(p, torch.Tensor) else p:
                 {k: self.fake(v) if isinstance(v, torch.Tensor) else copied(v) for k, v in self._going_on(p, state).items()}
                 for p, state in optimizer.state.items()} if warm else {}
        initial: dict[int, float | None] = {}
        if any(p.requires_grad and p not in known for group in optimizer.param_groups for p in group["params"]) \
                or made_capturable and not is_of_torch(optimizer):
            with stepping_masters(Optimizers((optimizer,)), self._masters), undone((optimizer,)):
                # Also for parameters that begin to train now, beside others that have state.
                begins = materialize(optimizer, self.mode, self._masters, made_capturable)
            initial = begins.values
            if begins.differs:  # a program of the first step writes all; where some state exists, none can
                initial = {number: value if number in begins.masters else None if known else 0.0 for number, value in initial.items()}
            if known or begins.differs and id(optimizer) in self._unstepped:
                begins.undo()
                optimizer.state = defaultdict(dict, optimizer.state if known else {})
            elif begins.differs:
                self._beginnings.append((optimizer, begins))
            known = {**optimizer.state, **known}
        optimizer.state = defaultdict(dict, known)
        for p, state in optimizer.state.items():
            if id(p) in self._masters and MASTER not in state:
                with self.mode:
                    state[MASTER] = torch.empty_like(p, dtype=self._masters[id(p)], requires_grad=False)
        return initial

    def _going_on(self, parameter: Any, state: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, as a training with the masters that are wanted begins with it."""
        dtype = self._masters.get(id(self.fake(parameter))) if isinstance(parameter, torch.Tensor) else None
        if dtype is None:
            return state
        self.foreign |= {id(value): f"optimizer state {name!r}" for name, value in state.items()
                         if isinstance(value, torch.Tensor)}
        return {name: state_in(name, value, parameter, dtype) for name, value in state.items()}

    def _check_without_state(self, holder: torch.optim.Optimizer) -> None:
        own = all(holder.state is not part.state for part in self.optimizers.parts)
        if own and any(isinstance(value, torch.Tensor) for state in holder.state.values() for value in state.values()):
            raise CaptureError(f"{type(holder).__qualname__} leaves its parameters to the optimizers that it holds, and keeps "
                               "state of its own beside theirs\n  hint: keep it in the state of an optimizer that it holds, "
                               "or in buffers of the model")

    def all_numbers(self) -> dict[str, Any]:
        """The Python numbers that the optimizers hold, by where."""
        names = {id(self.fake(t)): n[0] for _, t, n in self._tensors.values()}
        return all_numbers((*self.optimizers.parts, *self.optimizers.holders), lambda key: names.get(id(key), key))

    def optimizer_numbers(self) -> OptimizerNumbers:
        """Those that the trace begins with."""
        numbers = OptimizerNumbers.of((*self.optimizers.parts, *self.optimizers.holders), lambda key: self._reals.get(id(key), key),
                                      lambda key: key in self._had_state)
        self.counted.note_made(numbers, lambda key: key in self._had_state)
        return numbers

    def first_numbers(self, numbers: OptimizerNumbers, recipe: Callable[[Any], Callable[[], Any] | None]) -> None:
        """At the end of a traced first step: what that leaves in Python. `recipe`: how a call computes a traced value."""
        after = [Numbers.of(before.optimizer) for before in self._before_first]
        changes = [change for before, now in zip(self._before_first, after) for change in before.changes(now)]
        numbers.changes = [dataclasses.replace(change, after=None, following=recipe(change.after))
                           if isinstance(change.after, (torch.Tensor, *SYMBOLS)) else change for change in changes]
        numbers.made = [entry for now in after for entry in now.made(self.real_of, recipe, {id(i.fake) for i in self.inputs})]

    def _name_of(self, parameter: Any) -> str | None:
        found = self._tensors.get(id(self.real_of(parameter)))
        return found and found[2][0]

    def keep_state(self) -> None:
        """At the end of a traced step: what the optimizer made becomes the graph's state, in a first step of that which later
        steps use."""
        if not self.run.is_first:
            owned = {i.name: i.fake for i in self.inputs if i.kind == "param"}
            kept = [p.grad for p in owned.values() if p.grad is not None]
            write_replaced([(self.optimizers.state_of(owned[i.name]), i.state, i.fake) for i in self.inputs
                            if i.kind == "state" and i.state not in ("grad", MASTER)], [*(i.fake for i in self.inputs), *kept])
        names = {id(i.fake): i.name for i in self.inputs if i.kind == "param"}
        with torch.no_grad():
            for parameter, name, kept in self._first_state:
                if self.counted.moving() and (names.get(id(parameter)), name) not in self.run.states:
                    raise CaptureError(f"the first step makes optimizer state {name!r} of {names.get(id(parameter))!r}, which the next one does not "
                                       "use, and the optimizer counts in Python: a later step may use it\n  hint: use it in each step, or "
                                       "take one step in eager PyTorch before the first compiled one")
                state = self.optimizers.make_state_of(parameter)
                if name in state and (names[id(parameter)], name) in self.run.states:
                    kept.copy_(state[name])
                state[name] = kept

    def note_gradients(self, optimizer: torch.optim.Optimizer, *unused: Any) -> None:
        """Before a step of an optimizer."""
        names = {id(i.fake): i.name for i in self.inputs if i.kind == "param"}
        self._stepped |= {names[id(p)]: p.grad for group in optimizer.param_groups for p in group["params"]
                          if p.grad is not None and id(p) in names}

    def stepped_gradients(self) -> list[str]:
        """Parameters that an optimizer has got a gradient of."""
        return [i.name for i in self.inputs if i.kind == "param" and i.name in self._stepped]

    def keep_gradients(self) -> None:
        """At the end of a traced step: a gradient that was computed anew becomes the one that is part of the state, and
        one that was cleared is zero there."""
        owners = {i.name: i.fake for i in self.inputs if i.kind == "param"}
        with torch.no_grad():
            for i in self.inputs:
                if i.state != "grad":
                    continue
                if i.name in self.run.copied:
                    if i.name in self._stepped:
                        i.fake.copy_(self._stepped[i.name])
                    continue
                gradient = owners[i.name].grad
                if gradient is None:
                    self._cleared.add(i.name)
                    i.fake.zero_()
                elif gradient is not i.fake:
                    i.fake.copy_(gradient)
                    owners[i.name].grad = i.fake

    def _add_states(self, name: str, parameter: torch.Tensor, initial: dict[int, float | None]) -> None:
        for state, value in self.optimizers.state_of(parameter).items():
            if isinstance(value, torch.Tensor):
                real = self._reals.get(id(value))
                self.inputs.append(Input("state", name, value, real, state=state, init=initial.get(id(value))))
                if real is not None:
                    self.foreign[id(real)] = f"optimizer state {state!r} of {name!r}"
        if name in self.run.gradients:
            with self.mode:
                parameter.grad = torch.empty_like(parameter, dtype=parameter.grad_dtype).requires_grad_(False)
            real = self._real_gradients.get(name)
            self.inputs.append(Input("state", name, parameter.grad, real, state="grad", init=0.0))
            if real is not None:
                self.foreign[id(real)] = f"the gradient of parameter {name!r}"
        elif name in self.run.copied:
            with self.mode:
                kept = torch.empty_like(parameter, dtype=parameter.grad_dtype).requires_grad_(False)
            self.inputs.append(Input("state", name, kept, state="grad", init=0.0))

    def _install_rng(self) -> None:
        """What random numbers are a function of; a step that draws none has no such inputs."""
        for name, value in (("seed", default_seed()), ("step", 0)):
            with self.mode:
                self.inputs.append(Input("rng", name, torch.empty((), dtype=torch.int64), value=value))

    def rng(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The fake seed and step counter."""
        seed, step = (i.fake for i in self.inputs if i.kind == "rng")
        return seed, step

    def _install_batch(self) -> None:
        for name, tensor in self._batch:
            if tensor.is_complex():
                raise CaptureError(f"batch input {name!r} has dtype {tensor.dtype}, which is not supported\n  hint: pass its "
                                   "torch.view_as_real(), and call torch.view_as_complex() in the step")
            self._fakes.pop(id(tensor), None)  # one tensor given for two inputs: a later call may give two
            self.inputs.append(Input("batch", name, self.fake(tensor), tensor))

    def left(self, with_weights: bool) -> list[LeakedValue]:
        """What the traced step leaves in attributes of modules; `with_weights`: and what hooks of PyTorch compute for these."""
        for left in left_in_modules(self._watched(), self._modules_before, with_weights=False):
            raise CaptureError(f"the step stores a tensor in '{left.module}.{left.attribute}': a compiled step cannot update "
                               "it\n  hint: return it from the step")
        return left_in_modules(named_modules(self.model, self.whole), self._modules_before, with_weights)

    def settings(self) -> list[Setting]:
        """What the traced step leaves in modules that is no traced value."""
        if len(self.optimizers.param_groups) != self._groups_before:
            raise CaptureError("the step changes how many param groups its optimizer has\n  hint: call add_param_group() between "
                               "two calls of the step")
        for path, module, children in self._children_before:
            for name in {**children, **children_of(module)}:
                if children_of(module).get(name) is not children.get(name):
                    raise CaptureError(f"the step replaces module {f'{path}.{name}' if path else name!r}: Python code runs "
                                       "only once, during the capture\n  hint: do it between two calls of the step")
        wanted = {id(i.fake): i.real.requires_grad for i in self.inputs if i.kind == "param"}
        return settings_of([*named_modules(self.model, self.whole), *self._watched()], self._modules_before, wanted)

    def _watched(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """Modules that the step reaches and that bring no tensors of their own, unless they are the model's, too."""
        own = set(map(id, self.whole.modules()))
        for place, root in self.held.watched.values():
            for below, module in root.named_modules():
                if module is not self.model and id(module) not in own:
                    yield f"{place.path}.{below}" if below else place.path, module

    def check_side_effects(self, used: set[int]) -> None:
        """After a trace: everything the step changed must be something a graph can hold.

        `used` has the ids of the fakes that the graph reads: a gradient cleared before the step reads it may be
        replaced.
        """
        for tensor, sentinel, name in self._sentinels:
            if tensor.grad is not sentinel:
                raise CaptureError(f"the step sets the gradient of {name!r} through a list of parameters made before "
                                   "the capture\n  hint: use model.parameters() or optimizer.zero_grad() in the step")
        for i in self.inputs:
            if i.kind == "hyper" and i.name == "lr" and self.optimizers.param_groups[i.group]["lr"] is not i.fake:
                raise CaptureError(f"the step changes the learning rate of parameter group {i.group}\n"
                                   "  hint: call lr_scheduler.step() after the training step; the learning rate is "
                                   "read from optimizer.param_groups at every call")
        for holder in self.optimizers.holders:
            self._check_without_state(holder)
        self._check_new_state()
        for name, _ in self.whole.named_parameters():
            self._check_registered("parameter", name)
        for name, _ in self.whole.named_buffers():
            self._check_registered("buffer", name)
        self._check_begun(used)
        for i in self.inputs:
            if i.state == "grad" and i.name in self.run.copied:
                continue
            owner = self._owner(i) if i.kind == "state" and id(i.fake) in used else i.fake
            if i.state == "grad" and owner is None and i.name not in self._cleared:
                raise CaptureError(f"the gradient of {i.name!r} outlives a step that begins without one, and does not "
                                   "outlive one that begins with it\n  hint: clear it in every step, or in none")
            if owner is not i.fake and owner is not None:
                raise (ReplacedGradient if i.state == "grad" else CaptureError)(f"the step replaces {i.state!r} of {i.name!r} by another tensor\n"
                                   "  hint: update it in place")

    def _check_begun(self, used: set[int]) -> None:
        """Raises for state that begins as something else than a constant while other state of the step exists already."""
        exists = any(i.kind == "state" and i.state != "grad" and i.real is not None and id(i.fake) in used for i in self.inputs)
        for i in self.inputs:
            if i.kind != "state" or i.state in ("grad", MASTER) or i.real is not None or id(i.fake) not in used:
                continue
            if i.init is None or exists and self._beginnings:
                raise CaptureError(f"optimizer state {i.state!r} of {i.name!r} begins with the first step, and other state of the "
                                   "step's optimizers exists already\n  hint: take one step in eager PyTorch that updates all "
                                   "parameters, before the first compiled one")

    def _check_new_state(self) -> None:
        """State that the step has made is none of the graph's: of a parameter that was frozen when the call began, or of an
        optimizer that begins anew."""
        known = {id(i.fake) for i in self.inputs if i.kind == "state"}
        for i in self.inputs:
            for state, value in self.optimizers.state_of(i.fake).items() if i.kind == "param" else ():
                if not isinstance(value, FakeTensor) or id(value) in known or self.counted.has(i.real, state):
                    continue
                if not i.real.requires_grad:
                    raise CaptureError(f"the step trains {i.name!r}, which was frozen when the call began, and its optimizer has no "
                                       "state of it yet\n  hint: unfreeze it before the first call (p.requires_grad_(True))")
                raise CaptureError(f"the step replaces {state!r} of {i.name!r} by another tensor\n  hint: update it in place, or "
                                   "begin with other state between two calls (optimizer.state.clear())")

    def _owner(self, i: Input) -> torch.Tensor | None:
        parameter = next(j.fake for j in self.inputs if j.kind == "param" and j.name == i.name)
        return parameter.grad if i.state == "grad" else self.optimizers.state_of(parameter).get(i.state)

    def _check_registered(self, what: str, name: str) -> None:
        module, _, leaf = name.rpartition(".")
        own = self.whole.get_submodule(module)
        tensor = parameters_of(own).get(leaf) if what == "parameter" else buffers_of(own).get(leaf)
        if not any(tensor is i.fake for i in self.inputs) and not (tensor.is_complex() and id(tensor) in self._reals):
            raise CaptureError(f"the step replaces {what} {name!r} by another tensor\n"
                               f"  hint: write into it in place: self.{leaf}.copy_(...)")

    def held_owner(self, real: int | None) -> str | None:
        """The held module whose tensor has the id `real`."""
        name = self._tensors[real][2][0].split(".")[0] if real in self._tensors else None
        return name if name in self.held.modules else None

    def untouched_gradients(self) -> list[str]:
        """Parameters whose .grad is the one that was there before the step."""
        owners = {i.name: i.fake for i in self.inputs if i.kind == "param"}
        return [i.name for i in self.inputs if i.state == "grad" and owners[i.name].grad is i.fake]

    def leftover_gradients(self) -> list[str]:
        """Parameters whose .grad outlives the step."""
        return [i.name for i in self.inputs if i.kind == "param" and i.fake.grad is not None]


def _restore(target: dict, saved: dict) -> None:
    target.clear()
    target.update(saved)

