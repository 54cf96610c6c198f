"""The optimizer and the schedules that a SpmdModule gives to Lightning."""
from __future__ import annotations

from typing import Any, Callable

import torch

from .optimizers import SteppedOptimizer


def with_stepped_optimizer(given: Any, update: Callable[[], None]) -> tuple[list[SteppedOptimizer], list[Any]]:
    """What configure_optimizers gives, with a SteppedOptimizer in place of the optimizer. Schedules, which move the optimizer itself, name
    the SteppedOptimizer as theirs.

    Args:
      given: what the user's configure_optimizers gives.
      update: called by the step() of the SteppedOptimizer.
    """
    schedules: Any = []
    if isinstance(given, dict):
        given, schedules = given["optimizer"], given.get("lr_scheduler", [])
    elif isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], (list, tuple)):
        given, schedules = given
    optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(optimizers) != 1:
        raise ValueError(f"configure_optimizers returns {len(optimizers)} optimizers, but a SpmdModule supports one\n  hint: "
                         "use one optimizer with several param groups, or spmd.compile in manual optimization")
    stepped = SteppedOptimizer(optimizers[0], update)
    schedules = list(schedules) if isinstance(schedules, (list, tuple)) else [schedules]
    for one in schedules:
        schedule = one["scheduler"] if isinstance(one, dict) else one
        if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise ValueError("configure_optimizers returns a ReduceLROnPlateau: SpmdModule does not pass its metric on\n  "
                             "hint: store the scheduler in an attribute, and call its step(metric) in "
                             "on_validation_epoch_end")
        schedule.optimizer = stepped
    return [stepped], schedules
