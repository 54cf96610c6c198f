"""What a step's code can reach without an argument, and how to reach it again: modules and tensors in globals,
closures, attributes of objects, lists and dicts.

The walk goes wider than what the step uses, because code can reach an object in ways that no one reads off it
(`for teacher in self.teachers`); which of the modules and tensors are used, the trace tells (held.py).
"""
from __future__ import annotations

import collections
import functools
import inspect
import sys
import types
import weakref
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch

from ...torch_api.modules import TABLES, TENSOR_TABLES
from ..optimizer.loss_scaling import scaler_there, state_of_scaler
from .function_caches import CachedFunction
from .host_state import NUMBERS, entry_path
from .user_code import global_names, is_users_file


class Opaque:
    """What holds compiled steps, and not what a step uses: no walk goes into it."""


class CompiledFunction(Opaque):
    """What spmd.compile makes of the function `train_step`, with the batch dims that it was given."""

    train_step: Callable
    batch_dims: dict[str, int | None] | None


_OPAQUE = (*NUMBERS, bytes, Opaque, torch.optim.Optimizer, torch.Generator, types.BuiltinFunctionType, types.CodeType,
           types.FrameType)
_CONTAINERS = (list, tuple, collections.deque)
_SIZED = (dict, *_CONTAINERS, set, frozenset)
_ENTRIES = 10_000  # a larger container is data, not models
_OBJECTS = 200_000  # in all


class Place(NamedTuple):
    """Where something was reached: `path` for people ("self.teachers[0]"), `get` gives what is there now, or raises
    LookupError, AttributeError or ValueError when that way has gone. `containers` gives the lists and dicts on the way:
    code may go through all that they have. `others` are other ways to what was there (`self.current = self.weights[0]`):
    nobody knows which of them the code goes."""

    path: str
    get: Callable[[], Any]
    containers: tuple[Callable[[], Any], ...] = ()
    others: tuple[Callable[[], Any], ...] = ()

    @classmethod
    def always(cls, path: str, value: Any) -> Place:
        """A place that has this value for good."""
        return cls(path, functools.partial(_same, value))

    def __repr__(self) -> str:
        return f"Place({self.path!r})"

    def now(self) -> Any:
        """What is there now; None when nothing is, or not all ways lead there any more."""
        try:
            found = self.get()
            return found if all(other() is found for other in self.others) else None
        except (LookupError, AttributeError, ValueError, TypeError):
            return None

    def sizes(self) -> tuple[int, ...]:
        """How many entries the containers on the way have."""
        return tuple(len(container()) for container in self.containers)


class Reached:
    """Modules that lie in no other reached module, and tensors, each with the shortest way to it. `aliases` are other
    ways to modules of the model, `caches` functions that keep what they have computed.

    `known` are the objects that the step gets as arguments: what is registered in them is not reached, it is given.
    """

    def __init__(self, functions: Iterable[Callable], model: torch.nn.Module, arguments: dict[str, Any],
                 known: Iterable[Any]):
        self._seen = {id(value) for value in known}
        self._model, self._inside = model, {id(module) for module in model.modules()}
        self._alive: list[Any] = []  # what was made on the way: its id stays its own
        self._modules: dict[int, tuple[Place, torch.nn.Module]] = {}
        self.aliases: list[tuple[Place, torch.nn.Module]] = []
        self.tensors: dict[int, tuple[Place, torch.Tensor]] = {}
        self._queue: collections.deque[tuple[Place, Any]] = collections.deque()
        self.caches: list[Any] = []  # functools.lru_cache
        self._again: dict[int, list[Callable[[], Any]]] = {}  # other ways to tensors and modules, by id
        for function in functions:
            self._add(Place.always("", function), function)
        for name, value in arguments.items():
            self._add(Place.always(name, value), value)
        for path, module in model.named_modules():
            place = Place.always(path, module)
            self._queue.extend(self._loose_parts(place, module))
        while self._queue and len(self._seen) < _OBJECTS:
            self._visit(*self._queue.popleft())
        for found in (self._modules, self.tensors):
            found.update((number, (place._replace(others=tuple(self._again[number])), value))
                         for number, (place, value) in found.items() if number in self._again)
        inner = {id(m) for _, root in self._modules.values() for m in root.modules() if m is not root}
        self.modules = [self._with_ways_inside(*found) for number, found in self._modules.items() if number not in inner]
        for place, root in self.modules:
            for path, module in root.named_modules():
                for table in TENSOR_TABLES:
                    for name, tensor in getattr(module, table).items():
                        if tensor is not None:
                            whole = ".".join(part for part in (place.path, path, name) if part)
                            owner = functools.partial(_submodule, place.get, path)
                            self.tensors.setdefault(id(tensor), (Place(
                                whole, functools.partial(_entry, functools.partial(_member, owner, table), name),
                                place.containers), tensor))

    def _add(self, place: Place, value: Any) -> None:
        if not isinstance(value, _OPAQUE) and value is not None:
            self._queue.append((place, value))

    def _visit(self, place: Place, value: Any) -> None:
        if id(value) in self._inside:
            self.aliases.append((place, value))
            return
        if id(value) in self._seen or isinstance(value, _OPAQUE):
            if isinstance(value, (torch.Tensor, torch.nn.Module)):
                self._again.setdefault(id(value), []).append(place.get)
            return
        self._seen.add(id(value))
        self._alive.append(value)
        if isinstance(value, torch.Tensor):
            self.tensors[id(value)] = place, value
        elif (scaler := state_of_scaler(value, self._model)) is not None:
            self._modules[id(scaler)] = place._replace(get=functools.partial(scaler_there, place.get)), scaler
        elif isinstance(value, torch.nn.Module):
            self._modules[id(value)] = place, value
            for path, module in value.named_modules():
                inner = Place(f"{place.path}.{path}" if path else place.path,
                              functools.partial(_submodule, place.get, path), place.containers)
                self._queue.extend(self._loose_parts(inner, module))
        else:
            if isinstance(value, CachedFunction):
                self.caches.append(value)
            inside = place.containers + ((place.get,) if isinstance(value, _SIZED) else ())
            self._queue.extend((p._replace(containers=inside), v) for p, v in _parts(place, value)
                               if not isinstance(v, _OPAQUE))

    def _with_ways_inside(self, place: Place, root: torch.nn.Module) -> tuple[Place, torch.nn.Module]:
        """With those that lead to a part of it (`self.head = self.teacher.head`)."""
        ways = [functools.partial(_whole_of, way, place.get, path) for path, module in root.named_modules() if module is not root
                for way in (*((self._modules[id(module)][0].get,) if id(module) in self._modules else ()),
                            *self._again.get(id(module), ()))]
        return place._replace(others=(*place.others, *ways)), root

    def _loose_parts(self, place: Place, module: torch.nn.Module) -> Iterator[tuple[Place, Any]]:
        """What hangs on a module without being registered in it, and its code."""
        skipped = {*TABLES, "_spmd_unit"}
        for name, value in list(vars(module).items()):
            if name not in skipped and not isinstance(value, _OPAQUE):
                yield Place(f"{place.path}.{name}" if place.path else name,
                            functools.partial(_attribute, place.get, name), place.containers), value
        yield Place(place.path, functools.partial(_class_of, place.get)), type(module)


def _same(value: Any) -> Any:
    return value


def _submodule(get: Callable[[], torch.nn.Module], path: str) -> torch.nn.Module:
    return get().get_submodule(path)


def _whole_of(get: Callable[[], Any], whole: Callable[[], torch.nn.Module], path: str) -> Any:
    """The whole, if what `get` gives is its part at `path`."""
    return whole() if get() is whole().get_submodule(path) else None


def _attribute(get: Callable[[], Any], name: str) -> Any:
    return vars(get())[name]


def _member(get: Callable[[], Any], name: str) -> Any:
    return getattr(get(), name)


def _entry(get: Callable[[], Any], key: Any) -> Any:
    return get()[key]


def _class_of(get: Callable[[], Any]) -> type:
    return type(get())


def _parts(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    """What a value leads to."""
    path, get = place.path, place.get

    def below(name: str) -> str:
        return f"{path}.{name}" if path else name

    if isinstance(value, types.FunctionType):
        yield from _parts_of_function(place, value)
    elif isinstance(value, types.MethodType):
        yield Place(path or "self", functools.partial(_member, get, "__self__")), value.__self__
        yield Place(path, functools.partial(_member, get, "__func__")), value.__func__
    elif isinstance(value, functools.partial):
        for name in ("func", "args", "keywords"):
            yield Place(below(name), functools.partial(_member, get, name)), getattr(value, name)
    elif isinstance(value, (staticmethod, classmethod)):
        yield Place(path, functools.partial(_member, get, "__func__")), value.__func__
    elif isinstance(value, property):
        for name in ("fget", "fset"):
            yield Place(path, functools.partial(_member, get, name)), getattr(value, name)
    elif isinstance(value, weakref.ref):
        yield Place(path, lambda: get()()), value()
    elif isinstance(value, dict):
        if len(value) <= _ENTRIES:
            for number, (key, entry) in enumerate(list(value.items())):
                yield Place(entry_path(path, key, number), functools.partial(_entry, get, key)), entry
    elif isinstance(value, _CONTAINERS):
        if len(value) <= _ENTRIES:
            for index, entry in enumerate(value):
                yield Place(f"{path}[{index}]", functools.partial(_entry, get, index)), entry
    elif isinstance(value, (set, frozenset)):
        if len(value) <= _ENTRIES:
            for entry in value:
                yield Place.always(path, entry), entry
    elif isinstance(value, types.ModuleType):
        if is_users_file(getattr(value, "__file__", None) or "<"):
            for name, entry in list(vars(value).items()):
                yield Place(below(name), functools.partial(_attribute, get, name)), entry
    elif inspect.isclass(value):
        for base in value.__mro__:
            if _is_users_class(base):
                for name, entry in list(vars(base).items()):
                    yield Place(below(name), functools.partial(_attribute, functools.partial(_same, base), name)), entry
    else:
        try:
            own = dict(value.__dict__)
        except Exception:  # no attributes, or a proxy that answers for another object
            own = {}
        for name, entry in own.items():
            yield Place(below(name), functools.partial(_attribute, get, name)), entry
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if not name.startswith("__") and hasattr(value, name):
                    yield Place(below(name), functools.partial(_member, get, name)), getattr(value, name)
        yield Place(path, functools.partial(_class_of, get)), type(value)


def _parts_of_function(place: Place, function: types.FunctionType) -> Iterator[tuple[Place, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield Place(name, functools.partial(_member, functools.partial(_same, cell), "cell_contents")), \
                cell.cell_contents
        except ValueError:  # empty
            continue
    if not _is_library(function.__code__.co_filename):
        own = function.__globals__
        for name in global_names(function.__code__):
            if name in own:
                yield Place(name, functools.partial(_entry, functools.partial(_same, own), name)), own[name]
        for name, entry in [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]:
            yield Place.always(f"{function.__name__}.{name}", entry), entry
    for name, entry in vars(function).items():
        yield Place(f"{function.__name__}.{name}", functools.partial(_entry, lambda: vars(function), name)), entry


def _is_library(path: str) -> bool:
    """Code of PyTorch, of an installed package or of Python; what was typed at a prompt is not."""
    return path.startswith("<frozen") or not path.startswith("<") and not is_users_file(path)


def _is_users_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return cls.__module__ == "__main__" if file is None else not _is_library(file)
