"""Rows of which only values say how many there are, as experts of a mixture have them: what is done to them is noted, and
done to all rows at once where it comes back to a tensor of a known shape.

A mixture cuts its tokens up by expert (`x.split(counts.tolist())`, segments.py; `x[torch.where(one_hot == e)]`,
chosen_rows.py), does the same to each part with another weight, and puts the parts together. Done to all rows, each with
the weight of its part, the same numbers need no shape that depends on values: a product is a grouped product
(grouped_products.py), and anything else acts on each row alone. Nothing else is allowed of such rows: an operator that looks at
several, or at how many there are, is an error with the line.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import math
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import torch
from torch.nn import functional

from ...torch_api.tensors import base_of, make_subclass, version_of
from ...torch_api.tracing import disable_current_modes, pytree
from ..errors import CaptureError, Frame, error_at
from ..observe.stacks import user_stack
from ..observe.traced_value import TracedValue
from ..ops.grouped_products import GroupedMm

_PRODUCTS = {functional.linear: True, torch.matmul: False, torch.Tensor.matmul: False, torch.Tensor.__matmul__: False,
             torch.mm: False, torch.Tensor.mm: False}  # whether the weight is [out, in]
_CASTS = {torch.Tensor.to, torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16, torch.Tensor.double,
          torch.Tensor.type_as, torch.Tensor.contiguous}
# What each row has none of the others' in, and that PyTorch does not tag so; the norms in each row, of those dims that are named.
LOSSES = {functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss, functional.kl_div,
          functional.binary_cross_entropy, functional.binary_cross_entropy_with_logits}
_OF_EACH = {torch.clone, torch.Tensor.clone, torch.Tensor.detach, torch.zeros_like, torch.ones_like, torch.full_like} | LOSSES
_NORMS = {functional.layer_norm, functional.rms_norm}
_JOINS = {torch.cat, torch.concat, torch.concatenate, torch.stack}
_ONE_HOT, _L1_LOSS = functional.one_hot, functional.l1_loss  # chosen_rows.py has others in their place
LOSSES_OF_CLASSES = {functional.cross_entropy, functional.nll_loss}


def _along() -> dict[Callable, tuple[int, Any]]:
    """Functions that go along dims: the place of these among the arguments, and what they are where nobody says."""
    found: dict[Callable, tuple[int, Any]] = {}
    for place, default, names in ((1, None, "softmax log_softmax sum mean prod amax amin argmax argmin logsumexp var std any all"),
                                  (1, None, "gather cumsum cumprod flip max min unflatten"), (1, -1, "sort argsort"), (2, -1, "topk"),
                                  (2, None, "norm")):
        found.update({getattr(owner, name): (place, default) for name in names.split() for owner in (torch, torch.Tensor)})
    return found | {functional.softmax: (1, None), functional.log_softmax: (1, None), functional.glu: (1, -1),
                    functional.normalize: (2, 1), functional.cosine_similarity: (2, 1), torch.linalg.vector_norm: (2, None)}


_ALONG = _along()
# What keeps rows apart where a sample of as many still has as many rows, which no other dim has.
_FORMS = {torch.chunk, torch.Tensor.chunk, torch.unsqueeze, torch.Tensor.unsqueeze, torch.Tensor.view, torch.Tensor.reshape,
          torch.flatten, torch.Tensor.flatten, torch.squeeze, torch.Tensor.squeeze, torch.Tensor.__getitem__}
_GETITEM = torch.Tensor.__getitem__
_MANY = 1009
_VARARGS = {torch.Tensor.flip}  # the dims of which are as many arguments
_SECOND = ("weight", "other", "mat2")  # the names of a product's second argument
_NAMES = {"axis": "dim", "keepdims": "keepdim"}  # as NumPy has them


class Check(NamedTuple):
    """`value`: a number that is 0 in a step which is eager's, and otherwise the error `message`."""

    value: Any
    message: str


class Step(NamedTuple):
    """A function of rows; `part`: which of the tensors that it gives."""

    func: Callable
    args: tuple
    kwargs: dict
    part: int | None
    mode: tuple
    versions: tuple[int, ...]  # of the tensors among them

    def leaves(self) -> list[Any]:
        return pytree.tree_leaves((self.args, self.kwargs), is_leaf=_is_of)

    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves() if isinstance(leaf, torch.Tensor)]


def steps_of(value: Any) -> list[Step]:
    """All that a value is computed by, each once."""
    found: dict[int, Step] = {}
    todo = [value]
    while todo:
        step = todo.pop()
        if isinstance(step, Step) and id(step) not in found:
            found[id(step)] = step
            todo += (leaf.value for leaf in step.leaves() if isinstance(leaf, _Of))
    return list(found.values())


def roots_of(value: Any) -> list[Any]:
    """What a value begins with."""
    steps = steps_of(value)
    leaves = [leaf.value for step in steps for leaf in step.leaves() if isinstance(leaf, _Of)] if steps else [value]
    return [leaf for leaf in leaves if not isinstance(leaf, Step)]


class Groups(NamedTuple):
    """Of each of all rows, the number of its part among `count`; a row of none has `count`."""

    numbers: torch.Tensor
    count: int


def refused(func: Any, what: str = "") -> CaptureError:
    name = {torch.Tensor.__getitem__: "indexing", torch.Tensor.__setitem__: "writing"}.get(func) or getattr(func, "__name__", func)
    return error_at(user_stack()[0], f"{name} of rows whose number depends on data{what}: its shape depends on data",
                    "compute on each row separately (products with a weight, arithmetic, activations), and add rows with "
                    "index_add_ or join parts with torch.cat; or compute on all rows with a mask: torch.where(mask, x, 0)")


_listeners: list[Callable[[CaptureError], None]] = []
_depth = 0  # of functions of rows in each other, of which the outer may go on otherwise


def told(error: CaptureError) -> CaptureError:
    """The error ends the capture, whoever catches it: eager would not have raised."""
    if _listeners and _depth == 0:
        _listeners[-1](error)
    return error


@contextlib.contextmanager
def telling(listener: Callable[[CaptureError], None]) -> Iterator[None]:
    """While entered, `listener` hears of errors that are told."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.pop()


def current_mode() -> tuple:
    """What a function's result depends on beside its arguments."""
    cast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    return torch.is_grad_enabled(), cast


_OPERATORS = {"truediv": "div", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not"}


@functools.lru_cache(maxsize=None)
def is_pointwise(func: Callable) -> bool:
    """What PyTorch itself tags so, of the operator that a function is named after."""
    name = getattr(func, "__name__", "")
    if name == "equal":
        return False  # one answer for all rows
    is_special, name = name.startswith("__"), name.strip("_")
    for name in (name, name[1:] if is_special and name[:1] in ("r", "i") else name):
        packet = getattr(torch.ops.aten, _OPERATORS.get(name, name) if is_special else name, None)
        if packet is not None and any(torch.Tag.pointwise in getattr(packet, o).tags for o in packet.overloads()):
            return True
    return False


class RowCount:
    """How many rows there are. `some`: that there are some is known, and all that is; `tensor`: gives their number, `times` is how
    many elements each has."""

    def __init__(self, some: bool, tensor: Callable[[], torch.Tensor] | None = None, times: int = 1):
        self._some, self._tensor, self._times = some, tensor, times

    def of_elements(self, times: int) -> RowCount:
        return RowCount(self._some, self._tensor, times)

    def _with(self, other: Any, compute: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """A tensor and the number."""
        if self._tensor is None or not isinstance(other, torch.Tensor) or isinstance(other, Rows):
            raise told(refused("how many there are"))
        return compute(other, self._tensor() * self._times)

    def __rtruediv__(self, other: Any) -> torch.Tensor:
        return self._with(other, torch.div)

    def __mul__(self, other: Any) -> torch.Tensor:
        return self._with(other, torch.mul)

    __rmul__ = __mul__

    def __eq__(self, other: Any) -> bool:
        return not self._knows(other)

    def __gt__(self, other: Any) -> bool:
        return self._knows(other)

    def _knows(self, other: Any) -> bool:
        if self._some and type(other) is int and other == 0:
            return True
        raise told(refused("how many there are"))

    def __bool__(self) -> bool:
        return self > 0

    def _unknown(self, *unused: Any) -> Any:
        raise told(refused("how many there are"))

    __hash__ = None
    __index__ = __int__ = __float__ = __lt__ = __le__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _unknown
    __truediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __neg__ = _unknown


def _of_meta(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


class Origin:
    """Of rows: what they are part of. `count`: how many there are; `length`: their number, where it is the same in every call."""

    count = RowCount(False)
    length: int | None = None

    def take(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a function that looks at several rows, NotImplemented of any other."""
        return NotImplemented

    def iterate(self, rows: Rows) -> Any:
        raise refused("iteration")

    def tensor(self, rows: Rows) -> torch.Tensor:
        """The rows, where their number is known."""
        raise refused("an operator")

    def done(self, func: Callable, args: tuple, kwargs: dict, parts: int | None) -> Sequence[Any]:
        """The value of what a function gives that acts on each row alone, or of all its `parts`."""
        if kwargs.get("inplace"):
            raise refused(func, " in place")
        args, kwargs = pytree.tree_map(lambda leaf: _Of(leaf.value) if isinstance(leaf, Rows) else leaf, (args, kwargs))
        versions = _versions(args, kwargs)
        return [Step(func, args, kwargs, part, current_mode(), versions) for part in ([None] if parts is None else range(parts))]


class Rows(torch.Tensor, TracedValue):
    """Stands for the rows of one part; `origin` says of which, and `value` what was done to them. `sample` has their form, of _MANY
    rows. `is_new`: they are a copy of a tensor's that nothing was computed with; `is_viewed`: they may be in
    one memory with others; `tensor`: what they are after an operator that their number had to be known for; `stack`: the lines that
    they were made at."""

    origin: Origin
    value: Any
    sample: torch.Tensor
    is_new: bool
    is_viewed: bool
    tensor: torch.Tensor | None
    stack: Sequence[Frame]

    @staticmethod
    def make(origin: Origin, value: Any, sample: torch.Tensor) -> Rows:
        with disable_current_modes():
            rows = make_subclass(Rows, torch.empty(0, device="meta"))
            sample = torch.empty(sample.shape, dtype=getattr(value, "dtype", sample.dtype), device="meta")  # autocast has its own
            rows.origin, rows.value, rows.sample, rows.is_new = origin, value, sample, False
            rows.is_viewed, rows.tensor = False, None
            rows.stack = user_stack()[0]
        return rows

    @staticmethod
    def begin(origin: Origin, value: Any, like: torch.Tensor, trailing: Sequence[int]) -> Rows:
        with disable_current_modes():
            sample = torch.empty((_MANY, *trailing), dtype=like.dtype, device="meta")
        return Rows.make(origin, value, sample)

    def view(self, *sizes: Any, **named: Any) -> Any:
        _check_sizes("view", sizes)
        return super().view(*sizes, **named)

    def reshape(self, *sizes: Any, **named: Any) -> Any:
        _check_sizes("reshape", sizes)
        return super().reshape(*sizes, **named)

    def __iter__(self) -> Any:
        return self.origin.iterate(self) if self.origin.length is None else iter(self.as_tensor())

    def as_tensor(self) -> torch.Tensor:
        """Of rows whose number is known; from now on all that is computed with them is computed with it."""
        if self.tensor is None:
            if self.is_viewed:
                raise refused("an operator", ", of which there are views,")
            self.tensor = self.origin.tensor(self)
        return self.tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        global _depth
        _depth += 1
        try:
            return cls._of_function(func, types, args, kwargs)
        except CaptureError as error:
            failure = error
        finally:
            _depth -= 1
        raise told(failure)

    @classmethod
    def _of_function(cls, func, types, args, kwargs):
        args, kwargs = _in_order(func, args, kwargs or {})
        given = pytree.tree_leaves((args, kwargs))
        if any(isinstance(leaf, RowCount) for leaf in given):
            raise refused("how many there are")
        leaves = [leaf for leaf in given if isinstance(leaf, Rows)]
        if not leaves or func is torch.Tensor.__repr__:
            return super().__torch_function__(func, types, args, kwargs)
        # chosen_rows.py has others in their place
        func = _GETITEM if func is torch.Tensor.__getitem__ else _L1_LOSS if func is functional.l1_loss else func
        if getattr(func, "__name__", "") == "__get__" or func in _SIZES:
            try:
                return _fact(leaves[0], getattr(func, "__self__", func), *args[1:], **kwargs)
            except CaptureError:
                if leaves[0].origin.length is None:
                    raise
                return func(leaves[0].as_tensor(), *args[1:], **kwargs)
        if all(leaf.tensor is None for leaf in leaves):
            try:
                return cls._act(func, leaves, args, kwargs)
            except CaptureError:
                if any(leaf.origin.length is None for leaf in leaves):
                    raise
        args, kwargs = pytree.tree_map(lambda leaf: leaf.as_tensor() if isinstance(leaf, Rows) else leaf, (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def _act(cls, func: Callable, leaves: list[Rows], args: tuple, kwargs: dict) -> Any:
        origin, name = leaves[0].origin, getattr(func, "__name__", "")
        is_new = leaves[0].is_new
        for leaf in leaves:
            leaf.is_new = False
        if not args and func not in _JOINS:
            raise refused(func, ", which is given by name")
        if name in _IN_PLACE and leaves[0] is args[0] and is_new:
            return _written(args[0], getattr(torch.Tensor, name[:-1])(*args, **kwargs))
        found = origin.take(func, args, kwargs)
        if found is not NotImplemented:
            return found
        if any(leaf.origin is not origin for leaf in leaves):
            raise refused(func, ", together with others")
        if func is _GETITEM and not _is_of_each_row(args[1], args[0].sample.dim()):
            raise refused("indexing")
        writes = kwargs.get("out") is not None or name.startswith("__i") and name != "__invert__" \
            or name.endswith("_") and not name.endswith("__")
        if func is functional.dropout:
            return _dropped(origin, *args, **kwargs)
        if writes or not _acts_on_each(func, args, kwargs):
            raise refused(func)
        sample = _sample(func, args, kwargs)
        made = [cls.make(origin, value, one) for value, one in zip(
            origin.done(func, args, kwargs, None if isinstance(sample, torch.Tensor) else len(sample)), pytree.tree_leaves(sample))]
        if moves_alone(func):
            for rows in (*leaves, *made):
                rows.is_viewed = True
        if isinstance(sample, (tuple, list)):
            return type(sample)(made) if hasattr(sample, "n_fields") else tuple(made)  # as max() names them
        return made[0]


def _check_sizes(name: str, sizes: tuple) -> None:
    """PyTorch would complain of their types before it asks here."""
    if any(isinstance(size, RowCount) for size in pytree.tree_leaves(sizes)):
        raise refused(name, ", to a size that says how many there are (-1 leaves it open)")


_IN_PLACE = ("add_", "sub_", "mul_", "div_")


def _written(rows: Rows, made: Any) -> Rows:
    """Rows of which there is no view become what was made of them: `out[mask] += x`."""
    if not isinstance(made, Rows) or made.sample.dtype != rows.sample.dtype or \
            made.sample.shape != rows.sample.shape:
        raise refused("writing")
    rows.value = made.value
    return rows


def moves_alone(func: Callable) -> bool:
    """Whether a result's elements are those of an argument, in whose memory they may lie."""
    return func in _FORMS or func in _CASTS or func is torch.Tensor.detach


def _acts_on_each(func: Callable, args: tuple, kwargs: dict) -> bool:
    """Whether a function acts on each row alone, where its result has as many rows."""
    if func in _PRODUCTS:
        return len(args) > 1 and isinstance(args[0], Rows) and not isinstance(args[1], Rows)
    if func in _ALONG:
        return _is_along_others(func, args, kwargs)
    if func in _NORMS:
        shape = args[1] if len(args) > 1 else kwargs["normalized_shape"]
        return isinstance(args[0], Rows) and len(shape) < args[0].sample.dim() and sum(isinstance(a, Rows) for a in args) == 1
    if func in LOSSES_OF_CLASSES:
        return kwargs.get("reduction") == "none"
    if func in _JOINS:
        return _is_joined_along_others(func, *args, **kwargs)
    if func is functional.embedding:  # alone where neither norms nor frequencies of the rows of its table count
        given = inspect.signature(func).bind(*args, **kwargs).arguments
        return isinstance(given["input"], Rows) and given.get("max_norm") is None and not given.get("scale_grad_by_freq")
    if func is _ONE_HOT:
        return (kwargs.get("num_classes", args[1] if len(args) > 1 else -1)) > 0
    if func in _CASTS or func in _FORMS:
        return True
    ranks = {leaf.sample.dim() for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Rows)}
    return len(ranks) == 1 and (func in _OF_EACH or is_pointwise(func))  # of several, one's rows would be another's columns


def _is_joined_along_others(func: Callable, tensors: Sequence[Any], dim: int = 0) -> bool:
    if not all(isinstance(tensor, Rows) for tensor in tensors):
        return False
    return dim % (tensors[0].sample.dim() + (func is torch.stack)) != 0


def _is_along_others(func: Callable, args: tuple, kwargs: dict) -> bool:
    """Whether a function goes along dims in which the rows are not."""
    place, default = _ALONG[func]
    dims = kwargs.get("dim", kwargs.get("dims", args[place] if len(args) > place else default))
    dims = args[place:] if func in _VARARGS and isinstance(dims, int) else dims
    ranks = [leaf.sample.dim() if isinstance(leaf, Rows) else leaf.dim() for leaf in args if isinstance(leaf, torch.Tensor)]
    dims = dims if isinstance(dims, (tuple, list)) else (dims,)
    return isinstance(args[0], Rows) and len(set(ranks)) == 1 and bool(dims) \
        and all(isinstance(dim, int) and dim % ranks[0] != 0 for dim in dims)


class _Dropout:
    """Of the rows of one part. What it draws is used by all that reads its result, which is computed once."""

    def __init__(self) -> None:
        self._is_drawn = False

    def draw(self) -> None:
        if self._is_drawn:
            raise refused("dropout", ", which several results are computed with")
        self._is_drawn = True

    def __call__(self, rows: torch.Tensor, p: float) -> torch.Tensor:
        return functional.dropout(rows, p)


def _dropped(origin: Origin, rows: Rows, p: float = 0.5, training: bool = True, inplace: bool = False) -> Rows:
    if not training or p == 0:
        return rows
    if inplace:
        raise refused("dropout", " in place")
    return Rows.make(origin, origin.done(_Dropout(), (rows, p), {}, None)[0], rows.sample)


def with_tensors(tree: Any) -> Any:
    """What a step returns, where rows whose number is known are tensors."""
    return pytree.tree_map(lambda leaf: leaf.as_tensor() if isinstance(leaf, Rows) and leaf.origin.length is not None else leaf, tree,
                           is_leaf=lambda node: isinstance(node, torch.Size))


def refuse_rows(leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if isinstance(leaf, Rows):
            raise error_at(leaf.stack, "the step returns rows whose number depends on data: their shape depends on data",
                           "return all rows and the mask that selects some, or a value computed from them: a sum, a mean")


def _is_of_each_row(index: Any, rank: int) -> bool:
    """Whether indexing leaves the first dim alone."""
    items = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(item, (int, slice)) or item is None or item is Ellipsis for item in items):
        return False
    return items[0] == slice(None) or items[0] is Ellipsis and sum(item is not None for item in items[1:]) < rank


def _in_order(func: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Arguments as the functions here read them, whose names or places may be others."""
    kwargs = {_NAMES.get(name, name): value for name, value in kwargs.items()}
    if not args and "input" in kwargs:
        args = kwargs.pop("input"),
    for name in _SECOND if func in _PRODUCTS and len(args) == 1 else ():
        if name in kwargs:
            args = *args, kwargs.pop(name)
    return args, kwargs


def _fact(rows: Rows, what: Any, *args: Any, dim: int | None = None) -> Any:
    """What is known of rows without their values."""
    args = args if dim is None else (dim,)
    count = rows.origin.count if rows.origin.length is None else rows.origin.length
    if what is torch.Tensor.dtype:
        return rows.sample.dtype
    if what is torch.Tensor.device:
        return torch.device("cpu")
    if what is torch.Tensor.ndim or what is torch.Tensor.dim:
        return rows.sample.dim()
    if what is torch.Tensor.shape or what is torch.Tensor.size:
        sizes = (count, *rows.sample.shape[1:])
        sizes = torch.Size(sizes) if isinstance(count, int) else sizes
        return sizes[args[0]] if args else sizes
    if what is torch.Tensor.numel:
        elements = math.prod(rows.sample.shape[1:])
        return count * elements if isinstance(count, int) else count.of_elements(elements)
    if what is torch.Tensor.__len__:
        return count
    raise refused(getattr(what, "__name__", what))


_SIZES = (torch.Tensor.dim, torch.Tensor.size, torch.Tensor.numel, torch.Tensor.__len__)


def _sample(func: Callable, args: tuple, kwargs: dict) -> Any:
    cast = current_mode()[1] if func in _PRODUCTS else None

    def of(leaf: Any) -> Any:
        leaf = leaf.sample if isinstance(leaf, Rows) else _of_meta(leaf) if isinstance(leaf, torch.Tensor) else leaf
        return leaf.to(cast) if cast is not None and isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    with disable_current_modes(), torch.no_grad():
        args, kwargs = pytree.tree_map(of, (args, kwargs))
        if func is torch.Tensor.to:  # a sample stays where it is
            args = tuple(leaf for leaf in args if not isinstance(leaf, (str, torch.device)))
            kwargs = {name: value for name, value in kwargs.items() if name != "device"}
            if len(args) == 1 and not kwargs:
                return args[0]
        try:
            made = func(*args, **kwargs)
        except RuntimeError as error:  # as many rows as the sample has do not fit, or none would
            text = str(error).splitlines()[0]
            raise refused(func, "" if "meta" in text.lower() else f" ({text})".replace(str(_MANY), "?")) from None
    if any(one.dim() < 1 or one.shape[0] != _MANY for one in ([made] if isinstance(made, torch.Tensor) else made)):
        raise refused(func)
    return made


def _versions(args: tuple, kwargs: dict) -> tuple[int, ...]:
    return tuple(version_of(leaf) for leaf in pytree.tree_leaves((args, kwargs), is_leaf=_is_of) if isinstance(leaf, torch.Tensor))


class _Of(NamedTuple):
    """The place of rows among the arguments of a step."""

    value: Any


def _is_of(leaf: Any) -> bool:
    return isinstance(leaf, _Of)


def form(value: Any, leaf_form: Callable[[Any], Any]) -> Any:
    """Equal for values that can be computed at once: the same functions of tensors of the same forms."""
    if not isinstance(value, Step):
        return leaf_form(value)
    leaves, spec = pytree.tree_flatten((value.args, value.kwargs), is_leaf=_is_of)
    func = _Dropout if isinstance(value.func, _Dropout) else value.func
    return func, str(spec), value.part, value.mode, tuple(
        form(leaf.value, leaf_form) if isinstance(leaf, _Of) else
        (leaf.shape, leaf.dtype) if isinstance(leaf, torch.Tensor) else repr(leaf) for leaf in leaves)


class Together:
    """Computes values of several parts at once. `groups`: of the rows; None where there is one part. `root` gives what parts begin
    with, of all rows."""

    def __init__(self, groups: Groups | None, rows: int, root: Callable[[Sequence[Any]], torch.Tensor]):
        self._groups, self._rows, self._root = groups, rows, root
        self._done: dict[tuple[int, ...], Any] = {}

    def compute(self, values: Sequence[Any]) -> torch.Tensor:
        """Of one value of each part, all of one form."""
        key = tuple(map(id, values))
        if key not in self._done:
            self._done[key] = (self._step(values) if isinstance(values[0], Step) else self._root(values)), values
        return self._done[key][0]

    def _step(self, values: Sequence[Step]) -> torch.Tensor:
        first = values[0]
        if first.mode != current_mode():
            raise refused(first.func, ", with another gradient or autocast mode than at the place where they are joined")
        if any(value.versions != _versions(value.args, value.kwargs) for value in values):
            raise refused(first.func, ", with a tensor that was written since")
        for value in values:
            if isinstance(value.func, _Dropout):
                value.func.draw()
        flat = [pytree.tree_flatten((value.args, value.kwargs), is_leaf=_is_of) for value in values]
        spec = flat[0][1]
        columns = list(zip(*(leaves for leaves, _ in flat), strict=True))
        whole = [self.compute([leaf.value for leaf in column]) if isinstance(column[0], _Of) else None for column in columns]
        rank = max(tensor.dim() for tensor in whole if tensor is not None)
        is_product = first.func in _PRODUCTS
        given = [tensor if tensor is not None else self._argument(column, rank, is_product)
                 for tensor, column in zip(whole, columns)]
        if is_product:
            (rows, *weights), _ = pytree.tree_unflatten(given, spec)
            named = pytree.tree_unflatten(given, spec)[1]
            result = self._product(first.func, rows, *weights, **named)
        else:
            args, kwargs = pytree.tree_unflatten(given, spec)
            result = first.func(*args, **kwargs)
        result = result if first.part is None else result[first.part]
        if result.shape[:1] != (self._rows,):
            raise refused(first.func, ", which changes them")
        return result

    def _argument(self, column: Sequence[Any], rank: int, is_product: bool) -> Any:
        first = column[0]
        if not isinstance(first, torch.Tensor):
            return first
        if all(leaf is first for leaf in column) or len(column) == 1:
            if not is_product and first.dim() >= rank and first.shape[0] != 1:
                raise refused("an operator", ", and of a tensor that has as many dims")
            return first
        return _Varied(column) if is_product else self._of_each_row(column, rank)

    def _of_each_row(self, tensors: Sequence[torch.Tensor], rank: int) -> torch.Tensor:
        if tensors[0].dim() >= rank:
            if tensors[0].dim() > rank or tensors[0].shape[0] != 1:
                raise refused("an operator", ", and of a tensor that has as many dims")
            tensors = [tensor[0] for tensor in tensors]
        found = stacked(tensors)[self._groups.numbers.clamp(max=len(tensors) - 1)]
        return found.reshape(found.shape[0], *[1] * (rank - found.dim()), *found.shape[1:])

    def _product(self, func: Callable, rows: torch.Tensor, weight: Any, bias: Any = None) -> torch.Tensor:
        if not isinstance(weight, _Varied) and not isinstance(bias, _Varied):
            return func(rows, weight) if bias is None else func(rows, weight, bias)
        if rows.dim() != 2:
            raise refused(func, ", which are no matrix")
        if isinstance(weight, _Varied):
            matrices = stacked(weight.tensors)
            matrices = matrices.transpose(1, 2) if _PRODUCTS[func] else matrices
            cast = current_mode()[1]
            if cast is not None:
                rows, matrices = rows.to(cast), matrices.to(cast)
            result = GroupedMm.apply(rows, matrices, self._groups.numbers)
        else:
            result = func(rows, weight)
        if bias is None:
            return result
        bias = self._of_each_row(bias.tensors, 2) if isinstance(bias, _Varied) else bias
        return result + bias.to(result.dtype)


class _Varied(NamedTuple):
    tensors: Sequence[torch.Tensor]


def stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """One tensor of all; where they are the parts of one, in order, that one."""
    first = tensors[0]
    base = base_of(first)
    if base is not None and base.dim() == first.dim() + 1 and all(base_of(t) is base for t in tensors):
        for turned in ((lambda t: t), (lambda t: t.transpose(-1, -2))) if first.dim() > 1 else ((lambda t: t),):
            if base.shape[0] == len(tensors) and all(_place(turned(base.select(0, n))) == _place(t)
                                                     for n, t in enumerate(tensors)):
                return turned(base)
    return torch.stack(list(tensors))


def _place(tensor: torch.Tensor) -> tuple:
    return tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
