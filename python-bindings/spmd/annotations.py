"""Shard units said in the model's own code: fully_shard as in FSDP2, enable_wrap and wrap as in FSDP1."""
from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
from typing import Any, Callable, Iterable, Iterator

import torch
from torch import nn

from .meshes import mesh_sizes
from .precision import Precision
from .torch_api.fsdp_options import wrap_overrides_of
from .torch_api.modules import initialized_children_of
from .unit_options import encode_options, precision_of

_ATTRIBUTE = "_spmd_unit"  # in the module's __dict__, so that a copy of the model keeps it
_order = itertools.count()
_wrap_options: dict[str, Any] | None = None  # as they were given


@dataclasses.dataclass
class Annotation:
    """One unit: its modules, options as the library reads them, parameters that stay out, the precision that the
    modules compute in, when it was said, and what makes the values of a module on the meta device."""

    modules: list[nn.Module]
    options: dict[str, Any]
    ignored: list[nn.Parameter]
    precision: Precision | None
    order: int
    init: Callable[[nn.Module], Any] | None = None


def annotation_of(module: nn.Module) -> Annotation | None:
    """What was said of a module."""
    return module.__dict__.get(_ATTRIBUTE)


def fully_shard(module: nn.Module | list[nn.Module], *, mesh: Any = None,
                reshard_after_forward: bool | int | None = None, shard_placement_fn: Any = None,
                mp_policy: Any = None, offload_policy: Any = None,
                ignored_params: Iterable[nn.Parameter] | None = None):
    """Makes a module, or several modules together, one shard unit, as PyTorch's fully_shard does; changes nothing else.

    Call it bottom-up: a unit holds the parameters below its modules that are in no unit of an earlier call.

    Args:
      module: the module, or a list of modules that are one unit.
      mesh: a mesh with one axis, or with two: along the first ranks have the same, and the unit is cut along the
        second. Compiling for another mesh is then an error.
      reshard_after_forward: frees what was gathered between forward and backward; None: for all units but the root's.
        A number is the size of a group of ranks to keep it on.
      mp_policy: PyTorch's MixedPrecisionPolicy.
      ignored_params: parameters that stay whole on every rank.
      shard_placement_fn, offload_policy: PyTorch's, for its default values: None, and OffloadPolicy().

    Returns:
      `module`.

    Raises:
      ValueError: for what PyTorch refuses: a container without forward, a module that is a unit already.
    """
    modules = _roots(module) if isinstance(module, (list, tuple)) else [module]
    if not modules or not all(isinstance(m, nn.Module) for m in modules):
        raise ValueError(f"fully_shard expects a module or a list of modules but got {module!r}")
    if (isinstance(module, (nn.ModuleList, nn.ModuleDict)) and type(module).forward is nn.Module.forward):
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    if shard_placement_fn is not None:
        raise ValueError("fully_shard: shard_placement_fn is not supported: each rank has a part of the unit's flat buffer; "
                         "omit it")
    if offload_policy is not None and "CPU" in type(offload_policy).__name__:
        raise ValueError(f"fully_shard: offload_policy={offload_policy!r} is not supported; leave it out")
    options = {"reshard_after_forward": reshard_after_forward}
    if mp_policy is not None:
        options["mp_policy"] = mp_policy
    encoded = encode_options(options, "fully_shard") | _mesh_options(mesh, reshard_after_forward)
    ignored = list(ignored_params or ())
    if not all(isinstance(p, nn.Parameter) for p in ignored):
        raise ValueError("ignored_params expects parameters")
    _annotate(modules, encoded, ignored, precision_of(options, "fully_shard"), "fully_shard")
    return module


def override(module: nn.Module, options: dict[str, Any]) -> None:
    """Options of the unit that a module has become, as the library reads them, in place of what was said."""
    annotation = annotation_of(module)
    annotation.options |= options
    if "precision" in options:
        annotation.precision = Precision.of(options["precision"], "fully_shard", is_root=False)


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any = None, **options: Any) -> Iterator[None]:
    """Inside, `wrap` makes shard units with these options. `wrapper_cls` is there for PyTorch's sake, and not used.
    `param_init_fn`, a function of a module, makes the values of those on the meta device."""
    global _wrap_options
    if _wrap_options is not None:
        raise NotImplementedError("enable_wrap is active already, and does not nest")
    encode_options(_without_init(options, "enable_wrap"), "enable_wrap")
    _wrap_options = options
    try:
        yield
    finally:
        _wrap_options = None


def wrap(module: nn.Module, **override: Any) -> nn.Module:
    """Makes `module` a shard unit, inside enable_wrap; outside it does nothing. An override beats the context, and what the
    module has as `_wrap_overrides` both."""
    if _wrap_options is None:
        return module
    if not isinstance(module, nn.Module):
        raise ValueError(f"wrap expects a module but got {module!r}")
    encoded = encode_options(_without_init(_wrap_options, "enable_wrap"), "enable_wrap", tells=False)
    override = {**override, **wrap_overrides_of(module)}
    encoded |= encode_options(_without_init(override, "wrap"), "wrap")
    said = _wrap_options | override
    _annotate([module], encoded, [], precision_of(said, "wrap"), "wrap", said.get("param_init_fn"))
    return module


def _without_init(options: dict[str, Any], place: str) -> dict[str, Any]:
    """What the library reads of options; param_init_fn is for Python, which makes values.

    Raises:
      TypeError: that is no function.
    """
    init = options.get("param_init_fn")
    if init is not None and not callable(init):
        raise TypeError(f"{place}: param_init_fn is {init!r}; expected a function of a module")
    return {name: value for name, value in options.items() if name != "param_init_fn"}


def annotations_of(model: nn.Module, paths: dict[int, str], parameter_names: dict[int, str]) -> list[dict]:
    """The annotations in a model, as the member `units` of step.json.

    Raises:
      ValueError: when a module was annotated after one that contains it, or an ignored parameter is not in the model.
    """
    found: dict[int, Annotation] = {}
    for path, module in model.named_modules():
        annotation = annotation_of(module)
        if annotation is None:
            continue
        found.setdefault(id(annotation), annotation)
        for below in module.modules():
            inner = annotation_of(below)
            if inner is not None and inner.order > annotation.order:
                raise ValueError(f"module '{paths[id(below)]}' was made a unit after '{path}', which contains it; "
                                 "fully_shard is called bottom-up")
    units = []
    for annotation in found.values():
        unit = {"modules": [paths[id(m)] for m in annotation.modules if id(m) in paths], "options": annotation.options}
        for parameter in annotation.ignored:
            if id(parameter) not in parameter_names:
                raise ValueError(f"ignored parameter of shape {list(parameter.shape)} is not in the model")
        if annotation.ignored:
            unit["ignored"] = sorted(parameter_names[id(p)] for p in annotation.ignored)
        units.append(unit)
    return units


def _annotate(modules: list[nn.Module], options: dict, ignored: list[nn.Parameter], precision: Precision | None,
              function: str, init: Callable[[nn.Module], Any] | None = None) -> None:
    for module in modules:
        if _ATTRIBUTE in module.__dict__:
            raise ValueError(f"{function}: module '{_find_path(module)}' ({type(module).__name__}) is a unit already")
    annotation = Annotation(list(modules), options, ignored, precision, next(_order), init)
    for module in modules:
        module.__dict__[_ATTRIBUTE] = annotation


def _roots(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """The modules that are in no other one of the list, each once."""
    modules = list(dict.fromkeys(modules))
    inside = [set(m.modules()) - {m} if isinstance(m, nn.Module) else set() for m in modules]
    return [m for m in modules if not any(m in below for below in inside)]


def _mesh_options(mesh: Any, reshard: Any) -> dict:
    if mesh is None:
        return {}
    sizes = mesh_sizes(mesh, "fully_shard")
    if not isinstance(reshard, bool) and isinstance(reshard, int) and (reshard < 1 or sizes[-1] % reshard):
        raise ValueError("If passing reshard_after_forward as an int, it should be a "
                         f"factor of {sizes[-1]}, not {reshard}")
    return {"ranks": sizes[0]} if len(sizes) == 1 else {"mesh": list(sizes)}


def _find_path(module: nn.Module) -> str:
    """The module's path from the outermost module that holds it, as far as one is alive; for errors."""
    holders = {}
    for other in gc.get_objects():
        if issubclass(type(other), nn.Module):  # isinstance would wake lazy objects
            for name, child in initialized_children_of(other).items():
                if child is not None:
                    holders.setdefault(id(child), (other, name))
    names: list[str] = []
    while id(module) in holders and len(names) < 100:
        module, name = holders[id(module)]
        names.insert(0, name)
    return ".".join(names)
