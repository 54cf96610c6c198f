"""Looking at the state of a compiled training: full parameters for a while, state dicts, one rank's own elements."""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Iterable, Iterator

import torch

from ..arrays import to_numpy, to_torch
from ..models import DTYPES, set_gradient
from ..run.processes import Processes
from ..run.runtime import Shard
from ..state.keys import key_of, place_of
from ..tensor_info import TensorInfo
from .slots import Slot
from .training_state import TrainingState
from .untrained import untrained_states

KINDS = ("full", "sharded")


def select(training: TrainingState, units: Any, recurse: bool) -> list[str]:
    """The names of the parameters in modules, given by name or themselves; not `recurse`: in the units that these are,
    without the units inside of them.

    Raises:
      ValueError: there is no module of the name; it is no unit.
    """
    live, model = training.live, training.current.call.model
    names = [slot.info.name for slot in live.slots if slot.info.state == "param"]
    modules = dict(model.named_modules())
    paths = [""] if units is None else [_path(unit, modules) for unit in
                                        (units if isinstance(units, (list, tuple, set)) else [units])]
    if recurse:
        return [name for name in names if any(_is_in(name, path) for path in paths)]
    known = {module for unit in training.current.plan.units for module in unit.modules}
    for path in paths:
        if path not in known:
            raise ValueError(f"recurse=False requires a shard unit, but {path or 'the whole model'!r} is not a shard unit; "
                             f"units: {', '.join(repr(k) for k in sorted(known))}")
    return [name for name in names
            if max((path for path in known if _is_in(name, path)), key=len, default=None) in paths]


def _path(unit: Any, modules: dict[str, torch.nn.Module]) -> str:
    if isinstance(unit, torch.nn.Module):
        found = [path for path, module in modules.items() if module is unit]
        if not found:
            raise ValueError(f"a {type(unit).__name__} in units is no module of the model")
        return found[0]
    if unit not in modules:
        raise ValueError(f"the model has no module {unit!r}")
    return unit


def _is_in(name: str, path: str) -> bool:
    return not path or name.startswith(f"{path}.")


@contextlib.contextmanager
def unshard(training: TrainingState, names: Iterable[str], writeback: bool, rank0_only: bool, with_grads: bool) -> Iterator[None]:
    """See CompiledStep.unshard_params."""
    live, processes = training.live, training.processes
    chosen, has_them = set(names), processes.rank == 0 or not rank0_only
    slots = [slot for slot in live.slots if slot.info.state == "param" and slot.info.name in chosen]
    lent = [(slot, parameter) for slot, parameter in live.kept_gradients if with_grads and slot.info.name in chosen]
    if with_grads:
        slots += live.gradients_of(chosen, training.options.step.keep_grads) + [slot for slot, _ in lent]
    with training.lock:
        live.before_save()  # what was written before is no part of it
        for slot in slots:
            if has_them:
                slot.fetch()
            elif not live.trainer.reads_alone:
                live.trainer.read(slot.info.state, slot.info.name)
        for slot, parameter in lent if has_them else ():
            set_gradient(parameter, slot.tensor)
    try:
        yield
    finally:
        with training.lock:
            for slot, parameter in lent:
                if parameter.grad is slot.tensor:
                    parameter.grad = None
            if writeback and rank0_only and processes.world > 1:
                _share(slots, processes)
            for slot in slots:
                if slot.is_here and writeback:
                    slot.upload()
            live.put_away(slots)


def _share(slots: list[Slot], processes: Processes) -> None:
    """Gives all processes the values that the first has."""
    for slot in slots:
        slot.bring()
        if slot.tensor.device.type != "cpu" or not slot.tensor.is_contiguous():
            value = slot.tensor.detach().cpu().contiguous()
            processes.share_array(to_numpy(value)[0])
            with torch.no_grad():
                slot.tensor.copy_(value)
        else:
            processes.share_array(to_numpy(slot.tensor.detach())[0])


def state_dict(training: TrainingState, kind: str, rank0_only: bool) -> dict[str, Any]:
    """See CompiledStep.state_dict."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; allowed: {', '.join(KINDS)}")
    live, processes = training.live, training.processes
    with training.lock:
        live.before_save()
        if kind == "sharded":
            count = training.ranks // processes.world
            found: dict[str, list[Shard]] = {}
            for rank in range(processes.rank * count, (processes.rank + 1) * count):
                for key, shard in local_shards(training, rank).items():
                    found.setdefault(key, []).append(shard)
            return found
        if rank0_only and processes.rank and live.trainer.reads_alone:
            return {}
        values = {}
        for info in live.trainer.tensors:
            if not info.saved:
                continue
            value = to_torch(live.trainer.read(info.state, info.name), info.dtype)
            if not rank0_only or processes.rank == 0:
                values |= {key_of(dataclasses.replace(info, name=name)): value for name in (info.name, *info.aliases)}
        if not rank0_only or processes.rank == 0:
            values |= {key: value.cpu().clone() for key, value in untrained_states(live).items()}
        return values


def local_shards(training: TrainingState, rank: int | None) -> dict[str, Shard]:
    """See CompiledStep.local_shards."""
    live, processes = training.live, training.processes
    with training.lock:
        live.before_save()
        rank = processes.rank * (training.ranks // processes.world) if rank is None else rank
        shards = live.trainer.local_shards(rank)
        untrained = {} if rank else untrained_states(live)
        return {key_of(shard.tensor): dataclasses.replace(shard, values=to_torch(shard.values, shard.tensor.dtype))
                for shard in shards} | {key: _whole_shard(key, value) for key, value in untrained.items()}


def _whole_shard(key: str, value: torch.Tensor) -> Shard:
    """Rank 0's shard of optimizer state that no rank trains."""
    state, name = place_of(key)
    return Shard(0, TensorInfo(name, state, DTYPES[value.dtype], tuple(value.shape)), 0, value.cpu().reshape(-1).clone())

