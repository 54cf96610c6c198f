"""What a checkpoint says of a training besides tensors: options of param groups, objects with a state_dict(); and loading
all of it in plain PyTorch."""
from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from ..capture.optimizer.optimizers import Optimizers
from ..dtypes import FLOATING
from ..models import DTYPES, saved_names, set_gradient, without_wrappers
from ..remarks import remark
from .differences import Differences, check_differences
from .keys import place_of
from .source import FolderSource, Source
from .untrained_file import NOTE


def notes_of(optimizers: Optimizers, names: Mapping[int, str], processes: int, objects: Sequence[str],
             has_untrained: bool) -> str:
    """What the checkpoint keeps for take_groups() and read_objects(), as JSON.

    Args:
      names: of parameters, by identity.
      has_untrained: it has the file of untrained_file.py.
    """
    groups = [_options(group) | {"params": [names[id(p)] for p in group["params"] if id(p) in names]}
              for group in optimizers.param_groups]
    return json.dumps({"torch": torch.__version__, "processes": processes, "objects": list(objects),
                       "param_groups": groups, **({NOTE: True} if has_untrained else {})})


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


def read_objects(checkpoint: FolderSource, objects: Mapping[str, Any], process: int, processes: int) -> dict[str, Any]:
    """The states that the objects had in this process; in that of rank 0, where there were not as many.

    Raises:
      ValueError: the checkpoint has none for one of them.
    """
    if not objects:
        return {}
    saved = checkpoint.notes.get("objects", [])
    missing = [name for name in objects if name not in saved]
    if missing:
        raise ValueError(f"{checkpoint.describe()} has no object {', '.join(map(repr, missing))}; it has "
                         f"{', '.join(map(repr, saved)) or 'none'}")
    before = checkpoint.notes.get("processes", 1)
    if before != processes:
        remark(f"checkpoint '{checkpoint.folder}' was saved by {before} processes, and {processes} load it: the objects of "
               "all are those of rank 0")
        process = 0
    return torch.load(io.BytesIO(checkpoint.read_file(_file_name(process))), weights_only=True)


@dataclasses.dataclass(frozen=True)
class Target:
    """The model and the optimizers that values are loaded into.

    Attributes:
      model: has all tensors of the step, those of modules that it reaches without an argument, too.
      argument: the model without such modules.
      has_state: the optimizers have taken steps.
      states: the keys of the optimizer states that the next step reads; None: nobody knows yet.
    """

    model: torch.nn.Module
    argument: torch.nn.Module
    optimizers: Optimizers
    has_state: bool
    states: Collection[str] | None = None

    def required(self, source: Source) -> torch.nn.Module:
        """The module whose saved tensors the source must have: files of other programs have those of the argument alone."""
        further = saved_names(self.model) - saved_names(self.argument)
        return self.argument if further.isdisjoint(map(without_wrappers, source.tensors)) else self.model


def load_into(source: Source, target: Target, strict: bool) -> None:
    """Puts what a checkpoint or a file has into a model and its optimizers. State of frozen parameters that the source has
    not is dropped, as Optimizer.load_state_dict() does.

    Raises:
      ValueError: tensors are missing, unexpected, of another shape or type, which are all listed, and nothing has changed;
        not `strict`: only the last two.
    """
    together = target.optimizers
    parameters = dict(target.model.named_parameters(remove_duplicate=False))
    tensors = parameters | dict(target.model.named_buffers(remove_duplicate=False))
    trained = set(map(id, together.parameters))
    given = {id(tensors[key]) for key in source.tensors if key in tensors}
    saved = saved_names(target.required(source))
    missing = [name for name, tensor in tensors.items() if without_wrappers(name) in saved and id(tensor) not in given]
    missing += _missing_states(source, target, parameters)
    unexpected, shapes = [], []
    for key, info in source.tensors.items():
        kind, name = place_of(key)
        owner = tensors.get(name)
        if kind == "rng" or (kind and not together.parts):
            continue
        if owner is None or (kind and id(owner) not in trained):
            unexpected.append(key)
        elif not kind and tuple(owner.shape) != info.shape or kind and info.shape not in ((), tuple(owner.shape)):
            shapes.append(f"{key} as {list(info.shape)}, not {list(owner.shape)}")
        elif not kind and not _converts(info.dtype, DTYPES.get(owner.dtype, "")):
            shapes.append(f"{key} as {info.dtype}, not {DTYPES.get(owner.dtype, owner.dtype)}")
    check_differences(source, Differences(shapes, missing, unexpected), strict)
    if together.parts:
        check_groups(source.notes, together, source.describe())
    with torch.no_grad():
        for key in source.tensors:
            kind, name = place_of(key)
            if key in unexpected or kind == "rng" or (kind and not together.parts):
                continue
            value = source.read_torch(key)
            if not kind:
                tensors[name].copy_(value)
            elif kind == "grad":
                set_gradient(parameters[name], value.to(parameters[name].device))
            else:
                _set_state(together.make_state_of(parameters[name]), kind, value, parameters[name])
    if strict:
        drop_frozen_states(source, parameters, together)
    take_groups(source.notes, together)


def drop_frozen_states(source: Source, parameters: Mapping[str, torch.Tensor], together: Optimizers) -> None:
    """Drops the optimizer state of frozen parameters that a source with optimizer state has not: when the source was saved,
    there was none."""
    if not source.has_optimizer:
        return
    given = {(kind, id(parameters[name])) for kind, name in map(place_of, source.tensors) if name in parameters}
    for part in together.parts:
        for parameter, state in [entry for entry in part.state.items() if not entry[0].requires_grad]:
            for kind in [kind for kind in state if (kind, id(parameter)) not in given]:
                if isinstance(state[kind], torch.Tensor):
                    del state[kind]
            if not state:
                del part.state[parameter]


def _missing_states(source: Source, target: Target, parameters: dict[str, torch.Tensor]) -> list[str]:
    """Keys of optimizer state that a training which has taken steps would go on with as it is, what some parameters have
    and others not, and what the next step reads."""
    given: dict[str, set[int]] = {}  # the parameters of each kind of state
    for kind, name in map(place_of, source.tensors):
        if kind not in ("", "rng", "grad") and name in parameters:
            given.setdefault(kind, set()).add(id(parameters[name]))
    if given and target.states is not None:
        return [key for key in target.states for kind, name in [place_of(key)]
                if id(parameters[name]) not in given.get(kind, ())]
    trained = set(map(id, target.optimizers.parameters))
    names = {id(p): name for name, p in reversed(parameters.items()) if id(p) in trained and p.requires_grad}
    if not given and not target.has_state:
        return []
    return [f"optimizer/{kind}/{name}" for kind in sorted(given) or ["*"] for number, name in reversed(names.items())
            if number not in given.get(kind, ())]


def _set_state(state: dict[str, Any], kind: str, value: torch.Tensor, parameter: torch.Tensor) -> None:
    known = state.get(kind)
    if isinstance(known, torch.Tensor) and known.shape == value.shape:
        known.copy_(value)
    else:
        state[kind] = value.clone() if kind == "step" else value.to(parameter.device, copy=True)


def _converts(found: str, own: str) -> bool:
    return found == own or {found, own} <= set(FLOATING)
