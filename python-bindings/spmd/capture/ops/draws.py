"""Random ops of a step as functions of seed, step and element.

PyTorch's generators draw one number after the other: on N ranks, or with another fusion, the same element would get
another number. Here every draw is spmd::philox_uniform of the element's index in the global tensor (spmd/philox.py),
with a stream number of its own for each place of the step that draws, and the count of training steps. While `Draws` is
entered, every random ATen op becomes arithmetic on such numbers, in a trace and in an eager run alike: so the reference
that eager PyTorch records draws what the compiled step draws. It is not what torch's own generators would have drawn.
"""
from __future__ import annotations

import contextlib
import functools
import math
import threading
from contextvars import ContextVar
from typing import Any, Callable, Iterator

import numpy as np
import torch

from ... import philox
from ...torch_api.operators import OpOverload, schema_of
from ..observe import patches
from ..observe.dispatch_mode import DispatchMode, Handler, OpCall, Phase

aten = torch.ops.aten
_library = torch.library.Library("spmd", "FRAGMENT")
_library.define("philox_uniform(Tensor seed, Tensor step, Tensor index, int stream, int word=0) -> Tensor")


def _uniform_cpu(seed, step, index, stream, word=0):
    drawn = philox.uniform(int(seed), int(step), index.numpy(), stream, word)
    return torch.from_numpy(np.asarray(drawn))  # of a single index numpy gives a number


_library.impl("philox_uniform", _uniform_cpu, "CPU")


@torch.library.register_fake("spmd::philox_uniform", lib=_library)
def _uniform_fake(seed, step, index, stream, word=0):
    return index.new_empty(index.shape, dtype=torch.float32)


_seed: ContextVar[int | None] = ContextVar("seed", default=None)


def default_seed() -> int:
    """torch.initial_seed(), what torch.manual_seed set, as far as a package holds it (50 bits). Without manual_seed, it is
    any number of 64 bits."""
    seed = _seed.get()
    return torch.initial_seed() % 2**50 if seed is None else seed


@contextlib.contextmanager
def seeded_with(seed: int) -> Iterator[None]:
    """Steps that are captured meanwhile draw with another process's default_seed()."""
    token = _seed.set(seed)
    try:
        yield
    finally:
        _seed.reset(token)


@functools.cache
def _may_draw(func: Any) -> bool:
    """Whether an op may draw random numbers, as what it is says; it is asked for every op of a step."""
    arguments = schema_of(func).arguments if isinstance(func, OpOverload) else ()
    return func in _REPLACED or not isinstance(func, OpOverload) \
        or torch.Tag.nondeterministic_seeded in func.tags or any("Generator" in str(a.type) for a in arguments)


class Draws(Handler):
    """Replaces random ops, for one run of a step.

    `seed` and `step` are 0-dim int64 tensors; the first draw counts `step` up, in place, so it counts the steps that
    have begun. An op that draws and has no such form raises NotImplementedError; explicit generators pass through.

    `rank`: with view="local" element i of N on rank r is number r * N + i (lib/Transforms/Partition/LocalView.cpp).
    """

    phase = Phase.DRAW

    def __init__(self, seed: torch.Tensor, step: torch.Tensor, rank: int = 0):
        self.seed, self.step, self._rank = seed, step, rank
        self.streams = 0
        self._has_begun = False
        self._places: dict[int, tuple[torch.Tensor, int]] = {}  # by the ids of states, which are kept alive

    @contextlib.contextmanager
    def entered(self, mode: DispatchMode | None = None) -> Iterator[None]:
        """Random ops of this thread are drawn here. `mode` has this handler; None: a mode that has no other."""
        outer, _thread.draws = getattr(_thread, "draws", None), self
        try:
            with _STATES.replaced(), mode or DispatchMode([self]):
                yield
        finally:
            _thread.draws = outer

    def save(self, state: torch.Tensor) -> torch.Tensor:
        """The step has got the state of the random generator: it stands for the place up to which numbers are drawn."""
        self._places[id(state)] = state, self.streams
        return state

    def restore(self, state: torch.Tensor) -> None:
        """The step goes back to a state that it has saved, as recomputation in backward() does."""
        if id(state) in self._places:
            self.streams = self._places[id(state)][1]

    def stream(self) -> tuple[torch.Tensor, torch.Tensor, int]:
        """(seed, step, stream) of a new place that draws."""
        if not self._has_begun:
            self._has_begun = True
            self.step.add_(1)
        self.streams += 1
        return self.seed, self.step, self.streams - 1

    def uniform(self, size: tuple[int, ...], device: Any = None, words: tuple[int, ...] = (0,)) -> list[torch.Tensor]:
        """Independent float32 tensors in [0, 1), one per word, of one new stream."""
        seed, step, stream = self.stream()
        count = math.prod(size)
        first = self._rank * count
        index = torch.arange(first, first + count, dtype=torch.int64) if first else torch.arange(count, dtype=torch.int64)
        index = index.view(size)
        drawn = [torch.ops.spmd.philox_uniform(seed, step, index, stream, word) for word in words]
        return [u if device is None else u.to(device) for u in drawn]

    def sees(self, func: Any) -> bool:
        return _may_draw(func)

    def answer(self, call: OpCall) -> Any:
        func, args = call.func, call.args
        kwargs = dict(call.kwargs)
        generator = kwargs.pop("generator", None) or next((a for a in args if isinstance(a, torch.Generator)), None)
        if generator is not None:
            return NotImplemented
        call.kwargs = kwargs
        if (replace := _REPLACED.get(func)) is not None:
            with call.mode.from_phase(Phase.OPTION):
                return replace(self, *args, **kwargs)
        if torch.Tag.nondeterministic_seeded in func.tags and func not in _DETERMINISTIC:
            raise NotImplementedError(f"{func} draws random numbers in a way that has no form independent of ranks")
        return NotImplemented


_thread = threading.local()  # `draws`: those that are entered


def _saving(get: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    def get_rng_state() -> torch.Tensor:
        draws = getattr(_thread, "draws", None)
        return get() if draws is None else draws.save(get())
    return get_rng_state


def _restoring(put: Callable[[torch.Tensor], None]) -> Callable[[torch.Tensor], None]:
    def set_rng_state(new_state: torch.Tensor) -> None:
        if (draws := getattr(_thread, "draws", None)) is not None:
            draws.restore(new_state)
        put(new_state)
    return set_rng_state


_STATES = patches.Shared(lambda: {**{entry: _saving(entry.value()) for entry in patches.GET_RNG_STATE},
                                  **{entry: _restoring(entry.value()) for entry in patches.SET_RNG_STATE}})


def _normal(draws: Draws, size: tuple[int, ...], device: Any) -> torch.Tensor:
    """Box and Muller's, in float32."""
    radius, angle = draws.uniform(tuple(size), device, words=(0, 1))
    return (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()


def _below(drawn: torch.Tensor, p: float) -> torch.Tensor:
    """drawn < p with p as float32 has it: then float32 and wider arithmetic decide alike."""
    return drawn < float(np.float32(p))


def _finish(value: torch.Tensor, dtype: torch.dtype | None, like: torch.Tensor | None = None) -> torch.Tensor:
    dtype = dtype or (like.dtype if like is not None else torch.get_default_dtype())
    return value if value.dtype == dtype else value.to(dtype)


def _rand(draws, size, *, dtype=None, device=None, **unused):
    return _finish(draws.uniform(tuple(size), device)[0], dtype)


def _rand_like(draws, like, *, dtype=None, **unused):
    return _finish(draws.uniform(tuple(like.shape), like.device)[0], dtype, like)


def _randn(draws, size, *, dtype=None, device=None, **unused):
    return _finish(_normal(draws, size, device), dtype)


def _randn_like(draws, like, *, dtype=None, **unused):
    return _finish(_normal(draws, like.shape, like.device), dtype, like)


def _randint_of(draws, low, high, size, device, dtype):
    if high - low > 2**24:
        raise NotImplementedError(f"random integers from a range of {high - low} need more than the 24 bits of a draw")
    drawn = draws.uniform(tuple(size), device)[0] * float(high - low)
    return (drawn.to(torch.int64).clamp_max(high - low - 1) + low).to(dtype)


def _randint(draws, *args, dtype=torch.int64, device=None, **unused):
    *bounds, size = args
    low, high = (0, *bounds)[-2:]
    return _randint_of(draws, low, high, size, device, dtype)


def _randint_like(draws, like, *bounds, dtype=None, **unused):
    low, high = (0, *bounds)[-2:]
    return _randint_of(draws, low, high, like.shape, like.device, dtype or like.dtype)


def _bernoulli_of(draws, like, p):
    drawn = draws.uniform(tuple(like.shape), like.device)[0]
    return (drawn < p if isinstance(p, torch.Tensor) else _below(drawn, p)).to(like.dtype)


def _normal_of(draws, mean=0.0, std=1.0, size=None, *, dtype=None, device=None, **unused):
    like = next((t for t in (mean, std) if isinstance(t, torch.Tensor)), None)
    if like is not None:
        size, device, dtype = torch.broadcast_shapes(*(t.shape for t in (mean, std) if isinstance(t, torch.Tensor))), \
            like.device, like.dtype
    return _finish(mean + std * _finish(_normal(draws, size, device), dtype), dtype)


def _in_place(compute: Callable) -> Callable:
    return lambda draws, self, *args, **kwargs: self.copy_(compute(draws, self, *args, **kwargs))


def _native_dropout(draws, input, p, train):
    if not train:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    mask = _below(draws.uniform(tuple(input.shape), input.device)[0], 1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return input * mask.to(input.dtype) * scale, mask


def _native_dropout_backward(draws, grad_output, mask, scale):
    return grad_output * (mask.to(grad_output.dtype) * scale)


def _randperm(draws, n, *, dtype=torch.int64, device=None, **unused):
    """The order of n numbers, of 48 bits: two of them are alike about never."""
    high, low = draws.uniform((n,), device, words=(0, 1))
    return (high.to(torch.float64) + low.to(torch.float64) * 2.0**-24).argsort(stable=True).to(dtype)


def _multinomial(draws, weights, count, replacement=False, **unused):
    """Of exponential waiting times, divided by the weights, those that are over first. With replacement each sample waits anew."""
    size, again = tuple(weights.shape), replacement and count != 1
    size = (*size[:-1], count, size[-1]) if again else size
    waits = -(1 - draws.uniform(size, weights.device)[0]).log()
    chances = weights.to(torch.promote_types(weights.dtype, torch.float32))
    chances = (chances.unsqueeze(-2) if again else chances) / waits.clamp(min=2.0**-25)
    return chances.argmax(-1) if again else chances.argmax(-1, keepdim=True) if count == 1 else chances.topk(count)[1]


def _rrelu(draws, input, noise, lower=1 / 8, upper=1 / 3, training=False, **unused):
    if not training:  # one slope for all
        return aten.rrelu_with_noise.default(input, noise, lower, upper, training)
    slopes = draws.uniform(tuple(input.shape), input.device)[0].to(input.dtype) * (upper - lower) + lower
    noise.copy_(torch.where(input <= 0, slopes, 1))
    return input * noise


def _rrelu_backward(draws, grad, input, noise, lower, upper, training, is_result):
    return grad * noise if training else aten.rrelu_with_noise_backward.default(grad, input, noise, lower, upper, training,
                                                                                is_result)


_UNIFORM = lambda draws, self, low=0.0, high=1.0: draws.uniform(tuple(self.shape), self.device)[0] * (high - low) + low
_NORMAL = lambda draws, self, mean=0.0, std=1.0: _normal(draws, self.shape, self.device) * std + mean
_EXPONENTIAL = lambda draws, self, lambd=1.0: -(1 - draws.uniform(tuple(self.shape), self.device)[0]).log() / lambd
_LOG_NORMAL = lambda draws, self, mean=1.0, std=2.0: _NORMAL(draws, self, mean, std).exp()

_REPLACED: dict[Any, Callable] = {
    aten.rand.default: _rand, aten.rand_like.default: _rand_like,
    aten.randn.default: _randn, aten.randn_like.default: _randn_like,
    aten.randint.default: _randint, aten.randint.low: _randint,
    aten.randint_like.default: _randint_like, aten.randint_like.low_dtype: _randint_like,
    aten.bernoulli.default: lambda draws, p: _bernoulli_of(draws, p, p),
    aten.bernoulli.p: _bernoulli_of,
    aten.bernoulli_.float: _in_place(lambda draws, self, p=0.5: _bernoulli_of(draws, self, p)),
    aten.bernoulli_.Tensor: _in_place(_bernoulli_of),
    aten.uniform_.default: _in_place(_UNIFORM), aten.uniform.default: _UNIFORM,
    aten.normal_.default: _in_place(_NORMAL), aten.normal_functional.default: _NORMAL,
    aten.normal.Tensor_float: _normal_of, aten.normal.float_Tensor: _normal_of, aten.normal.Tensor_Tensor: _normal_of,
    aten.normal.float_float: _normal_of,
    aten.exponential_.default: _in_place(_EXPONENTIAL), aten.log_normal_.default: _in_place(_LOG_NORMAL),
    aten.randperm.default: _randperm, aten.multinomial.default: _multinomial,
    aten.rrelu_with_noise.default: _rrelu, aten.rrelu_with_noise_backward.default: _rrelu_backward,
    aten.rrelu_with_noise_.default: lambda draws, self, *args, **kwargs: self.copy_(_rrelu(draws, self, *args, **kwargs)),
    aten.native_dropout.default: _native_dropout,
    aten.native_dropout_backward.default: _native_dropout_backward,
}

# Tagged as drawing, but they do so only with dropout.
_DETERMINISTIC = {getattr(getattr(aten, name), "default") for name in (
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention") if hasattr(aten, name)}
