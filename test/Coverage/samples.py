"""What an op is tried on: PyTorch's own samples (its operator database), or samples written by hand."""
from __future__ import annotations

import dataclasses
import functools
import warnings
import zlib
from typing import Any, Callable, Iterable, Sequence

import torch
from torch.utils import _pytree as pytree

# Samples of one op and dtype: enough for broadcasting, dims and options, few enough that a family is one small step.
MOST_SAMPLES = {torch.float64: 8, torch.float32: 4}
MOST_INTEGER_SAMPLES = 2
MOST_ELEMENTS = 600


@dataclasses.dataclass
class Sample:
    """One call of an op: `args` and `kwargs` hold tensors, anywhere, and plain Python values."""

    args: tuple
    kwargs: dict

    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]

    def call(self, function: Callable, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors that `function` returns when `tensors` stand in for the sample's own; none without elements,
        where there is nothing to compare."""
        given = iter(tensors)
        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda _: next(given), (self.args, self.kwargs))
        leaves = pytree.tree_leaves(function(*args, **kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and not _is_empty(leaf)]


def _is_empty(tensor: torch.Tensor) -> bool:
    """Whether a size is 0; one that depends on values is not known to be."""
    return any(isinstance(size, int) and size == 0 for size in tensor.shape)


def sample(*args: Any, **kwargs: Any) -> Sample:
    """A sample by hand."""
    return Sample(args, kwargs)


@dataclasses.dataclass
class Op:
    """A row of the coverage table.

    `name` is the function as users write it, without "torch."; `make(dtype)` gives samples, [] for a dtype that the op
    does not take. Tensors of floating dtype that require a gradient get one, for a random cotangent. `tolerance` is the
    relative difference (of the largest element; in float64 of `magnitude` if that is larger, of what the op computes
    with where it cancels) that float64 and float32 may have; `host_tolerance` that of float32.
    """

    name: str
    function: Callable
    make: Callable[[torch.dtype], Iterable[Sample]]
    tolerance: float = 1e-12
    host_tolerance: float = 1e-5
    magnitude: float = 0
    gradient: bool = True

    def samples(self, dtype: torch.dtype) -> list[Sample]:
        """Distinct small samples, the same in every run."""
        torch.manual_seed(zlib.crc32(self.name.encode()))
        kept, seen = [], set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for one in self.make(dtype):
                leaves = pytree.tree_leaves((one.args, one.kwargs))
                key = repr([(tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else v for v in leaves])
                sizes = [t.numel() for t in one.tensors()]
                if key in seen or not sizes or min(sizes) == 0 or max(sizes) > MOST_ELEMENTS or not _is_plain(one):
                    continue
                seen.add(key)
                kept.append(_detached(one, self.gradient))
        return kept[:MOST_SAMPLES.get(dtype, MOST_INTEGER_SAMPLES)]


def _is_plain(one: Sample) -> bool:
    """Whether a graph can hold the sample: dense real tensors and plain values."""
    plain = (bool, int, float, str, type(None), torch.dtype, torch.memory_format)
    return all((t.layout == torch.strided and not t.is_complex()) if isinstance(t, torch.Tensor)
               else isinstance(t, plain)
               for t in pytree.tree_leaves((one.args, one.kwargs)))


def _detached(one: Sample, gradient: bool) -> Sample:
    """Contiguous leaves of their own: a captured input has no history and no layout."""
    def leaf(t: torch.Tensor) -> torch.Tensor:
        return t.detach().clone(memory_format=torch.contiguous_format).requires_grad_(t.requires_grad and gradient)
    return Sample(*pytree.tree_map_only(torch.Tensor, leaf, (one.args, one.kwargs)))


@functools.cache
def _database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db
    return {info.name + (f".{info.variant_test_name}" if info.variant_test_name else ""): info for info in op_db}


def from_database(name: str, **options: Any) -> Op:
    """A row whose samples are those of PyTorch's operator database; the name is the database's.

    `keep(sample)` drops samples; other options are Op's.
    """
    keep = options.pop("keep", lambda one: True)

    def function(*args: Any, **kwargs: Any) -> Any:
        return _database()[name].op(*args, **kwargs)

    def make(dtype: torch.dtype) -> Iterable[Sample]:
        info = _database()[name]
        if dtype not in info.supported_dtypes("cpu"):
            return
        gradient = dtype.is_floating_point and info.supports_autograd
        # Not info.sample_inputs, which notes the caller of every sample, slowly.
        for given in info.sample_inputs_func(info, "cpu", dtype, gradient):
            one = Sample((given.input, *given.args), given.kwargs)
            if keep(one):
                yield one

    return Op(name, function, make, **options)


def by_hand(name: str, function: Callable, *samples: Callable[[torch.dtype], Sample],
            dtypes: Sequence[torch.dtype] = (),
            **options: Any) -> Op:
    """A row with samples of our own: each is a function of the dtype. `dtypes`: the dtypes beside float64 and
    float32."""
    def make(dtype: torch.dtype) -> Iterable[Sample]:
        if dtype in (torch.float64, torch.float32, *dtypes):
            yield from (one(dtype) for one in samples)
    return Op(name, function, make, **options)


def real(*shape: int, dtype: torch.dtype = torch.float64, gradient: bool = True) -> torch.Tensor:
    """Normal numbers, with a gradient if the dtype has one."""
    return torch.randn(shape, dtype=dtype).requires_grad_(gradient)
