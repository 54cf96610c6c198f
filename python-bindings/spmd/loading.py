"""What a checkpoint says of a training besides tensors: options of param groups, objects with a state_dict(); and loading
all of it in plain PyTorch."""
from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .capture.optimizers import Optimizers
from .remarks import remark

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

_NAMED = 8


def notes_of(optimizers: Optimizers, names: Mapping[int, str], processes: int, objects: Sequence[str]) -> str:
    """What the checkpoint keeps for take_groups() and read_objects(), as JSON. `names`: of parameters, by identity."""
    groups = [_options(group) | {"params": [names[id(p)] for p in group["params"] if id(p) in names]}
              for group in optimizers.param_groups]
    return json.dumps({"torch": torch.__version__, "processes": processes, "objects": list(objects),
                       "param_groups": groups})


def _options(group: dict[str, Any]) -> dict[str, Any]:
    """Of one param group: numbers, texts, and lists of them."""
    options = {}
    for name, value in group.items():
        value = value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
        if name not in ("params", "param_names") and _is_plain(value):
            options[name] = value
    return options


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def check_groups(notes: dict[str, Any], optimizers: Optimizers, where: str) -> None:
    """Raises when the checkpoint is one of other param groups."""
    saved = notes.get("param_groups")
    if saved is not None and len(saved) != len(optimizers.param_groups):
        raise ValueError(f"{where} has {len(saved)} param groups, the optimizer has {len(optimizers.param_groups)}")


def take_groups(notes: dict[str, Any], optimizers: Optimizers) -> None:
    """Sets the options of param groups to those of a checkpoint; one of the command line has none."""
    for group, options in zip(optimizers.param_groups, notes.get("param_groups", ())):
        for name, value in options.items():
            if name == "params":
                continue
            known = group.get(name)
            if isinstance(known, torch.Tensor):
                known.fill_(value)
            else:
                group[name] = tuple(value) if isinstance(known, tuple) else value


def objects_file(objects: Mapping[str, Any], process: int) -> tuple[str, bytes]:
    """The file of a process with the states of objects, and its name."""
    buffer = io.BytesIO()
    torch.save({name: value.state_dict() for name, value in objects.items()}, buffer)
    return _file_name(process), buffer.getvalue()


def _file_name(process: int) -> str:
    return f"objects-{process:05d}.pt"


def read_objects(checkpoint: Checkpoint, objects: Mapping[str, Any], process: int, processes: int) -> dict[str, Any]:
    """The states that the objects had in this process; in that of rank 0, where there were not as many.

    Raises:
      ValueError: the checkpoint has none for one of them.
    """
    if not objects:
        return {}
    saved = checkpoint.notes.get("objects", [])
    missing = [name for name in objects if name not in saved]
    if missing:
        raise ValueError(f"checkpoint '{checkpoint.folder}' has no object {', '.join(map(repr, missing))}; it has "
                         f"{', '.join(map(repr, saved)) or 'none'}")
    before = checkpoint.notes.get("processes", 1)
    if before != processes:
        remark(f"checkpoint '{checkpoint.folder}' was saved by {before} processes, and {processes} load it: the objects of "
               "all are those of rank 0")
        process = 0
    return torch.load(io.BytesIO(checkpoint.read_file(_file_name(process))), weights_only=True)


def load_into(checkpoint: Checkpoint, model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer],
              strict: bool) -> None:
    """See checkpoint.load."""
    together = Optimizers(optimizers)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    tensors = parameters | dict(model.named_buffers(remove_duplicate=False))
    trained = set(map(id, together.parameters))
    missing = [name for name in model.state_dict(keep_vars=True) if name not in checkpoint.tensors and name in tensors]
    unexpected, shapes = [], []
    for key, info in checkpoint.tensors.items():
        kind, name = _place(key)
        owner = tensors.get(name)
        if kind == "rng" or (kind and not optimizers):
            continue
        if owner is None or (kind and id(owner) not in trained):
            unexpected.append(key)
        elif not kind and tuple(owner.shape) != info.shape:
            shapes.append(f"{key} as {list(info.shape)}, not {list(owner.shape)}")
    problems = [f"it has {name_list(shapes)}"] * bool(shapes)
    if strict:
        problems += [f"it lacks {name_list(missing)}"] * bool(missing) + [f"unexpected {name_list(unexpected)}"] * bool(unexpected)
    where = f"checkpoint '{checkpoint.folder}'"
    if problems:
        raise ValueError(f"{where} does not fit the model, nothing was loaded: {'; '.join(problems)}")
    if optimizers:
        check_groups(checkpoint.notes, together, where)
    with torch.no_grad():
        for key in checkpoint.tensors:
            kind, name = _place(key)
            if key in unexpected or kind == "rng" or (kind and not optimizers):
                continue
            value = checkpoint.read_torch(key)
            if not kind:
                tensors[name].copy_(value)
            elif kind == "grad":
                parameters[name].grad = value.to(parameters[name].device)
            else:
                state = together.make_state_of(parameters[name])
                state[kind] = value if kind == "step" else value.to(parameters[name].device)
    take_groups(checkpoint.notes, together)


def _place(key: str) -> tuple[str, str]:
    """Which state a key is of ("" for parameters and buffers), and of which tensor."""
    if key.startswith("rng/"):
        return "rng", key[4:]
    return tuple(key.split("/", 2)[1:]) if key.startswith("optimizer/") else ("", key)


def name_list(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    return ", ".join(names[:_NAMED]) + more
