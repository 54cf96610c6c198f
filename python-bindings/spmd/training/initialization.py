"""Values of a model on the meta device, made module by module and given to the ranks: what is in memory is one module's."""
from __future__ import annotations

import contextlib
import hashlib
import weakref
from typing import Any, Callable, Iterator, Mapping

import torch

from ..annotations import annotation_of
from ..models import tensor_names
from ..torch_api.modules import buffers_of, parameters_of

Initialize = Callable[[torch.nn.Module], Any]


def meta_names(model: torch.nn.Module) -> list[str]:
    """The parameters and buffers that have no value to begin with, by their first names."""
    return [names[0] for _, tensor, names in tensor_names(model).values() if tensor.device.type == "meta"]


def check_replaceable(model: torch.nn.Module) -> None:
    """Raises for tensors on the meta device that cannot become tensors of the CPU, as somebody would not notice."""
    for _, tensor, names in tensor_names(model).values():
        if tensor.device.type == "meta" and weakref.getweakrefs(tensor):
            raise ValueError(f"{names[0]!r} is on the meta device, and something has a weak reference to it, so that it cannot "
                             "become a tensor with a value\n  hint: make such references after the first call")


def initialize(model: torch.nn.Module, names: set[str], init: Initialize | None, seed: int,
               write: Callable[[str, str, torch.Tensor], None]) -> None:
    """Makes the values of what is named: a module's own tensors by `param_init_fn`, where one was said of the unit that it
    is in or is given (`init`), else by its reset_parameters(), as PyTorch's FSDP does. A tensor in several modules is made
    by the first. Random numbers are a function of the seed and of the module's name alone.

    Raises:
      ValueError: a module says nothing of its values, or not of all.
    """
    wanted = {id(tensor): (kind, known[0]) for kind, tensor, known in tensor_names(model).values() if known[0] in names}
    chosen = _functions(model, init)
    for path, module in model.named_modules():
        own = {own_name: tensor for tensors in (parameters_of(module), buffers_of(module))
               for own_name, tensor in tensors.items() if id(tensor) in wanted}
        if not own:
            continue
        for own_name, value in _make(path, module, own, chosen[id(module)], seed).items():
            kind, name = wanted.pop(id(own[own_name]))
            write(kind, name, value)


def _functions(model: torch.nn.Module, init: Initialize | None) -> Mapping[int, Initialize | None]:
    """What makes the values of each module, by identity: what was said of the innermost unit around it."""
    found: dict[int, Initialize | None] = {}

    def walk(module: torch.nn.Module, function: Initialize | None) -> None:
        annotation = annotation_of(module)
        if annotation is not None and annotation.init is not None:
            function = annotation.init
        found.setdefault(id(module), function)
        for child in module.children():
            walk(child, function)

    walk(model, init)
    return found


def _make(path: str, module: torch.nn.Module, own: dict[str, torch.Tensor], init: Initialize | None,
          seed: int) -> dict[str, torch.Tensor]:
    """New values of some of a module's own tensors. The module is left as it was."""
    where = f"module '{path}' ({type(module).__name__})" if path else f"the model ({type(module).__name__})"
    if init is None and not callable(getattr(module, "reset_parameters", None)):
        raise ValueError(f"{where} is on the meta device: {', '.join(map(repr, own))} cannot be initialized without "
                         "reset_parameters()\n  hint: add reset_parameters() to the class, pass "
                         "spmd.compile(param_init_fn=…), or call load_checkpoint()")
    with _as_it_was(module), torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(_seed_of(seed, path))
        for tensors in (parameters_of(module), buffers_of(module)):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = _empty(tensor) if name in own else tensor.detach().clone()
        for name, tensor in parameters_of(module).items():
            if tensor is not None:
                parameters_of(module)[name] = torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point())
        if init is None:
            module.reset_parameters()
        else:
            init(module)
        made = {name: parameters_of(module).get(name, buffers_of(module).get(name)) for name in own}
        for name, tensor in made.items():
            if tensor is None or tensor.shape != own[name].shape or tensor.dtype != own[name].dtype:
                raise ValueError(f"{where}: its initialization leaves another tensor in the place of {name!r}, which is "
                                 f"{own[name].dtype} of shape {list(own[name].shape)}")
            if tensor.is_meta or _is_unwritten(tensor):
                raise ValueError(f"{where}: its initialization ({'param_init_fn' if init else 'reset_parameters'}) leaves "
                                 f"{name!r} without a value\n  hint: one that writes all of the module's own tensors")
        return {name: tensor.detach().cpu() for name, tensor in made.items()}


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    """Memory that is seen not to have been written."""
    return torch.full(tensor.shape, _mark(tensor.dtype), dtype=tensor.dtype)


def _mark(dtype: torch.dtype) -> float | int | bool:
    return float("nan") if dtype.is_floating_point else dtype is not torch.bool and torch.iinfo(dtype).min


def _is_unwritten(tensor: torch.Tensor) -> bool:
    """Not known of booleans and bytes, which begin with zero."""
    mark = _mark(tensor.dtype)
    return bool(mark) and bool((tensor.isnan() if mark != mark else tensor == mark).any())


@contextlib.contextmanager
def _as_it_was(module: torch.nn.Module) -> Iterator[None]:
    """What initialization does to the tensors of a module and those below is undone."""
    before = [(tensors, dict(tensors)) for below in module.modules() for tensors in (parameters_of(below), buffers_of(below))]
    try:
        yield
    finally:
        for tensors, own in before:
            tensors.clear()
            tensors.update(own)


def _seed_of(seed: int, path: str) -> int:
    digest = hashlib.sha256(f"{seed} {path}".encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)
