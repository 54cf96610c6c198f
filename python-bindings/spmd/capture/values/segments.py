"""Tensors that are cut up by counts that only values say: `x.split(counts.tolist())`, whose parts go each through an expert and
are put together again by torch.cat. The parts are noted (lazy_rows.py), and done together where they are put together.

Counts that do not add up to the rows, eager refuses. Here they are known when the step is over, which then says so; and what
is put together is nan, also where nobody asks."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Sequence

import torch

from ...torch_api.tensors import version_of
from ...torch_api.tracing import FakeTensor
from ..errors import Frame, where
from ..observe import patches
from .lazy_rows import Check, Groups, Origin, Rows, Together, form, refused

_CATS = (torch.cat, torch.concat, torch.concatenate)


class _Cut:
    """A tensor and, of each of its rows, the number of the segment that it is in."""

    def __init__(self, whole: torch.Tensor, counts: torch.Tensor):
        self.whole, self.count, self._version = whole, counts.shape[0], version_of(whole)
        ends = counts.cumsum(0)
        self.is_wrong = counts.sum() != whole.shape[0]
        self.groups = Groups((ends <= torch.arange(whole.shape[0]).unsqueeze(-1)).sum(-1), self.count)

    def is_written(self) -> bool:
        return version_of(self.whole) != self._version


class _Segment(Origin):
    """The origin of one segment's rows."""

    def __init__(self, cut: _Cut, number: int):
        self.cut, self.number = cut, number

    def take(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        return _together(func, *args, **kwargs) if func in _CATS else NotImplemented


def _together(func: Callable, tensors: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
    cut = next(t for t in tensors if isinstance(t, Rows)).origin.cut
    in_order = dim == 0 and len(tensors) == cut.count and all(
        isinstance(t, Rows) and t.origin.cut is cut and t.origin.number == n for n, t in enumerate(tensors))
    if not in_order or cut.is_written() or len({form(t.value, lambda root: "rows") for t in tensors}) > 1:
        raise refused(func, ", that are not all parts of one tensor, in order, after the same steps")
    result = Together(cut.groups, cut.whole.shape[0], lambda roots: cut.whole).compute([t.value for t in tensors])
    if not result.is_floating_point():
        return result
    return result * torch.where(cut.is_wrong, torch.nan, 1.0).to(result.dtype)  # which makes gradients nan as well


class Segments:
    """`tell`: what is known of a size, or None. `stack`: the user's frames."""

    def __init__(self, tell: Callable[[Any], Any], stack: Callable[[], Sequence[Frame]]):
        self._tell, self._stack = tell, stack
        self.checks: list[Check] = []
        self._counts: dict[Any, tuple[torch.Tensor, int]] = {}  # by the symbols that their elements are

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        tolist, split = FakeTensor.tolist, torch.Tensor.split

        def noted_tolist(tensor):
            values = tolist(tensor)
            if tensor.dim() == 1:
                self._counts.update((value.node.expr, (tensor, number)) for number, value in enumerate(values)
                                    if isinstance(value, torch.SymInt))
            return values

        def noted_split(tensor, split_size, dim=0):
            counts = self._counts_of(split_size) if isinstance(split_size, (list, tuple)) and dim == 0 \
                and isinstance(tensor, FakeTensor) else None
            return split(tensor, split_size, dim) if counts is None else self._cut(tensor, counts)

        with patches.replaced({patches.FAKE_TENSOR_TOLIST: noted_tolist, patches.TENSOR_SPLIT: noted_split}):
            yield

    def _counts_of(self, sizes: Sequence[Any]) -> torch.Tensor | None:
        """The tensor whose elements these are, none of them known."""
        found = [self._counts.get(size.node.expr) if isinstance(size, torch.SymInt) else None for size in sizes]
        if not found or any(one is None for one in found) or any(self._tell(size.node.expr) is not None for size in sizes):
            return None
        counts = found[0][0]
        is_all = len(found) == counts.shape[0] and all(t is counts and n == at for n, (t, at) in enumerate(found))
        return counts if is_all else None

    def _cut(self, tensor: torch.Tensor, counts: torch.Tensor) -> tuple[Rows, ...]:
        cut = _Cut(tensor, counts)
        self.checks.append(Check(cut.is_wrong.long(), f"split by counts that do not add up to the {tensor.shape[0]} rows there "
                                                      f"are\n{where(self._stack())}\n  hint: count each row once; what the step has trained is nan now"))
        return tuple(Rows.begin(_Segment(cut, number), "rows", tensor, tensor.shape[1:]) for number in range(cut.count))
