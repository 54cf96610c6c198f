"""State that a step replaces by another tensor, `state[p]["previous"] = p.grad`: the graph writes it into the tensor of the
state at the end of the step, where no other tensor of the next step shares its memory."""
from __future__ import annotations

import collections
from typing import Any, Iterable

import torch

from ...torch_api.tracing import FakeTensor
from ..observe.memory import memory_of


def write_replaced(states: Iterable[tuple[dict[str, Any], str, torch.Tensor]], others: Iterable[torch.Tensor]) -> None:
    """`states`: the entries of a parameter's state, a name there, and the tensor that was there before the step. `others`:
    all tensors that the next step begins with. What cannot be written stays replaced, which is an error."""
    replaced = [(state, name, old) for state, name, old in states if isinstance(state.get(name), FakeTensor)
                and state[name] is not old and state[name].shape == old.shape and state[name].dtype == old.dtype]
    shared = collections.Counter(memory_of(state[name]) for state, name, _ in replaced)
    shared.update(set(map(memory_of, others)))
    with torch.no_grad():
        for state, name, old in replaced:
            if shared[memory_of(state[name])] == 1:
                old.copy_(state[name])
                state[name] = old
