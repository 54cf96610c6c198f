"""The return value of a step, as an artifact describes it (docs/step-format.md, result_tree)."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..arrays import NUMPY


def rebuild(tree: Any, outputs: list[Any], convert: Callable[[np.ndarray, str], Any]) -> Any:
    """The return value that `tree` describes. `convert` makes a tensor of an array and its dtype."""
    (kind, value), = tree.items()
    if kind == "output":
        return outputs[value]
    if kind == "item":
        return outputs[value].item()
    if kind == "empty":
        return convert(np.empty(value["shape"], NUMPY[value["dtype"]]), value["dtype"])
    if kind == "dict":
        return {key: rebuild(part, outputs, convert) for key, part in value}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(rebuild(part, outputs, convert) for part in value)
    return value  # constant
