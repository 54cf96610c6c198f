"""Numbers that a step computes, which Python computes with: what .item() gives of floating tensors, and Python numbers that
an optimizer counts (optimizer/counted.py).

Their arithmetic is calls of PyTorch's functions on 0-dim tensors of f64, which give the bits that Python's floats give. Who
wants anything else of a number meets PyTorch's symbol of a number that a graph has.
"""
from __future__ import annotations

import contextlib
import operator
import sys
import types
from typing import Any, Callable, Iterator

import torch

from ...torch_api.tracing import FakeTensor
from ..observe import patches

_aten = torch.ops.aten
_OWN = ("spmd", "torch", "sympy")  # packages that must see that it is a symbol


def _is_users(frame: types.FrameType) -> bool:
    """Whether code outside of this compiler and PyTorch runs there."""
    return frame.f_globals.get("__name__", "").partition(".")[0] not in _OWN


class Number(torch.SymFloat):
    """A number that a step computes; `tensor` is it, 0-dim and of f64. `is_known`: it follows from numbers that each call
    knows when it begins, so that Python may compare it. `kind`: the type that it has in eager PyTorch."""

    def __init__(self, tensor: torch.Tensor, is_known: bool = False, kind: type = float):
        self.tensor, self.is_known, self.kind, self._symbol = tensor, is_known, kind, None

    @property
    def __class__(self) -> type:
        """In the user's code isinstance() says of a known number what it says in eager PyTorch."""
        return self.kind if self.is_known and _is_users(sys._getframe(1)) else type(self)

    @property
    def node(self) -> Any:
        return self.symbol.node

    @property
    def symbol(self) -> torch.SymFloat | torch.SymInt:
        """PyTorch's symbol of it, which is a node of the graph from here on."""
        if self._symbol is None:
            tensor = self.tensor.to(torch.int64) if self.kind is int else self.tensor
            self._symbol = _aten._local_scalar_dense.default(tensor)
        return self._symbol

    def __bool__(self) -> bool:
        return bool(self.symbol != 0)

    def __index__(self) -> int:
        if self.kind is not int:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return int(self.symbol)

    def __hash__(self) -> int:
        return hash(self._constant() if self.is_known and _is_users(sys._getframe(1)) else self.symbol)

    def __str__(self) -> str:
        return str(self._constant()) if self.is_known and _is_users(sys._getframe(1)) else super().__str__()

    def __repr__(self) -> str:
        return repr(self._constant()) if self.is_known and _is_users(sys._getframe(1)) else super().__repr__()

    def __format__(self, form: str) -> str:
        return format(self._constant(), form) if self.is_known and _is_users(sys._getframe(1)) else super().__format__(form)

    def _constant(self) -> int | float:
        """What the step is told of a known number: a guard, or an error where the number changes in each call."""
        return int(self.symbol) if self.kind is int else float(self.symbol)

    def __pos__(self) -> Number:
        return self

    def __neg__(self) -> Number:
        return Number(-self.tensor, self.is_known, self.kind)

    def __abs__(self) -> Number:
        return Number(self.tensor.abs(), self.is_known, self.kind)


_KEEP_INTEGERS = (torch.add, torch.sub, torch.mul, torch.remainder, torch.floor_divide)


def _kind(value: Any) -> type:
    return value.kind if isinstance(value, Number) else int if type(value) in (int, bool) else float


def _arithmetic(name: str, compute: Callable, is_reflected: bool) -> Callable:
    """A method of Number on another one, or on a Python number."""
    divides = compute in (torch.div, torch.remainder, torch.floor_divide)
    of_known = compute in (torch.pow, torch.remainder, torch.floor_divide)  # of others they would not give Python's bits

    def method(self: Number, other: Any) -> Any:
        is_number = isinstance(other, Number)
        if is_number_tensor(other):
            other, is_number = Number(other, is_known=True), True
        elif is_like_number(other):
            return compute(other, self.tensor) if is_reflected else compute(self.tensor, other)
        is_known = self.is_known and (not is_number or other.is_known)
        if of_known and not is_known or not is_number and type(other) not in (float, int, bool):
            return getattr(super(Number, self), name)(other)
        left, right = (other, self) if is_reflected else (self, other)
        if divides and (not isinstance(right, Number) or right.is_known) and right == 0:  # of a Number a guard
            raise ZeroDivisionError("float division by zero")
        if compute is torch.pow and right < 0 and left == 0:
            raise ZeroDivisionError("0.0 cannot be raised to a negative power")
        kind = int if compute in _KEEP_INTEGERS and _kind(self) is _kind(other) is int else float
        return Number(compute(_tensor_of(left), _tensor_of(right)), is_known, kind)
    return method


def _tensor_of(value: Any) -> torch.Tensor:
    return value.tensor if isinstance(value, Number) else torch.full((), float(value), dtype=torch.float64)


for _name, _compute in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("truediv", torch.div), ("pow", torch.pow),
                        ("mod", torch.remainder), ("floordiv", torch.floor_divide)):
    setattr(Number, f"__{_name}__", _arithmetic(f"__{_name}__", _compute, False))
    setattr(Number, f"__r{_name}__", _arithmetic(f"__r{_name}__", _compute, True))


def _of_constants(name: str) -> Callable:
    """A method of Number that gives of a known number what its constant gives."""
    def method(self: Number, *others: Any) -> Any:
        if not self.is_known:
            return getattr(super(Number, self), name, lambda *unused: NotImplemented)(*others)
        return getattr(self._constant(), name)(*(other._constant() if isinstance(other, Number) else other for other in others))
    return method


for _name in ("round", "floor", "ceil", "trunc", "divmod", "rdivmod", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift",
              "rshift", "rrshift", "invert"):
    setattr(Number, f"__{_name}__", _of_constants(f"__{_name}__"))


def _comparison(compare: Callable) -> Callable:
    """A method of Number: PyTorch compares symbols, and would take a number that isinstance() calls a float for a constant."""
    def method(self: Number, other: Any) -> Any:
        return compare(self.symbol, symbol_of(other))
    return method


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _comparison(getattr(operator, _name)))


def mark_number(tensor: torch.Tensor) -> torch.Tensor:
    """Notes that a 0-dim tensor of f64 stands for a Python number that each call knows when it begins: a learning rate."""
    tensor._spmd_is_number = True
    return tensor


def is_number_tensor(value: Any) -> bool:
    """True for what mark_number() has noted."""
    return isinstance(value, FakeTensor) and getattr(value, "_spmd_is_number", False)


def is_like_number(value: Any) -> bool:
    """True for a 0-dim tensor of f64, such as a learning rate is while the step is traced."""
    return isinstance(value, FakeTensor) and value.dtype is torch.float64 and not value.dim()


def _of_math(name: str, original: Callable) -> Callable:
    """A function of the module math that takes known Numbers and learning rates as well."""
    compute = getattr(torch, name)

    def function(*values: Any) -> Any:
        if not any(isinstance(value, (Number, FakeTensor)) for value in values) \
                or not all(type(value) in (float, int, bool) or getattr(value, "is_known", False) or is_like_number(value)
                           for value in values):
            return original(*values)
        tensors = [value if isinstance(value, FakeTensor) else _tensor_of(value) for value in values]
        if name == "log" and len(tensors) == 2:
            return Number(compute(tensors[0]) / compute(tensors[1]), is_known=True)
        return Number(compute(*tensors), is_known=True)
    return function


@contextlib.contextmanager
def traceable_math() -> Iterator[None]:
    """While entered, functions of the module math compute with numbers of the step."""
    with patches.replaced({patch: _of_math(patch.name, patch.value()) for patch in patches.MATH}):
        yield


def symbol_of(value: Any) -> Any:
    """A number as PyTorch knows it; any other value as it is."""
    return value.symbol if isinstance(value, Number) else value
