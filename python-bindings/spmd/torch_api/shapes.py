"""Symbolic shapes, whose import loads sympy (0.7 s)."""
from __future__ import annotations

# The shape environment of a FakeTensorMode: it decides what Python receives for a data-dependent number.
from torch.fx.experimental.symbolic_shapes import ShapeEnv
