"""spmd.capture: one call of a PyTorch training step -> a step package.

    package = spmd.capture(train_step, model, optimizer, x, y)
    package.save("gpt2.step")

The module itself is callable, so that spmd.capture(...) and python -m spmd.capture are the same word.
"""
from __future__ import annotations

import sys
import types
from typing import Any, Callable, Literal, Sequence

import torch

from ..models import tensor_names
from ..offloaded import fetch
from ..precision import Precision
from ..remarks import remark
from ..torch_versions import why_not
from .call import CallOptions, CaptureOptions, StepCall
from .errors import CaptureError, error_at
from .model.wrapped import check_not_wrapped
from .observe.quick import quickly
from .optimizer.gradients import fetch_gradients
from .optimizer.scheduled import Scheduled
from .trace import trace, trace_first_step
from .world.closure_objects import CompiledFunction
from .world.iterators import OtherTaken
from .world.settings import check_unread
from .write.batch_sizes import capture_sizes, sizes_of
from .write.build import build_package
from .write.first_constants import join_constants
from .write.graph import Trace
from .write.package import StepPackage
from .write.reference import ReferenceOptions, record_reference


def capture(train_step: Callable, *args: Any, batch_dims: dict[str, int | None] | None = None,
            reference: Sequence[Any] | None = None, reference_state: Literal["all", "zero_gradient", "none"] = "all",
            reference_schedule: Callable[[int], float] | None = None, reference_ranks: int | None = None,
            reference_gradient_divide_factor: float | None = None,
            reference_movement: bool = False, zero_gradient: Sequence[str] = (), keep_grads: bool = False,
            scheduled_options: Sequence[str] = (),
            precision: Any = None, dynamic_batch: int | None = None, name: str | None = None, device: str = "cpu",
            **kwargs: Any) -> StepPackage:
    """Captures the call train_step(*args, **kwargs) as one graph: forward, backward, optimizer.

    Nothing is computed but the reference: the step runs unmodified on fake tensors, and the model and optimizer are
    left as they were.

    Args:
      train_step: ordinary code that calls loss.backward() and optimizer.step(), and returns any pytree; or a result of
        spmd.compile, whose batch_dims are the default here.
      args, kwargs: one call's arguments. One of them is the model, one the optimizer; every other tensor, in any pytree,
        is a batch input. Python values become part of the graph. Values that the step takes from an iterator are taken
        during the capture, and are batch inputs too.
      batch_dims: the dim of a batch input that counts samples, by the input's name ("x", "batch.mask"); None for an
        input that all ranks share. Default 0.
      reference: batches (tuples of the arguments other than model and optimizer) on which eager PyTorch trains. Losses,
        learning rates, final parameters and optimizer state are recorded, and model and optimizer are restored.
      reference_state: which final optimizer state to record.
      reference_schedule: a factor on the learning rates of the reference by step, as in LambdaLR.
      reference_ranks: for spmd-compile --view=local. Each reference batch holds the rows of this many ranks, in rank
        order. Every rank trains on its rows; gradients and losses are averaged, as in FSDP.
      reference_gradient_divide_factor: the divisor of sums of gradients, instead of the number of ranks
        (--gradient-divide-factor).
      reference_movement: also record how far eager PyTorch itself moves if its initial parameters are rounded. A check
        then fails only above three times that distance, and prints both. It runs the reference once more. Use it for
        steps that are chaotic (batch norm over few values), or whose optimizer turns rounding errors into updates.
      zero_gradient: parameters whose gradient, or a part of it, is zero except for rounding (an attention's key bias).
        Under Adam their values are noise, so a check compares their first moment. Recording a reference finds them.
      keep_grads: gradients that the step clears are state of the step too, one sharded tensor each, and can be read after
        it. Gradients that a step does not clear always are.
      scheduled_options: options of the param groups, besides the learning rate, that are inputs of the step and may
        change in every call: "momentum", "betas.0" (the first of the pair), "weight_decay". The optimizer is then
        captured as arithmetic on single parameters, not as PyTorch's fused op.
      precision: the types in which the model computes and gradients are reduced: PyTorch's MixedPrecisionPolicy or
        MixedPrecision, or text like "param=bf16,reduce=f32" (docs/precision.md). Parameters and optimizer state keep
        their types.
      dynamic_batch: the largest number of rows of a batch; the step then supports any smaller number too (docs/python.md,
        batches of several sizes). The package has one more batch input, `rows`, the number of rows. All other inputs
        have dynamic_batch rows; padding rows do not contribute.
      name: the step's name; default the function's.
      device: where the step is meant to run, "cpu" or "cuda". The graph is the same, and the device need not exist here.

    Returns:
      A StepPackage; .save(path) writes it.

    Raises:
      CaptureError: names the user's line, the op and a hint.
    """
    if device.split(":")[0] not in ("cpu", "cuda"):
        raise CaptureError(f"device is {device!r}; a step is captured for cpu or cuda")
    if isinstance(train_step, CompiledFunction):
        batch_dims = train_step.batch_dims if batch_dims is None else batch_dims
        train_step = train_step.train_step
    call = StepCall(train_step, args, kwargs, CallOptions(Precision.of(precision, "precision")))

    options = CaptureOptions(batch_dims or {}, keep_grads, tuple(zero_gradient), name, tuple(scheduled_options))

    def captured(call: StepCall) -> StepPackage:
        return capture_call(call, options)

    if dynamic_batch is not None and reference:
        raise CaptureError("a reference requires batches of one size, but the step supports several\n  hint: record the "
                           "reference without dynamic_batch")
    while True:
        try:
            package = captured(call) if dynamic_batch is None else \
                capture_sizes(captured, call, _one_size(dynamic_batch), options.batch_dims)[0]
            break
        except OtherTaken as other:
            call = call.taking(other.counts)
    if kept := [*package.left, *package.grown]:
        raise error_at(kept[0].stack,
                       f"the step stores a tensor in {kept[0].path!r}: an artifact cannot update it",
                       "return it from the step, copy it into a buffer of the module, or use spmd.compile, which updates it")
    if package.settings:
        def what_changes() -> tuple[str, Any] | None:
            """What a second step would read otherwise, and would have another graph for: a library's own notes change none."""
            found = package.reads.difference()
            is_same = found is not None and dynamic_batch is None and captured(call).digest() == package.digest()
            return None if found is None or is_same else (found.path, found.now)
        check_unread(package.settings, what_changes)
    if reference:
        record_reference(package, call, reference, ReferenceOptions(
            reference_state, reference_schedule, reference_ranks, options.batch_dims, reference_movement, reference_gradient_divide_factor))
    return package


def capture_call(call: StepCall, options: CaptureOptions = CaptureOptions()) -> StepPackage:
    """What capture() gives, without a reference, of a call whose process sets the attributes that the step leaves."""
    if wrong := why_not(torch.__version__):
        raise CaptureError(wrong)
    fetch(call.model, call.optimizers)
    check_not_wrapped(call.model)
    _check_batch(call)
    Scheduled(options.scheduled).check(call.optimizers)
    fetch_gradients(options.gradients, call.model, call.optimizers)

    def captured(salt: int) -> tuple[StepPackage, Trace]:
        with quickly():
            return _capture(call, options, Scheduled(options.scheduled, salt))

    package, traced = captured(0)
    if (fate := traced.checkpoints.describe(call.no_recomputation)) is not None:
        remark(fate)
    if options.scheduled:
        again, _ = captured(1)
        if package.step != again.step or package.first_step and package.first_step.step != again.first_step.step:
            raise CaptureError(f"the step computes with {' or '.join(options.scheduled)} in Python: the option cannot be an "
                               "input\n  hint: do not change the option")
    return package


def _capture(call: StepCall, options: CaptureOptions, scheduled: Scheduled) -> tuple[StepPackage, Trace]:
    name = options.name or getattr(call.train_step, "__name__", "step")
    traced = trace(call, options.keep_grads, scheduled, options.gradients, options.counted)
    first = trace_first_step(call, traced) if traced.first_step_differs else None
    if first is not None:
        join_constants(traced, first)
        traced.optimizer_numbers.made, traced.optimizer_numbers.changes = first.optimizer_numbers.made, first.optimizer_numbers.changes
    package = build_package(call, traced, name, options.batch_dims, options.zero_gradient)
    if first is not None:
        package.first_step = build_package(call, first, name, options.batch_dims, options.zero_gradient)
    return package, traced


def _one_size(dynamic_batch: Any) -> int:
    sizes = sizes_of(dynamic_batch)
    if len(sizes) > 1:
        raise CaptureError(f"dynamic_batch is {dynamic_batch!r}, and a package has one largest size\n  hint: capture a package for "
                           "each of the sizes")
    return sizes[0]


def _check_batch(call: StepCall) -> None:
    """A parameter among the arguments would be read as a batch: a step that clips it would clip nothing."""
    own = {id(tensor): (kind, names[0]) for kind, tensor, names in tensor_names(call.model).values()}
    for name, tensor in zip(call.batch_names, call.batch):
        if id(tensor) in own:
            kind, own_name = own[id(tensor)]
            raise CaptureError(f"argument {name!r} is {'parameter' if kind == 'param' else 'buffer'} {own_name!r} of "
                               "the model, and no batch\n  hint: reach it through the model inside the step: "
                               "model.parameters()")


class _CallableModule(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> StepPackage:
        return capture(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

__all__ = ["CaptureError", "StepPackage", "capture"]
