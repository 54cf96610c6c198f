"""Traced values that a step appends to lists and deques (`self.losses.append(loss.detach())`), or fills them anew with: outputs
of its graph, which each call appends, as eager would.

The list is the one that is in its place when the call is over, an attribute, a global or an entry of a dict: a training
that begins a new list with each epoch needs no new program. What a step reads of a list is a constant of its program, like
anything else that it reads (captured_constants.py).
"""
from __future__ import annotations

import collections
import contextlib
import types
from typing import Any, Iterable, Iterator, NamedTuple


from ...torch_api.tracing import pytree
from ..errors import Frame
from .host_state import edges_of_state
from .leaked_values import TRACED, holds_traced, note_values
from .user_code import has_users_class
from .walk import ATTRIBUTE, ENTRY, HOST_STATE, NOTHING, NUMBERS, OPAQUE, Edge, Node, Visitor, walk

KINDS = (list, collections.deque)


class Grown(NamedTuple):
    """`items`: what is appended, each a traced value or a tree of some; `anew`: to what is an empty list then. `table` has
    the list under `key`; None: it is `values` for good."""

    path: str
    table: dict[Any, Any] | None
    key: Any
    values: list | collections.deque
    items: list[Any]
    anew: bool
    stack: tuple[Frame, ...] = ()

    def now(self) -> list | collections.deque | None:
        """The list that is in its place."""
        return self.values if self.table is None else self.table.get(self.key)

    def is_empty(self) -> bool:
        return not self.now()

    def append(self, items: list[Any], made: list[Any]) -> None:
        """`items`: what a call has in the place of those; `made`: the tensors of them that were not there before."""
        note_values(made)
        values = self.values if self.table is None else self.table[self.key]
        if self.anew:
            values.clear()
        values.extend(items)


class _Lists(Visitor):
    """Lists and deques, by each way to them: the path, the table that has the list under a key, and the list."""

    limits = HOST_STATE

    def __init__(self) -> None:
        self.found: list[tuple[str, dict[Any, Any] | None, Any, list | collections.deque]] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        value = node.value
        if type(value) in KINDS:
            self.found.append((node.path, *_table_of(node), value))
        if isinstance(value, _NO_LISTS) or not node.is_new:
            return NOTHING
        if isinstance(value, dict):
            return ENTRY
        return ATTRIBUTE if _has_table(value) else edges_of_state(value, has_users_class)


_NO_LISTS = (*NUMBERS, *OPAQUE, types.FunctionType)


def _table_of(node: Node) -> tuple[dict[Any, Any] | None, Any]:
    """The table that has what a node found, and its key there."""
    if node.owner is None:
        return node.table, node.key
    owner = node.owner.value
    table = owner if isinstance(owner, dict) else vars(owner) if _has_table(owner) else None
    return table, None if table is None else node.key


def _has_table(value: Any) -> bool:
    return has_users_class(value) and hasattr(value, "__dict__")


class ListRoot(Node):
    """Where lists may be: a path, and the table that has what is there under a key."""

    __slots__ = ("table",)

    def __init__(self, path: str, value: Any, table: dict[Any, Any] | None, key: Any):
        super().__init__(path, value, None, key, None)
        self.table = table


class WatchedLists:
    """Those that a step's code can reach, while the step is traced."""

    def __init__(self, roots: Iterable[ListRoot]):
        lists = _Lists()
        walk(roots, lists)
        found = {(id(values), id(table), key): (path, table, key, values) for path, table, key, values in lists.found}
        self._lists = list(found.values())
        # of one with two ways to it nobody knows which of them is meant once there is another list at one
        self._ways = collections.Counter(number for number, _, _ in found)
        self._before: list[list[Any]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """When this is left, no traced value that was appended is in them."""
        self._before = [list(values) for *_, values in self._lists]
        try:
            yield
        finally:
            for (*_, values), before in zip(self._lists, self._before):
                known = set(map(id, before))
                if any(isinstance(leaf, TRACED) for leaf in pytree.tree_leaves([v for v in values if id(v) not in known])):
                    _put(values, before)

    def take(self) -> list[Grown]:
        """Takes back what the step has appended since."""
        grown = []
        for (path, table, key, values), before in zip(self._lists, self._before):
            after, longest = list(values), getattr(values, "maxlen", None)
            count = next((n for n in range(len(after)) if _ends_with(before, after[:len(after) - n], len(after) == longest)),
                         len(after))
            items = after[len(after) - count:]
            if items and all(map(holds_traced, items)) and self._ways[id(values)] == 1:
                grown.append(Grown(path, table, key, values, items, bool(before) and count == len(after)
                                   and not (len(after) == longest and len(before) == longest)))
                _put(values, before)
        return grown


def _ends_with(before: list[Any], kept: list[Any], is_full: bool) -> bool:
    """`kept` are the very objects that are last in `before`; all of them, unless the first have gone from a full deque."""
    lost = len(before) - len(kept)
    return (lost == 0 or lost > 0 and is_full) and all(a is b for a, b in zip(kept, before[lost:]))


def _put(values: list | collections.deque, before: list[Any]) -> None:
    values.clear()
    values.extend(before)
