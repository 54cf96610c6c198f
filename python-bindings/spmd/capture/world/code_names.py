"""The names that a step's code refers to: its own, and those of the user's functions, methods, classes and hooks that
it leads to."""
from __future__ import annotations

import contextlib
import functools
import inspect
import types
from typing import Any, Callable, Iterable, Iterator, Mapping

import torch

from ...torch_api.modules import GLOBAL_HOOKS, MODULE_HOOKS, tensor_hooks_of
from .user_code import global_names, has_users_class, is_users_class, is_users_function
from .walk import NUMBERS


def used_names(function: Callable) -> dict[str, Any]:
    """What the function's own code refers to outside of its arguments, by name: closures, globals, and `self`."""
    function = inspect.unwrap(function)
    names: dict[str, Any] = {}
    owner = getattr(function, "__self__", None)
    if owner is None and not isinstance(function, types.FunctionType):
        owner = function
    if owner is not None and not inspect.isclass(owner) and not inspect.ismodule(owner):
        names["self"] = owner
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    function = getattr(function, "__func__", function)
    if code is None:
        return names
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or ()):
        with contextlib.suppress(ValueError):  # an empty cell
            names[name] = cell.cell_contents
    own = getattr(function, "__globals__", {})
    names.update((name, own[name]) for name in global_names(code) if name in own)
    return names


@functools.lru_cache(maxsize=4096)
def names_in_class(cls: type) -> frozenset[str]:
    """All names, of attributes too, that the code of a class of modules refers to."""
    names: set[str] = set()
    todo = [value for base in cls.__mro__ if base not in (torch.nn.Module, object) for value in vars(base).values()]
    for value in todo:  # what is found meanwhile, too
        if isinstance(value, types.CodeType):
            names.update(value.co_names)
            todo += value.co_consts
        else:
            inside = (getattr(value, name, None) for name in ("fget", "__func__", "__wrapped__", "__code__"))
            todo += (part for part in inside if callable(part) or isinstance(part, types.CodeType))
    return frozenset(names)


def users_hooks(model: torch.nn.Module, of_optimizers: Iterable[Mapping[int, Callable]]) -> Iterator[Callable]:
    """The user's hooks of a model and its parameters, of all modules, and those in the tables `of_optimizers`: functions, and
    objects that are called."""
    tables = [*GLOBAL_HOOKS, *of_optimizers]
    for module in model.modules():
        tables += [getattr(module, name, None) for name in MODULE_HOOKS]
    for parameter in model.parameters():
        tables += tensor_hooks_of(parameter)
    for table in tables:
        yield from (hook for hook in (table or {}).values() if is_users_function(hook) or has_users_class(hook))


class Names:
    """`values`: what functions refer to, by name, with what modules and classes hold (a name that means two things
    stands once more with its function). `functions`: all that were looked through, in order."""

    def __init__(self, functions: Iterable[Callable], modules: Iterable[tuple[str, torch.nn.Module]]):
        self.values: dict[str, Any] = {}
        self.functions: list[Callable] = []
        self._seen: set[int] = set()
        self._todo = list(functions)
        for path, module in modules:
            self._add_class(type(module))
            for name, value in vars(module).items():
                if _is_note(module, name, value):
                    self.values[f"{path}.{name}" if path else name] = value
                    for entry in value if isinstance(value, (list, tuple)) else [value]:
                        self._follow(entry)
        while self._todo:
            function = self._todo.pop(0)
            if id(function) not in self._seen:
                self._seen.add(id(function))
                self.functions.append(function)
                self._read(function)

    def _read(self, function: Callable) -> None:
        for name, value in used_names(function).items():
            if name == "__class__":  # of super()
                continue
            if self.values.setdefault(name, value) is not value:
                self.values[f"{getattr(function, '__name__', type(function).__name__)}.{name}"] = value
            self._follow(value)

    def _follow(self, value: Any) -> None:
        """To the code that a value leads to."""
        if is_users_function(value):
            self._todo.append(value)
        elif inspect.isclass(value):
            self._add_class(value)
        elif has_users_class(value) and not isinstance(value, torch.nn.Module):
            self._add_class(type(value))

    def _add_class(self, cls: type) -> None:
        """The methods of a class, which count as called, and what it holds itself."""
        if id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        for base in cls.__mro__:
            if not is_users_class(base):
                continue
            for name, value in vars(base).items():
                function = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(function, types.FunctionType):
                    self._todo.append(function)
                elif not name.startswith("__") and not inspect.isdatadescriptor(value):
                    self.values[f"{base.__name__}.{name}"] = value


def _is_note(module: torch.nn.Module, name: str, value: Any) -> bool:
    """What the user's code keeps in a module, in an object or a container: numbers and tensors are looked at by
    check_modules, and libraries keep notes of their own."""
    if name.startswith("_") and (not is_users_class(type(module)) or name in _OF_MODULES):
        return False
    library = type(module).__module__.split(".")[0]
    return (library == "torch" or is_users_class(type(module))) \
        and not isinstance(value, (*NUMBERS, torch.Tensor, torch.nn.Module, *_SYMBOLS))


_SYMBOLS = (torch.SymFloat, torch.SymInt, torch.SymBool)
_OF_MODULES = set(vars(torch.nn.Module())) | {"_spmd_unit"}
