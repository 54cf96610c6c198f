"""Labels that a mask chooses, `labels[labels != -100]` of [batch, length], as the loss of connectionist temporal classification
takes them: one after the other, as many for each row as its length says."""
from __future__ import annotations

import inspect
from typing import Any, Callable

import torch
from torch.nn import functional

from .lazy_rows import Origin, Rows, refused

_aten = torch.ops.aten
TAKES_LABELS = (functional.ctc_loss,)


def ctc_loss(func: Callable, origin: Origin, args: tuple, kwargs: dict) -> torch.Tensor:
    """Of labels that are moved to the front of their row. Its length must be how many the mask chooses there, which the step
    checks: else a label would be another row's."""
    given = inspect.signature(func).bind(*args, **kwargs)
    given.apply_defaults()
    labels = given.arguments["targets"]
    if [name for name, value in given.arguments.items() if isinstance(value, Rows)] != ["targets"] \
            or len(origin.shape) != 2 or labels.sample.dim() != 1:
        raise refused(func, ", not of labels that a mask of [batch, length] chooses")
    chosen, rows = origin.valid.reshape(origin.shape), origin.full(labels).reshape(origin.shape)
    lengths = torch.as_tensor(given.arguments["target_lengths"])
    _aten._assert_async.msg((lengths == chosen.sum(1)).all(), "ctc_loss: target_lengths are not how many labels the mask chooses in each row")
    # [batch, place at the front, place in the row]
    is_there = chosen[:, None] & (chosen.cumsum(1)[:, None] == torch.arange(1, origin.shape[1] + 1)[:, None])
    given.arguments["targets"] = torch.where(is_there, rows[:, None], 0).sum(2)
    return func(**given.arguments)
