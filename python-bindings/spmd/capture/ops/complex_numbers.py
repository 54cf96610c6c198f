"""Complex numbers of a step, as rotary embeddings use them, computed with pairs of real ones: the graph has none.

A complex tensor of a trace goes with a real one that has one more dim, of two, at the end: what torch.view_as_real()
gives. An operator on complex tensors is traced as the rule below says of their pairs, and the complex tensor that eager
would give stands for the result, outside of the graph. Autograd is above all this: what it computes with complex numbers
are operators like any other.
"""
from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ...torch_api.modules import buffers_of
from ...torch_api.operators import OpOverload, opname_of, overloadname_of, schema_of
from ...torch_api.tracing import (FakeTensor, disable_current_modes, disable_proxy_modes_tracing,
                                  pytree)
from ..errors import CaptureError, Frame, error_at
from ..observe.dispatch_mode import OpCall
from ..observe.memory import memory_of
from ..world.closure_objects import ClosureObjects
from ..world.paths import Place
from . import fourier

_aten = torch.ops.aten
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_known = WeakTensorKeyDictionary()


def pairs_of(tensor: torch.Tensor) -> torch.Tensor:
    """The pairs of a complex tensor with values, in its memory: one tensor for each."""
    if tensor not in _known:
        with disable_current_modes():
            _known[tensor] = torch.view_as_real(tensor.detach().resolve_conj())
    return _known[tensor]


def reach_pairs(reached: ClosureObjects, model: torch.nn.Module) -> None:
    """Adds the pairs of the complex tensors that are reached, and of the model's complex buffers, to what is reached.

    Raises:
      CaptureError: for one on the meta device.
    """
    found = [(place, tensor) for place, tensor in reached.tensors.values() if tensor.dtype in _REAL]
    for path, module in model.named_modules():
        found += [(Place(f"{path}.{name}" if path else name, functools.partial(buffers_of(module).__getitem__, name)), buffer)
                  for name, buffer in buffers_of(module).items() if buffer is not None and buffer.dtype in _REAL]
    for place, tensor in found:
        if tensor.device.type == "meta":
            raise CaptureError(f"{place.path!r} is complex and on the meta device: it cannot be initialized there\n  hint: "
                               "assign a tensor with values before the first step")
        pairs = pairs_of(tensor)
        reached.tensors[id(pairs)] = place._replace(get=functools.partial(_pairs_at, place.get)), pairs


def _pairs_at(get: Callable[[], torch.Tensor]) -> torch.Tensor:
    return pairs_of(get())


def _is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


class _Pairs:
    """The pairs of an operand that is complex. `has_its_strides`: they are in memory as the operand's numbers are."""

    def __init__(self, tensor: torch.Tensor, of: torch.Tensor | None = None):
        self.tensor, self.rank = tensor, tensor.dim() - 1
        self.has_its_strides = of is not None and tensor.stride() == (*(2 * s for s in of.stride()), 1)

    def dim(self, dim: int, more: int = 0) -> int:
        """A dim of the complex tensor, counted from the front; of one that has `more` dims."""
        return dim if dim >= 0 else dim + self.rank + more


class ComplexNumbers:
    """Those of one trace. `real_of` gives the tensor of the user's for which a fake stands."""

    def __init__(self, real_of: Callable[[torch.Tensor], torch.Tensor]):
        self._real_of = real_of
        self._pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by the id of a complex tensor, kept alive
        self._conjugates: set[int] = set()  # memory that eager shares between numbers and their conjugates, and we do not

    def rule(self, call: OpCall) -> Callable | None:
        """What is traced in place of an operator on complex tensors; None for any other operator."""
        if call.func not in _MAKES and not any(_is_complex(leaf) or isinstance(leaf, complex) or isinstance(leaf, torch.dtype)
                                          and leaf.is_complex for leaf in pytree.tree_leaves((call.args, call.kwargs))):
            return None
        return functools.partial(self._run, call)

    def _run(self, call: OpCall, *args: Any, **kwargs: Any) -> Any:
        func, stack = call.func, call.stack
        plain = _SHAPES_IN_PLACE.get(func) or _without_write(func)
        rule = _RULES.get(plain)
        if rule is None or plain is not func and memory_of(args[0]) in self._conjugates:
            raise error_at(stack, f"{func} on complex numbers is not supported",
                           "compute with pairs of real numbers (torch.view_as_real); products, sums, torch.polar, torch.fft "
                           "and ops that change shapes are supported")
        if func in _SHAPES_IN_PLACE:
            with disable_proxy_modes_tracing():
                form = plain(*args, **kwargs)
            with call.traced():
                found = rule(plain, form, *self._pairs_in(args, stack), **self._pairs_in(kwargs, stack))
            with disable_proxy_modes_tracing():
                func(*args, **kwargs)
            return self._result(args[0], found)
        if plain is not func:  # the pairs of a view are a view of the pairs
            with call.traced():
                self._pairs_for(args[0], stack).copy_(rule(plain, args[0], *self._pairs_in(args, stack),
                                                           **self._pairs_in(kwargs, stack)))
            return args[0]
        with disable_proxy_modes_tracing():  # the form of the result; a conjugate is one in memory
            form = (_aten.conj_physical.default if func is _aten._conj.default and _is_complex(args[0]) else func)(
                *args, **kwargs)
        with call.traced():
            if func is _aten.lift_fresh.default:  # torch.tensor([…]) in the step
                found = func(pairs_of(args[0]))
            else:
                found = rule(func, form, *self._pairs_in(args, stack), **self._pairs_in(kwargs, stack))
        if func is _aten._conj.default:
            self._conjugates |= {memory_of(tensor) for tensor in (form, args[0]) if _is_complex(tensor)}
        return pytree.tree_map(self._result, form, found)

    def _pairs_in(self, values: Any, stack: tuple[Frame, ...]) -> Any:
        return pytree.tree_map(lambda v: _Pairs(self._pairs_for(v, stack), v) if _is_complex(v) else v, values)

    def _pairs_for(self, value: torch.Tensor, stack: tuple[Frame, ...]) -> torch.Tensor:
        if id(value) in self._pairs:
            return self._pairs[id(value)][1]
        real = self._real_of(value)
        if not isinstance(real, FakeTensor) and not real.dim():  # a number
            return pairs_of(real)
        if real not in _known:
            raise error_at(stack, "the step uses a complex tensor that the capture cannot find",
                           "create it in the step, or register it as a buffer of the model")
        return _known[real]

    def _result(self, form: Any, found: Any) -> Any:
        if not _is_complex(form):
            return found
        dtype = _REAL[form.dtype]
        self._pairs[id(form)] = form, found if found.dtype == dtype else found.to(dtype)
        return form


def _without_write(func: OpOverload) -> OpOverload | None:
    """The operator that computes what `func` writes into its first argument; itself where it writes nothing, and None for
    any other."""
    writes = [a.alias_info is not None and a.alias_info.is_write for a in schema_of(func).arguments]
    if not any(writes):
        return func
    name, overload = opname_of(func), overloadname_of(func)
    packet = getattr(_aten, name[:-1], None) if name.endswith("_") and writes[0] and sum(writes) == 1 else None
    return getattr(packet, overload, None)


# Rules: (func, the form of the result, the operator's arguments, with _Pairs for complex ones) -> pairs of the result.

def _parts(value: Any) -> tuple[Any, Any]:
    """The real part, and the imaginary one or None."""
    if isinstance(value, _Pairs):
        return value.tensor.select(-1, 0), value.tensor.select(-1, 1)
    return (value.real, value.imag) if isinstance(value, complex) else (value, None)


def _join(real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
    return torch.stack(torch.broadcast_tensors(real, imaginary), -1)


def _as_pairs(value: Any) -> torch.Tensor:
    if isinstance(value, _Pairs):
        return value.tensor
    return _join(value, torch.zeros_like(value))


def _scaled(pairs: _Pairs, factor: Any) -> torch.Tensor:
    return pairs.tensor * (factor.unsqueeze(-1) if isinstance(factor, torch.Tensor) else factor)


def _multiply(func: Any, form: Any, x: Any, y: Any) -> torch.Tensor:
    (a, b), (c, d) = _parts(x), _parts(y)
    if d is None:
        return _scaled(x, y)
    if b is None:
        return _scaled(y, x) if isinstance(y, _Pairs) else _join(a * c, a * d)
    return _join(a * c - b * d, a * d + b * c)


def _divide(func: Any, form: Any, x: Any, y: Any) -> torch.Tensor:
    (a, b), (c, d) = _parts(x), _parts(y)
    if d is None:
        return x.tensor / (y.unsqueeze(-1) if isinstance(y, torch.Tensor) else y)
    size = c * c + d * d
    return _join(a * c / size, -a * d / size) if b is None else _join((a * c + b * d) / size, (b * c - a * d) / size)


def _add(func: Any, form: Any, x: Any, y: Any, alpha: Any = 1) -> torch.Tensor:
    (a, b), (c, d) = _parts(x), _parts(y)
    alpha = -alpha if func in (_aten.sub.Tensor, _aten.sub.Scalar) else alpha
    c, d = (c, d) if alpha == 1 else (c * alpha, None if d is None else d * alpha)
    real = a + c
    imaginary = b if d is None else d if b is None else b + d
    return _join(real, imaginary if isinstance(imaginary, torch.Tensor) else torch.full_like(real, imaginary))


def _subtract_from(func: Any, form: Any, x: _Pairs, y: Any, alpha: Any = 1) -> torch.Tensor:
    return _add(_aten.sub.Tensor, form, _Pairs(_constant(y, form)), x, alpha)


def _constant(value: Any, form: torch.Tensor) -> torch.Tensor:
    """The pair of a number."""
    return torch.stack([torch.full((), part, dtype=_REAL[form.dtype], device="cpu") for part in (value.real, value.imag)])


def _constants(func: Any, form: torch.Tensor, *also: Any, **more: Any) -> torch.Tensor:
    """Of scalar_tensor, fill and zero."""
    value = also[-1] if also and func is not _aten.zero.default else 0
    pairs = value.tensor if isinstance(value, _Pairs) else _as_pairs(value) if isinstance(value, torch.Tensor) \
        else _constant(value, form)
    return pairs.expand(*form.shape, 2)


def _equal(func: Any, form: Any, x: Any, y: Any) -> torch.Tensor:
    (a, b), (c, d) = _parts(x), _parts(y)
    same = (a == c) & ((b if b is not None else 0) == (d if d is not None else 0))
    return ~same if opname_of(func) == "ne" else same


def _masked(func: Any, form: torch.Tensor, x: _Pairs, mask: torch.Tensor, value: Any) -> torch.Tensor:
    value = value.tensor if isinstance(value, _Pairs) else \
        _as_pairs(value) if isinstance(value, torch.Tensor) else _constant(value, form)
    return torch.where(mask.unsqueeze(-1), value, x.tensor)


def _copied(func: Any, form: torch.Tensor, x: _Pairs, value: Any, *also: Any) -> torch.Tensor:
    return _as_pairs(value).expand(*form.shape, 2)


def _conjugate(func: Any, form: Any, x: Any) -> torch.Tensor:
    if isinstance(x, complex):
        return _constant(x.conjugate(), form)
    real, imaginary = _parts(x)
    return _join(real, -imaginary)


def _absolute(func: Any, form: Any, x: _Pairs) -> torch.Tensor:
    return torch.hypot(*_parts(x))


def _sign(func: Any, form: Any, x: _Pairs) -> torch.Tensor:
    size = torch.hypot(*_parts(x)).unsqueeze(-1)
    return torch.where(size == 0, x.tensor, x.tensor / size)


def _angle(func: Any, form: Any, x: _Pairs) -> torch.Tensor:
    real, imaginary = _parts(x)
    return torch.atan2(imaginary, real)


def _polar(func: Any, form: Any, size: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    return _join(size * torch.cos(angle), size * torch.sin(angle))


def _exponential(func: Any, form: Any, x: _Pairs) -> torch.Tensor:
    real, imaginary = _parts(x)
    return _polar(func, form, torch.exp(real), imaginary)


def _converted(func: Any, form: Any, x: Any, **to: Any) -> torch.Tensor:
    return _as_pairs(x).clone() if form.is_complex() else _parts(x)[0].to(form.dtype)


def _product(func: Any, form: Any, x: Any, y: Any) -> torch.Tensor:
    (a, b), (c, d) = _parts(x), _parts(y)
    times = functools.partial(lambda p, q: func(p.to(_REAL[form.dtype]), q.to(_REAL[form.dtype])))
    if d is None or b is None:
        return _join(times(a, c), times(b, c) if d is None else times(a, d))
    return _join(times(a, c) - times(b, d), times(a, d) + times(b, c))


def _summed(func: Any, form: Any, x: _Pairs, dims: Any = None, keepdim: bool = False, **dtype: Any) -> torch.Tensor:
    own = [x.dim(dim) for dim in dims] if dims else list(range(x.rank))
    function = torch.mean if func in (_aten.mean.default, _aten.mean.dim) else torch.sum
    return function(x.tensor, own, keepdim) if own else x.tensor.clone()


def _reshaped(func: Any, form: torch.Tensor, x: _Pairs, *also: Any, **more: Any) -> torch.Tensor:
    return x.tensor.reshape([*form.shape, 2])


def _expanded(func: Any, form: torch.Tensor, x: _Pairs, *also: Any, **more: Any) -> torch.Tensor:
    return x.tensor.expand([*form.shape, 2])


def _elementwise(func: Any, form: Any, x: _Pairs, *also: Any, **more: Any) -> torch.Tensor:
    return func(x.tensor, *also, **{name: value for name, value in more.items() if name != "dtype"})


def _along(func: Any, form: Any, x: _Pairs, dim: int = 0, *also: Any, **more: Any) -> torch.Tensor:
    return func(x.tensor, x.dim(dim), *also, **more)


def _unsqueezed(func: Any, form: Any, x: _Pairs, dim: int) -> torch.Tensor:
    return x.tensor.unsqueeze(x.dim(dim, 1))


def _permuted(func: Any, form: Any, x: _Pairs, dims: list[int]) -> torch.Tensor:
    return x.tensor.permute([*(x.dim(dim) for dim in dims), x.rank])


def _transposed(func: Any, form: Any, x: _Pairs, first: int = 0, second: int = 1) -> torch.Tensor:
    return x.tensor.transpose(x.dim(first), x.dim(second)) if x.rank > 1 else x.tensor


def _split(func: Any, form: Any, x: _Pairs, sizes: Any, dim: int = 0) -> Any:
    return type(form)(x.tensor.split(sizes, x.dim(dim)))


def _unbound(func: Any, form: Any, x: _Pairs, dim: int = 0) -> Any:
    return type(form)(x.tensor.unbind(x.dim(dim)))


def _joined(func: Any, form: torch.Tensor, tensors: list[Any], dim: int = 0) -> torch.Tensor:
    return func([_as_pairs(t) for t in tensors], dim if dim >= 0 else dim + form.dim())


def _gathered(func: Any, form: Any, x: _Pairs, dim: int, index: torch.Tensor, **more: Any) -> torch.Tensor:
    return torch.gather(x.tensor, x.dim(dim), index.unsqueeze(-1).expand(*index.shape, 2))


def _chosen(func: Any, form: Any, condition: torch.Tensor, x: Any, y: Any) -> torch.Tensor:
    return torch.where(condition.unsqueeze(-1), _as_pairs(x), _as_pairs(y))


def _backward_of_part(func: Any, form: Any, gradient: _Pairs, sizes: list[int], dim: int, *also: Any) -> torch.Tensor:
    return func(gradient.tensor, [*sizes, 2], dim if dim >= 0 else dim + len(sizes), *also)


def _filled(func: Any, form: torch.Tensor, *also: Any, **more: Any) -> torch.Tensor:
    value = 1.0 if "ones" in opname_of(func) else 0.0
    real = torch.full(form.shape, value, dtype=_REAL[form.dtype], device="cpu")
    return _join(real, torch.zeros_like(real))


def _strided(func: Any, form: Any, x: _Pairs, sizes: list[int], strides: list[int], offset: int | None = None,
             **more: Any) -> torch.Tensor:
    if func is _aten.as_strided.default and not x.has_its_strides:
        raise NotImplementedError("as_strided() of complex numbers that are not in memory as eager has them")
    also = () if func is not _aten.as_strided.default or offset is None else (2 * offset,)
    return func(x.tensor, [*sizes, 2], [*(2 * stride for stride in strides), 1], *also)


def _put(func: Any, form: Any, x: _Pairs, indices: Any, values: Any, accumulate: bool = False) -> torch.Tensor:
    return func(x.tensor, indices, _as_pairs(values), accumulate)


def _scattered(func: Any, form: Any, x: _Pairs, dim: int, index: torch.Tensor, values: _Pairs) -> torch.Tensor:
    return torch.scatter_add(x.tensor, x.dim(dim), index.unsqueeze(-1).expand(*index.shape, 2), values.tensor)


def _rolled(func: Any, form: Any, x: _Pairs, shifts: list[int], dims: list[int] = []) -> torch.Tensor:
    if not dims:
        return func(x.tensor.reshape(-1, 2), shifts, [0]).reshape(x.tensor.shape)
    return func(x.tensor, shifts, [x.dim(dim) for dim in dims])


def _flipped(func: Any, form: Any, x: _Pairs, dims: list[int]) -> torch.Tensor:
    return func(x.tensor, [x.dim(dim) for dim in dims])


def _padded(func: Any, form: Any, x: _Pairs, pad: list[int], value: Any = 0) -> torch.Tensor:
    if value != 0:
        raise NotImplementedError(f"padding of complex numbers with {value}, not with 0")
    return func(x.tensor, [0, 0, *pad], 0.0)


# Operators that give a tensor another shape where it is, and those that make a view of it.
_SHAPES_IN_PLACE = {_aten.transpose_.default: _aten.transpose.int, _aten.t_.default: _aten.t.default,
                    _aten.unsqueeze_.default: _aten.unsqueeze.default, _aten.squeeze_.default: _aten.squeeze.default,
                    _aten.squeeze_.dim: _aten.squeeze.dim}

# Operators whose arguments are real.
_MAKES = {_aten._fft_r2c.default: fourier.RULES[_aten._fft_r2c.default],
          _aten.view_as_complex.default: lambda func, form, x: x, _aten.polar.default: _polar,
          _aten.complex.default: lambda func, form, real, imaginary: _join(real, imaginary)}

_RULES: dict[Any, Callable] = {
    **_MAKES, **fourier.RULES,
    _aten.view_as_real.default: lambda func, form, x: _aten.alias.default(x.tensor),
    _aten.mul.Tensor: _multiply, _aten.mul.Scalar: _multiply, _aten.div.Tensor: _divide, _aten.div.Scalar: _divide,
    _aten.reciprocal.default: lambda func, form, x: _divide(func, form, 1.0, x),
    **dict.fromkeys((_aten.add.Tensor, _aten.add.Scalar, _aten.sub.Tensor, _aten.sub.Scalar), _add),
    _aten.rsub.Scalar: _subtract_from,
    **dict.fromkeys((_aten.eq.Scalar, _aten.eq.Tensor, _aten.ne.Scalar, _aten.ne.Tensor), _equal),
    **dict.fromkeys((_aten.masked_fill.Scalar, _aten.masked_fill.Tensor), _masked), _aten.copy.default: _copied,
    **dict.fromkeys((_aten.scalar_tensor.default, _aten.fill.Scalar, _aten.fill.Tensor, _aten.zero.default), _constants),
    **dict.fromkeys((_aten._conj.default, _aten.conj_physical.default, _aten._conj_physical.default), _conjugate),
    _aten.abs.default: _absolute, _aten.sgn.default: _sign, _aten.angle.default: _angle, _aten.exp.default: _exponential,
    _aten._to_copy.default: _converted,
    **dict.fromkeys((_aten.mm.default, _aten.bmm.default), _product),
    **dict.fromkeys((_aten.sum.default, _aten.sum.dim_IntList, _aten.mean.default, _aten.mean.dim), _summed),
    **dict.fromkeys((_aten.view.default, _aten._unsafe_view.default, _aten._reshape_alias.default, _aten.squeeze.default,
                     _aten.squeeze.dim, _aten.squeeze.dims), _reshaped),
    **dict.fromkeys((_aten.neg.default, _aten.alias.default, _aten.detach.default, _aten.clone.default,
                     _aten.zeros_like.default, _aten.index.Tensor), _elementwise),
    **dict.fromkeys((_aten.slice.Tensor, _aten.select.int, _aten.index_select.default), _along),
    _aten.expand.default: _expanded, _aten.unsqueeze.default: _unsqueezed, _aten.permute.default: _permuted,
    _aten.transpose.int: _transposed, _aten.t.default: _transposed, _aten.unbind.int: _unbound,
    **dict.fromkeys((_aten.split.Tensor, _aten.split_with_sizes.default), _split),
    **dict.fromkeys((_aten.cat.default, _aten.stack.default), _joined),
    _aten.roll.default: _rolled, _aten.flip.default: _flipped, _aten.constant_pad_nd.default: _padded,
    _aten.gather.default: _gathered, _aten.where.self: _chosen,
    **dict.fromkeys((_aten.slice_backward.default, _aten.select_backward.default), _backward_of_part),
    **dict.fromkeys((_aten.zeros.default, _aten.ones.default, _aten.ones_like.default, _aten.new_zeros.default), _filled),
    **dict.fromkeys((_aten.as_strided.default, _aten.new_empty_strided.default), _strided),
    _aten.index_put.default: _put, _aten.scatter_add.default: _scattered, _aten.lift_fresh.default: _elementwise,
}
