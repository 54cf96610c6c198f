"""Parameters whose gradient, or a part of it, is zero but for rounding: what is added to all keys of an attention changes
no softmax, so that the gradient of a key's bias is the rounding of a sum that is zero. Adam turns it into updates of full
size, which are another's noise on every machine."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..observe import patches

_FACTOR = 3.0  # no power of two, by which roundings would only be scaled


def zero_gradients(view: torch.nn.Module, run: Callable[[], Any]) -> list[str]:
    """Those of a step that `run` takes, each time from where the last one began. A gradient grows with the loss, and
    rounding goes its own ways: they are those that do not grow threefold when the loss does, up to the first update."""
    def gradients(factor: float) -> dict[str, torch.Tensor]:
        with _recorded(view) as found, _scaled_losses(factor):
            run()
        return {name: gradient.double() / factor for name, gradient in found.items()}

    once, more = gradients(1.0), gradients(_FACTOR)
    return [name for name, gradient in once.items() if name in more and (
        (gradient - more[name]).abs() > 0.1 * torch.maximum(gradient.abs(), more[name].abs())).any()]


@contextlib.contextmanager
def _recorded(view: torch.nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Gradients by parameter, as they are when an optimizer takes its first step. Of copies of the model, the last's."""
    found: dict[str, torch.Tensor] = {}
    updated: list[Any] = []

    def note(name: str) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            if not updated:
                found[name] = parameter.grad.detach().clone()
        return hook

    handles = [register_optimizer_step_pre_hook(lambda *call: updated.append(call[0]))]
    handles += [parameter.register_post_accumulate_grad_hook(note(name))
                for name, parameter in view.named_parameters() if parameter.requires_grad]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _scaled_losses(factor: float) -> Iterator[None]:
    """While entered, backward() without a gradient starts from `factor`."""
    original = patches.MAKE_GRADS.value()

    def make(outputs: Any, gradients: Any, *also: Any, **more: Any) -> Any:
        made = original(outputs, gradients, *also, **more)
        return tuple(new * factor if given is None and new is not None else new for given, new in zip(gradients, made))

    with patches.replaced({patches.MAKE_GRADS: make}):
        yield
