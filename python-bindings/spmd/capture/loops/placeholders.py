"""Tensors that a loop's iterations are given while nobody traces them (microbatches.py): of the form of those that the traced
iteration had, in memory of their own, unknown to the tracer. Behind the loop, those that mean something there get nodes."""
from __future__ import annotations

import itertools
from typing import Any, Iterable, NoReturn, Sequence

import torch
import torch.fx

from ...torch_api.tensors import is_view
from ...torch_api.tracing import FakeTensor, last_node_of
from ..observe.memory import memory_of
from ..observe.operator_forms import Likeness, OperatorForms
from .iterations import Inner, Over, Repeat, of_iteration


class CannotRepeat(Exception):
    """The step does something with a placeholder; it has to be traced without any."""


class Placeholders:
    """Those of one trace."""

    def __init__(self, forms: OperatorForms):
        self._forms = forms
        self.tracer: Any = None  # while the step runs
        self._without_node: dict[int, torch.Tensor] = {}
        self._all: dict[int, torch.Tensor] = {}  # kept alive, so that ids stay theirs
        self._leaves: list[torch.Tensor] = []  # those that want gradients
        self._over: list[Over] = []
        self._unwritten: dict[int, torch.Tensor] = {}  # by memory: those of which a graph does not see what shares it
        self._detached: dict[int, torch.Tensor] = {}  # those with a node, and a gradient that autograd cannot follow
        self.failed = False

    def fail(self) -> NoReturn:
        self.failed = True  # whoever catches it
        raise CannotRepeat

    def forget(self) -> None:
        """The trace is over."""
        for held in (self._without_node, self._all, self._leaves, self._over, self._unwritten, self._detached):
            held.clear()

    @property
    def are_used(self) -> bool:
        return bool(self._all)

    def has(self, tensor: Any) -> bool:
        return id(tensor) in self._all

    def make(self, likes: Sequence[Likeness]) -> dict[int, torch.Tensor]:
        """Those of a whole iteration, by id, at once: one by one they take three times as long."""
        made = self._forms.placeholders(likes)
        numbers = dict(zip(map(id, made), made))
        self._without_node |= numbers
        self._all |= numbers
        self._leaves += itertools.compress(made, (like.requires_grad for like in likes))
        return numbers

    def lacks_node(self, tensor: Any) -> bool:
        return id(tensor) in self._without_node

    def node_of(self, tensor: Any) -> torch.fx.Node | None:
        """Of any tensor; None of what has none: a real tensor, a placeholder."""
        slot = self.tracer.tensor_tracker.get(tensor) if isinstance(tensor, FakeTensor) and tensor.layout is torch.strided else None
        return None if slot is None else slot.proxy.node

    def last_node(self) -> torch.fx.Node:
        return last_node_of(self.tracer.graph)

    def means_something(self, value: Any) -> bool:
        """Outside of its iteration: what an earlier iteration gave gets a node when it is used."""
        if not self.lacks_node(value):
            return True
        for loop in self._over:
            if (found := loop.find(value)) is not None:
                self._set_node(value, self._node_of_iteration(loop.repeat, *found))
                self._unwritten[memory_of(value)] = value
                return True
        return False

    def _node_of_iteration(self, repeat: Repeat, node: torch.fx.Node, iteration: int) -> torch.fx.Node:
        nodes = repeat.each.setdefault(node, {})
        if iteration not in nodes:
            with self.tracer.graph.inserting_after(repeat.nodes[-1]):
                nodes[iteration] = self.tracer.graph.call_function(of_iteration, (node, iteration))
            nodes[iteration].meta.update(node.meta)
        return nodes[iteration]

    def share_with_unseen(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether what is written to these is written to tensors that the graph takes for others."""
        return bool(self._unwritten) and any(memory_of(tensor) in self._unwritten for tensor in tensors)

    def are_detached(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether autograd would have to go through one of these, and cannot."""
        return any(id(tensor) in self._detached for tensor in tensors)

    def have_gradients(self) -> bool:
        """Whether autograd has ended at one."""
        return any(tensor.is_leaf and tensor.grad is not None for tensor in self._leaves)

    def give_node(self, placeholder: torch.Tensor, tensor: torch.Tensor) -> None:
        """The node of `tensor`, with which others may share memory."""
        self._set_node(placeholder, self.node_of(tensor))
        if is_view(tensor):
            self._unwritten[memory_of(placeholder)] = placeholder

    def _set_node(self, placeholder: torch.Tensor, node: torch.fx.Node) -> None:
        slot = next(iter(self.tracer.tensor_tracker.values()))
        self.tracer.tensor_tracker[placeholder] = type(slot)(type(slot.proxy)(node, self.tracer), None)
        del self._without_node[id(placeholder)]
        if placeholder.requires_grad:
            self._detached[id(placeholder)] = placeholder

    def end_loop(self, over: Over, traced: dict[int, torch.Tensor], last: Iterable[tuple[Any, torch.Tensor]], unseen: set[Inner]) -> None:
        """Behind a loop its nodes are what its `last` iteration made of them, and no more the tensors that were `traced`. `unseen`: those
        that share memory with tensors from outside, others in each iteration."""
        self._without_node |= traced
        self._all |= traced
        self._over.append(over)
        for place, tensor in last:
            if place in over.nodes:
                self._set_node(tensor, over.nodes[place])
                if place in unseen:
                    self._unwritten[memory_of(tensor)] = tensor
