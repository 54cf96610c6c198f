"""What a step takes from iterators among its arguments, `batch = next(data_iterator)`: inputs of its graph.

How many values it takes, its trace tells (OtherTaken). Each call takes as many of the caller's iterator before it begins, and
the step gets them from a stand-in (Taken), a node of the pytree of arguments: tensors in the values are batch inputs,
everything else is a Python value.
"""
from __future__ import annotations

import collections.abc
import io
from typing import Any, Iterable, Sequence

import torch

from ...torch_api.tracing import FakeTensor, pytree
from ..errors import error_at
from ..observe.stacks import user_stack

_REAL = 2  # values that a trace waits for; of later ones it supposes as many as there are, to count them


class OtherTaken(BaseException):
    """A trace has taken another number of values than its call has: `counts` has those of each iterator, and whether the
    step has seen its end. No exception that a step's code catches."""

    def __init__(self, counts: list[tuple[int, bool]]):
        super().__init__()
        self.counts = counts


class Taking:
    """One iterator of the caller's. `ready`: what has been taken from it so far; `end`: the exception that came instead of
    more. `used` and `saw_end`: of that, by the last run of the step."""

    def __init__(self, iterator: Any, all_of_step: list[Taking], ready: Sequence[Any] = ()):
        self.iterator, self.ready, self.end = iterator, list(ready), None
        self._all = all_of_step
        self.taken = Taken(self, ())
        self.begin()

    def begin(self) -> None:
        """A run of the step."""
        self.used, self.saw_end = 0, False

    def take(self, count: int, ends: bool) -> None:
        """`count` values; `ends`: and the end behind them, if it is there."""
        while self.end is None and len(self.ready) < count + ends:
            try:
                self.ready.append(next(self.iterator))
            except Exception as error:  # its own, too: the step gets it, as in eager
                self.end = error
        ended = self.end is not None and len(self.ready) <= count and (ends or len(self.ready) < count)
        self.taken = Taken(self, self.ready[:count], ended)

    @property
    def count(self) -> tuple[int, bool]:
        """What the step gets."""
        return len(self.taken.values), self.taken.ends

    def counts_of_all(self) -> list[tuple[int, bool]]:
        """Those of a run that ends here."""
        return [(max(one.used, one.count[0]), one.saw_end or one.count[1] and one.used <= one.count[0]) for one in self._all]


class Taken:
    """What a step gets in the place of an iterator."""

    def __init__(self, taking: Taking, values: Iterable[Any], ends: bool = False):
        self.taking, self.values, self.ends = taking, tuple(values), ends

    def __iter__(self) -> Taken:
        return self

    def __next__(self) -> Any:
        taking = self.taking
        if taking.used < len(self.values):
            taking.used += 1
            return self.values[taking.used - 1]
        if self.ends:
            taking.saw_end = True
            raise taking.end or StopIteration
        taking.used += 1
        if taking.used <= _REAL or taking.used > 2 * len(self.values) or not any(isinstance(v, FakeTensor) for v in pytree.tree_leaves(self.values)):
            raise OtherTaken(taking.counts_of_all())
        return pytree.tree_map(lambda leaf: torch.empty_like(leaf) if isinstance(leaf, torch.Tensor) else leaf,
                               self.values[-1])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise error_at(user_stack()[0], f"the step reads {name!r} of an iterator: a compiled step receives only the results "
                                        "of next()", "pass this value as an argument")


class _Kind:
    """Of a node of the pytree: equal for two calls that one graph serves."""

    def __init__(self, taking: Taking, ends: bool):
        self.taking, self.ends = taking, ends

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.ends == other.ends

    def __hash__(self) -> int:
        return hash(self.ends)


def _flatten(taken: Taken) -> tuple[list[Any], _Kind]:
    return list(taken.values), _Kind(taken.taking, taken.ends)


def _flatten_with_keys(taken: Taken) -> tuple[list[tuple[pytree.KeyEntry, Any]], _Kind]:
    values, kind = _flatten(taken)
    return [(pytree.SequenceKey(n), value) for n, value in enumerate(values)], kind


pytree.register_pytree_node(Taken, _flatten, lambda values, kind: Taken(kind.taking, values, kind.ends),
                            flatten_with_keys_fn=_flatten_with_keys)


def is_iterator(value: Any) -> bool:
    """Of which a step takes values; a file is read otherwise."""
    return isinstance(value, collections.abc.Iterator) and not isinstance(value, (torch.nn.Module, io.IOBase, Taken))


def find_takings(arguments: Any, left: Sequence[tuple[Any, list[Any]]] = ()) -> tuple[Any, list[Taking]]:
    """The arguments with stand-ins for iterators, and these. `left`: what earlier calls have taken too much of which."""
    found: dict[int, Taking] = {}
    takings: list[Taking] = []

    def stand_in(leaf: Any) -> Any:
        if not is_iterator(leaf):
            return leaf
        if id(leaf) not in found:
            takings.append(Taking(leaf, takings, next((values for iterator, values in left if iterator is leaf), ())))
            found[id(leaf)] = takings[-1]
        return found[id(leaf)].taken

    if not any(map(is_iterator, pytree.tree_leaves(arguments))):
        return arguments, []
    return pytree.tree_map(stand_in, arguments), takings


def with_taken(arguments: Any) -> Any:
    """The arguments with what has been taken by now."""
    return pytree.tree_map(lambda leaf: leaf.taking.taken if isinstance(leaf, Taken) else leaf, arguments,
                           is_leaf=lambda leaf: isinstance(leaf, Taken))


def put_aside(takings: Sequence[Taking], left: Sequence[tuple[Any, list[Any]]]) -> list[tuple[Any, list[Any]]]:
    """When a call is over: what is left of its iterators for a later one, beside what is `left` of others. A program keeps
    its call, and should keep no data loader with it."""
    kept = [entry for entry in left if all(taking.iterator is not entry[0] for taking in takings)]
    for taking in takings:
        if rest := taking.ready[taking.count[0]:]:
            kept.append((taking.iterator, rest))
        taking.iterator, taking.ready, taking.end = None, [], None
    return kept


def like(given: Any, own: Any) -> Any:
    """A list of values for an iterator, as a stand-in for that."""
    return Taken(own.taking, given, own.ends) if isinstance(own, Taken) and isinstance(given, (list, tuple)) else given


def check_taken(takings: Sequence[Taking]) -> None:
    """After a run of the step.

    Raises:
      OtherTaken: it has not taken what its call has.
    """
    counts = [(taking.used, taking.saw_end) for taking in takings]
    if counts != [taking.count for taking in takings]:
        raise OtherTaken(counts)


def check_taken_so_far(takings: Sequence[Taking]) -> None:
    """After a run that has failed, maybe for values that were supposed.

    Raises:
      OtherTaken: it has taken more than its call has.
    """
    if any(taking.used > taking.count[0] for taking in takings):
        raise OtherTaken(takings[0].counts_of_all())


def has_ended(takings: Sequence[Taking]) -> bool:
    """The last run of the step has seen the end of an iterator."""
    return any(taking.saw_end for taking in takings)
