"""What a step does beside its results: a graph runs none of it, so it is an error, and output or reading a clock a
warning.

The step's Python runs once, while it is traced. Watched are the names that the step's function uses (globals, closures,
the object it is a method of), and those that the user's functions among them use, and the hooks of the model: what
changes in them (host_state.py), and traced values that stay behind in lists, dicts and attributes.
"""
from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import inspect
import logging
import os
import re
import sys
import sysconfig
import time
import types
import warnings
from typing import Any, Callable, Iterable, Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from .errors import CaptureError, Frame, error_at, is_user_file, where
from .host_state import DEPTH, NUMBERS, differences, generator_states, host_state

_SYMBOLS = (torch.SymFloat, torch.SymInt, torch.SymBool)
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep


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


@functools.lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """The globals that code reads or writes, functions defined in it included. Not `co_names`, which has the names of
    attributes, too: optimizer.step() does not read a global `step`."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")]
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names += global_names(inner)
    return tuple(dict.fromkeys(names))


def closure_numbers(function: Callable) -> tuple[Any, ...]:
    """Equal for two calls of a step between which no number that its code refers to has changed: a graph holds them as
    constants."""
    return tuple((name, type(value), value) for name, value in sorted(used_names(function).items())
                 if isinstance(value, NUMBERS))


def _reached_names(functions: Iterable[Callable]) -> dict[str, Any]:
    """What the functions refer to, and the user's functions among that. A name that means two things stands once more
    with its function."""
    names: dict[str, Any] = {}
    todo, seen = list(functions), set()
    while todo:
        function = todo.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        for name, value in used_names(function).items():
            if names.setdefault(name, value) is not value:
                names[f"{getattr(function, '__name__', type(function).__name__)}.{name}"] = value
            if _is_users_function(value):
                todo.append(value)
    return names


def _is_users_function(value: Any) -> bool:
    code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
    return isinstance(code, types.CodeType) and is_users_file(code.co_filename)


def is_users_file(path: str) -> bool:
    """Defined neither in PyTorch nor in an installed library, Python's own included."""
    return is_user_file(path) and "site-packages" not in path and not path.startswith(_STDLIB)


def users_hooks(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[Callable]:
    """The user's hooks of a model, its parameters and its optimizer."""
    tables = [getattr(optimizer, f"_optimizer_step_{when}_hooks", None) for when in ("pre", "post")]
    for module in model.modules():
        tables += [getattr(module, f"_{name}_hooks", None)
                   for name in ("forward", "forward_pre", "backward", "backward_pre")]
    for parameter in model.parameters():
        tables += [parameter._backward_hooks, parameter._post_accumulate_grad_hooks]
    for table in tables:
        yield from (hook for hook in (table or {}).values() if _is_users_function(hook))


_GENERATORS = {"random": "Python's random numbers", "numpy": "numpy's random numbers"}


class SideEffects:
    """Compares what a step's code refers to before and after it was traced."""

    def __init__(self, step: Callable, mode: FakeTensorMode, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self._step, self._mode = step, mode
        self._functions = [step, *users_hooks(model, optimizer)]
        self._before = host_state(_reached_names(self._functions), _has_users_class)
        self._generators = generator_states()
        self._items: list[tuple[Any, tuple[Frame, ...]]] = []

    def note_item(self, value: Any, stack: tuple[Frame, ...]) -> None:
        """A number that .item() gave, and where."""
        self._items.append((value, stack))

    def check(self) -> None:
        """After the trace.

        Raises:
          CaptureError: naming the variable, and the line where that is known.
        """
        after = _reached_names(self._functions)
        seen: set[int] = set()
        for name, value in after.items():
            self._search(value, name, DEPTH, seen)
        for what in differences(self._before, host_state(after, _has_users_class)):
            cure = ("return it from the step, and keep what the call gives back" if "number of entries" in what else
                    "take it, or draw, outside of the step, and pass tensors in" if "the state of" in what else
                    "count outside of the step, or keep it in a buffer of the model")
            raise error_at(self._line_of(re.search(r"'(\w*)", what)[1]),
                           f"the step changes {what}, which a captured step would do once, when it is captured", cure)
        for name in differences(self._generators, generator_states()):
            if name == "torch":
                raise error_at(self._line_of("manual_seed"),
                               "the step seeds torch's random numbers, which a captured step would "
                               "do once, when it is captured", "call torch.manual_seed before the capture")
            raise error_at(self._line_of(self._name_from(name, after)),
                           f"the step draws {_GENERATORS[name]}, which a captured "
                           "step would do once, when it is captured",
                           "draw with torch in the step, or outside of it, and pass a tensor in")

    def _name_from(self, library: str, names: dict[str, Any]) -> str:
        """The name through which the code reaches a library."""
        def of_library(value: Any) -> bool:
            is_module = isinstance(value, types.ModuleType)
            module = value.__name__ if is_module else type(getattr(value, "__self__", None)).__module__
            return module.split(".")[0] == library
        return next((name for name, value in names.items() if of_library(value)), "")

    def _search(self, value: Any, path: str, depth: int, seen: set[int]) -> None:
        if isinstance(value, _SYMBOLS) or (isinstance(value, FakeTensor) and value.fake_mode is self._mode):
            stack = next((s for v, s in self._items if v is value), ())
            raise error_at(stack or self._line_of(path.split("[")[0].split(".")[0]),
                           f"the step keeps a traced value in {path}, where a captured step would put nothing",
                           "return it from the step, and keep what the call gives back")
        skipped = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, types.ModuleType, types.FunctionType,
                   type, *NUMBERS)
        if depth == 0 or isinstance(value, skipped) or id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, dict):
            children = [(f"{path}[{k!r}]", v) for k, v in list(value.items())]
        elif isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque":
            children = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
        elif _has_users_class(value):
            children = [(f"{path}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]
        else:
            return
        for name, child in children:
            self._search(child, name, depth - 1, seen)

    def _line_of(self, name: str) -> tuple[Frame, ...]:
        """The line of the step that assigns `name`, or else its first."""
        function = inspect.unwrap(self._step)
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is None:
            return ()
        line, found = code.co_firstlineno, code.co_firstlineno
        for instruction in dis.get_instructions(code):
            if instruction.starts_line:
                starts = instruction.starts_line  # a number, or whether
                line = instruction.line_number if isinstance(starts, bool) else starts
            if instruction.argval == name and (instruction.opname.startswith("STORE") or found == code.co_firstlineno):
                found = line
                if instruction.opname.startswith("STORE"):
                    break
        return (Frame(code.co_filename, found, code.co_name),)


def _has_users_class(value: Any) -> bool:
    """An instance of a class that is defined neither in PyTorch nor in an installed library."""
    if not hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
        return False
    try:
        file = inspect.getsourcefile(type(value)) or "<"
    except TypeError:  # a class made at run time, or built in
        return False
    return is_users_file(file)


_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
           "process_time_ns")


@contextlib.contextmanager
def warn_of_output_and_clocks() -> Iterator[None]:
    """While entered, print(), logging and reading a clock in the user's code warn that a captured step does so once."""
    def warn(frame: Frame, what: str, cure: str) -> None:
        warnings.warn(f"the step {what}; a captured step does so once, when it is captured\n{where([frame])}\n  cure: "
                      f"{cure}",
                      stacklevel=3)

    def warning(original: Callable, what: str, cure: str) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if is_users_file(frame.f_code.co_filename):
                warn(Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name), what, cure)
            return original(*args, **kwargs)
        return call

    prints = "return what is to be printed, and print what the call gives back"

    def log(logger: logging.Logger, record: logging.LogRecord) -> None:
        if is_users_file(record.pathname):
            warn(Frame(record.pathname, record.lineno, record.funcName), "logs", prints)
        handle(logger, record)

    handle = logging.Logger.handle
    changed = [(builtins, "print", warning(print, "prints", prints)), (logging.Logger, "handle", log)]
    changed += [(time, name, warning(getattr(time, name), "reads a clock",
                                     "take the time around the call")) for name in _CLOCKS]
    saved = [(place, name, getattr(place, name)) for place, name, _ in changed]
    for place, name, value in changed:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in saved:
            setattr(place, name, value)


def check_modules(modules: Iterable[tuple[str, torch.nn.Module]], before: dict[int, dict[str, Any]]) -> None:
    """Refuses a step that changes numbers of a module, or leaves traced tensors in it: both are undone after a trace.

    Modules of PyTorch and of installed libraries keep notes of their own, which no step depends on.
    """
    for path, module in modules:
        if not _has_users_class(module):
            continue
        for name, value in vars(module).items():
            old = before.get(id(module), {}).get(name)
            changed = isinstance(value, (int, float)) and not isinstance(value, bool) and type(old) is type(value) \
                and old != value
            kept = isinstance(value, (FakeTensor, *_SYMBOLS)) and value is not old
            if changed or kept:
                full = f"{path}.{name}" if path else name
                what = f"changes {full!r} from {old} to {value}" if changed else f"keeps a traced value in {full!r}"
                raise CaptureError(f"the step {what}, which a captured step would not do\n  cure: "
                                   + ("make it a buffer of the module (register_buffer)" if changed else
                                      "return it from the step, or copy it into a buffer of the module"))
