"""Options of param groups that schedulers move, beside the learning rate, as inputs of the graph.

OneCycleLR and CyclicLR move momentum, or the first of `betas`; others move weight decay. PyTorch's optimizers take such
an option as a Python number only, and compute with it: `1 - beta1`, `weight_decay != 0`. So the number stays one
while the step is traced, but an odd one near the option's own value, a marker: where the marker, or 1 minus it, is an
argument of an op, the op is traced with a tensor in its place. What is computed from a marker in any other way would
be a constant of that marker, so the step is traced twice, with other markers: only where both give the same graph
is no marker left in it. A comparison with anything but zero (`min(momentum, 0.7)`) is an error at once.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Iterator, Sequence

import torch

from ...torch_api.operators import OpOverload, schema_of
from ...torch_api.tracing import pytree
from ..errors import CaptureError
from ..observe.dispatch_mode import Handler, OpCall, Phase
from .optimizers import Optimizers

aten = torch.ops.aten


def option_names(group: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options of a param group by the names of hyper-parameters: "momentum", and "betas.0", the first of a pair."""
    for name, value in group.items():
        if name in ("params", "param_names", "initial_lr"):
            continue
        if isinstance(value, (tuple, list)):
            yield from ((f"{name}.{place}", entry) for place, entry in enumerate(value))
        else:
            yield name, value


def read_option(group: dict[str, Any], name: str) -> Any:
    """The value of an option by the name of its hyper-parameter."""
    option, _, place = name.partition(".")
    return group[option][int(place)] if place else group[option]


def can_be_input(value: Any) -> bool:
    """True for an option that can be an input: a number that is not zero, for optimizers leave out what zero switches
    off."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value != 0


def cycled_options(group: dict[str, Any]) -> list[str]:
    """What OneCycleLR and CyclicLR move in a group beside the learning rate: they leave its bounds there
    (torch/optim/lr_scheduler.py)."""
    if "max_momentum" not in group or "base_momentum" not in group:
        return []
    name = "betas.0" if "betas" in group else "momentum"
    return [name] if can_be_input(read_option(group, name)) else []


def _computes(name: str) -> Callable:
    operation = getattr(float, name)

    def compute(self: "_Marker", *others: Any) -> Any:
        result = operation(self, *others)
        return _Marker(result) if isinstance(result, float) else result

    return compute


def _compares(name: str) -> Callable:
    operation = getattr(float, name)

    def compare(self: "_Marker", other: Any) -> Any:
        if isinstance(other, (int, float)) and other != 0:
            raise CaptureError(_IN_PYTHON)
        return operation(self, other)

    return compare


_IN_PYTHON = "an option of the optimizer decides in Python what the step computes\n  hint: leave the option as it is"


class _Marker(float):
    """A number that refuses to be compared with another than zero, as do the numbers computed from it."""
    __hash__ = float.__hash__
    for _name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
        locals()[f"__{_name}__"], locals()[f"__r{_name}__"] = _computes(f"__{_name}__"), _computes(f"__r{_name}__")
    for _name in ("__neg__", "__abs__", "__pos__"):
        locals()[_name] = _computes(_name)
    for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        locals()[_name] = _compares(_name)


def is_scheduled(value: Any) -> bool:
    """Whether a value stands for an option that is an input of the program, or was computed from one."""
    return isinstance(value, _Marker)


class Scheduled:
    """The options `names` of all param groups as inputs; `salt` chooses the markers."""

    def __init__(self, names: Sequence[str] = (), salt: int = 0):
        self.names, self._salt = tuple(names), salt
        self._markers: dict[float, torch.Tensor] = {}

    def __bool__(self) -> bool:
        return bool(self.names)

    def check(self, optimizers: Optimizers) -> None:
        """Refuses names of options that no param group has."""
        known = list(dict.fromkeys(name for group in optimizers.param_groups for name, value in option_names(group)
                                   if can_be_input(value) and name != "lr"))
        for name in self.names:
            if name not in known:
                raise CaptureError(f"scheduled_options names {name!r}; the optimizer's options that can be inputs are "
                                   f"{', '.join(known) or 'none'}, and 'lr' is one in any case")

    def install(self, group: dict[str, Any]) -> list[tuple[str, float, torch.Tensor]]:
        """Markers in the place of the options of a group, under a fake mode: (name, value, its tensor) of each."""
        made = []
        for name in self.names:
            option, _, place = name.partition(".")
            value = read_option(group, name) if option in group else None
            if not can_be_input(value):
                continue
            marker = value * (1 - (0.0137 + 0.0071 * self._salt) / (1 + 0.1 * len(self._markers)) / math.pi)
            tensor = self._markers[marker] = torch.empty((), dtype=torch.float64)
            group[option] = _Marker(marker) if not place else type(group[option])(
                _Marker(marker) if index == int(place) else entry for index, entry in enumerate(group[option]))
            made.append((name, float(value), tensor))
        return made

    def handlers(self) -> list[Handler]:
        """Give ops the tensors."""
        return [_WithTensors({marker: (lambda tensor=tensor: tensor) for marker, tensor in self._markers.items()}
                             | {1 - marker: (lambda tensor=tensor: 1 - tensor)
                                for marker, tensor in self._markers.items()})] if self._markers else []


class _WithTensors(Handler):
    """Calls ops with the tensors of markers. What an op multiplies by the number is multiplied by the tensor first."""

    phase = Phase.OPTION

    def __init__(self, tensors: dict[float, Callable[[], torch.Tensor]]):
        self._tensors = tensors

    def answer(self, call: OpCall) -> Any:
        call.args, call.kwargs = pytree.tree_map_only(_Marker, float, (call.args, call.kwargs))
        if not any(isinstance(x, float) and x in self._tensors for x in (*call.args, *call.kwargs.values())):
            return NotImplemented
        with call.traced():
            return self._with_tensors(call.func, call.args, call.kwargs)

    def _with_tensors(self, func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
        given = dict(zip((a.name for a in schema_of(func).arguments), args)) | kwargs
        packet, overload = func.overloadpacket, func
        for name in [n for n, x in given.items() if isinstance(x, float) and x in self._tensors]:
            tensor = self._tensors[given[name]]()
            if name == "alpha":
                given["other"] = aten.mul.Tensor(given["other"], tensor)
                del given["alpha"]
            elif name == "value" and "tensor1" in given:
                given["tensor1"] = aten.mul.Tensor(given["tensor1"], tensor)
                del given["value"]
            elif name == "weight":
                given["weight"], overload = tensor.to(given["self"].dtype), packet.Tensor
            elif name == "self" and packet is aten.pow:  # in f64, as of a Python number
                given["self"], overload = tensor, packet.Tensor_Tensor
                given["exponent"] = given["exponent"].to(torch.float64)
            elif name == "other":
                given["other"], overload = tensor, packet.Tensor
            else:
                raise CaptureError(f"{func} takes an option of the optimizer as a number: it cannot be an input of the "
                                   "step\n  hint: leave the option as it is")
        required = [a.name for a in schema_of(overload).arguments if not a.kwarg_only]
        positional = [given.pop(name) for name in required if name in given]
        return overload(*positional, **given)
