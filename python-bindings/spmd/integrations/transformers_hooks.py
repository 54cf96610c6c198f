"""Methods of a Trainer, and hooks of its callbacks, that would need the gradients a compiled step keeps to itself."""
from __future__ import annotations

from typing import Any, Iterable

import torch
from transformers import Trainer, TrainerCallback

from .users_lines import line_of, overridden

_IN_THE_STEP = "change the loss in compute_loss, or the gradients in step() of an optimizer of your own; both are compiled"
_CALLBACKS = {"on_pre_optimizer_step": "on_step_begin or on_step_end; for gradients, step() of an optimizer of your own",
              "on_optimizer_step": "on_step_end; for gradients, step() of an optimizer of your own"}


def check_methods(trainer: Trainer, kind: type[Trainer], rest: Any) -> None:
    """Raises for a method of the Trainer that would run without gradients or not at all.

    Args:
      trainer: the Trainer.
      kind: SpmdTrainer, whose own methods count as the Trainer's.
      rest: `super()` of SpmdTrainer: the classes that stand after it.
    """
    names = ("_clip_grad_norm", "_get_grad_norm")
    for name, method in overridden(trainer, names, kind) + overridden(rest, names, Trainer):
        raise TypeError(f"{type(trainer).__name__}.{name} does not see gradients: they exist only in the compiled step of a "
                        f"SpmdTrainer, which clips them\n{line_of(method)}\n  cure: max_grad_norm of TrainingArguments; or clip "
                        "in step() of an optimizer of your own")


def check_callbacks(callbacks: Iterable[TrainerCallback]) -> None:
    """Raises for a callback with a hook between backward and zero_grad."""
    for callback in callbacks:
        for name, hook in overridden(callback, tuple(_CALLBACKS), TrainerCallback):
            raise TypeError(f"{type(callback).__name__}.{name} would see no gradients: the optimizer's step is part of the "
                            f"compiled step of a SpmdTrainer, and is over\n{line_of(hook)}\n  cure: {_CALLBACKS[name]}")


def check_gradients(trainer: Trainer, optimizer: torch.optim.Optimizer) -> None:
    """Raises where the Trainer's loop steps the optimizer, and gradients are left that no compiled step has used."""
    if all(param.grad is None for group in optimizer.param_groups for param in group["params"]):
        return
    raise TypeError(f"{type(trainer).__name__} calls backward() outside its compiled step, or leaves this step out: gradients are left "
                    f"that no optimizer's step has used\n{line_of(trainer.training_step)}\n  cure: {_IN_THE_STEP}")
