"""Activation checkpointing under capture: each region is recomputed in backward(), as in eager PyTorch.

PyTorch's own implementation runs the function of a region again. It restores the random generator, autocast and the hooks of saved
tensors. `Checkpoints` restores what a capture has besides: the casts of mixed precision, the module and the user's lines of operators.
So every form of checkpointing is one mechanism, because all of them call torch.utils.checkpoint.checkpoint. The operators of the
second run are part of the graph, in the phase "backward", and the activations of the first run die in the forward.

A trace that fails with recomputation is made again with the activations kept, which changes memory only. Two effects of a second run
are not memory, and stay: batch norms update their running statistics once more, and the results of a reentrant checkpoint have no
gradient if none of its inputs requires one.

Recomputation in other forms (a torch.autograd.Function of the user's) is traced as it runs; ops/draws.py gives its random operators
the numbers of the forward.
"""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, ContextManager, Iterator, Sequence

import torch
import torch.utils.checkpoint
from torch.nn.modules.module import register_module_forward_hook

from ...torch_api.autograd import SelectiveCheckpointMode, top_saved_tensors_default_hooks
from ...torch_api.modules import BatchNorm
from ...torch_api.tracing import pytree
from ..observe import patches
from ..observe.stacks import user_stack
from ..optimizer.casts import casts_in_place

_OPTIONS = ("context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")

# Notes something at the first run; while the result's context is entered, it is so again.
Surroundings = Callable[[], Callable[[], ContextManager[None]]]


class Checkpoints:
    """The regions of one run of a step. `surroundings`: what each second run gets back. `are_recomputed`: False keeps the
    activations of all regions."""

    def __init__(self, surroundings: Sequence[Surroundings] = (), are_recomputed: bool = True):
        self._surroundings = (casts_in_place, *surroundings)
        self._are_recomputed = are_recomputed
        # A region is a function and the lines that call checkpoint() with it.
        self._met: set[Any] = set()
        self._again: set[Any] = set()  # those that have run a second time

    @property
    def are_met(self) -> bool:
        """Whether the step has regions."""
        return bool(self._met)

    def describe(self, failure: Exception | None) -> str | None:
        """What has become of the regions, in words. `failure`: why a trace with recomputation failed."""
        if failure is not None and self._met:
            reason = str(failure).splitlines()[0] if str(failure) else type(failure).__qualname__
            return (f"{_count(len(self._met))} not recomputed, so the activations are kept: a trace with recomputation fails: {reason}\n"
                    "  hint: checkpoint functions that do the same when they run again in backward()")
        return f"{_count(len(self._again))} recomputed in the backward" if self._again else None

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Replaces torch.utils.checkpoint.checkpoint under all its names, in partials and in wrappers of libraries."""
        with patches.replaced({patches.CHECKPOINT: self._checkpoint, patches.CHECKPOINT_IS_COMPILING: lambda *unused: False}):
            yield

    def _checkpoint(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        region = _identity(function), user_stack()[0]
        self._met.add(region)
        if not self._are_recomputed and top_saved_tensors_default_hooks(False) is None:
            return _keep(function, *args, **kwargs)
        noted = [note() for note in self._surroundings]
        runs = 0

        @functools.wraps(function, updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal runs
            runs += 1
            if runs == 1:
                return function(*args, **kwargs)
            self._again.add(region)
            with contextlib.ExitStack() as stack:
                for again in noted:
                    stack.enter_context(again())
                return function(*args, **kwargs)

        if (make := kwargs.get("context_fn")) not in (None, torch.utils.checkpoint.noop_context_fn):
            kwargs["context_fn"] = lambda: _with_counterparts(*make())
        return torch.utils.checkpoint.checkpoint.__wrapped__(run, *args, **kwargs)


def _count(number: int) -> str:
    return "1 checkpoint region is" if number == 1 else f"{number} checkpoint regions are"


def _identity(function: Any) -> Any:
    """Equal for the same function or module."""
    while isinstance(function, functools.partial):
        inner = function.func
        owner = next((arg for arg in function.args if isinstance(arg, torch.nn.Module)), None)
        if owner is not None:
            return id(owner)
        function = inner
    owner = getattr(function, "__self__", function)
    return getattr(owner, "__code__", None) or id(owner)


# Operators that a capture has as one, and what PyTorch may run in their place: policies name the latter.
_COUNTERPARTS = {
    "spmd::sdpa": [getattr(torch.ops.aten, name).default for name in (
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_attention_math", "scaled_dot_product_attention") if hasattr(torch.ops.aten, name)],
    "spmd::rms_norm": [torch.ops.aten._fused_rms_norm.default],
}
_SAVED = (torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE, torch.utils.checkpoint.CheckpointPolicy.PREFER_SAVE, True)


def _with_counterparts(first: ContextManager, second: ContextManager) -> tuple[ContextManager, ContextManager]:
    """The contexts of a selective checkpoint, whose policy is asked about PyTorch's operators."""
    if isinstance(first, SelectiveCheckpointMode):
        policy = first.policy_fn

        def choose(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
            choice = policy(context, operator, *args, **kwargs)
            name = operator.name().partition(".")[0] if hasattr(operator, "name") and callable(operator.name) else ""
            others = (policy(context, other, *args, **kwargs) for other in _COUNTERPARTS.get(name, ()))
            return choice if choice in _SAVED else next((other for other in others if other in _SAVED), choice)

        first.policy_fn = choose
    return first, second


def _keep(function: Callable, *args: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """The function, whose activations are kept."""
    if use_reentrant is not False and not any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        with torch.no_grad():  # as in a reentrant checkpoint, which is PyTorch's default
            return _run(function, *args, **kwargs)
    return _run(function, *args, **kwargs)


def _run(function: Callable, *args: Any, **kwargs: Any) -> Any:
    norms: list[tuple[BatchNorm, torch.Tensor]] = []

    def note(module, inputs, output):
        if isinstance(module, BatchNorm) and module.training and module.track_running_stats:
            norms.append((module, inputs[0].detach()))

    with register_module_forward_hook(note):
        result = function(*args, **{k: v for k, v in kwargs.items() if k not in _OPTIONS})
    if norms and torch.is_grad_enabled():
        _update_again(norms, [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad])
    return result


def _update_again(norms: list[tuple[BatchNorm, torch.Tensor]], results: list[torch.Tensor]) -> None:
    """When the first of `results` has a gradient, which is when eager computes them again."""

    def update(gradient: torch.Tensor) -> None:
        with torch.no_grad():
            for module, given in norms:
                type(module).forward(module, given)
        norms.clear()

    for result in results:
        result.register_hook(update)
