"""Options of param groups, as constants of a program."""
from __future__ import annotations

from ..capture.optimizer.optimizers import Optimizers
from ..capture.optimizer.scheduled import option_names


def options_of(optimizers: Optimizers) -> list[dict[str, str]]:
    """The options of each param group, as text."""
    return [{"params": str(len(group["params"])), **{name: repr(value) for name, value in option_names(group)}}
            for group in optimizers.param_groups]


def as_now(options: list[dict[str, str]], optimizers: Optimizers) -> list[dict[str, str]]:
    """The same options with the values that they have now."""
    return [{name: new[name] for name in own if name in new} for own, new in zip(options, options_of(optimizers))]
