"""Which run of a step is traced: a step may be traced several times, each time with another state."""
from __future__ import annotations

import dataclasses

from ..optimizer.scheduled import Scheduled


@dataclasses.dataclass(frozen=True)
class Run:
    """The plain run has no gradients when it begins, and keeps none that it clears.

    Parameters are given by their names. `gradients`: their gradients outlive calls, and are state of the step; `copied`: the step
    computes, uses and clears their gradients, which are kept all the same; `keeps_gradients`: also gradients that the step clears
    or computes anew stay state. `accumulates`: the step leaves gradients to later calls, or adds to those of earlier ones.
    `is_first`: optimizers make their state, as in eager's first call; `states`: the states that later calls go on with, by
    parameter and name. `scheduled`: options of param groups that are inputs.
    """

    gradients: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    keeps_gradients: bool = False
    accumulates: bool = False
    is_first: bool = False
    states: frozenset[tuple[str, str]] = frozenset()
    scheduled: Scheduled = Scheduled()
