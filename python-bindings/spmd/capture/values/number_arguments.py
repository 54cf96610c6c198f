"""Numbers that a step computes, in the arguments of PyTorch's functions where a graph can have constants only.

Such a function is called with a 0-dim tensor in the place of the number, or as functions that take one: clamp(max=n) is
minimum(), torch.tensor(n) is a cast, and a function of lists is one call for each entry. All other functions get PyTorch's
symbol of the number.
"""
from __future__ import annotations

from typing import Any, Callable

import torch

from ...torch_api.tracing import pytree
from .number import Number, is_like_number, symbol_of

Below = Callable[[Callable, tuple, "dict[str, Any]"], Any]  # calls a function without the handler that asks
_HALVES = (torch.float16, torch.bfloat16)
_MAKERS = {"tensor", "as_tensor", "asarray", "scalar_tensor", "new_tensor"}
_LISTS_WITH_SYMBOLS = {"add", "mul", "div"}  # of which a graph has the function of lists
_LISTS = {*_LISTS_WITH_SYMBOLS, "sub", "maximum", "minimum", "clamp_min", "clamp_max", "pow", "lerp", "addcmul", "addcdiv"}
OF_NUMBERS = {"lerp", "lerp_", *(f"_foreach_{name}{mark}" for name in _LISTS - {*_LISTS_WITH_SYMBOLS, "sub"} for mark in ("", "_"))}
_BOUNDS = {"maximum": "min", "clamp_min": "min", "minimum": "max", "clamp_max": "max"}


def call_with_tensors(func: Callable, args: tuple, kwargs: dict[str, Any], below: Below) -> Any:
    """What func(*args, **kwargs) gives, of which some arguments are Numbers; NotImplemented: symbols can be in their place."""
    name = getattr(func, "__name__", "")
    if name in _MAKERS and not kwargs.get("requires_grad"):
        data = kwargs.get("data", args[-1] if args else None)
        return _made(data, kwargs.get("dtype"), below)
    if name.startswith("_foreach_") and name.removeprefix("_foreach_").rstrip("_") in _LISTS:
        return _lists(name.removeprefix("_foreach_"), args, kwargs, below)
    return _one(name, args, kwargs, below)


def with_numbers(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a function of OF_NUMBERS: what stands for a learning rate is a number there, as in eager PyTorch."""
    def number(value: Any) -> Any:
        return Number(value, is_known=True) if is_like_number(value) else value

    places = [place for place in range(len(args)) if place > 1 or not isinstance(args[0], torch.Tensor)]
    return tuple(number(value) if place in places else value for place, value in enumerate(args)), {
        name: number(value) for name, value in kwargs.items()}


def _one(name: str, args: tuple, kwargs: dict[str, Any], below: Below) -> Any:
    """As call_with_tensors, of a function of tensors."""
    base, found = name.rstrip("_"), NotImplemented
    if base == "where" and len(args) == 3:
        return _where(*args, below)
    if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
        return NotImplemented
    if base == "lerp":
        found = _lerp(*args, **kwargs, below=below)
    elif base in ("clamp", "clip"):
        found = _clamp(*args, **kwargs, below=below)
    elif base in _BOUNDS and len(args) == 2 and isinstance(args[1], Number):
        found = _clamp(args[0], **{_BOUNDS[base]: args[1]}, below=below)
    elif base in ("sub", "subtract") and isinstance(alpha := kwargs.get("alpha"), Number):
        negative = Number(below(torch.neg, (alpha.tensor,), {}), alpha.is_known, alpha.kind)
        found = below(torch.add, (args[0], args[1]), {"alpha": negative.symbol})
    if found is not NotImplemented and name.endswith("_"):
        return below(torch.Tensor.copy_, (args[0], found), {})
    return found


def _lerp(start: torch.Tensor, end: torch.Tensor, weight: Any, below: Below) -> Any:
    if not isinstance(weight, Number):
        return NotImplemented
    dtype = torch.float32 if start.dtype in _HALVES else start.dtype  # as PyTorch computes with a number
    given = [below(torch.Tensor.to, (tensor, dtype), {}) for tensor in (start, end, weight.tensor)]
    return below(torch.Tensor.to, (below(torch.lerp, tuple(given), {}), start.dtype), {})


def _clamp(value: torch.Tensor, min: Any = None, max: Any = None, *, below: Below) -> Any:
    if any(isinstance(bound, torch.Tensor) for bound in (min, max)):
        return NotImplemented
    for bound, function in ((min, torch.maximum), (max, torch.minimum)):
        if bound is not None:
            limit = below(torch.Tensor.to, (bound.tensor, value.dtype), {}) if isinstance(bound, Number) else \
                below(torch.full, ((), bound), {"dtype": value.dtype})
            value = below(function, (value, limit), {})
    return value


def _where(condition: torch.Tensor, first: Any, second: Any, below: Below) -> Any:
    tensors = [value for value in (first, second) if isinstance(value, torch.Tensor)]
    if any(not tensor.is_floating_point() for tensor in tensors):
        return NotImplemented
    dtype = tensors[0].dtype if tensors else torch.get_default_dtype()
    if not tensors and all(map(_is_integer, (first, second))):
        dtype = torch.int64
    given = [below(torch.Tensor.to, (value.tensor, dtype), {}) if isinstance(value, Number) else value
             for value in (first, second)]
    return below(torch.where, (condition, *given), {})


def _is_integer(value: Any) -> bool:
    return value.kind is int if isinstance(value, Number) else isinstance(value, (bool, int))


def _made(data: Any, dtype: torch.dtype | None, below: Below) -> torch.Tensor:
    """What torch.tensor makes of numbers, or of nested lists of them."""
    if dtype is None:
        is_integer = all(map(_is_integer, pytree.tree_leaves(data)))
        dtype = torch.int64 if is_integer else torch.get_default_dtype()
    if isinstance(data, (list, tuple)):
        return below(torch.stack, ([_made(entry, dtype, below) for entry in data],), {})
    if isinstance(data, Number):
        return below(torch.Tensor.to, (data.tensor, dtype), {"copy": True})
    return below(torch.tensor, (data,), {"dtype": dtype})


def _lists(name: str, args: tuple, kwargs: dict[str, Any], below: Below) -> Any:
    """A function of lists."""
    base, is_in_place = name.rstrip("_"), name.endswith("_")
    lists = [value for value in (*args, *kwargs.values()) if isinstance(value, (list, tuple))]
    numbers_in_lists = any(isinstance(leaf, Number) for entries in lists for leaf in entries)
    if base in _LISTS_WITH_SYMBOLS and not numbers_in_lists and isinstance(args[0], (list, tuple)):
        return NotImplemented

    def entry(value: Any, index: int) -> Any:
        return value[index] if isinstance(value, (list, tuple)) else value

    results = []
    for index in range(len(lists[0])):
        given = tuple(entry(value, index) for value in args)
        named = {"value" if key == "scalars" and base in ("addcmul", "addcdiv") else key: entry(value, index)
                 for key, value in kwargs.items()}
        results.append(_entry(base, is_in_place, given, named, below))
    return None if is_in_place else results


def _entry(base: str, is_in_place: bool, args: tuple, kwargs: dict[str, Any], below: Below) -> Any:
    """A function of lists, for one entry of each."""
    if base in ("addcmul", "addcdiv") and len(args) == 4:
        args, kwargs = args[:3], {**kwargs, "value": args[3]}
    elif base in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"):
        args, kwargs = (*args, *(kwargs[key] for key in ("other", "scalar", "scalars", "exponent") if key in kwargs)), {
            key: value for key, value in kwargs.items() if key == "alpha"}
    elif base == "lerp":
        args, kwargs = (*args, *kwargs.values()), {}
    found = _one(base, args, kwargs, below)
    if found is NotImplemented and base in _BOUNDS and not isinstance(args[1], torch.Tensor):
        found = _clamp(args[0], **{_BOUNDS[base]: args[1]}, below=below)
    if found is NotImplemented:
        given, named = pytree.tree_map(symbol_of, (args, kwargs))
        found = below(getattr(torch, base), given, named)
    return below(torch.Tensor.copy_, (args[0], found), {}) if is_in_place else found
