"""Methods of a Trainer, and hooks of its callbacks, that can see gradients before they are cleared.

The Trainer calls, for the last batch of an update: training_step, floating_point_ops and _track_num_input_tokens; _clip_grad_norm and
_get_grad_norm; on_pre_optimizer_step of callbacks; the optimizer's step; on_optimizer_step of callbacks; the model's zero_grad().
Nobody sees gradients if these are the Trainer's own: then one compiled step does all.
"""
from __future__ import annotations

import functools
from typing import Any, Iterable

import torch
from transformers import Trainer, TrainerCallback

from .optimizers import has_gradients
from .users_lines import Methods, is_overridden, line_of

_OWN = ("_clip_grad_norm", "_get_grad_norm")  # which SpmdTrainer has, too
_METHODS = (*_OWN, "training_step", "floating_point_ops", "_track_num_input_tokens")
_OF_CALLBACKS = Methods(TrainerCallback, "on_pre_optimizer_step", "on_optimizer_step")
_AFTER_UPDATE, _OF_MODELS = Methods(TrainerCallback, "on_optimizer_step"), Methods(torch.nn.Module, "zero_grad")


@functools.lru_cache(maxsize=1)
def _of_trainers(kind: type[Trainer]) -> Methods:
    return Methods(kind, *_METHODS)


def sees_gradients(trainer: Trainer, kind: type[Trainer], rest: Any) -> bool:
    """Whether something of the user's runs between the gradients and the update, or before gradients are cleared.

    Args:
      trainer: the Trainer.
      kind: SpmdTrainer, whose own methods count as the Trainer's.
      rest: `super()` of SpmdTrainer: the classes that stand after it.
    """
    return _of_trainers(kind).is_overridden_by(trainer) or _OF_MODELS.is_overridden_by(trainer.model) \
        or any(map(_OF_CALLBACKS.is_overridden_by, trainer.callback_handler.callbacks)) \
        or any(is_overridden(rest, name, Trainer) for name in _OWN)


def keeps_gradients(callbacks: Iterable[TrainerCallback], model: torch.nn.Module) -> bool:
    """Whether a callback sees gradients after the update, or the model clears gradients in its own way."""
    return any(map(_AFTER_UPDATE.is_overridden_by, callbacks)) or _OF_MODELS.is_overridden_by(model)


def check_gradients(trainer: Trainer, parameters: Iterable[torch.Tensor]) -> None:
    """Raises if there are gradients after the compiled step that has done the update."""
    if has_gradients(parameters):
        raise TypeError(f"gradients came up between the compiled step of {type(trainer).__name__} and the optimizer's step, which is part "
                        f"of it\n{line_of(trainer.compute_loss)}\n  hint: call backward() in compute_loss or in training_step")
