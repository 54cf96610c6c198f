"""Iterations of a loop in a trace: one that was traced, and others that are compared with it (microbatches.py)."""
from __future__ import annotations

import dataclasses
import operator
from typing import Any, Callable

import torch
import torch.fx

from ...torch_api.operators import OpOverload, schema_of
from ..observe.operator_forms import Likeness
from ..observe.torch_calls import form_of

_MOST_UNLIKE = 0.05  # of the calls of two iterations, for a third to be taken as one that comes again


@dataclasses.dataclass
class Repeat:
    """`nodes` of the graph, in order, run `count` times, and draw `streams` times in each. In the k-th time each node that is
    `fed` stands for the k-th of its list, of which it is the first itself, and each one that is `carried` for what the other
    one was the time before. `each`: nodes behind the loop for what a node of it was in one iteration, by that number."""

    nodes: list[torch.fx.Node]
    count: int
    streams: int
    fed: list[tuple[torch.fx.Node, list[torch.fx.Node]]]
    carried: list[tuple[torch.fx.Node, torch.fx.Node]]
    each: dict[torch.fx.Node, dict[int, torch.fx.Node]] = dataclasses.field(default_factory=dict)


def of_iteration(value: Any, iteration: int) -> Any:
    """The target of nodes that stand for what another one was in an earlier iteration."""
    raise NotImplementedError("only a compiled step has iterations")


@dataclasses.dataclass(frozen=True)
class Inner:
    """A tensor of an iteration: what its call number `call` gave, number `result` of that."""

    call: int
    result: int


@dataclasses.dataclass
class Call:
    """A call of one of PyTorch's functions that was traced, and left `nodes`. `around` and `key` tell what it was given beside
    tensors (torch_calls.py). `places`: of the tensors that it was given, None: they are from outside of the iteration.
    `carried`: of those that an iteration hands on to the next, by their number, what they are in the one before. `made`: the
    tensors that it gave, and what these are in `results`: new, the argument of that number, None where there is none. `kind`:
    the type of the sequence that they were in, None for a tensor alone."""

    func: Callable
    around: tuple
    key: list[Any]
    has_lists: bool
    tensors: list[torch.Tensor]
    places: list[Inner | None]
    carried: dict[int, Inner] = dataclasses.field(default_factory=dict)
    nodes: list[torch.fx.Node] = dataclasses.field(default_factory=list)
    results: list[Inner | int | None] = dataclasses.field(default_factory=list)
    made: list[torch.Tensor | None] = dataclasses.field(default_factory=list)
    kind: type | None = None
    fact: Any = None
    streams: int = 0  # that it drew from
    hoisted: bool = False  # what it gives is other in each iteration, and made before the loop

    def is_as(self, other: Call) -> bool:
        """The same function of the same numbers."""
        return self.func == other.func and self.around == other.around and self.key == other.key


@dataclasses.dataclass
class Traced:
    """An iteration that was traced. `plain`: it may come again. `made`: its tensors, by id; `forms`: those from outside,
    by id, each with its form when the iteration met it; `written`: what operators wrote to; `likes`: what others have in the
    place of each in `made`."""

    gradients: dict[int, int]
    questions: int  # that were asked of known values before
    calls: list[Call] = dataclasses.field(default_factory=list)
    made: dict[int, Inner] = dataclasses.field(default_factory=dict)
    forms: dict[int, tuple[torch.Tensor, tuple]] = dataclasses.field(default_factory=dict)
    written: list[torch.Tensor] = dataclasses.field(default_factory=list)
    plain: bool = True
    likes: list[Likeness] = dataclasses.field(default_factory=list)

    def has_changed_forms(self) -> bool:
        """So that what the next iteration meets is something else: a tensor that wants a gradient now."""
        return any(form_of(tensor) != form for tensor, form in self.forms.values())

    def looks_like(self, other: Traced) -> bool:
        differ = sum(not a.is_as(b) for a, b in zip(self.calls, other.calls))
        return len(self.calls) == len(other.calls) and differ <= 1 + _MOST_UNLIKE * len(self.calls)


@dataclasses.dataclass
class Repeated:
    """An iteration that is compared with a traced one. `calls`: each with its arguments, and the tensors that it gave;
    `made`: these, by id; `outside`: tensors from outside that are not those of the traced one, by the number of the call and of
    its argument; `results`: of each call, what it gives: placeholders, the argument of a number, None where there is none."""

    calls: list[tuple[Call, tuple, dict[str, Any], list[torch.Tensor | None]]] = dataclasses.field(default_factory=list)
    made: dict[int, Inner] = dataclasses.field(default_factory=dict)
    outside: dict[tuple[int, int], torch.Tensor] = dataclasses.field(default_factory=dict)
    cuts: dict[Inner, torch.Tensor] = dataclasses.field(default_factory=dict)
    cut_nodes: list[torch.fx.Node] = dataclasses.field(default_factory=list)
    results: list[list[torch.Tensor | int | None]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Over:
    """A loop that is over: what its iterations but the last have made, by id, and the nodes that it was in the traced one."""

    repeat: Repeat
    nodes: dict[Inner, torch.fx.Node]
    made: list[dict[int, Inner]]

    def find(self, tensor: torch.Tensor) -> tuple[torch.fx.Node, int] | None:
        """Which node a tensor is, in which iteration; None of what has none."""
        for iteration, made in enumerate(self.made):
            if (node := self.nodes.get(made.get(id(tensor)))) is not None:
                return node, iteration
        return None


@dataclasses.dataclass
class Way:
    """What a tensor of the traced iteration is in later ones: one of `others` each, or what `next` was the time before."""

    known: torch.Tensor
    others: list[torch.Tensor]
    next: torch.Tensor | None

    def tensors(self) -> list[torch.Tensor]:
        return [self.known, *self.others, *([] if self.next is None else [self.next])]

    def before_the_loop(self) -> list[torch.Tensor]:
        return [self.known, *self.others]

    def is_same(self, other: Way) -> bool:
        return self.known is other.known and self.next is other.next and len(self.others) == len(other.others) and all(map(operator.is_, self.others, other.others))


def is_view(node: torch.fx.Node) -> bool:
    if node.target is operator.getitem:
        return True
    returns = schema_of(node.target).returns if isinstance(node.target, OpOverload) else ()
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def between(before: torch.fx.Node, last: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes behind `before`, up to `last`."""
    nodes = []
    while last is not before:
        nodes.append(last)
        last = last.prev
    return nodes[::-1]
