"""What a step's code reads from objects, dicts and modules, and a graph holds as constants: a trainer's weight of a
loss, the rate of a dropout, an entry of a configuration.

The bytecode tells what is read: `self.config.temperature`, `OPTIONS["scale"]`, `args.alpha`. Looked through are the step,
the methods of the user's objects and the user's functions that it names, and the forward() of each module. Of an object that
the step hands on, and of a dict or list that it does more with than to read an entry by a constant, all numbers count as
read. What is reached in other ways (an attribute of what a function returns) is not seen.
"""
from __future__ import annotations

import argparse
import dis
import functools
import inspect
import types
from typing import Any, Callable, Iterator, Mapping, NamedTuple

import torch

from . import custom_ops
from .held import Held, named_modules, whole
from .code_names import has_users_class, is_users_file
from .host_state import NUMBERS, host_state

_NOTHING = object()
_LONGEST = 16  # of lists of numbers that are compared whole


class Item(NamedTuple):
    """The step of a path that reads an entry."""

    key: Any


class BakedValue(NamedTuple):
    """One value: where it was read, how to read it again, what it was."""

    path: str
    get: Callable[[], Any]
    value: Any
    version: int | None  # of a tensor


def changed(values: list[BakedValue]) -> BakedValue | None:
    """The first that is no longer what it was."""
    for baked in values:
        now = baked.get()
        if now is not baked.value and not (isinstance(baked.value, (*NUMBERS, tuple)) and type(now) is type(baked.value)
                                           and (now == baked.value or (now != now and baked.value != baked.value))):
            return baked
        if baked.version is not None and now._version != baked.version:
            return baked
    return None


def are_alike(values: list[BakedValue], others: list[BakedValue]) -> bool:
    """True when a step that reaches other objects of the same form reads the same from them: equal numbers, in objects
    of the same classes."""
    if [v.path for v in values] != [v.path for v in others]:
        return False
    return all(changed([one._replace(get=lambda other=other: other.value)]) is None
               or type(one.value) is type(other.value) and not isinstance(one.value, (torch.Tensor, tuple, *NUMBERS))
               and getattr(one.value, "__func__", None) is getattr(other.value, "__func__", None)
               and not isinstance(one.value, (types.FunctionType, types.BuiltinFunctionType, type))
               for one, other in zip(values, others))


def baked_values(step: Callable, model: torch.nn.Module, held: Held = Held(),
                 arguments: Mapping[str, Any] = types.MappingProxyType({})) -> list[BakedValue]:
    """Those of a step, of its `arguments` (the Python values among them, by path), and of the modules of its model and of
    those that are held; their tensors, what is held, and the modes of modules are not among them."""
    tensors = (*model.parameters(), *model.buffers(), *(tensor for _, tensor in held.tensors.values()))
    reader = _Reader(set(map(id, tensors)))
    step = inspect.unwrap(step)
    owner = getattr(step, "__self__", None)
    function = getattr(step, "__func__", step)
    if not isinstance(function, types.FunctionType) and callable(step):
        owner, function = step, type(step).__call__
    objects = {path: value for path, value in arguments.items() if not isinstance(value, NUMBERS)}
    reader.read(function, owner, "self", objects)
    names = getattr(getattr(function, "__code__", None), "co_varnames", ())
    for path, value in objects.items():
        if path not in names:  # in a container
            reader.take_all(path, value)
    for function in custom_ops.functions():
        reader.read(function, None, "")
    for path, module in named_modules(model, whole(model, held)):
        reader.read_module(module, path or "model")
    for place, root in held.watched.values():
        reader.read_code(place.path, root)
    return list(reader.found.values())


class _Reader:
    def __init__(self, ignored: set[int]):
        self.found: dict[str, BakedValue] = {}
        self._ignored = ignored
        self._read: set[tuple[int, int]] = set()

    def read_module(self, module: torch.nn.Module, path: str) -> None:
        """What its forward() reads, and which function that is."""
        get = functools.partial(_forward_of, module)
        self.found.setdefault(f"{path}.forward", BakedValue(f"{path}.forward", get, get(), None))
        own = vars(module).get("forward")
        self.read(getattr(own, "__func__", own) or type(module).forward, module, path)

    def take_all(self, path: str, value: Any) -> None:
        """Whatever there is to read in an argument."""
        if not self.read_code(path, value):
            get = functools.partial(_all_numbers, path, value)
            self.found.setdefault(path, BakedValue(path, get, get(), None))

    def read_code(self, path: str, value: Any) -> bool:
        """Of a module everything that its modules' forward() read, of a user's function what it reads; False for what is
        neither."""
        if isinstance(value, torch.nn.Module):
            for name, module in value.named_modules():
                self.read_module(module, f"{path}.{name}" if name else path)
        elif isinstance(value, types.FunctionType) and is_users_file(value.__code__.co_filename):
            self.read(value, None, path)
        else:
            return False
        return True

    def read(self, function: Any, owner: Any, label: str, arguments: Mapping[str, Any] = types.MappingProxyType({})) -> None:
        """Everything that `function` reads, with `owner` as its first argument, called `label`; of `arguments`, by their
        names, what it reads of them."""
        function = inspect.unwrap(function) if callable(function) else function
        code = getattr(function, "__code__", None)
        if code is None or (id(function), id(owner)) in self._read:
            return
        self._read.add((id(function), id(owner)))
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        own = code.co_varnames[0] if owner is not None and code.co_argcount else None
        for (is_global, root), *steps in read_paths(code):
            if is_global:
                if root in function.__globals__:
                    self._take(root, functools.partial(function.__globals__.get, root), steps)
            elif root == own:
                self._follow(owner, label, steps)
            elif root in cells:
                self._take(root, functools.partial(getattr, cells[root], "cell_contents", None), steps)
            elif root in arguments and steps:
                self._follow(arguments[root], root, steps)
            elif root in arguments:
                self.take_all(root, arguments[root])

    def _take(self, path: str, get: Callable[[], Any], steps: list[Any]) -> None:
        """Notes the value at a path, and goes on from it."""
        value = get()
        if isinstance(value, types.ModuleType):
            if not is_users_file(getattr(value, "__file__", None) or "<"):
                return
        elif isinstance(value, torch.Tensor):
            if id(value) not in self._ignored:
                self.found.setdefault(path, BakedValue(path, get, value, value._version))
            return
        elif isinstance(value, (list, tuple)) and len(value) <= _LONGEST and all(isinstance(v, NUMBERS) for v in value):
            self.found.setdefault(path, BakedValue(path, lambda: tuple(get() or ()), tuple(value), None))
        elif not isinstance(value, (torch.nn.Module, torch.optim.Optimizer)):
            self.found.setdefault(path, BakedValue(path, get, value, None))
            if _holds_numbers(value) and (not steps or isinstance(value, dict) and not isinstance(steps[0], Item)):
                all_of = functools.partial(_all_numbers, path, value)
                self.found.setdefault(f"{path}[...]", BakedValue(f"{path}[...]", all_of, all_of(), None))
        if not self.read_code(path, value) and callable(value) and has_users_class(value) and not steps:
            self.read(type(value).__call__, value, path)
        self._follow(value, path, steps)

    def _follow(self, value: Any, path: str, steps: list[Any]) -> None:
        if not steps or value is None or isinstance(value, (torch.Tensor, torch.optim.Optimizer, *NUMBERS)):
            return
        step, *rest = steps
        if isinstance(step, Item):
            if isinstance(value, dict):
                self._take(f"{path}[{step.key!r}]", functools.partial(value.get, step.key), rest)
            elif (isinstance(value, (list, tuple)) and isinstance(step.key, int)
                  and -len(value) <= step.key < len(value)):
                self._take(f"{path}[{step.key}]", functools.partial(_entry, value, step.key), rest)
            return
        own = getattr(value, "__dict__", {})
        if step in own:
            if step != "training" or not isinstance(value, torch.nn.Module):
                self._take(f"{path}.{step}", functools.partial(own.get, step), rest)
        elif isinstance(value, torch.nn.Module) and step in value._modules:
            self._follow(value._modules[step], f"{path}.{step}", rest)
        else:
            attribute = inspect.getattr_static(type(value), step, None)
            if isinstance(attribute, types.MemberDescriptorType) or attribute is not None \
                    and not hasattr(type(attribute), "__get__"):  # of __slots__, or the class's own
                self._take(f"{path}.{step}", functools.partial(getattr, value, step, None), rest)
            method = attribute.fget if isinstance(attribute, property) else attribute
            if isinstance(method, types.FunctionType) and (isinstance(value, torch.nn.Module)
                                                           or is_users_file(method.__code__.co_filename)):
                self.read(method, value, path)


def _forward_of(module: torch.nn.Module) -> Any:
    return vars(module).get("forward", type(module).forward)


def _has_attributes(value: Any) -> bool:
    return has_users_class(value) or isinstance(value, (argparse.Namespace, types.SimpleNamespace))


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple, set)) or not callable(value) and _has_attributes(value)


def _all_numbers(path: str, value: Any) -> tuple[Any, ...]:
    """Those in it, by where they are. An object in it that has a state of its own is no part of it."""
    return tuple((where, number) for where, number in host_state({path: value}, _has_attributes).items()
                 if isinstance(number, NUMBERS))


def _entry(values: Any, index: int) -> Any:
    return values[index] if -len(values) <= index < len(values) else _NOTHING


@functools.lru_cache(maxsize=4096)
def read_paths(code: types.CodeType) -> tuple[tuple[Any, ...], ...]:
    """What code reads, functions defined in it included: ((False, "self"), "config", "temperature"), ((True,
    "OPTIONS"), Item("scale")). First is whether the name is a global, and the name; a local that has a global's name is
    none."""
    found = dict.fromkeys(_own_paths(code))
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found.update((path, None) for path in read_paths(inner) if path[0][0] or path[0][1] in inner.co_freevars)
    return tuple(found)


def _own_paths(code: types.CodeType) -> Iterator[tuple[Any, ...]]:
    path: tuple[Any, ...] = ()
    constant: Any = _NOTHING
    aliases: dict[str, tuple[Any, ...]] = {}  # locals that stand for a path: config = self.config
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "STORE_FAST":
            aliases.pop(instruction.argval, None)
            if path and constant is _NOTHING:
                aliases[instruction.argval] = path
            elif path:
                yield path
            path, constant = (), _NOTHING
            continue
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
            if path:
                yield path
            path, constant = ((name in ("LOAD_GLOBAL", "LOAD_NAME"), instruction.argval),), _NOTHING
            if path[0][1] in aliases and not path[0][0]:
                path = aliases[path[0][1]]
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and path and constant is _NOTHING:
            path += (instruction.argval,)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT") and path:
            constant = instruction.argval
        elif path[-1:] == ("get",) and isinstance(constant, str) and name in ("PRECALL", "CALL"):  # of a dict
            path, constant = (*path[:-1], Item(constant)), _NOTHING
        elif path and constant is not _NOTHING and (name == "BINARY_SUBSCR" or instruction.argrepr == "[]"):
            if isinstance(constant, (str, int)):
                path += (Item(constant),)
            constant = _NOTHING
        elif name not in ("PUSH_NULL", "NOP", "CACHE", "EXTENDED_ARG", "PRECALL"):
            if path:
                yield path
            path, constant = (), _NOTHING
    if path:
        yield path
