"""How far a compiled step may be from eager PyTorch: measured, not chosen.

The eager step is run again with its parameters moved by one rounding: what that changes is how the program carries
roundings on. What lies between eager in the dtype that is trained and in float64 is its rounding error. A compiled step
may have a small multiple of either, for its sums have other orders.
"""
from __future__ import annotations

from typing import Iterable

import torch

from eager import Trace

# A multiple of the rounding errors that eager itself shows, which are one sample of a random walk.
SAMPLES = 32
# Of |b|, of each tensor. Sums here have some hundred terms, of which a step has some tens in a row.
RELATIVE, EPSILONS = 1e-12, 128
# Of |b|: a tensor of which no more is known is noise.
DIVERGED = 0.1
# A tensor that is zero but for rounding, next to the largest of its kind.
NOISE = 64


def _kind_of(name: str) -> str:
    """Tensors of one kind share a scale: results of one name, parameters, a state."""
    return name.split("/")[1] if "/" in name else "parameter"


class Tolerance:
    """`expected` is eager's, `others` what eager gives from other roundings, `epsilon` that of the dtype."""

    def __init__(self, expected: Trace, others: Iterable[Trace], epsilon: float):
        self.expected, self.others, self.epsilon = expected, list(others), epsilon
        self.largest: dict[str, float] = {}
        for name, tensor in expected.items():
            kind = _kind_of(name)
            self.largest[kind] = max(self.largest.get(kind, 1e-3), float(tensor.double().norm()))

    def of(self, name: str) -> float:
        epsilon = max(self.epsilon, torch.finfo(self.expected[name].dtype).eps)
        expected = self.expected[name].double()
        rounding = max(float((other[name].double() - expected).norm()) for other in self.others)
        return max(SAMPLES * rounding, max(RELATIVE, EPSILONS * epsilon) * float(expected.norm()),
                   NOISE * epsilon * self.largest[_kind_of(name)])

    def differences(self, got: Trace) -> dict[str, str]:
        """A line for each tensor of `got` that is wrong, by its name."""
        found = {name: self._difference(name, value) for name, value in got.items() if name in self.expected}
        return {name: text for name, text in found.items() if text}

    def _diverges(self, name: str) -> bool:
        """Whether roundings have grown into a good part of what the same step gives in floating point: of choices made by
        such numbers, two other runs are too few to show that they are none."""
        step = name.partition("/")[0] + "/"
        return any(self.of(other) > DIVERGED * float(tensor.double().norm()) for other, tensor in self.expected.items()
                   if step[0].isdigit() and other.startswith(step) and tensor.is_floating_point())

    def _difference(self, name: str, value: torch.Tensor) -> str:
        expected = self.expected[name]
        if value.shape != expected.shape:
            return f"{name} is {list(value.shape)}, expected {list(expected.shape)}"
        if not expected.is_floating_point():
            is_stable = all(torch.equal(other[name], expected) for other in self.others)
            return "" if not is_stable or self._diverges(name) or torch.equal(value.to(expected.dtype), expected) else \
                f"{name} is {value.tolist()}, expected {expected.tolist()}"
        apart, allowed = float((value.double() - expected.double()).norm()), self.of(name)
        return "" if apart <= allowed else (f"{name} is {apart:.3g} off, allowed {allowed:.3g}, its norm is "
                                            f"{float(expected.double().norm()):.3g}")
