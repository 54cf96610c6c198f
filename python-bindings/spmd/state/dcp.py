"""Checkpoints of torch.distributed.checkpoint (DCP), by its own library: what FSDP2 saves, and loads."""
from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Callable

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from .source import Source


def write(checkpoint: Source, info: dict[str, Any], folder: Path, model: str, optimizer: str) -> None:
    """See checkpoint.to_dcp. `info`: run.json of the checkpoint."""
    weights: dict[str, torch.Tensor] = {}
    states: dict[str, dict[str, torch.Tensor]] = {}
    for key in checkpoint.tensors:
        if key.startswith("optimizer/"):
            _, kind, name = key.split("/", 2)
            if kind != "grad":
                states.setdefault(name, {})[kind] = checkpoint.read_torch(key)
        elif not key.startswith("rng/"):
            weights[key] = checkpoint.read_torch(key)
    groups = [dict(group) for group in checkpoint.notes.get("param_groups", [])]
    if states and not groups:
        groups = [{"params": list(states), **{h["name"]: h["value"] for h in info["hyper"] if h["group"] == 0}}]
    everything: dict[str, Any] = {model: weights}
    if states or groups:
        everything[optimizer] = {"state": states, "param_groups": groups}
    dcp.save(everything, checkpoint_id=folder, no_dist=True)


def read(folder: Path, target: Path, model: str | None, optimizer: str | None, step: int | None,
         make: Callable[..., Path]) -> Path:
    """See checkpoint.from_dcp; `make` is Checkpoint.make."""
    metadata = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    tensors = {key: entry for key, entry in metadata.items() if isinstance(entry, TensorStorageMetadata)}
    optimizer = _find_optimizer(tensors) if optimizer is None else optimizer
    states = _states(tensors, optimizer)
    model = _find_model(tensors, {name for name, _ in states.values()}) if model is None else model
    weights = {key: key[len(model) + 1:] if model else key for key in tensors
               if key not in states and (not model or key.startswith(f"{model}."))}
    if not weights:
        raise ValueError(f"'{folder}' has no model under the name {model!r}; it has "
                         f"{', '.join(sorted({key.split('.')[0] for key in metadata}))}")
    options = re.compile(rf"{re.escape(optimizer)}\.param_groups\.(\d+)\.(\w+)") if optimizer is not None else None
    plain = [key for key in metadata if key not in tensors and options and options.fullmatch(key)]
    found = {key: torch.empty(tensors[key].size, dtype=tensors[key].properties.dtype) for key in (*weights, *states)}
    found |= dict.fromkeys(plain)
    dcp.load(found, checkpoint_id=folder, no_dist=True)
    groups: list[dict[str, Any]] = []
    for key in plain:
        number, name = options.fullmatch(key).groups()
        groups += [{} for _ in range(int(number) + 1 - len(groups))]
        groups[int(number)][name] = found[key]
    named = {weights[key]: found[key] for key in weights}
    named |= {f"optimizer/{kind}/{name}": found[key] for key, (name, kind) in states.items()}
    if step is None:
        step = max((int(found[key]) for key, (_, kind) in states.items() if kind == "step"), default=0)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".dcp-", dir=target) as work:
        save_file({name: tensor.contiguous() for name, tensor in named.items()}, Path(work) / "state.safetensors")
        notes = {"torch": torch.__version__, "objects": [], "processes": 1, "param_groups": groups} if groups else {}
        return make(Path(work) / "state.safetensors", target, step=step, notes=notes)


def _find_optimizer(tensors: dict[str, Any]) -> str | None:
    """The name under which there is a "state"."""
    names = {match.group(1) for key in tensors if (match := re.match(r"(.+?)\.state\.", key))}
    if len(names) > 1:
        raise ValueError(f"optimizers could be {', '.join(sorted(names))}\n  hint: optimizer=, the name of the one that "
                         "is meant")
    return names.pop() if names else None


def _states(tensors: dict[str, Any], optimizer: str | None) -> dict[str, tuple[str, str]]:
    """The parameter and the kind of each tensor of the optimizer's state."""
    if optimizer is None:
        return {}
    prefix = f"{optimizer}.state."
    return {key: tuple(key[len(prefix):].rsplit(".", 1)) for key in tensors if key.startswith(prefix)}


def _find_model(tensors: dict[str, Any], parameters: set[str]) -> str:
    """The name under which the parameters that have state are; "" where they are the top of the checkpoint."""
    for name in sorted(parameters):
        if name in tensors:
            return ""
        found = [key[:-len(name) - 1] for key in tensors if key.endswith(f".{name}")]
        if len(found) == 1:
            return found[0]
    return "model" if any(key.startswith("model.") for key in tensors) else ""
