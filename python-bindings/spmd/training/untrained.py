"""Optimizer state that the ranks do not have: that of parameters which the current program does not train, because they were
frozen after some steps. It stays in the optimizer, and a checkpoint has it in a file of its own (state/untrained_file.py)."""
from __future__ import annotations

import torch

from ..capture.optimizer.masters import MASTER
from ..state.checkpoint import Checkpoint
from ..state.keys import key_of, place_of
from .live_state import LiveState


def untrained_states(live: LiveState) -> dict[str, torch.Tensor]:
    """The tensors by their keys in a checkpoint."""
    names = {id(parameter): name for name, parameter in reversed(live.named.items())}
    known = {key_of(slot.info) for slot in live.states}
    found = {f"optimizer/{kind}/{names[id(parameter)]}": value for parameter, state in live.optimizers.states
             for kind, value in state.items() if isinstance(value, torch.Tensor) and id(parameter) in names}
    # What the ranks have is not touched: it would be read from them, by all processes together.
    return {key: value.detach() for key, value in found.items() if key not in known}


def is_elsewhere(live: LiveState, source: Checkpoint) -> bool:
    """Whether the ranks cannot load a checkpoint by themselves: it has state of parameters that the program does not train,
    or a file of untrained parameters."""
    trained = set(map(id, live.optimizers.parameters)) - {id(live.named[slot.info.name]) for slot in live.states}
    on_ranks = {key_of(info) for info in live.trainer.tensors}  # also what passes have added
    states = ((key, kind, live.named[name]) for key in source.tensors
              for kind, name in [place_of(key)] if name in live.named)
    # The ranks do not read the file of untrained parameters, which may be of parameters that they train by now.
    return any(key in source.untrained or key not in on_ranks and kind not in ("", "grad", MASTER) and id(parameter) in trained
               for key, kind, parameter in states)
