"""What eager PyTorch does with the reference batches: recorded beside the graph, for --check to compare with."""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, Iterator, Literal, Sequence

import torch

from ...models import tensor_names
from ...torch_api.tracing import pytree
from ..call import StepCall
from ..errors import CaptureError
from ..model.activation_checkpoint import Checkpoints
from ..model.torch_compiled import run_eagerly
from ..ops.composites import one_op_composites
from ..ops.draws import Draws
from ..ops.sync_batch_norm import one_device, sync_batch_norms
from ..world.held import whole
from .build import StepPackage
from .outputs import Output
from .put_back import put_back
from .replicas import Original, Replicas, untouched
from .result import wrap
from .zero_gradients import zero_gradients

FinalState = Literal["all", "zero_gradient", "none"]


@dataclasses.dataclass(frozen=True)
class ReferenceOptions:
    """What is recorded of eager training.

    `final_state`: the optimizer state that is kept: of all parameters, of those in zero_gradient (whose values after Adam are
    noise), or none. `schedule`: a factor on the learning rates by step, as in torch.optim.lr_scheduler.LambdaLR. `ranks`: each batch
    holds the rows of this many ranks in rank order; gradients are averaged over copies of the model, one for each rank (or their
    sum is divided by `divide_factor`), and losses are the mean of theirs. `movement`: training is repeated from rounded parameters,
    and how far losses and final tensors then move is recorded.
    """

    final_state: FinalState = "all"
    schedule: Callable[[int], float] | None = None
    ranks: int | None = None
    batch_dims: dict[str, int | None] = dataclasses.field(default_factory=dict)
    movement: bool = False
    divide_factor: float | None = None


def record_reference(package: StepPackage, call: StepCall, batches: Sequence[Any], options: ReferenceOptions) -> None:
    """Trains model and optimizer on `batches` in order, and restores everything; fills package.reference.

    Parameters whose gradient is zero but for rounding are found, and noted in the step (zero_gradients.py).
    Losses are those of each step before its update.
    """
    ranks = options.ranks
    loss_at = next((n for n, o in enumerate(package.step["outputs"]) if o["kind"] == "loss"), None)
    if loss_at is None or loss_at >= sum(isinstance(leaf, Output) for leaf in pytree.tree_leaves(package.result)):
        raise CaptureError("a reference needs the loss\n  hint: return the loss from the step")
    among = [argument["int"] for node in package.step["nodes"] if node["op"].startswith("spmd.c10d_")
             for name, argument in node["args"] if name == "ranks"]
    if among and max(among) != (ranks or 1):
        raise CaptureError(f"the step calls collectives among {max(among)} ranks, and the reference is for {ranks or 1}\n"
                           f"  hint: reference_ranks={max(among)}")
    view = whole(call.model, package.held)
    several = (ranks or 1) > 1

    def run(rounded: bool, batches: Sequence[Any] = batches) -> dict[str, torch.Tensor]:
        with run_eagerly(), put_back(call.model, view, call.optimizers), sync_batch_norms(), \
                untouched(view) if several else one_device():
            if rounded:
                _round(view)
            replicas = Replicas(call.model, call.optimizers, ranks, options.divide_factor) if several \
                else Original(call.model, call.optimizers)
            return _train(package, call, batches, options, replicas, loss_at)
    found = {*package.step["zero_gradient"], *zero_gradients(view, lambda: run(rounded=False, batches=batches[:1]))}
    for step in (package.step, *([package.first_step.step] if package.first_step else [])):
        step["zero_gradient"] = [p["name"] for p in step["parameters"] if p["name"] in found]
    package.reference = run(rounded=False)
    if options.movement:
        package.reference |= _moved(package.reference, run(rounded=True))
    package.reference_ranks = ranks


def _round(model: torch.nn.Module) -> None:
    """Moves every element of every parameter by an epsilon of its type, up or down."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                up = torch.rand(parameter.shape, generator=generator).to(parameter.device) < 0.5
                epsilon = torch.finfo(parameter.dtype).eps
                parameter.copy_(torch.where(up, parameter * (1 + epsilon), parameter * (1 - epsilon)))


def _moved(reference: dict[str, torch.Tensor], rounded: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Of each loss its difference, of each final tensor the norm of its difference."""
    moved = {f"moved/{key}": (rounded[key].double() - value.double()).norm().reshape(())
             for key, value in reference.items() if key.startswith("final/")}
    return {"moved/loss": (rounded["loss"] - reference["loss"]).abs(), **moved}


def _train(package: StepPackage, call: StepCall, batches: Sequence[Any], options: ReferenceOptions,
           replicas: Original | Replicas, loss_at: int) -> dict[str, torch.Tensor]:
    """What reference.safetensors holds."""
    ranks, schedule = options.ranks, options.schedule
    model, optimizers = replicas.members[0]
    names = [n for _, _, n in tensor_names(whole(call.model, package.held)).values()]
    view = whole(model, package.held)
    copies = dict(view.named_parameters(remove_duplicate=False)) | dict(view.named_buffers(remove_duplicate=False))
    reference: dict[str, torch.Tensor] = {}
    losses, rates, initial = [], [[] for _ in optimizers.param_groups], [g["lr"] for g in optimizers.param_groups]
    rng = [torch.tensor(i["value"]) for i in package.step["inputs"] if i["kind"] == "rng"]  # seed, steps begun
    for number, entry in enumerate(batches):
        batch = call.batch_of(entry)
        rows = call.rows_of_ranks(batch, ranks or 1, options.batch_dims)
        for name, captured, tensor in zip(call.batch_names, call.batch, batch, strict=True):
            own = rows[name][0]
            if own.shape != captured.shape or own.dtype != captured.dtype:
                raise CaptureError(f"reference batch {number}: {name!r} is {own.dtype}{list(own.shape)}"
                                   f"{f' on each of {ranks} ranks' if ranks else ''}; "
                                   f"the captured call has {captured.dtype}{list(captured.shape)}")
            reference[f"batch/{number}/{name}"] = tensor.clone()
        for _, replica in replicas.members:
            for group, rate in zip(replica.param_groups, initial):
                if schedule is not None:
                    group["lr"] = float(rate) * schedule(number)
        for group, values in zip(optimizers.param_groups, rates):
            values.append(float(group["lr"]))

        def run_rank(rank: int, *replica: Any) -> Any:
            with contextlib.ExitStack() as drawing:  # a mode holds for its thread, and each rank is one
                if rng:
                    drawing.enter_context(Draws(rng[0], torch.tensor(number), rank).entered())
                return call.run([rows[n][rank] for n in call.batch_names], *replica)

        # What is recomputed is recomputed in the precision of the module around it.
        with Checkpoints(are_recomputed=call.recomputes).followed(), one_op_composites() if rng else contextlib.nullcontext():
            results = replicas.step(run_rank)
            if name := replicas.find_drift():
                raise CaptureError(f"the reference of several ranks has another {name!r} on each after a step: eager "
                                   "averages what `backward()` leaves in `p.grad`, and nothing else\n  hint: take "
                                   "gradients from `backward()` rather than `torch.autograd.grad`, or capture without "
                                   "reference_ranks")
        of_ranks = [_leaf(package.result, returned, loss_at) for returned in results]
        losses.append(sum(loss.item() if isinstance(loss, torch.Tensor) else loss for loss in of_ranks) / len(of_ranks))
    reference["loss"] = torch.tensor(losses, dtype=torch.float64)
    for group, values in enumerate(rates):
        reference[f"hyper/lr/{group}"] = torch.tensor(values, dtype=torch.float64)
    for own in names:
        reference[f"final/{own[0]}"] = copies[own[0]]
        for state, value in optimizers.state_of(copies[own[0]]).items():
            wanted = options.final_state == "zero_gradient" and own[0] in package.step["zero_gradient"]
            if isinstance(value, torch.Tensor) and (wanted or options.final_state == "all"):
                reference[f"final/optimizer/{state}/{own[0]}"] = value
    return {key: value.detach().clone() for key, value in reference.items()}


def _leaf(template: Any, returned: Any, index: int) -> Any:
    """The part of `returned` where `template` has output number `index`."""
    places = pytree.tree_leaves(template)
    values = pytree.tree_leaves(wrap(returned))
    return next(v for place, v in zip(places, values, strict=True)
                if isinstance(place, Output) and place.index == index)
