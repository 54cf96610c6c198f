"""What a step leaves behind: traced values that it puts in attributes of modules and of the user's objects and in entries
of dicts (`self.loss = …`, `features["fc"] = output`), also new lists, tuples and dicts of some (`self.log = {"loss": …}`).
They are outputs of its graph, and are put there after each call, as eager would.

[Note: values of earlier calls] The next call finds them there. Most steps overwrite them unread: while a step is traced,
such a value is therefore a blank of the same form, and a program whose trace met no blank serves whatever is there of
that form. One that is met (`self.mean = 0.9 * self.mean + …`) is read at every call as any other tensor that the step
reaches (held.py), and the step is traced anew.
"""
from __future__ import annotations

import contextlib
import types
import weakref
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch

from ...torch_api.tracing import FakeTensor, pytree
from ..errors import CaptureError, Frame
from ..observe.traced_value import TracedValue
from .code_names import names_in_class
from .held import Held
from .host_state import edges_of_state
from .paths import attribute_path, entry_path
from .user_code import has_users_class
from .walk import HOST_STATE, NOTHING, NUMBERS, OPAQUE, Edge, Node, Visitor, walk

TRACED = (FakeTensor, TracedValue, torch.SymFloat, torch.SymInt, torch.SymBool)
Blank = Callable[[torch.Tensor], torch.Tensor]


class Table(NamedTuple):
    """The attributes of an object, or the entries of a dict; `path` and `of_object` for people."""

    path: str
    entries: dict[Any, Any]
    of_object: bool

    def path_of(self, key: Any) -> str:
        if self.of_object:
            return attribute_path(self.path, key)
        return entry_path(self.path, key, next((n for n, known in enumerate(self.entries) if known is key), 0))


class LeakedValue(NamedTuple):
    """A traced value, or a tree of some, and where the step leaves it: the path of a module, whose attribute `key` is, or a table. `stack`:
    the line that does so, where it is known."""

    owner: str | Table
    key: Any
    value: Any
    stack: tuple[Frame, ...] = ()

    @property
    def path(self) -> str:
        return attribute_path(self.owner, self.key) if isinstance(self.owner, str) else self.owner.path_of(self.key)


_values: weakref.WeakValueDictionary[int, torch.Tensor] = weakref.WeakValueDictionary()
_attributes: weakref.WeakKeyDictionary[torch.nn.Module, set[str]] = weakref.WeakKeyDictionary()


def note_values(made: Any) -> None:
    """That a call has made these tensors."""
    _values.update((id(leaf), leaf) for leaf in pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor))


def leave(owner: torch.nn.Module | Table, key: Any, value: Any, made: Any) -> None:
    """Puts what a call of a step has left in its place; `made`: the tensors of it that were not there before."""
    note_values(made)
    if isinstance(owner, Table):
        owner.entries[key] = value
    else:
        _attributes.setdefault(owner, set()).add(key)
        vars(owner)[key] = value


def is_left(value: Any) -> bool:
    """A tensor that a call of a step has left behind."""
    return isinstance(value, torch.Tensor) and _values.get(id(value)) is value


def _is_tree(value: Any) -> bool:
    return type(value) in (list, tuple, dict)


def holds_traced(value: Any) -> bool:
    """A traced value, or a tree of such ones and of numbers."""
    if isinstance(value, TRACED):
        return True
    if not _is_tree(value):
        return False
    leaves = pytree.tree_leaves(value)
    return any(isinstance(leaf, TRACED) for leaf in leaves) and all(isinstance(leaf, (*TRACED, *NUMBERS)) for leaf in leaves)


def is_left_tree(value: Any) -> bool:
    """What a call has left as a tree."""
    return _is_tree(value) and any(map(is_left, pytree.tree_leaves(value)))


def form_of_tree(value: Any, with_numbers: bool) -> Any:
    """Equal for trees of tensors of the same forms and, `with_numbers`, of equal numbers; anything else is what it is."""
    if not _is_tree(value):
        return value
    leaves, spec = pytree.tree_flatten(value)
    return str(spec), tuple((leaf.shape, leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf if with_numbers else type(leaf)
                            for leaf in leaves)


def check_reads_nothing_left(held: Held) -> None:
    """Raises CaptureError for a step that reads what an earlier call has left. With view=local each rank has had a value
    of its own there, and what is left is one for all."""
    for place, tensor in held.tensors.values():
        if is_left(tensor):
            raise CaptureError("the step reads a value that an earlier call stored in "
                               f"{place.path if place else 'an object'!r}: with view='local' it differs between ranks\n  "
                               "hint: store it in a buffer of the model (register_buffer, and copy_ in the step), or use "
                               "view='global'")


def put_blanks(entries: dict[Any, Any], blank: Blank) -> None:
    """Replaces what earlier calls have left."""
    entries.update({key: blank(value) for key, value in entries.items() if is_left(value)})


class _Tables(Visitor):
    """The attributes of the user's objects and the entries of dicts."""

    limits = HOST_STATE

    def __init__(self) -> None:
        self.found: list[Table] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        value = node.value
        if self.is_at_the_end(node) or isinstance(value, _NO_TABLES) or not node.is_new:
            return NOTHING
        if isinstance(value, dict):
            self.found.append(Table(node.path, value, of_object=False))
        elif has_users_class(value) and isinstance(getattr(value, "__dict__", None), dict):
            self.found.append(Table(node.path, vars(value), of_object=True))
        return edges_of_state(value, has_users_class)


_NO_TABLES = (*NUMBERS, *OPAQUE, types.FunctionType)


class WatchedTables:
    """The tables that a step's code can reach by `names`, while the step is traced."""

    def __init__(self, names: dict[str, Any]):
        tables = _Tables()
        walk((Node.root(name, value) for name, value in names.items()), tables)
        self._tables = tables.found
        self._before: list[dict[Any, Any]] = []

    @contextlib.contextmanager
    def watched(self, blank: Blank, twins: Callable[[torch.Tensor], torch.Tensor | None]) -> Iterator[None]:
        """With blanks in them, and what they have for a parameter also for its twin. When this is left, the traced values
        are out of them again."""
        saved = [dict(table.entries) for table in self._tables]
        for table in self._tables:
            put_blanks(table.entries, blank)
            if not table.of_object:
                of_parameters = [(twins(key), value) for key, value in table.entries.items() if isinstance(key, torch.Tensor)]
                table.entries.update((twin, value) for twin, value in of_parameters if twin is not None)
        self._before = [dict(table.entries) for table in self._tables]
        try:
            yield
        finally:
            for table, entries in zip(self._tables, saved):
                for key in [key for key, value in table.entries.items()
                            if isinstance(key, FakeTensor) or _is_new(value, entries.get(key))]:
                    if key in entries:
                        table.entries[key] = entries[key]  # in its place among the others
                    else:
                        del table.entries[key]
                table.entries.update((key, value) for key, value in entries.items()
                                     if key not in table.entries or is_left(value))

    def left(self) -> list[LeakedValue]:
        """What the step has put in them."""
        return [LeakedValue(table, key, value) for table, before in zip(self._tables, self._before)
                for key, value in table.entries.items() if _is_new(value, before.get(key))]


def _is_new(value: Any, old: Any) -> bool:
    """A traced value, or what an earlier call has left elsewhere."""
    return value is not old and (holds_traced(value) or is_left(value))


def _is_weight(value: Any) -> bool:
    """A tensor that a hook of the library computes before each forward and keeps where the module's own code reads a parameter
    (torch.nn.utils.prune, weight_norm, spectral_norm)."""
    return isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)


def left_in_modules(modules: Iterable[tuple[str, torch.nn.Module]], before: dict[int, dict[str, Any]],
                    with_weights: bool = True) -> list[LeakedValue]:
    """What a traced step has put in attributes of modules. Refuses one that changes their numbers.

    Modules of installed libraries keep notes of their own, which no step depends on: in attributes that their own code
    names. Those of PyTorch keep none in attributes that are new, or that were when a step left something there. Any other
    attribute is one that a hook or the user's code has set. `with_weights`: and weights that hooks of PyTorch compute.
    """
    left: list[LeakedValue] = []
    for path, module in modules:
        of_users = has_users_class(module)
        of_torch = type(module).__module__.split(".")[0] == "torch"
        known = before.get(id(module), {})
        for name, value in vars(module).items():
            old = known.get(name)
            if (of_users or of_torch) and isinstance(value, (int, float)) and not isinstance(value, bool) and old != value \
                    and (type(old) is type(value) or name not in known):
                full = attribute_path(path, name)
                raise CaptureError(f"the step changes {full!r} from {old} to {value}, which a captured step would not "
                                   "do\n  hint: make it a buffer of the module (register_buffer)")
            new = of_torch and (name not in known or name in _attributes.get(module, ()) or with_weights and _is_weight(old))
            if _is_new(value, old) and (of_users or new or name not in names_in_class(type(module))):
                left.append(LeakedValue(path, name, value))
    return left
