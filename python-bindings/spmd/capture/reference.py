"""What eager PyTorch does with the reference batches: recorded beside the graph, for --check to compare with."""
from __future__ import annotations

import contextlib
import copy
from typing import Any, Callable, Iterator, Literal, Sequence

import torch
from torch.utils import _pytree as pytree

from .build import StepPackage
from .call import StepCall
from .checkpoint import inline_checkpoints
from .composites import one_op_composites
from .draws import Draws
from .errors import CaptureError
from .fakes import tensor_names
from .trace import Output

FinalState = Literal["all", "zero_gradient", "none"]


def record_reference(package: StepPackage, call: StepCall, batches: Sequence[Any], final_state: FinalState,
                     schedule: Callable[[int], float] | None) -> None:
    """Trains a copy of model and optimizer on `batches` in order; fills package.reference.

    Losses are those of each step before its update. `final_state` says which optimizer state is kept: of all
    parameters, of those in zero_gradient (first moments only: their values after Adam are noise), or none. `schedule`
    is a factor on the learning rates by step, as in torch.optim.lr_scheduler.LambdaLR.
    """
    loss_at = next((n for n, o in enumerate(package.step["outputs"]) if o["kind"] == "loss"), None)
    if loss_at is None or loss_at >= sum(isinstance(leaf, Output) for leaf in pytree.tree_leaves(package.result)):
        raise CaptureError("a reference needs the loss\n  cure: return the loss from the step")
    model, optimizer = copy.deepcopy((call.model, call.optimizer))
    names = [n for _, _, n in tensor_names(call.model).values()]
    copies = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    reference: dict[str, torch.Tensor] = {}
    losses, rates, initial = [], [[] for _ in optimizer.param_groups], [g["lr"] for g in optimizer.param_groups]
    rng = [torch.tensor(i["value"]) for i in package.step["inputs"] if i["kind"] == "rng"]
    for number, entry in enumerate(batches):
        batch = call.batch_of(entry)
        for name, captured, tensor in zip(call.batch_names, call.batch, batch, strict=True):
            if tensor.shape != captured.shape or tensor.dtype != captured.dtype:
                raise CaptureError(f"reference batch {number}: {name!r} is {tensor.dtype}{list(tensor.shape)}; "
                                   f"the captured call has {captured.dtype}{list(captured.shape)}")
            reference[f"batch/{number}/{name}"] = tensor.clone()
        for group, values, rate in zip(optimizer.param_groups, rates, initial):
            if schedule is not None:
                group["lr"] = float(rate) * schedule(number)
            values.append(float(group["lr"]))
        with _drawing(rng):
            returned = call.run(batch, model, optimizer)
        loss = _leaf(package.result, returned, loss_at)
        losses.append(loss.item() if isinstance(loss, torch.Tensor) else loss)
    reference["loss"] = torch.tensor(losses, dtype=torch.float64)
    for group, values in enumerate(rates):
        reference[f"hyper/lr/{group}"] = torch.tensor(values, dtype=torch.float64)
    for own in names:
        reference[f"final/{own[0]}"] = copies[own[0]]
        for state, value in optimizer.state.get(copies[own[0]], {}).items():
            wanted = final_state == "all" or (final_state == "zero_gradient" and state == "exp_avg"
                                              and own[0] in package.step["zero_gradient"])
            if isinstance(value, torch.Tensor) and wanted:
                reference[f"final/optimizer/{state}/{own[0]}"] = value
    package.reference = {key: value.detach().clone() for key, value in reference.items()}


@contextlib.contextmanager
def _drawing(rng: list[torch.Tensor]) -> Iterator[None]:
    """For a step that draws: eager runs with the draws of the graph, which are numbered in its order (a checkpointed
    forward that ran twice would shift the numbers)."""
    if not rng:
        yield
        return
    with one_op_composites(), inline_checkpoints(), Draws(*rng):
        yield


def _leaf(template: Any, returned: Any, index: int) -> Any:
    """The part of `returned` where `template` has output number `index`."""
    places = pytree.tree_leaves(template)
    values = pytree.tree_leaves(returned)
    return next(v for place, v in zip(places, values, strict=True) if isinstance(place, Output) and place.index == index)
