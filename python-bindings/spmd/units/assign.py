"""spmd.shard_units: the shard units that a policy, or the annotations in the model, make."""
from __future__ import annotations

import dataclasses
import json
import os
import warnings
from typing import Any, Iterable

from torch import nn

from ..annotations import annotations_of
from ..meshes import mesh_text
from ..torch_api.fsdp_options import has_wrap_overrides, wrap_overrides_of
from ..unit_options import encode_options, exempt_classes
from .describe import ModelDescription
from .library import assign
from .policy import PolicyRequest, classes_of


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter in its unit's flat buffer; `offset` and `numel` count elements.

    A unit with parameters of several dtypes, or with frozen ones, has several flat buffers: `buffer` says which.
    `slices` has (rank, start, stop) for every rank that owns a part of the flattened parameter; None when each rank has
    it whole.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    buffer: int
    offset: int
    numel: int
    slices: tuple[tuple[int, int, int], ...] | None


@dataclasses.dataclass(frozen=True)
class Unit:
    """One shard unit. `name` is the path of its (first) module, "" for the root; bytes count padding.

    `options` are in effect; `given_options` is what the policy or annotation said of this unit.
    """

    name: str
    modules: tuple[str, ...]
    options: dict[str, Any]
    given_options: dict[str, Any]
    numel: int
    frozen_numel: int
    padding: int
    bytes_gathered: int
    bytes_per_rank: int
    buffers: tuple[dict[str, Any], ...]
    parameters: tuple[Parameter, ...]


class ShardUnits(list):
    """Units in post-order, the root last.

    Attributes: `ranks`; `mesh`, (replicate, shard); `ignored`, a Unit of what was ignored, or None; `warnings`, `cost_warnings` and `remarks`.
    """

    def __init__(self, result: dict[str, Any], plan: dict[str, Any]):
        super().__init__(_unit(u) for u in result["units"])
        self.ranks: int = result["ranks"]
        self.mesh: tuple[int, ...] = tuple(result["mesh"])
        self.ignored = None if result["ignored"] is None else _unit(result["ignored"])
        self.warnings: list[str] = result["warnings"]
        self.cost_warnings: list[str] = result["cost_warnings"]
        self.remarks: list[str] = result["remarks"]
        self._plan = plan

    def plan(self) -> dict[str, Any]:
        """These units as a plan file's content (docs/shard-units.md), for spmd-compile --policy-file."""
        rules = [{"module": list(u.modules) if len(u.modules) > 1 else u.name,
                  **({"options": u.given_options} if u.given_options else {})} for u in self]
        return {"format": "spmd-shard-units", "version": 1, **self._plan,
                "ignored_parameters": sorted(p.name for p in self.ignored.parameters) if self.ignored else [],
                "exempt_classes": [], "rules": rules}

    def save(self, path: str | os.PathLike) -> None:
        """Writes the plan file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.plan(), file, indent=2)
            file.write("\n")


def shard_units(model: nn.Module, policy: Any = None, *, ignored_modules: Iterable[nn.Module] | None = None,
                ignored_states: Iterable[nn.Parameter] | Iterable[nn.Module] | None = None, ranks: int | None = None,
                options: dict[str, Any] | None = None, strict_tied: bool = False,
                root_kwargs: dict[str, Any] | None = None, mesh: Any = None) -> ShardUnits:
    """The shard units of a model, which may be on the meta device: nothing is captured, nothing is computed.

    Args:
      model: any module.
      policy: a policy of torch.distributed.fsdp.wrap, a callable (module, recurse, nonwrapped_numel), text as for
        spmd-compile --policy ("auto": the annotations, or what is used together), or None: the model's annotations
        (fully_shard, wrap), or one unit without any.
      ignored_modules, ignored_states: modules, and parameters (or modules), whose parameters are in no unit.
      ranks: how many ranks there are; None: those of the mesh, or 1.
      options: of every unit that says nothing else, as PyTorch's wrapper has them: mode, reshard_after_forward,
        precision, prefetch, or PyTorch's names.
      strict_tied: a parameter with owners in different units is an error.
      root_kwargs: what a user's subclass of PyTorch's _Policy gets besides `options`.
      mesh: how the ranks are arranged: PyTorch's DeviceMesh of one or two axes, its sizes, or text as for spmd-compile
        --mesh. None: as annotations say, or in one row.

    Returns:
      ShardUnits, a list of Unit in post-order.

    Raises:
      ValueError: naming the module, parameter or option.
      TypeError: for what is no policy.
    """
    ignored_modules, ignored_parameters = split_ignored(ignored_modules or (), ignored_states or ())
    root_options = dict(options or {})
    exempt = exempt_classes(root_options)
    description = ModelDescription(model, [*classes_of(policy), *(exempt or ())])
    ignored_paths = [description.path_of(m) for m in ignored_modules]
    ignored_names = [description.name_of(p) for p in ignored_parameters]
    below = {m for ignored in ignored_modules for m in ignored.modules()}
    asked = PolicyRequest("annotations" if policy is None else policy, model, description, below,
                          root_options | (root_kwargs or {}))
    plan = {"ignored_modules": ignored_paths,
            "options": encode_options(root_options, "options"), "strict_tied": strict_tied}
    request = {"module_tree": description.tree, "parameters": description.parameters,
               **({} if ranks is None else {"ranks": ranks}),
               **({} if mesh is None else {"mesh": mesh_text(mesh, "mesh")}),
               "policy": asked.json, "units": annotations_of(model, description.paths, description.parameter_names),
               "ignored_parameters": ignored_names,
               "strict_names": isinstance(policy, str), **plan}
    if exempt is not None:
        request["exempt_classes"] = [description.class_name(c) for c in exempt]
    result = assign(request, asked.decide)
    if overridden := overrides_of(model) if policy is not None else {}:
        chosen = {unit["name"]: unit["given_options"] | overridden.get(unit["name"], {}) for unit in result["units"]}
        result = assign(request | {"policy": {"modules": {name: own for name, own in chosen.items() if name}}}, asked.decide)
    units = ShardUnits(result, plan)
    for warning in units.warnings:
        warnings.warn(warning, stacklevel=2)
    return units


def overrides_of(model: nn.Module) -> dict[str, dict[str, Any]]:
    """What modules say of themselves, as FSDP's wrapper reads it, by path: _wrap_overrides beat what a policy says."""
    return {path: encode_options(dict(wrap_overrides_of(module)), f"_wrap_overrides of module '{path}'")
            for path, module in model.named_modules() if has_wrap_overrides(module)}


def split_ignored(modules: Any, states: Any) -> tuple[list[nn.Module], list[nn.Parameter]]:
    """Modules and parameters to ignore, of the arguments that PyTorch has for them."""
    modules, states = list(modules), list(states)
    if not all(isinstance(m, nn.Module) for m in modules):
        kinds = sorted({type(m).__name__ for m in modules})
        raise ValueError(f"ignored_modules expects nn.Module list elements but got types {kinds}")
    if all(isinstance(s, nn.Module) for s in states):
        return [*modules, *states], []
    if not all(isinstance(s, nn.Parameter) for s in states):
        kinds = sorted({type(s).__name__ for s in states})
        raise ValueError("ignored_states expects all nn.Parameter or all nn.Module list elements but got types "
                         f"{kinds}")
    return modules, states


def _unit(entry: dict[str, Any]) -> Unit:
    parameters = tuple(
        Parameter(**{**p, "shape": tuple(p["shape"]),
                     "slices": None if p["slices"] == "all" else tuple(tuple(s) for s in p["slices"])})
        for p in entry["parameters"])
    return Unit(**{**entry, "modules": tuple(entry["modules"]), "buffers": tuple(entry["buffers"]),
                   "parameters": parameters})
