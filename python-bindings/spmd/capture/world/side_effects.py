"""What a step does beside its results: a graph runs none of it, so it is an error, and output or reading a clock a
warning. Values that it leaves in attributes and entries of dicts are outputs instead (leaked_values.py).

The step's Python runs once, while it is traced. Watched are the names that the step's function uses (globals, closures,
the object it is a method of), those that the user's functions and classes among them use, the modules' own code, and
the hooks (code_names.py): what changes in them (host_state.py), and traced values that stay behind in lists, dicts and
attributes that nobody can set anew.
"""
from __future__ import annotations

import argparse
import contextlib
import dis
import inspect
import logging
import sys
import types
import warnings
from typing import Any, Callable, Iterator, Mapping, Protocol

import torch

from ...torch_api.tracing import FakeTensor
from ..errors import Frame, error_at, where
from ..observe import patches
from .code_names import Names
from .grown_lists import KINDS, Grown, ListRoot, WatchedLists
from .host_state import Aspect, Watched, differences, generator_states, host_state, may_stay
from .leaked_values import TRACED, LeakedValue, Table, WatchedTables
from .paths import attribute_path, is_below, last_attribute, root_of
from .seeds import SeededGenerators
from .user_code import has_users_class, is_users_file
from .walk import ATTRIBUTE, ENTRIES, NOTHING, NUMBERS, OPAQUE, SIZED, TRACED_VALUES, Edge, Node, Visitor, walk


def _is_watched(value: Any) -> bool:
    """Whose attributes are looked at."""
    return has_users_class(value) or isinstance(value, (types.SimpleNamespace, argparse.Namespace))


_HINTS = {
    Aspect.VALUE: "count outside of the step, or keep it in a buffer of the model",
    Aspect.STATE: "take it, or draw, outside of the step, and pass tensors in",
    Aspect.SIZE: "return it from the step, and store the return value of the call",
    Aspect.MESHES: "take them away outside of the step",
}
_GENERATORS = {"random": "Python's random numbers", "numpy": "numpy's random numbers"}


class Twins(Protocol):
    """The fakes of a trace, as far as side effects need them (model/fakes.py)."""

    mode: Any
    blanks: Mapping[int, torch.Tensor]

    def blank(self, real: torch.Tensor) -> torch.Tensor:
        """What stands for a tensor that an earlier call has left."""

    def twin(self, real: torch.Tensor) -> torch.Tensor | None:
        """The fake of a tensor that has one."""


class SideEffects:
    """Compares what a step's code refers to before and after it was traced. `functions`: the step first, then other functions that
    run within it; `modules`: by path."""

    def __init__(self, functions: list[Callable], modules: list[tuple[str, torch.nn.Module]], twins: Twins, arguments: dict[str, Any]):
        self._step, self._fakes, self._arguments = functions[0], twins, arguments
        self._functions, self._modules = functions, modules
        self._tables = WatchedTables(arguments | self._names().values)
        self._lists = WatchedLists(self._roots())
        self._left: list[LeakedValue] = []
        self.seeds = SeededGenerators()
        self._items: list[tuple[Any, tuple[Frame, ...]]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[SideEffects]:
        """While the step is traced; when this is left, no traced value is in its objects and dicts."""
        with self._tables.watched(self._fakes.blank, self._fakes.twin):
            self._before = host_state(self._arguments | self._names().values, _is_watched)
            self._generators = generator_states()
            with self.seeds.watched(), self._lists.watched():
                yield self

    def left(self) -> list[LeakedValue]:
        """What the step has put in attributes of objects and in entries of dicts, which are outputs of its graph."""
        self._looked_through = self._names().functions
        return [left._replace(stack=self._line_of(left.path)) for left in self._tables.left()]

    def expect(self, left: list[LeakedValue]) -> None:
        """These are outputs, and no side effects."""
        self._left = left

    def grown(self) -> list[Grown]:
        """What the step has appended to lists, which are outputs, too."""
        return [one._replace(stack=self._line_of(one.path)) for one in self._lists.take()]

    def note_item(self, value: Any, stack: tuple[Frame, ...]) -> None:
        """A number that .item() gave, and where."""
        self._items.append((value, stack))

    def _names(self) -> Names:
        return Names(self._functions, self._modules)

    def _roots(self) -> list[ListRoot]:
        """What lists may be in, each with the table that has it."""
        names = self._names()
        tables = [function.__globals__ for function in names.functions if hasattr(function, "__globals__")]
        roots = [ListRoot(attribute_path(path, name), value, vars(module), name)
                 for path, module in self._modules for name, value in vars(module).items() if type(value) in KINDS]
        known = {root.path for root in roots}
        for name, value in (self._arguments | names.values).items():
            if name not in known:
                roots.append(ListRoot(name, value, next((t for t in tables if t.get(name) is value), None), name))
        return roots

    def check(self) -> None:
        """After the trace.

        Raises:
          CaptureError: naming the variable, and the line where that is known.
        """
        names = self._names()
        after, self._looked_through = self._arguments | names.values, names.functions
        of_modules = {left.path for left in self._left if isinstance(left.owner, str)}
        traced = _TracedValues(self._is_traced, self._left)
        walk((Node.root(name, value) for name, value in after.items() if name not in of_modules), traced)
        if (node := min(traced.found, key=lambda found: found.order, default=None)) is not None:
            stack = next((s for v, s in self._items if v is node.value), ())
            raise error_at(stack or self._line_of(node.path),
                           f"the step stores a tensor in {node.path}: a compiled step cannot update it",
                           "return it from the step, and store the return value of the call")
        expected = {Watched(aspect, left.path) for left in self._left for aspect in Aspect}
        expected |= {Watched(Aspect.SIZE, left.owner.path) for left in self._left if isinstance(left.owner, Table)}
        trees = [left.path for left in self._left if not isinstance(left.value, TRACED)]
        state = host_state(after, _is_watched)
        for what in differences(self._before, state):
            if what not in expected and not any(is_below(what.path, tree) for tree in trees) \
                    and not may_stay(what, self._before, state):
                raise error_at(self._line_of(what.path),
                               f"the step changes {what}: Python code runs only once, during the capture",
                               _HINTS[what.aspect])
        for name in differences(self._generators, generator_states()):
            if name in self.seeds:
                continue
            if name == "torch":
                raise error_at(self._line_of("manual_seed"),
                               "the step seeds torch's random numbers: Python code runs only once, during the capture",
                               "call torch.manual_seed before the capture")
            raise error_at(self._line_of(self._name_from(name, after)),
                           f"the step draws {_GENERATORS[name]}: Python code runs only once, during the capture",
                           "draw with torch in the step, or draw outside of it and pass a tensor; or seed them in the step "
                           "before it draws, for equal numbers in each step")

    def _name_from(self, library: str, names: dict[str, Any]) -> str:
        """The name through which the code reaches a library."""
        def of_library(value: Any) -> bool:
            is_module = isinstance(value, types.ModuleType)
            module = value.__name__ if is_module else type(getattr(value, "__self__", None)).__module__
            return module.split(".")[0] == library
        return next((name for name, value in names.items() if of_library(value)), "")

    def _is_traced(self, value: Any) -> bool:
        return isinstance(value, TRACED) and id(value) not in self._fakes.blanks \
            and (not isinstance(value, FakeTensor) or value.fake_mode is self._fakes.mode)

    def _line_of(self, path: str) -> tuple[Frame, ...]:
        """The line that sets what `path` names ("trainer.calls", "LOG[0]"), or else the first that mentions it, or the
        step's first."""
        root, attribute = root_of(path), last_attribute(path)
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


class _TracedValues(Visitor):
    """Finds traced values in containers and objects, except for those that the step has `left` there as outputs."""

    limits = TRACED_VALUES

    def __init__(self, is_traced: Callable[[Any], bool], left: list[LeakedValue]):
        self._is_traced = is_traced
        self._left: dict[int, set[Any]] = {}  # keys, by the id of their table
        for one in left:
            if isinstance(one.owner, Table):
                self._left.setdefault(id(one.owner.entries), set()).add(one.key)
        self.found: list[Node] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        value = node.value
        if self._left and node.owner is not None and node.key in self._left.get(id(_table_of(node.owner.value)), ()):
            return NOTHING
        if self._is_traced(value):
            self.found.append(node)
            return NOTHING
        if isinstance(value, (*OPAQUE, types.FunctionType, *NUMBERS)):
            return NOTHING
        return ENTRIES if isinstance(value, SIZED) else ATTRIBUTE if _is_watched(value) else NOTHING


def _table_of(value: Any) -> Any:
    """The dict of an object's attributes, or a dict itself."""
    return vars(value) if has_users_class(value) and hasattr(value, "__dict__") else value


_SETS = ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME")


def _codes(function: Callable) -> list[types.CodeType]:
    """Of a function, and of those that are defined in it."""
    function = inspect.unwrap(function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    found = [] if code is None else [code]
    for code in found:
        found += (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return found


@contextlib.contextmanager
def warn_of_output_and_clocks() -> Iterator[None]:
    """While entered, print(), logging and reading a clock in the user's code warn that a captured step does so once."""
    def warn(frame: Frame, what: str, hint: str) -> None:
        warnings.warn(f"the step {what}; a compiled step does so only once, during the capture\n{where([frame])}\n  hint: "
                      f"{hint}",
                      stacklevel=3)

    def warning(original: Callable, what: str, hint: str) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if is_users_file(frame.f_code.co_filename):
                warn(Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name), what, hint)
            return original(*args, **kwargs)
        return call

    prints = "return what is to be printed, and print what the call gives back"

    def log(logger: logging.Logger, record: logging.LogRecord) -> None:
        if is_users_file(record.pathname):
            warn(Frame(record.pathname, record.lineno, record.funcName), "logs", prints)
        handle(logger, record)

    handle = logging.Logger.handle
    clocks = {clock: warning(clock.value(), "reads a clock", "take the time around the call")
              for clock in patches.CLOCKS}
    with patches.replaced({patches.PRINT: warning(print, "prints", prints), patches.LOGGER_HANDLE: log} | clocks):
        yield
