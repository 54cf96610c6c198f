"""Runs a step.json on real tensors, one torch.ops call a node: the proof that a package says all that eager does."""
from __future__ import annotations

from typing import Any

import spmd.capture.ops.composites  # registers spmd::sdpa  # noqa: F401
import spmd.capture.ops.draws  # registers spmd::philox_uniform  # noqa: F401
import torch
from iterations import unroll

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "i1": torch.bool}


class StepInterpreter:
    """Holds the state of one training run; step(batch) runs every node in order, in place like the original."""

    def __init__(self, step: dict, weights: dict[str, torch.Tensor]):
        self.step_json = step = unroll(step)
        self.state: dict[int, torch.Tensor] = {}
        self.names: dict[int, str] = {}
        for i in step["inputs"]:
            if i["kind"] in ("param", "buffer"):
                key = i["name"]
            elif i["kind"] == "constant":
                key = f"constant/{i['name']}"
            elif i["kind"] == "state":
                key = f"optimizer/{i['state']}/{i['of']}"
            elif i["kind"] == "hyper":
                self.state[i["id"]] = torch.tensor(i["value"], dtype=torch.float64)
                continue
            elif i["kind"] == "rng":
                self.state[i["id"]] = torch.tensor(i["value"])
                continue
            else:
                continue
            self.names[i["id"]] = key
            self.state[i["id"]] = weights[key].clone() if key in weights \
                else torch.full(i["shape"], i["init"], dtype=DTYPES[i["dtype"]])

    def __call__(self, batch: dict[str, torch.Tensor], lr: list[float] | None = None) -> list[torch.Tensor]:
        """One step; returns the outputs in order."""
        values: dict[int, Any] = dict(self.state)
        for i in self.step_json["inputs"]:
            if i["kind"] == "batch":
                values[i["id"]] = batch[i["name"]]
            elif i["kind"] == "hyper" and i["name"] == "lr" and lr is not None:
                values[i["id"]] = torch.tensor(lr[i["group"]], dtype=torch.float64)
        with torch.no_grad():
            for node in self.step_json["nodes"]:
                self._run(node, values)
        return [values[o["value"]] for o in self.step_json["outputs"]]

    def tensors(self) -> dict[str, torch.Tensor]:
        return {name: self.state[number] for number, name in self.names.items()}

    def _run(self, node: dict, values: dict[int, Any]) -> None:
        namespace, name, overload = node["op"].split(".")
        op = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        given = {n: _decode(a, values) for n, a in node["args"]}
        if node["op"] == "spmd.sdpa_backward.default" and node["results"][3] is not None:
            given["mask_gradient"] = True
        args = [given[a.name] for a in op._schema.arguments if not a.kwarg_only and a.name in given]
        kwargs = {a.name: given[a.name] for a in op._schema.arguments if a.kwarg_only and a.name in given}
        results = _flatten(op(*args, **kwargs))
        results = results if node["results"] else []
        assert len(results) == len(node["results"]), node
        for record, value in zip(node["results"], results):
            if record is not None:
                shape = list(value.shape) if isinstance(value, torch.Tensor) else []
                assert shape == record["shape"], (node, shape)
                if isinstance(value, torch.Tensor):
                    assert value.dtype == DTYPES[record["dtype"]], (node, value.dtype)
                values[record["id"]] = value


def _flatten(value: Any) -> list[Any]:
    return [leaf for v in value for leaf in _flatten(v)] if isinstance(value, (tuple, list)) else [value]


def _decode(argument: dict, values: dict[int, Any]) -> Any:
    (kind, value), = argument.items()
    if kind == "value":
        return values[value]
    if kind == "values":
        return [None if v is None else values[v] for v in value]
    if kind == "float":
        return float(value)
    if kind == "floats":
        return [float(v) for v in value]
    if kind == "dtype":
        return DTYPES[value]
    if kind == "memory_format":
        return getattr(torch, value)
    return value
