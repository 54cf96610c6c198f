"""How a step is made parallel, as one object: torch.distributed._spmd's parallel_mode."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Protocol, Sequence

import torch

from ..passes import Pass
from ..torch_api.fsdp import UnitsPolicy

STYLES = ("replicate", "fully_shard", "default")


class ParallelMode(Protocol):
    """Any object with this method."""

    def partition(self, model: torch.nn.Module) -> dict[torch.nn.Module, dict[str, Any]]:
        """The shard units, asked for when a step is captured: a module for each, with its options (docs/shard-units.md:
        mode, reshard_after_forward, …), as the _run_policy of an FSDP policy gives them."""


@dataclasses.dataclass(frozen=True)
class DataParallel:
    """What torch.distributed._spmd has under this name: one style for all of the model.

    Args:
      parallel_style: "replicate": every rank has everything, and gradients are summed. "fully_shard": each has a part.
        "default": as much of it as fits is kept, within options=["--memory-budget=…"].
      custom_passes: a pass over the partitioned program, or several.
    """

    parallel_style: str = "replicate"
    custom_passes: Pass | Sequence[Pass] | None = None

    def __post_init__(self) -> None:
        if self.parallel_style not in STYLES:
            raise ValueError(f"parallel_style is {self.parallel_style!r}; allowed: {', '.join(STYLES)}")

    @property
    def passes(self) -> tuple[Pass, ...]:
        given = self.custom_passes
        return () if given is None else (given,) if callable(given) or isinstance(given, str) else tuple(given)


class _Partition(UnitsPolicy):
    """A mode as a wrap policy."""

    def __init__(self, mode: ParallelMode):
        self._mode = mode

    def units(self, root_module: torch.nn.Module, ignored_modules: set[torch.nn.Module],
              root_kwargs: dict[str, Any]) -> dict[torch.nn.Module, dict[str, Any]]:
        units = self._mode.partition(root_module)
        if not isinstance(units, dict):
            raise TypeError(f"expected {type(self._mode).__name__}.partition to return a dict of options by module, got a "
                            f"{type(units).__name__}")
        return {module: {**root_kwargs, **options} for module, options in units.items()}


def arguments_of(mode: Any, policy: Any, style: str | None) -> dict[str, Any]:
    """The arguments of spmd.compile that a parallel_mode stands for: `policy`, `mode` and `passes`.

    Raises:
      ValueError: policy= or mode= is given as well.
      TypeError: it is no mode.
    """
    for name, given in (("policy", policy), ("mode", style)):
        if given is not None:
            raise ValueError(f"parallel_mode and {name}={given!r} both choose the partition\n  hint: pass only one of them")
    if isinstance(mode, DataParallel):
        return {"mode": mode.parallel_style, "policy": None, "passes": mode.passes}
    partition: Callable | None = getattr(mode, "partition", None)
    if not callable(partition):
        raise TypeError("expected parallel_mode to be spmd.DataParallel, or an object whose partition(model) returns a dict "
                        f"of options by module; got {mode!r}")
    return {"mode": None, "policy": _Partition(mode), "passes": ()}
