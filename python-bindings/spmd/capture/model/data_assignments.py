"""Assignments to `.data` in a step: `p.data = p.data * 0.99 + q.data * 0.01`, `p.grad.data = clipped`.

PyTorch gives the tensor another's memory, which is no operator, so that a trace would see none of it. Here the tensor
goes on as what was assigned to it, while views that were taken of it before stay with what it had (`saved = p.data`), as in
eager; and what an input of the graph has at the end of the step is written into it.
"""
from __future__ import annotations

import contextlib
from typing import Iterator, NamedTuple

import torch

from ...torch_api.tracing import FakeTensor, get_proxy_mode
from ..errors import Frame, error_at
from ..observe import patches
from ..observe.memory import memory_of
from ..observe.stacks import user_stack
from ..values.known_values import KnownValues
from .inputs import Input

_data = torch.Tensor.data


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Where its elements begin and end in its memory."""
    begin = tensor.storage_offset()
    return begin, begin + 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))


class _Assigned(NamedTuple):
    """`origin`: a view of the input as it was."""

    tensor: torch.Tensor
    origin: torch.Tensor
    stack: tuple[Frame, ...]


class DataAssignments:
    """Those of one trace, whose inputs these are. `known` is told of each."""

    def __init__(self, inputs: list[Input], known: KnownValues):
        self._inputs = {id(i.fake): i for i in inputs}
        self._origins: dict[int, _Assigned] = {}  # by the id of an input
        self._known = known

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """While entered, the tracer sees assignments."""
        with patches.replaced({patches.FAKE_TENSOR_DATA: property(_data.__get__, self._assign)}):
            yield

    def _assign(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        mode = get_proxy_mode()
        if mode is None:
            _data.__set__(tensor, value)
            return
        given, stack = self._inputs.get(id(tensor)), user_stack()[0]
        name = "a tensor" if given is None else f"{given.kind} {given.name!r}"
        if not isinstance(value, FakeTensor):
            raise error_at(stack, f"the step assigns a tensor from outside of it to .data of {name}",
                           "copy_() it, under torch.no_grad()")
        if value.shape != tensor.shape or value.dtype != tensor.dtype:
            raise error_at(stack, f"the step assigns a tensor of shape {list(value.shape)} and {value.dtype} to .data of "
                           f"{name}, which has {list(tensor.shape)} and {tensor.dtype}", "keep shape and type")
        if given is not None and given.kind not in ("param", "buffer", "state"):
            raise error_at(stack, f"the step assigns to .data of {name}", "copy_() into it, under torch.no_grad()")
        if given is not None:
            origin = self._origins[id(tensor)].origin if id(tensor) in self._origins else tensor.detach()
            self._origins[id(tensor)] = _Assigned(tensor, origin, stack)
        value = value.detach()  # what it has now: later assignments to it are its own
        _data.__set__(tensor, value)
        self._known.assign(tensor, value)
        mode.tracer.tensor_tracker[tensor] = mode.tracer.tensor_tracker[value]

    def write(self) -> None:
        """At the end of the traced step: inputs get what was assigned to them.

        Raises:
          CaptureError: two of them would share memory in later steps.
        """
        taken = {memory_of(i.fake) for i in self._inputs.values() if id(i.fake) not in self._origins}
        taken |= {memory_of(assigned.origin) for assigned in self._origins.values()}
        places: dict[int, list[tuple[int, int]]] = {}  # in memory that is nobody's: what inputs have of it
        for number, (tensor, origin, stack) in self._origins.items():
            if memory_of(tensor) == memory_of(origin):
                continue
            begin, end = _extent(tensor)
            known = places.setdefault(memory_of(tensor), [])
            if memory_of(tensor) in taken or any(begin < other_end and other_begin < end for other_begin, other_end in known):
                raise error_at(stack, f"the step assigns to .data of {self._inputs[number].name!r} a tensor that shares memory "
                               "with another one of the model, so that both would be one from then on",
                               "assign a copy of it: clone()")
            known.append((begin, end))
            with torch.no_grad():
                origin.copy_(tensor)
