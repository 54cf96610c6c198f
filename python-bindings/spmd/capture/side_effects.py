"""What a step does beside its results: a graph runs none of it, so it is an error, and output or reading a clock a
warning.

The step's Python runs once, while it is traced. Watched are the names that the step's function uses (globals, closures,
the object it is a method of), those that the user's functions and classes among them use, the modules' own code, and
the hooks (code_names.py): what changes in them (host_state.py), and traced values that stay behind in lists, dicts and
attributes.
"""
from __future__ import annotations

import builtins
import contextlib
import dis
import inspect
import logging
import re
import sys
import time
import types
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from . import custom_ops
from .code_names import Names, has_users_class, is_users_file, users_hooks
from .errors import CaptureError, Frame, error_at, where
from .held import named_modules
from .host_state import DEPTH, NUMBERS, differences, generator_states, host_state
from .optimizers import Optimizers

_SYMBOLS = (torch.SymFloat, torch.SymInt, torch.SymBool)


_GENERATORS = {"random": "Python's random numbers", "numpy": "numpy's random numbers"}


class SideEffects:
    """Compares what a step's code refers to before and after it was traced."""

    def __init__(self, step: Callable, mode: FakeTensorMode, model: torch.nn.Module, view: torch.nn.Module,
                 optimizers: Optimizers, arguments: dict[str, Any]):
        self._step, self._mode, self._arguments = step, mode, arguments
        self._functions = [step, *users_hooks(view, optimizers), *custom_ops.functions()]
        self._modules = list(named_modules(model, view))
        self._before = host_state(arguments | self._names().values, has_users_class)
        self._generators = generator_states()
        self._items: list[tuple[Any, tuple[Frame, ...]]] = []

    def note_item(self, value: Any, stack: tuple[Frame, ...]) -> None:
        """A number that .item() gave, and where."""
        self._items.append((value, stack))

    def _names(self) -> Names:
        return Names(self._functions, self._modules)

    def check(self) -> None:
        """After the trace.

        Raises:
          CaptureError: naming the variable, and the line where that is known.
        """
        names = self._names()
        after, self._looked_through = self._arguments | names.values, names.functions
        seen: set[int] = set()
        for name, value in after.items():
            self._search(value, name, DEPTH, seen)
        for what in differences(self._before, host_state(after, has_users_class)):
            cure = ("return it from the step, and keep what the call gives back" if "number of entries" in what else
                    "take it, or draw, outside of the step, and pass tensors in" if "the state of" in what else
                    "count outside of the step, or keep it in a buffer of the model")
            raise error_at(self._line_of(re.search(r"'(.*)'", what)[1]),
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
            raise error_at(stack or self._line_of(path),
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
        elif has_users_class(value):
            children = [(f"{path}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]
        else:
            return
        for name, child in children:
            self._search(child, name, depth - 1, seen)

    def _line_of(self, path: str) -> tuple[Frame, ...]:
        """The line that sets what `path` names ("trainer.calls", "LOG[0]"), or else the first that mentions it, or the
        step's first."""
        root, attribute = re.match(r"\w*", path)[0], re.search(r"\.(\w+)[^.]*$", path)
        attribute = attribute and attribute[1]
        codes = [c for function in (self._step, *self._looked_through) for c in _codes(function)]
        for found in (lambda i: attribute and i.opname == "STORE_ATTR" and i.argval == attribute,
                      lambda i: i.opname in _SETS and i.argval == root,
                      lambda i: not attribute and i.argval == root,
                      lambda i: attribute and i.argval == attribute,
                      lambda i: i.argval == root):
            for code in codes:
                line = code.co_firstlineno
                for instruction in dis.get_instructions(code):
                    if instruction.starts_line:
                        starts = instruction.starts_line  # a number, or whether
                        line = instruction.line_number if isinstance(starts, bool) else starts
                    if found(instruction):
                        return (Frame(code.co_filename, line, code.co_name),)
        return tuple(Frame(code.co_filename, code.co_firstlineno, code.co_name) for code in codes[:1])


_SETS = ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME")


def _codes(function: Callable) -> list[types.CodeType]:
    """Of a function, and of those that are defined in it."""
    function = inspect.unwrap(function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    found = [] if code is None else [code]
    for code in found:
        found += (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return found


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


class Left(NamedTuple):
    """A traced value in an attribute of a module, by the module's path: the step leaves it there, as an output."""

    module: str
    attribute: str
    value: Any


_left: weakref.WeakKeyDictionary[torch.nn.Module, set[str]] = weakref.WeakKeyDictionary()


def leave(module: torch.nn.Module, attribute: str, value: Any) -> None:
    """Sets what a step has left in a module."""
    _left.setdefault(module, set()).add(attribute)
    vars(module)[attribute] = value


def left_in_modules(modules: Iterable[tuple[str, torch.nn.Module]], before: dict[int, dict[str, Any]]) -> list[Left]:
    """What a traced step has put in attributes of modules. Refuses one that changes their numbers.

    Modules of installed libraries keep notes of their own, which no step depends on. Those of PyTorch keep none in
    attributes that are new, or that were when a step left something there: a hook or the user's code has set them.
    """
    left: list[Left] = []
    for path, module in modules:
        of_torch = type(module).__module__.split(".")[0] == "torch"
        if not has_users_class(module) and not of_torch:
            continue
        known = before.get(id(module), {})
        for name, value in vars(module).items():
            old = known.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and old != value \
                    and (type(old) is type(value) or name not in known):
                full = f"{path}.{name}" if path else name
                raise CaptureError(f"the step changes {full!r} from {old} to {value}, which a captured step would not "
                                   "do\n  cure: make it a buffer of the module (register_buffer)")
            torchs_own = of_torch and name in known and name not in _left.get(module, ())
            if isinstance(value, (FakeTensor, *_SYMBOLS)) and value is not old and not torchs_own:
                left.append(Left(path, name, value))
    return left
