"""What a step reaches without an argument and uses: modules whose parameters and buffers are state of the step as the
model's are, and tensors, which are its constants.

[Note: held state] A teacher in a global, a closure or `self` is read at every call, as eager reads it. Its tensors have
names in the step ("teacher.fc.weight"), places on the ranks, and slots in live_state.py like the model's; what a call
finds in its place, the same object or another of the same form, is what that call uses. One of another form is
another program.
"""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, Container, Iterable, Iterator

import torch

from ...models import DTYPES
from ...torch_api.modules import MODULE_HOOKS, TENSOR_HOOKS, buffers_of, children_of, parameters_of, set_children, tensor_hooks_of
from ...torch_api.tracing import DisableTorchFunctionSubclass
from ..errors import CaptureError
from .closure_objects import ClosureObjects
from .paths import Place, identifier


@dataclasses.dataclass
class Held:
    """`modules` and `tensors` by the name they have in the step, each with its place. `tensors` without a place were
    made while the step was traced, or reached in a way that nobody can follow: they stay the objects they are.
    `watched` are modules that bring no tensors of their own: another one in its place may be another program."""

    modules: dict[str, tuple[Place, torch.nn.Module]] = dataclasses.field(default_factory=dict)
    watched: dict[str, tuple[Place, torch.nn.Module]] = dataclasses.field(default_factory=dict)
    tensors: dict[str, tuple[Place | None, torch.Tensor]] = dataclasses.field(default_factory=dict)

    def only(self, modules: Iterable[str]) -> Held:
        """With these modules, and no tensors."""
        return Held({name: self.modules[name] for name in modules}, self.watched)

    def now(self) -> Held | None:
        """What is in the places now; None when something is gone, or is of another form."""
        kinds: list[dict[str, Any]] = []
        for kind in (self.modules, self.watched, self.tensors):
            found = {name: (place, old if place is None else place.now()) for name, (place, old) in kind.items()}
            if not all(_is_like(new[1], old[1]) for new, old in zip(found.values(), kind.values())):
                return None
            kinds.append(found)
        return Held(*kinds)

    def is_same(self, other: Held) -> bool:
        """The very objects."""
        return all(mine[1] is theirs[1] for kind in ("modules", "watched", "tensors")
                   for mine, theirs in zip(getattr(self, kind).values(), getattr(other, kind).values(), strict=True))

    def key(self, model: Iterable[int]) -> tuple[Any, ...]:
        """Equal for what one graph serves: the form of each tensor, which are one (`model` has the ids of the model's
        own), which modules train, hooks, and how much is in the lists and dicts on the way."""
        numbers = {number: index for index, number in enumerate(model)}
        found: list[Any] = [place.sizes() for kind in (self.modules, self.watched, self.tensors)
                            for place, _ in kind.values() if place is not None]
        with DisableTorchFunctionSubclass():
            for _, root in (*self.modules.values(), *self.watched.values()):
                if id(root) in numbers:  # the model's, which the caller has looked at
                    found.append(numbers[id(root)])
                    continue
                for path, part in root.named_modules():
                    found.append((path, type(part), part.training, *_hooks_of(part)))
                    for name, tensor in (*parameters_of(part).items(), *buffers_of(part).items()):
                        if tensor is not None:
                            same_as = numbers.setdefault(id(tensor), len(numbers))
                            found.append((name, same_as, *_form(tensor), *_hooks_of(tensor)))
            for _, tensor in self.tensors.values():
                found.append((numbers.setdefault(id(tensor), len(numbers)), *_form(tensor)))
        return tuple(found)


def _is_like(new: Any, old: torch.nn.Module | torch.Tensor) -> bool:
    """As far as key() does not tell. The class of a tensor says where its value is (live_state.py)."""
    return isinstance(new, torch.Tensor) if isinstance(old, torch.Tensor) else type(new) is type(old)


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.requires_grad


def _hooks_of(owner: Any) -> tuple[Any, ...]:
    """The hooks of a module or of a parameter, by their numbers: what has other ones is another program."""
    is_tensor = isinstance(owner, torch.Tensor)
    tables = zip(TENSOR_HOOKS, tensor_hooks_of(owner)) if is_tensor else ((name, getattr(owner, name)) for name in MODULE_HOOKS)
    return tuple((name, tuple(hooks)) for name, hooks in tables if hooks)


def candidates(functions: Iterable[Callable], model: torch.nn.Module, arguments: dict[str, Any],
               known: Iterable[Any]) -> tuple[Held, ClosureObjects, dict[int, tuple[str, str]]]:
    """The modules with tensors that the functions can reach, by a name each; all that was reached; and, of modules
    that no trace can go through, why not and the hint: by the id of each of their tensors."""
    reached = ClosureObjects(functions, model, arguments, known)
    inside = {id(module) for module in model.modules()}
    own = {id(t) for t in (*model.parameters(), *model.buffers())}
    taken = set(dict(model.named_children())) | {name for name, _ in model.named_parameters(recurse=False)} | {
        name for name, _ in model.named_buffers(recurse=False)}
    held, excluded = Held(), {}
    for place, module in reached.aliases:
        held.watched[f"{place.path} {len(held.watched)}"] = place, module
    for place, module in reached.modules:
        tensors = [t for t in (*module.parameters(), *module.buffers()) if id(t) not in own]
        if not tensors:
            held.watched[f"{place.path} {len(held.watched)}"] = place, module
            continue
        why = _why_not(module, inside)
        if why is not None:
            excluded |= {id(t): (f"a tensor of {place.path!r}, {why[0]}", why[1]) for t in tensors}
            continue
        name = _name(place.path, taken)
        taken.add(name)
        held.modules[name] = place, module
    return held, reached, excluded


def _why_not(module: torch.nn.Module, inside: set[int]) -> tuple[str, str] | None:
    for part in module.modules():
        if isinstance(part, torch.jit.ScriptModule):
            return "which is TorchScript, and nothing traces through that", "use the module that it was made from"
        if id(part) in inside:
            continue
        for tensor in (*parameters_of(part).values(), *buffers_of(part).values()):
            if tensor is not None and tensor.dtype not in DTYPES and (isinstance(tensor, torch.nn.Parameter)
                                                                      or not tensor.is_complex()):
                return f"which has a tensor of {tensor.dtype}", "hold complex numbers as pairs of real ones"
    return None


def _name(path: str, taken: set[str]) -> str:
    """A name for what was reached at `path`: "teacher" for self.teacher, "teachers_0" for teachers[0]."""
    plain = identifier(path)
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    return name


def name_tensors(tensors: Iterable[tuple[str, torch.Tensor]], reached: ClosureObjects) -> dict[str, tuple[str, Place | None]]:
    """Names and places of the tensors that a trace found as constants, given with the tracer's names: equal names in
    two programs are one tensor."""
    found: dict[str, tuple[str, Place | None]] = {}
    taken: set[str] = set()
    for traced_name, tensor in tensors:
        place = reached.tensors.get(id(tensor), (None, None))[0]
        name = traced_name if place is None else _name(place.path, taken)
        taken.add(name)
        found[traced_name] = name, place
    return found


@contextlib.contextmanager
def no_gradients_outside(reached: ClosureObjects, known: Container[int]) -> Iterator[None]:
    """Refuses a trace in which a gradient lands in a tensor that is no module's: eager would add to it at every step.

    `known` has the ids of tensors that have a gradient in the trace.
    """
    with DisableTorchFunctionSubclass():
        before = [(place, t, t.grad) for number, (place, t) in reached.tensors.items()
                  if number not in known and t.requires_grad and t.is_leaf]
    wrong = None
    try:
        yield
    finally:
        for place, tensor, gradient in before:
            if tensor.grad is not gradient:
                tensor.grad, wrong = gradient, wrong or place
    if wrong is not None:
        raise CaptureError(f"backward() leaves a gradient in {wrong.path!r}, which is neither the model's nor a "
                           "module's\n  hint: register it in the model, or call detach() where the step uses it")


def whole(model: torch.nn.Module, held: Held) -> torch.nn.Module:
    """A view of the model that has the held modules as further children, under their names in the step: what walks
    over modules and tensors walks over all that the step has. It shares the model's dicts of tensors."""
    if not held.modules:
        return model
    view = object.__new__(type(model))
    view.__dict__.update(vars(model))
    set_children(view, {**children_of(model), **{name: module for name, (_, module) in held.modules.items()}})
    return view


def named_modules(model: torch.nn.Module, view: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules of a view of `model`, with the model itself in the place of the view."""
    for path, module in view.named_modules():
        yield path, model if module is view else module
