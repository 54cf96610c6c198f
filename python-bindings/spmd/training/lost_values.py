"""What a step that failed on the ranks has left without values."""
from __future__ import annotations

import dataclasses
from typing import Collection

import torch

from ..capture.optimizer.optimizers import Optimizers
from ..models import tensor_names
from ..remarks import remark
from ..state.keys import name_list
from ..torch_api.tensors import version_of


class StateLostError(RuntimeError):
    """A step failed half-way on the ranks: what parameters and optimizer state are, nobody knows."""


class Valueless:
    """A tensor whose value is lost: nan, the least integer, or False, until it is written."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor
        with torch.no_grad():
            tensor.fill_(self._mark)
        self._version = -1 if tensor.is_inference() else version_of(tensor)

    @property
    def _mark(self) -> float | int | bool:
        dtype = self.tensor.dtype
        return float("nan") if dtype.is_floating_point else dtype is not torch.bool and torch.iinfo(dtype).min

    def is_written(self) -> bool:
        """It has another value; p.data.copy_() leaves no trace but that."""
        tensor, mark = self.tensor.detach(), self._mark
        return self._version not in (-1, version_of(tensor)) or \
            not bool((tensor.isnan() if mark != mark else tensor == mark).all())


@dataclasses.dataclass
class LostValues:
    """Tensors without a value.

    Attributes:
      tensors: parameters, buffers and constants, by name.
      states: parameters whose optimizer state is lost, by name.
    """

    tensors: dict[str, Valueless] = dataclasses.field(default_factory=dict)
    states: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)

    def take(self, other: LostValues) -> None:
        """Adds what another state has lost."""
        self.tensors |= other.tensors
        self.states |= other.states

    def check(self, model: torch.nn.Module, optimizers: Optimizers, resumed: Collection[str], step: str) -> None:
        """Checks that a training can begin with the values of the model, and forgets what was lost.

        Args:
          resumed: keys of the values that are loaded next.
          step: the name of the step, for the remark on optimizer state that begins anew.

        Raises:
          StateLostError: a value was lost, and nobody has loaded another.
        """
        own = {id(tensor) for _, tensor, _ in tensor_names(model).values()}
        lost = [name for name, value in self.tensors.items()
                if name not in resumed and id(value.tensor) in own and not value.is_written()]
        if lost:
            raise StateLostError(f"{name_list(lost)} lost their values when a step failed on the ranks, and have got no "
                                 "others since\n  hint: load_checkpoint(), or load_state_dict() of model and optimizer")
        anew = [name for name, parameter in self.states.items()
                if not optimizers.state_of(parameter) and not any(key.startswith("optimizer/") for key in resumed)]
        if anew:
            remark(f"{step}: the optimizer's state of {name_list(anew)} was lost when a step failed on the ranks, "
                   "and begins anew")
        self.tensors, self.states = {}, {}
