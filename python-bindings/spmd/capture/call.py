"""The user's call train_step(*args, **kwargs), taken apart: model, optimizer, batch tensors, Python values."""
from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from typing import Any, Callable, Sequence

import torch

from ..precision import Precision
from ..torch_api.tracing import pytree
from .errors import CaptureError
from .model.exported import exported_module, is_exported, without_aliases
from .model.parts import Part, find_model, find_optimizers
from .model.torch_compiled import original
from .optimizer.casts import computing_in
from .optimizer.kept_gradients import keeping_gradients
from .optimizer.masters import stepping_masters, wanted_masters
from .optimizer.optimizers import Optimizers
from .world.code_names import users_hooks
from .world.iterators import find_takings, like, with_taken

_signature_of = functools.lru_cache(maxsize=256)(inspect.signature)


@dataclasses.dataclass(frozen=True)
class CaptureOptions:
    """How a call is captured: see spmd.capture. `gradients`: the ids of parameters whose gradients are there when the step begins.
    `counted`: Python numbers of optimizers that are inputs (optimizer/counted.py)."""

    batch_dims: dict[str, int | None] = dataclasses.field(default_factory=dict)
    keep_grads: bool = False
    zero_gradient: tuple[str, ...] = ()
    name: str | None = None
    scheduled: tuple[str, ...] = ()
    gradients: frozenset[int] = frozenset()
    counted: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class CallOptions:
    """What holds for all calls of a step. `precision`: the precision in which the model computes where its own code says nothing else.
    `writes_batch`: the caller sees what the step writes into tensors of the batch. `asks_batch`: the caller has the whole batch, so
    that each call can compute what the step's Python reads of it. `counts`: the caller follows Python numbers of optimizers."""

    precision: Precision | None = None
    writes_batch: bool = False
    asks_batch: bool = False
    counts: bool = False


class StepCall:
    """One call of a training step.

    `model` and `optimizer` are found among the arguments, in any position, else in what the step's code reads
    (parts.py). Every other tensor, in any pytree, is a
    batch input: `batch_names` and `batch` hold their names (the parameter's name, then the path inside it: "x",
    "batch.mask", "pair.0") and values. Anything else is a Python value and stays as it is.

    `last` is an earlier call of the step: what that has found outside of the arguments is read where it was. Iterators
    among the arguments give nothing until taking() says how much (iterators.py); `left` is what was taken too much of which.
    """

    def __init__(self, train_step: Callable, args: Sequence[Any], kwargs: dict[str, Any], options: CallOptions = CallOptions(),
                 last: StepCall | None = None, left: Sequence[tuple[Any, list[Any]]] = ()):
        while isinstance(train_step, functools.partial):
            train_step, args, kwargs = train_step.func, (*train_step.args, *args), {**train_step.keywords, **kwargs}
        args, kwargs = _as_modules(args, kwargs)
        (args, kwargs), self.takings = find_takings((args, kwargs), left)
        self.train_step, self.args, self.kwargs, self.options = train_step, args, kwargs, options
        self.may_repeat = True  # iterations of a loop may be in the graph once
        self.no_recomputation: Exception | None = None  # why activations of checkpoint regions are kept
        self.signature = _signature_of(train_step)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CaptureError(f"the arguments do not fit {name_of(train_step)}{self.signature}: {error}") from None
        var_keyword = next((p.name for p in self.signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
        paths, self._spec = pytree.tree_flatten_with_path(dict(bound.arguments))
        self._leaves, self._paths = [leaf for _, leaf in paths], [".".join(map(_key, path)) for path, _ in paths]
        self._optimizer_parts = self._find_optimizers(paths, last)
        self.optimizers = Optimizers([part.value for part in self._optimizer_parts])
        self._model_part = self._find_model(paths, last)
        self.model: torch.nn.Module = original(self._model_part.value)
        self._find_optimizers_of_hooks(last)
        self._batch_slots: list[int] = []
        self.batch_names: list[str] = []
        for slot, (path, leaf) in enumerate(paths):
            if isinstance(leaf, torch.Tensor):
                if leaf.layout != torch.strided:
                    raise CaptureError(f"argument {'.'.join(map(_key, path))!r} has the layout {leaf.layout}\n  hint: pass "
                                       "batches as dense tensors: to_dense(), or indices and values apart")
                keys = [_key(entry) for entry in path]
                self._batch_slots.append(slot)
                self.batch_names.append(".".join(keys[1:] if keys[0] == var_keyword else keys))
            elif type(leaf).__module__ == "numpy" or hasattr(leaf, "__dlpack__"):
                raise CaptureError(f"argument {'.'.join(map(_key, path))!r} is a {type(leaf).__name__}; "
                                   "pass batches as torch tensors")
        self.without_taken = self.key() if self.takings else ()  # equal for calls that may take as much

    def taking(self, counts: Sequence[tuple[int, bool]]) -> StepCall:
        """The call with so many values of each of its iterators, and, where it says so, their end."""
        for taking, (count, ends) in zip(self.takings, counts, strict=True):
            taking.take(count, ends)
        args, kwargs = with_taken((self.args, self.kwargs))
        call = StepCall(self.train_step, args, kwargs, self.options, self)
        call.takings, call.without_taken, call.may_repeat = self.takings, self.without_taken, self.may_repeat
        return call

    @property
    def precision(self) -> Precision | None:
        return self.options.precision

    def _find_optimizers(self, paths: list[Any], last: StepCall | None) -> list[Part]:
        given = _arguments(paths, torch.optim.Optimizer)
        if given or last is None:
            return given or find_optimizers(self.train_step)
        again = [part.again(torch.optim.Optimizer) for part in last._optimizer_parts]
        return find_optimizers(self.train_step) if None in again else again

    def _find_optimizers_of_hooks(self, last: StepCall | None) -> None:
        """Those that hooks of the model and of its parameters step, in backward."""
        if last is not None:
            self._hook_parts = [part.again(torch.optim.Optimizer) for part in last._hook_parts]
        if last is None or None in self._hook_parts:
            found = {id(part.value): part for hook in users_hooks(self.model, self.optimizers.tables_of_hooks())
                     for part in find_optimizers(hook)}
            self._hook_parts = list(found.values())
        known = set(map(id, (*self.optimizers.given, *self.optimizers.parts)))
        more = [part for part in self._hook_parts if id(part.value) not in known]
        if more:
            self._optimizer_parts += more
            self.optimizers = Optimizers([part.value for part in self._optimizer_parts])

    def _find_model(self, paths: list[Any], last: StepCall | None) -> Part:
        given = [part for part in _arguments(paths, torch.nn.Module) if _has_tensors(part.value)]
        trained = set(map(id, self.optimizers.parameters))
        if len(given) == 1 and (not trained or any(id(p) in trained for p in given[0].value.parameters())):
            return given[0]
        return not given and last and last._model_part.again(torch.nn.Module) \
            or find_model(self.train_step, name_of(self.train_step), given, trained)

    @property
    def batch(self) -> list[torch.Tensor]:
        """The batch tensors, in the order of `batch_names`."""
        return [self._leaves[slot] for slot in self._batch_slots]

    def with_batch(self, batch: Sequence[torch.Tensor]) -> StepCall:
        """The same call with other batch tensors."""
        call = copy.copy(self)
        call._leaves = list(self._leaves)
        for slot, tensor in zip(self._batch_slots, batch, strict=True):
            call._leaves[slot] = tensor
        return call

    def traced_each(self) -> StepCall:
        """The same call, of which each iteration of a loop is traced (microbatches.py)."""
        call = copy.copy(self)
        call.may_repeat = False
        return call

    @property
    def recomputes(self) -> bool:
        """Whether checkpoint regions are recomputed in backward()."""
        return self.no_recomputation is None

    def keep_activations(self, error: Exception) -> None:
        """From here on, checkpoint regions are not recomputed, because a trace with recomputation has failed with `error`."""
        self.no_recomputation = error

    @property
    def others(self) -> dict[str, Any]:
        """The Python values among the arguments, by the name of their parameter and the path in it."""
        paths, _ = pytree.tree_flatten_with_path(self._top_level())
        return {".".join(map(_key, path)): leaf for path, leaf in paths
                if leaf is not self.model and not isinstance(leaf, (torch.optim.Optimizer, torch.Tensor))}

    def key(self) -> tuple[Any, ...]:
        """Equal for calls that one graph serves: same structure, batch shapes, dtypes and Python values among the arguments."""
        batch = set(self._batch_slots)
        return (self._spec, *((tuple(leaf.shape), leaf.dtype) if slot in batch else _Value(leaf)
                              for slot, leaf in enumerate(self._leaves)))

    def what_is_new(self, last: StepCall) -> str:
        """The Python values that differ from those of another call, and its structure; empty when none does."""
        if self._spec != last._spec:
            return "the arguments have another structure"
        changed = [(path, now, before) for path, now, before in zip(self._paths, self._leaves, last._leaves)
                   if not isinstance(now, torch.Tensor) and _Value(now) != _Value(before)]
        return "; ".join(f"argument {path!r} is {_short(now)}, it was {_short(before)}" for path, now, before in changed)

    def of_one_rank(self, ranks: int, batch_dims: dict[str, int | None]) -> "StepCall":
        """The call on the first rank's rows of the batch; `batch_dims` as for spmd.capture.

        Raises:
          CaptureError: when the rows do not divide by the ranks.
        """
        rows = self.rows_of_ranks(self.batch, ranks, batch_dims)
        return self.with_batch([rows[name][0] for name in self.batch_names])

    def batch_dim(self, position: int, batch_dims: dict[str, int | None]) -> int | None:
        """Along which dim a batch tensor has its rows; None: it has none."""
        return batch_dims.get(self.batch_names[position], 0 if self.batch[position].dim() else None)

    def values(self) -> dict[str, str]:
        """The Python values among the arguments as text, for another process to compare; objects by their class."""
        batch = set(self._batch_slots)
        return {f"argument {path!r}": _short(leaf) for slot, (path, leaf) in enumerate(zip(self._paths, self._leaves))
                if slot not in batch}

    def rows_of_ranks(self, batch: Sequence[torch.Tensor], ranks: int,
                      batch_dims: dict[str, int | None]) -> dict[str, list[torch.Tensor]]:
        """Each rank's rows of each tensor of a global batch, by name; the whole tensor where it has no batch dim."""
        rows = {}
        for position, (name, tensor) in enumerate(zip(self.batch_names, batch)):
            dim = self.batch_dim(position, batch_dims)
            if dim is None:
                rows[name] = [tensor] * ranks
                continue
            if tensor.shape[dim] % ranks:
                raise CaptureError(f"batch input {name!r} has {tensor.shape[dim]} rows for {ranks} ranks\n"
                                   "  hint: with view='local' each rank has as many; drop the last batch, or use "
                                   "view='global'")
            rows[name] = list(tensor.chunk(ranks, dim))
        return rows

    def run(self, batch: Sequence[torch.Tensor], model: torch.nn.Module | None = None,
            optimizers: Optimizers | None = None) -> Any:
        """Calls the step with `batch` in place of the batch tensors, and with another model and optimizers if given.

        Raises:
          CaptureError: when the step changes a list or dict among its arguments. It gets copies, whose changes nobody
            would see; of those that hold tensors, a batch, nobody looks for any.
        """
        leaves = list(self._leaves)
        for slot, tensor in zip(self._batch_slots, batch, strict=True):
            leaves[slot] = tensor
        swap = {id(old): new for old, new in zip(self.optimizers.given, (optimizers or self.optimizers).given)}
        swap[id(self.model)] = model or self.model
        leaves = [swap.get(id(leaf), leaf) for leaf in leaves]
        bound = inspect.BoundArguments(self.signature, pytree.tree_unflatten(leaves, self._spec))
        notes = {name: (value, pytree.tree_flatten(value)) for name, value in bound.arguments.items()
                 if isinstance(value, (list, dict))}
        wanted = wanted_masters(model or self.model, self.precision)
        for taking in self.takings:
            taking.begin()
        with computing_in(model or self.model, self.precision), stepping_masters(optimizers or self.optimizers, wanted), \
                keeping_gradients(model or self.model, self.precision, optimizers or self.optimizers):
            result = self.train_step(*bound.args, **bound.kwargs)
        for name, (value, (before, spec)) in notes.items():
            after, new_spec = pytree.tree_flatten(value)
            if not any(isinstance(leaf, torch.Tensor) for leaf in before) and (
                    spec != new_spec or any(_Value(a) != _Value(b) for a, b in zip(before, after))):
                raise CaptureError(f"the step changes its argument {name!r}: Python code runs only once, during the "
                                   "capture\n  hint: return it from the step, and store the return value of the call")
        return result

    def _is_training_object(self, value: Any) -> bool:
        return value is self.model or isinstance(value, torch.optim.Optimizer)

    def batch_of(self, entry: Any) -> list[torch.Tensor]:
        """The batch tensors of another call, given as a tuple of the arguments other than model and optimizer.

        A dict gives arguments by parameter name; a single tensor stands for a tuple of one.
        """
        names = [n for n, value in self._top_level().items() if not self._is_training_object(value)]
        if isinstance(entry, dict) and set(entry) <= set(names):
            given = entry
        else:
            values = tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)
            if len(values) > len(names):
                raise CaptureError(f"a reference batch has {len(values)} values; the step takes {names}")
            given = dict(zip(names, values))
        arguments = {n: like(given.get(n, value), value) for n, value in self._top_level().items()}
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


def _arguments(paths: list[Any], kind: type) -> list[Part]:
    """The arguments of a kind, each once."""
    found = {id(leaf): Part(".".join(map(_key, path)), lambda leaf=leaf: leaf, leaf)
             for path, leaf in paths if isinstance(leaf, kind)}
    return list(found.values())


def _as_modules(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with modules in the places of exported programs, and optimizers of what these have."""
    def swap(change: Callable[[Any], Any]) -> None:
        nonlocal args, kwargs
        args, kwargs = tuple(map(change, args)), {name: change(value) for name, value in kwargs.items()}

    modules = [exported_module(value) for value in (*args, *kwargs.values()) if is_exported(value)]
    swap(lambda value: exported_module(value) if is_exported(value) else value)
    for module in modules:
        swap(lambda value: without_aliases(value, module) if isinstance(value, torch.optim.Optimizer) else value)
    return args, kwargs


def _short(value: Any) -> str:
    """An object by its class: what it prints may be long, or its address."""
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else f"another {type(value).__qualname__}"


def _has_tensors(module: torch.nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _key(entry: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def takes(function: Callable, keyword: str) -> bool:
    """The function has a parameter of this name, or takes any keyword."""
    while isinstance(function, functools.partial):
        function = function.func
    parameters = _signature_of(function).parameters
    return keyword in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def name_of(function: Callable) -> str:
    """For people."""
    return getattr(function, "__qualname__", type(function).__qualname__)
