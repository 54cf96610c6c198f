"""The model and the optimizers of a step that gets them in no argument: found in what its code reads.

    class Trainer:
        @spmd.compile(ranks=4)
        def train_step(self, x, y): ...  # self.model, self.optimizer

The optimizers are those that the step's own code, and the user's functions that it leads to, read from `self`, a
closure or a global. The model is the module that has most of the optimizers' parameters, and of several that have as
many the outermost; other modules that the step uses are its state as well (held.py).
"""
from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Callable, Iterator, NamedTuple

import torch

from ..errors import CaptureError
from ..world.paths import attribute_path, entry_path
from ..world.read_paths import Item, read_paths
from ..world.user_code import has_users_class, is_users_file
from ..world.walk import ATTRIBUTE, ENTRY, MODEL_AND_OPTIMIZERS, NOTHING, OPAQUE, Edge, Node, Visitor, walk

_PARTS = (torch.nn.Module, torch.optim.Optimizer)


class Part(NamedTuple):
    """A module or an optimizer: where it was read, and how to read it again."""

    path: str
    get: Callable[[], Any]
    value: Any

    def now(self) -> Any:
        """What is there now, None when nothing is."""
        try:
            return self.get()
        except (LookupError, AttributeError, TypeError, ValueError):
            return None

    def again(self, kind: type) -> Part | None:
        """What is there now, when that is of the kind."""
        value = self.now()
        return self._replace(value=value) if isinstance(value, kind) else None


def find_optimizers(step: Callable) -> list[Part]:
    """The optimizers that the code of `step` reads; none for one that updates by hand, or only evaluates."""
    return _once(part for part in _parts_read(step) if isinstance(part.value, torch.optim.Optimizer))


def find_model(step: Callable, name: str, arguments: list[Part], trained: set[int]) -> Part:
    """The module that has the parameters whose ids are `trained` (where there are none, any parameters): among the
    `arguments`, else what the code of `step`, which is called `name`, reads.

    Raises:
      CaptureError: when there is none.
    """
    for parts in (arguments, _parts_read(step)):
        found = [(_count(part.value, trained), part) for part in _once(parts)
                 if isinstance(part.value, torch.nn.Module)]
        found = [(counts, part) for counts, part in found if counts[0]]
        if found:  # max() takes the first of equal ones
            return max(found, key=lambda entry: entry[0])[1]
    if len(arguments) == 1:
        return arguments[0]
    raise CaptureError(f"{name} gets no torch.nn.Module as an argument{' that its optimizer trains' * bool(trained)}, "
                       "and reads none from self, a closure or a global\n  hint: pass the model as an argument, or keep "
                       "it where the step's code reads it (self.model)")


def _count(module: torch.nn.Module, trained: set[int]) -> tuple[int, int]:
    """How many of its parameters are trained, and how many modules it has."""
    return sum(not trained or id(p) in trained for p in module.parameters()), sum(1 for _ in module.modules())


def _once(parts: Iterator[Part] | list[Part]) -> list[Part]:
    return list({id(part.value): part for part in reversed(list(parts))}.values())[::-1]


def _parts_read(step: Callable) -> Iterator[Part]:
    """The modules and optimizers that the code reads, in the order of the code."""
    seen: set[tuple[int, int]] = set()
    todo: list[tuple[Any, Any, str]] = [_taken_apart(step)]
    while todo:
        function, owner, label = todo.pop(0)
        function = inspect.unwrap(function) if callable(function) else function
        code = getattr(function, "__code__", None)
        if code is None or (id(function), id(owner)) in seen:
            continue
        seen.add((id(function), id(owner)))
        if isinstance(owner, torch.nn.Module):
            yield Part(label, functools.partial(_same, owner), owner)
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        own = code.co_varnames[0] if owner is not None and code.co_argcount else None
        for (is_global, root), *steps in read_paths(code):
            if is_global and root in function.__globals__:
                start = Part(root, functools.partial(function.__globals__.__getitem__, root), None)
            elif not is_global and root == own:
                start = Part(label, functools.partial(_same, owner), None)
            elif not is_global and root in cells:
                start = Part(root, functools.partial(getattr, cells[root], "cell_contents"), None)
            else:
                continue
            yield from _along(start, steps, todo)


def _taken_apart(step: Callable) -> tuple[Any, Any, str]:
    """A function, what it is a method of, and the name of that."""
    step = inspect.unwrap(step)
    owner, function = getattr(step, "__self__", None), getattr(step, "__func__", step)
    if not isinstance(function, types.FunctionType) and callable(step):
        owner, function = step, type(step).__call__
    return function, owner, "self"


def _along(start: Part, steps: list[Any], todo: list[tuple[Any, Any, str]]) -> Iterator[Part]:
    """What lies on a path of attributes and entries, and in the lists and objects at its end; functions and methods of
    the user's on it are noted in `todo`."""
    path, get = start.path, start.get
    for index in range(len(steps) + 1):
        value = Part(path, get, None).now()
        if isinstance(value, _PARTS):
            yield Part(path, get, value)
            if isinstance(value, torch.optim.Optimizer):
                return
        if isinstance(value, types.FunctionType) and is_users_file(value.__code__.co_filename):
            todo.append((value, None, path))
        if index == len(steps):
            inside = _PartsInside()
            walk([Node.root(path, value, get)], inside)
            yield from (Part(node.path, node.get, node.value) for node in sorted(inside.found, key=lambda node: node.order))
            return
        step = steps[index]
        if isinstance(step, Item):
            path, get = entry_path(path, step.key), functools.partial(_entry, get, step.key)
            continue
        attribute = inspect.getattr_static(type(value), step, None)
        method = attribute.fget if isinstance(attribute, property) else attribute
        if isinstance(method, types.FunctionType) and step not in getattr(value, "__dict__", {}):
            if is_users_file(method.__code__.co_filename):
                todo.append((method, value, path))
            return
        path, get = attribute_path(path, step), functools.partial(_attribute, get, step)


class _PartsInside(Visitor):
    """Modules and optimizers in lists, tuples, dicts, and objects of the user's classes, but not in other modules."""

    limits = MODEL_AND_OPTIMIZERS

    def __init__(self) -> None:
        self.found: list[Node] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        value = node.value
        if isinstance(value, OPAQUE):
            if isinstance(value, _PARTS) and node.owner is not None:
                self.found.append(node)
            return NOTHING
        if isinstance(value, (list, tuple, dict)):
            return ENTRY
        return ATTRIBUTE if has_users_class(value) and not callable(value) else NOTHING


def _same(value: Any) -> Any:
    return value


def _entry(get: Callable[[], Any], key: Any) -> Any:
    return get()[key]


def _attribute(get: Callable[[], Any], name: str) -> Any:
    return getattr(get(), name)
