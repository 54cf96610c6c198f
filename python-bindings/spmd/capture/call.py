"""The user's call train_step(*args, **kwargs), taken apart: model, optimizer, batch tensors, baked Python values."""
from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Sequence

import torch
from torch.utils import _pytree as pytree

from .errors import CaptureError
from .code_names import closure_numbers


_signature_of = functools.lru_cache(maxsize=256)(inspect.signature)


class StepCall:
    """One call of a training step.

    `model` and `optimizer` are found among the arguments, in any position. Every other tensor, in any pytree, is a
    batch input: `batch_names` and `batch` hold their names (the parameter's name, then the path inside it: "x",
    "batch.mask", "pair.0") and values. Anything else is a Python value and stays as it is.
    """

    def __init__(self, train_step: Callable, args: Sequence[Any], kwargs: dict[str, Any]):
        self.train_step, self.args, self.kwargs = train_step, args, kwargs
        self.signature = _signature_of(train_step)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CaptureError(f"the arguments do not fit {_name_of(train_step)}{self.signature}: {error}") from None
        var_keyword = next((p.name for p in self.signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
        paths, self._spec = pytree.tree_flatten_with_path(dict(bound.arguments))
        self._leaves = [leaf for _, leaf in paths]
        self.model: torch.nn.Module = self._only(torch.nn.Module, "model", _has_tensors)
        self.optimizer: torch.optim.Optimizer = self._only(torch.optim.Optimizer, "optimizer")
        self._batch_slots: list[int] = []
        self.batch_names: list[str] = []
        for slot, (path, leaf) in enumerate(paths):
            if isinstance(leaf, torch.Tensor):
                keys = [_key(entry) for entry in path]
                self._batch_slots.append(slot)
                self.batch_names.append(".".join(keys[1:] if keys[0] == var_keyword else keys))
            elif type(leaf).__module__ == "numpy" or hasattr(leaf, "__dlpack__"):
                raise CaptureError(f"argument {'.'.join(map(_key, path))!r} is a {type(leaf).__name__}; "
                                   "pass batches as torch tensors")

    def _only(self, kind: type, what: str, accept: Callable[[Any], bool] = lambda leaf: True) -> Any:
        found = {id(leaf): leaf for leaf in self._leaves if isinstance(leaf, kind) and accept(leaf)}
        if len(found) != 1:
            count = "no" if not found else str(len(found))
            cure = "" if not found else "\n  cure: " + (
                "put the models into one module, such as torch.nn.ModuleDict" if what == "model" else
                "train with one optimizer of several param groups, or in one step per optimizer")
            raise CaptureError(f"{_name_of(self.train_step)} must get its {what} as an argument; "
                               f"{count} {kind.__module__}.{kind.__qualname__} among the arguments{cure}")
        return next(iter(found.values()))

    @property
    def batch(self) -> list[torch.Tensor]:
        """The batch tensors, in the order of `batch_names`."""
        return [self._leaves[slot] for slot in self._batch_slots]

    @property
    def others(self) -> dict[str, Any]:
        """The Python values among the arguments, by the name of their parameter and the path in it."""
        paths, _ = pytree.tree_flatten_with_path(self._top_level())
        return {".".join(map(_key, path)): leaf for path, leaf in paths
                if leaf is not self.model and leaf is not self.optimizer and not isinstance(leaf, torch.Tensor)}

    def key(self) -> tuple[Any, ...]:
        """Equal for calls that one graph serves: same structure, batch shapes, dtypes, Python values, and the same
        numbers in the closures and globals that the step's code refers to."""
        batch = set(self._batch_slots)
        return (self._spec, closure_numbers(self.train_step),
                *((tuple(leaf.shape), leaf.dtype) if slot in batch else _Value(leaf)
                              for slot, leaf in enumerate(self._leaves)))

    def of_one_rank(self, ranks: int, batch_dims: dict[str, int | None]) -> "StepCall":
        """The call on the first rank's rows of the batch; `batch_dims` as for spmd.capture.

        Raises:
          CaptureError: when the rows do not divide by the ranks.
        """
        leaves = list(self._leaves)
        for name, rows in self.rows_of_ranks(self.batch, ranks, batch_dims).items():
            leaves[self._batch_slots[self.batch_names.index(name)]] = rows[0]
        bound = inspect.BoundArguments(self.signature, pytree.tree_unflatten(leaves, self._spec))
        return StepCall(self.train_step, bound.args, bound.kwargs)

    def rows_of_ranks(self, batch: Sequence[torch.Tensor], ranks: int,
                      batch_dims: dict[str, int | None]) -> dict[str, list[torch.Tensor]]:
        """Each rank's rows of each tensor of a global batch, by name; the whole tensor where it has no batch dim."""
        rows = {}
        for name, tensor in zip(self.batch_names, batch):
            dim = batch_dims.get(name, 0 if tensor.dim() else None)
            if dim is None:
                rows[name] = [tensor] * ranks
                continue
            if tensor.shape[dim] % ranks:
                raise CaptureError(f"batch input {name!r} has {tensor.shape[dim]} rows for {ranks} ranks\n"
                                   "  cure: with view='local' each rank has as many; drop the last batch, or use "
                                   "view='global'")
            rows[name] = list(tensor.chunk(ranks, dim))
        return rows

    def run(self, batch: Sequence[torch.Tensor], model: torch.nn.Module | None = None,
            optimizer: torch.optim.Optimizer | None = None) -> Any:
        """Calls the step with `batch` in place of the batch tensors, and with another model and optimizer if given."""
        leaves = list(self._leaves)
        for slot, tensor in zip(self._batch_slots, batch, strict=True):
            leaves[slot] = tensor
        swap = {id(self.model): model or self.model, id(self.optimizer): optimizer or self.optimizer}
        leaves = [swap.get(id(leaf), leaf) for leaf in leaves]
        bound = inspect.BoundArguments(self.signature, pytree.tree_unflatten(leaves, self._spec))
        return self.train_step(*bound.args, **bound.kwargs)

    def batch_of(self, entry: Any) -> list[torch.Tensor]:
        """The batch tensors of another call, given as a tuple of the arguments other than model and optimizer.

        A dict gives arguments by parameter name; a single tensor stands for a tuple of one.
        """
        names = [n for n, value in self._top_level().items() if value is not self.model and value is not self.optimizer]
        if isinstance(entry, dict) and set(entry) <= set(names):
            given = entry
        else:
            values = tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)
            if len(values) > len(names):
                raise CaptureError(f"a reference batch has {len(values)} values; the step takes {names}")
            given = dict(zip(names, values))
        arguments = {n: given.get(n, value) for n, value in self._top_level().items()}
        leaves, spec = pytree.tree_flatten(arguments)
        if spec != self._spec:
            raise CaptureError(f"a reference batch is not built like the captured call's {names}")
        return [leaves[slot] for slot in self._batch_slots]

    def _top_level(self) -> dict[str, Any]:
        return pytree.tree_unflatten(list(self._leaves), self._spec)


class _Value:
    """A Python argument: equal when it is the same object, or an equal number or string."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Value):
            return False
        plain = isinstance(self.value, (bool, int, float, str, type(None)))
        return self.value is other.value or (plain and type(self.value) is type(other.value)
                                             and self.value == other.value)


def _has_tensors(module: torch.nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _key(entry: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def _name_of(function: Callable) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
