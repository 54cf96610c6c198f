"""Rows that a mask chooses, `x[mask]`: all rows are kept, and the mask beside them.

What acts on each row alone (lazy_rows.py says what does) is done to all of them where it stands; what looks at several, a sum, a
mean, a loss, takes those that are chosen. So numbers are eager's, and shapes are known. What stays unknown is how many there
are: an operator whose result's shape tells it is an error with the line.

Rows that are not chosen are 0.5, integers 0, whatever was done to them: a gradient there is multiplied by zero and must be finite,
which those of roots, logarithms and quotients are not everywhere; and a row's number must be one.
"""
from __future__ import annotations

import contextlib
import inspect
import itertools
import math
from typing import Any, Callable, NamedTuple, Sequence

import torch
import torch.fx
from torch.nn import functional

from ...torch_api.operators import OpOverload, schema_of
from ...torch_api.tracing import disable_current_modes, get_proxy_mode, pytree
from .known_values import HIDES_WRITES
from .lazy_rows import LOSSES, LOSSES_OF_CLASSES, Origin, RowCount, Rows, is_pointwise, moves_alone, refused
from .masked_labels import TAKES_LABELS, ctc_loss

_WEIGHTED_MEANS = (functional.mse_loss, functional.l1_loss)  # whose mean is over the weights
_DIVISIONS = {getattr(owner, name) for owner in (torch, torch.Tensor) for name in ("div", "divide", "remainder", "fmod")}
#: What rows that are not chosen are.
OTHERS = 0.5
_MOST_KNOWN = 1 << 20  # elements of a mask whose places become a constant of the step


def _no_inference() -> contextlib.AbstractContextManager:
    """For what is used behind an inference_mode() too."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()


class At(NamedTuple):
    """Where a row is along a dim of the mask."""

    axis: int


def places(shape: Sequence[int], axis: int) -> torch.Tensor:
    """Of each row, in a mask of this shape, where it is along a dim."""
    found = torch.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return found.expand(shape).reshape(-1)


def of_all_rows(tensor: torch.Tensor, shape: Sequence[int], axes: Sequence[int]) -> torch.Tensor:
    """For each row of a mask of this shape what a tensor has there, whose first dims are `axes` of the mask."""
    count = len(axes)
    order = sorted(range(count), key=axes.__getitem__)
    tensor = tensor.permute(*order, *range(count, tensor.dim()))
    rest = tensor.shape[count:]
    tensor = tensor.reshape(*(size if axis in axes else 1 for axis, size in enumerate(shape)), *rest)
    return tensor.expand(*shape, *rest).reshape(-1, *rest)


def of_chosen(valid: torch.Tensor, full: torch.Tensor, other: Any) -> torch.Tensor:
    """All rows, with `other` in the place of those that are not `valid`."""
    return torch.where(valid.reshape(-1, *[1] * (full.dim() - 1)), full, other)


def add_along(target: torch.Tensor, shape: Sequence[int], axis: int, full: torch.Tensor, alpha: Any) -> torch.Tensor:
    """Adds each row of a mask of this shape to the entry of `target` where it is along a dim of the mask."""
    others = [number for number in range(len(shape)) if number != axis]
    full = full.reshape(*shape, *full.shape[1:])
    return target.add_(full.sum(others) if others else full, alpha=alpha)


def is_same_value(known: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of a trace are known to have the same elements: the same operators have made them of the same tensors, and
    nothing was written in between."""
    tracker = get_proxy_mode().tracer.tensor_tracker
    slots = tracker.get(known), tracker.get(other)
    if any(slot is None for slot in slots):
        return False
    first, second = (slot.proxy.node for slot in slots)
    since = itertools.takewhile(lambda node: node is not first, reversed(first.graph.nodes))
    return _is_alike(first, second, 8) and not any(_is_mutable(node.target) for node in since)


def _is_mutable(func: Any) -> bool:
    return isinstance(func, OpOverload) and (schema_of(func).is_mutable or func in HIDES_WRITES)


def _is_alike(first: torch.fx.Node, second: torch.fx.Node, depth: int) -> bool:
    if first is second:
        return True
    func = first.target
    if depth == 0 or func is not second.target or not isinstance(func, OpOverload) or _is_mutable(func) \
            or func.namespace != "aten" or torch.Tag.nondeterministic_seeded in func.tags:
        return False
    leaves, others = (pytree.tree_flatten((node.args, node.kwargs)) for node in (first, second))
    return leaves[1] == others[1] and all(
        _is_alike(a, b, depth - 1) if isinstance(a, torch.fx.Node) and isinstance(b, torch.fx.Node) else
        type(a) is type(b) and a == b for a, b in zip(leaves[0], others[0]))


class Mask(Origin):
    """The origin of the rows that `mask` chooses. Their values are of all rows, in the order of the mask's elements. `known`: what the
    mask is in every call, if that is known; then so is how many rows there are."""

    def __init__(self, mask: torch.Tensor, known: torch.Tensor | None = None):
        self.shape = tuple(mask.shape)
        self.rows = math.prod(self.shape)
        with _no_inference():
            self.valid = mask.reshape(self.rows) != 0  # and written by nobody
        self.count = RowCount(False, self._count)
        self._counted: torch.Tensor | None = None
        with disable_current_modes():
            self._known = None if known is None or known.numel() > _MOST_KNOWN else known.reshape(-1).nonzero().squeeze(1)
        self.length = None if self._known is None else len(self._known)

    def _count(self) -> torch.Tensor:
        if self._counted is None:
            with _no_inference():
                self._counted = self.valid.sum()
        return self._counted

    def begin(self, tensor: torch.Tensor, axes: Sequence[int] | None = None) -> Rows:
        """Of a tensor that has the mask's dims first, or those that are `axes`."""
        full = of_all_rows(tensor, self.shape, range(len(self.shape)) if axes is None else axes)
        rows = Rows.begin(self, self._filled(full), full, full.shape[1:])
        rows.is_new = True
        return rows

    def full(self, rows: Rows) -> torch.Tensor:
        """Of all rows."""
        return places(self.shape, rows.value.axis) if isinstance(rows.value, At) else rows.value

    def _index(self) -> list[torch.Tensor]:
        """Where the rows are, of a mask that is known."""
        with disable_current_modes():
            return list(torch.unravel_index(self._known, self.shape))

    def tensor(self, rows: Rows) -> torch.Tensor:
        return self.full(rows).index_select(0, self._known)

    def chosen(self, rows: Rows, other: Any) -> torch.Tensor:
        """Of all rows, with `other` in the place of those that are not chosen."""
        return self._where(self.full(rows), other)

    def put(self, target: torch.Tensor, value: Any) -> None:
        """Writes rows, or what is put in the place of each, over the chosen ones of a tensor that has the mask's dims first."""
        if isinstance(value, Rows):
            if value.origin is not self:
                raise refused("writing", ", over those that another mask chooses")
            value = self.full(value)
            if value.dim() - 1 != target.dim() - len(self.shape):
                raise refused("writing", " what has more dims or less")
            value = value.reshape(*self.shape, *value.shape[1:])
        elif isinstance(value, torch.Tensor) and value.dim() > target.dim() - len(self.shape):
            if value.dim() > target.dim() - len(self.shape) + 1 or value.shape[0] != 1:
                if self._known is None:
                    raise refused("writing", ", over rows, of a tensor that has as many")
                target[tuple(self._index())] = value
                return
            value = value[0]
        if isinstance(value, torch.Tensor) and value.dtype != target.dtype and value.dim():
            raise RuntimeError("Index put requires the source and destination dtypes match, got "
                               f"{str(target.dtype)[6:]} for the destination and {str(value.dtype)[6:]} for the source.")
        if isinstance(value, torch.Tensor):
            value = value.to(target.dtype)
        elif isinstance(value, float) and not target.is_floating_point() and not target.is_complex():
            value = int(value) if target.dtype is not torch.bool else bool(value)
        valid = self.valid.reshape(*self.shape, *[1] * (target.dim() - len(self.shape)))
        target.copy_(torch.where(valid, value, target))

    def take(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        if any(isinstance(leaf, Rows) and leaf.origin is not self for leaf in pytree.tree_leaves((args, kwargs))):
            raise refused(func, ", together with others that may be more or less")
        if func in TAKES_LABELS:
            return ctc_loss(func, self, args, kwargs)
        if func in LOSSES_OF_CLASSES or func in LOSSES:
            given = inspect.signature(func).bind(*args, **kwargs)
            given.apply_defaults()
            return self._loss(func, given.arguments)
        reduce = _REDUCTIONS.get(func)
        return NotImplemented if reduce is None else reduce(self, *args, **kwargs)

    def done(self, func: Callable, args: tuple, kwargs: dict, parts: int | None) -> Sequence[torch.Tensor]:
        given = pytree.tree_leaves((args, kwargs))
        rank = max(leaf.sample.dim() for leaf in given if isinstance(leaf, Rows))
        if is_pointwise(func) and any(isinstance(leaf, torch.Tensor) and not isinstance(leaf, Rows) and leaf.dim() >= rank
                                      and leaf.shape[leaf.dim() - rank] != 1 for leaf in given):
            raise refused(func, ", and of a tensor that has as many dims")
        if func in _DIVISIONS and len(args) > 1 and isinstance(args[1], Rows) and not args[1].sample.is_floating_point():
            args = args[0], self.chosen(args[1], 1), *args[2:]  # by zero there is no quotient
        args, kwargs = pytree.tree_map(lambda leaf: self.full(leaf) if isinstance(leaf, Rows) else leaf, (args, kwargs))
        made = func(*args, **kwargs)
        made = [made] if parts is None else made
        return made if moves_alone(func) else [self._filled(full) for full in made]

    def _filled(self, full: torch.Tensor) -> torch.Tensor:
        return self._where(full, OTHERS if full.is_floating_point() else False if full.dtype is torch.bool else 0)

    def _where(self, full: torch.Tensor, other: Any) -> torch.Tensor:
        return of_chosen(self.valid, full, other)

    def _loss(self, func: Callable, given: dict[str, Any]) -> Any:
        reduction, rows, target = given["reduction"], given["input"], given["target"]
        if reduction == "none":
            return NotImplemented
        if given.get("size_average") is not None or given.get("reduce") is not None:
            raise refused(func, ", with size_average or reduce, which PyTorch has deprecated,")
        if not isinstance(rows, Rows) or not isinstance(target, Rows):
            raise refused(func, ", and of a tensor that has all rows")
        if func in LOSSES_OF_CLASSES and not target.sample.is_floating_point():
            target = self.chosen(target, given["ignore_index"])
            return func(**{**given, "input": self.full(rows), "target": target})
        elements = func(**{**given, "reduction": "none"})
        if reduction == "mean" and (func not in _WEIGHTED_MEANS or given["weight"] is None):
            return elements.mean()
        total = elements.sum()
        if reduction == "mean":
            return total / given["weight"].sum()
        return total if reduction == "sum" else total / self._count().to(total.dtype)  # "batchmean"


def _dims(rows: Rows, dim: Any) -> tuple[int, ...]:
    """The dims that an operator goes along, all where it does not say."""
    rank = rows.sample.dim()
    given = range(rank) if dim is None or dim == () else dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(sorted(number % rank for number in given))


def _sum(mask: Mask, rows: Rows, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    dims = _dims(rows, dim)
    return NotImplemented if 0 not in dims else mask.chosen(rows, 0).sum(dims, keepdim, dtype=dtype)


def _mean(mask: Mask, rows: Rows, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    dims = _dims(rows, dim)
    if 0 not in dims:
        return NotImplemented
    dtype = dtype or rows.sample.dtype
    if not dtype.is_floating_point:
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype.")
    wide = torch.promote_types(dtype, torch.float32)
    total = mask.chosen(rows, 0).sum(dims, keepdim, dtype=wide)
    return (total / (mask._count() * math.prod(rows.sample.shape[d] for d in dims if d)).to(wide)).to(dtype)


def _any(mask: Mask, rows: Rows, *unused: Any, **named: Any) -> Any:
    return NotImplemented if unused or named else mask.chosen(rows, 0).any()


def _all(mask: Mask, rows: Rows, *unused: Any, **named: Any) -> Any:
    return NotImplemented if unused or named else mask.chosen(rows, 1).all()


_REDUCTIONS = {getattr(owner, name): reduce for name, reduce in (("sum", _sum), ("mean", _mean), ("any", _any), ("all", _all))
               for owner in (torch, torch.Tensor)}
