"""Trace -> the content of step.json and weights.safetensors."""
from __future__ import annotations

import json
import math
import os
import site
import sysconfig
import warnings
from typing import Any, Sequence

import torch

from ...annotations import annotations_of
from ...models import DTYPES, class_name, module_tree, saved_names, tensor_names, without_wrappers
from ...torch_api.tracing import pytree
from ..call import StepCall
from ..errors import CaptureError, Frame, error_at
from ..loops.iterations import Repeat, of_iteration
from ..model.inputs import Input
from ..ops.custom_ops import kernels_of
from ..optimizer.casts import is_used, regions
from ..optimizer.masters import MASTER, wanted_masters
from ..optimizer.optimizers import Optimizers
from ..values.python_numbers import name_numbers
from ..world.grown_lists import Grown
from ..world.held import named_modules, whole
from .graph import Trace, loss_output
from .normalize import Values, describe, node_record
from .outputs import Empty, Output
from .package import FORMAT, StepPackage


def build_package(call: StepCall, traced: Trace, name: str, batch_dims: dict[str, int | None],
                  zero_gradient: Sequence[str]) -> StepPackage:
    """Writes down a trace; the reference is not recorded yet."""
    values, stacks = Values(), _Stacks(call)
    results = traced.results
    name_numbers(traced.graph)
    inputs = [_input(values.define(own), i, batch_dims) for i, own in traced.inputs]
    recorded = list(filter(_is_recorded, traced.graph.nodes))
    present = set(recorded)
    ends = {own[-1]: (one, len(own)) for one in traced.repeats if (own := [node for node in one.nodes if node in present])}
    nodes, repeats = [], []
    for node in recorded:
        nodes.append(node_record(node, values, stacks.index))
        if node in ends:
            repeats.append(_repeat(*ends[node], len(nodes), values))
    loss, loss_node = loss_output(traced)
    left = [path for what in (*results.left, *results.grown)
            for path in _leaf_paths(what.path, what.items if isinstance(what, Grown) else what.value)]
    outputs = [{"kind": "loss" if i == loss else "output", "path": path, "value": values.of(traced.outputs[i])}
               for i, path in enumerate([*_paths(results.result), *left,
                                    *(f"(batch).{name}" for name, _ in results.written),
                                    *(f"(check).{number}" for number in range(len(results.checks)))])]
    if loss is None and loss_node is not None:
        outputs.append({"kind": "loss", "path": "(backward)", "value": values.of(loss_node)})
    view = whole(call.model, traced.held)
    tensors = tensor_names(view)
    saved = saved_names(view)
    _check_names("batch_dims", batch_dims, call.batch_names)
    _check_names("zero_gradient", zero_gradient, [n[0] for _, _, n in tensors.values()])
    if not traced.run.is_first:  # which may update nothing
        _warn_of_idle_parameters(call, inputs, nodes)
    _check_masters(call, inputs, nodes, stacks)
    step = {
        "format": FORMAT, "version": 1, "torch": torch.__version__.split("+")[0], "name": name,
        "module_tree": module_tree(view),
        "parameters": [{"name": names[0], "aliases": names[1:], **describe(t), "trainable": t.requires_grad or names[0] in traced.stepped_gradients}
                       for kind, t, names in tensors.values() if kind == "param"],
        "buffers": [{"name": names[0], "aliases": names[1:], **describe(t), "persistent": not saved.isdisjoint(map(without_wrappers, names))}
                    for kind, t, names in tensors.values() if kind == "buffer"],
        "optimizer": _optimizers(call.optimizers, {id(t): names[0] for _, t, names in tensors.values()}),
        "zero_gradient": list(zero_gradient),
        "stacks": stacks.table, "inputs": inputs, "nodes": nodes, "outputs": outputs,
        "result_tree": json.dumps(_result_tree(results.result)),
    }
    # Only what an older reader would get wrong makes a package of a newer version.
    if units := _annotations(view, call, traced, tensors):
        step |= {"version": 2, "units": units}
    if any("reached" in unit for unit in units):
        step |= {"version": 4}
    if is_used(call.model, call.precision):
        step |= {"version": 5, "precision": _precision(view, call)}
    if (default := torch.get_default_dtype()) != torch.float32:
        step |= {"version": max(step["version"], 3), "default_dtype": DTYPES[default]}
    try:
        kernels = kernels_of(node["op"] for node in nodes)
    except ValueError as error:
        raise CaptureError(str(error)) from error
    if kernels:
        version = 7 if any(kernel.cubins for kernel in kernels) else 6
        step |= {"version": version, "operators": [kernel.record() for kernel in kernels]}
    if repeats:
        step |= {"version": 9, "repeats": repeats}
    trained = [name for group in step["optimizer"]["groups"] for name in group["parameters"]]
    return StepPackage(step, _weights(traced, trained), {}, result=results.result, left=results.left, grown=results.grown, written=results.written,
                       settings=traced.settings, checks=results.checks,
                       read_left=frozenset(traced.environment.read_left), updates=traced.updates, optimizer_numbers=traced.optimizer_numbers, reads=traced.reads, python_writes=traced.python_writes,
                       gradients=traced.gradients, held=traced.held, guards=traced.guards, seeds=traced.seeds,
                       libraries=tuple(dict.fromkeys(file for kernel in kernels for file in kernel.files())))


def _repeat(repeat: Repeat, length: int, end: int, values: Values) -> dict[str, Any]:
    """An entry of "repeats", of `length` nodes up to number `end`."""
    each = [{"value": values.of(node), "of": [values.define([nodes[n]] if n in nodes else []) for n in range(repeat.count)]}
            for node, nodes in repeat.each.items()]
    return {"begin": end - length, "end": end, "count": repeat.count,
            "fed": [{"value": values.of(node), "of": list(map(values.of, nodes))} for node, nodes in repeat.fed],
            "carried": [{"value": values.of(node), "next": values.of(after)} for node, after in repeat.carried],
            **({"each": each} if each else {}), **({"streams": repeat.streams} if repeat.streams else {})}


def _is_recorded(node: torch.fx.Node) -> bool:
    """step.json has it."""
    return node.op == "call_function" and not _is_getitem(node) and node.target is not of_iteration


def _precision(view: torch.nn.Module, call: StepCall) -> dict[str, Any]:
    """The precision of units for which the model's own code says nothing, and the classes whose modules have none."""
    policies = [call.precision, *(policy for _, policy in regions(call.model, call.precision))]
    exempt = dict.fromkeys(cls for policy in policies if policy is not None for cls in policy.exempt)
    present = [class_name(cls) for cls in exempt if any(isinstance(module, cls) for module in view.modules())]
    return {"options": call.precision.encode() if call.precision is not None else {}, "exempt_classes": present}


def _annotations(view: torch.nn.Module, call: StepCall, traced: Trace, tensors: dict) -> list[dict]:
    """What the model's own code says, and a unit of its own for each held module: most are frozen, and what is frozen
    is not gathered with what is trained."""
    parameters = {number: names[0] for number, (kind, _, names) in tensors.items() if kind == "param"}
    try:
        units = annotations_of(view, {id(m): path for path, m in named_modules(call.model, view)}, parameters)
    except ValueError as error:
        raise CaptureError(str(error)) from error
    said = {path for unit in units for path in unit["modules"]}
    own = {name.split(".")[0] for name in parameters.values()}
    return units + [{"modules": [name], "options": {}, "reached": True} for name in traced.held.modules
                    if name in own and name not in said]


def _follow_views(node: dict, arguments: dict, roots: dict[int, int]) -> None:
    """Adds to `roots`, by number, what the results of `node` are views of."""
    if "view_of" in node:
        base = arguments[node["view_of"]].get("value")
        roots.update((result["id"], roots.get(base, base)) for result in node["results"] if result)


def _warn_of_idle_parameters(call: StepCall, inputs: list[dict], nodes: list[dict]) -> None:
    """Parameters that want a gradient and are written by no node, not through a view (`p.data`) either: no gradient
    reaches them, or no optimizer has them."""
    written: set[int] = set()
    viewed: dict[int, int] = {}
    for node in nodes:
        arguments = dict(node["args"])
        _follow_views(node, arguments, viewed)
        for name in node.get("mutates", ()):
            given = arguments[name].get("values", [arguments[name].get("value")])
            written.update(viewed.get(number, number) for number in given)
    if not call.optimizers.parts:
        return
    trainable = {names[0] for _, tensor, names in tensor_names(call.model).values() if tensor.requires_grad}
    kept = {i["of"] for i in inputs if i["kind"] == "state" and i["state"] == "grad"}  # for an optimizer outside
    idle = [i["name"] for i in inputs if i["kind"] == "param" and i["name"] in trainable - kept
            and i["id"] not in written]
    if idle:
        warnings.warn(f"the step does not update {', '.join(idle)}: no gradient reaches them, or they are in no param "
                      "group", stacklevel=4)


def _check_masters(call: StepCall, inputs: list[dict], nodes: list[dict], stacks: _Stacks) -> None:
    """Raises where a parameter that has a master is written by anything but the master: the next step would not see it."""
    wanted = wanted_masters(call.model, call.precision)
    names = {names[0] for number, (_, _, names) in tensor_names(call.model).items() if number in wanted}
    masters = {i["of"]: i["id"] for i in inputs if i["kind"] == "state" and i["state"] == MASTER and i["of"] in names}
    parameters = {i["id"]: masters[i["name"]] for i in inputs if i["kind"] == "param" and i["name"] in masters}
    roots: dict[int, int] = {}  # of views, and of what ops in place give
    for node in nodes:
        arguments = dict(node["args"])
        _follow_views(node, arguments, roots)
        for name in node.get("mutates", ()):
            for number in arguments[name].get("values", [arguments[name].get("value")]):
                master = parameters.get(roots.get(number, number))
                source = arguments.get("src", {}).get("value")
                if master is not None and roots.get(source, source) != master:
                    written = next(i["name"] for i in inputs if i["id"] == roots.get(number, number))
                    raise error_at(stacks.frames(node["stack"]), f"the step writes into {written!r}, which has a master in "
                                   "f32, and the next step would begin from that",
                                   "write into optimizer.state[parameter]['master'] before optimizer.step(), or leave master "
                                   "out of the precision")


def _is_getitem(node: torch.fx.Node) -> bool:
    return getattr(node.target, "__name__", "") == "getitem"


def _check_names(option: str, given: Any, known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise CaptureError(f"{option} names {name!r}; expected one of {', '.join(known)}")


def _input(number: int, i: Input, batch_dims: dict[str, int | None]) -> dict:
    record: dict[str, Any] = {"id": number, "kind": i.kind}
    tensor = i.real if i.kind == "constant" else i.fake
    if i.kind == "state":
        record |= {"state": i.state, "of": i.name, "init": i.init}
    else:
        record["name"] = i.name
    record |= describe(tensor)
    if i.kind == "hyper":
        record |= {"group": i.group, "value": i.value}
    if i.kind == "rng":
        record |= {"value": i.value}
    if i.kind == "batch":
        default = 0 if tensor.dim() else None
        dim = batch_dims.get(i.name, default)
        if dim is not None and not -tensor.dim() <= dim < tensor.dim():
            raise CaptureError(f"batch_dims[{i.name!r}] is {dim}; the tensor has {tensor.dim()} dims")
        record["batch_dim"] = dim if dim is None else dim % tensor.dim()
    return record


class _Stacks:
    """The deduplicated user stacks. Files are relative to the step's folder, or to where packages are installed."""

    def __init__(self, call: StepCall):
        file = call.train_step.__code__.co_filename if hasattr(call.train_step, "__code__") else "."
        installed = [*site.getsitepackages(), sysconfig.get_path("stdlib")]
        self._roots = [os.path.dirname(os.path.abspath(file)), *installed]
        self._numbers: dict[tuple[Frame, ...], int] = {}
        self.table: list[list[dict]] = []

    def index(self, stack: tuple[Frame, ...]) -> int | None:
        if not stack:
            return None
        if stack not in self._numbers:
            self._numbers[stack] = len(self.table)
            self.table.append([{"file": self._relative(f.file), "line": f.line, "function": f.function} for f in stack])
        return self._numbers[stack]

    def frames(self, index: int | None) -> list[Frame]:
        """The stack of this number, with the files as they are here."""
        return list(next((stack for stack, number in self._numbers.items() if number == index), ()))

    def _relative(self, file: str) -> str:
        file = os.path.abspath(file)
        root = next((r for r in self._roots if file.startswith(r + os.sep)), None)
        return os.path.relpath(file, root).replace(os.sep, "/") if root else os.path.basename(file)


def _optimizers(optimizers: Optimizers, names: dict[int, str]) -> dict:
    classes = dict.fromkeys(class_name(type(part)) for part in optimizers.parts)
    return {"class": ", ".join(classes) or "none", "groups": [
        {"parameters": [names[id(p)] for p in group["params"]],
         "options": {k: _option(v) for k, v in group.items() if k not in ("params", "param_names")}}
        for group in optimizers.param_groups]}


def _option(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_option(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _paths(result: Any) -> list[str]:
    leaves, _ = pytree.tree_flatten_with_path(result)
    return [".".join(str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path)
            for path, leaf in leaves if isinstance(leaf, Output)]


def _leaf_paths(path: str, tree: Any) -> list[str]:
    """Of the outputs in what a step leaves behind."""
    return [".".join((path, *(str(getattr(k, "key", getattr(k, "idx", k))) for k in keys)))
            for keys, leaf in pytree.tree_flatten_with_path(tree)[0] if isinstance(leaf, Output)]


def _result_tree(result: Any) -> Any:
    """The return value's shape: {"output": i}, {"item": i} (a Python number), {"empty": type} (a tensor without
    elements), {"constant": v}, lists, tuples, dicts."""
    if isinstance(result, Output):
        return {"item" if result.scalar else "output": result.index}
    if isinstance(result, Empty):
        return {"empty": {"shape": list(result.shape), "dtype": DTYPES[result.dtype]}}
    if isinstance(result, dict):
        return {"dict": [[k if isinstance(k, (bool, int, float, str)) else str(k), _result_tree(v)] for k, v in result.items()]}
    if isinstance(result, (list, tuple)):
        return {"list" if isinstance(result, list) else "tuple": [_result_tree(v) for v in result]}
    if type(result) in pytree.SUPPORTED_NODES:  # a registered class: its parts, in order
        return {"tuple": [_result_tree(v) for v in pytree.SUPPORTED_NODES[type(result)].flatten_fn(result)[0]]}
    return {"constant": result if result is None or isinstance(result, (bool, int, float, str)) else str(result)}


def _weights(traced: Trace, trained: list[str]) -> dict[str, torch.Tensor]:
    prefix = {"param": "", "buffer": "", "constant": "constant/"}
    weights = {}
    initial: dict[str, set[float | None]] = {}
    for i, _ in traced.inputs:
        if i.kind == "state":
            initial.setdefault(i.state, set()).add(i.init)
    for i, _ in traced.inputs:
        if i.kind in prefix:
            weights[prefix[i.kind] + i.name] = i.real
        elif i.kind == "state" and i.real is not None:
            is_rounded = i.state == "grad" and i.real.dtype != i.fake.dtype
            weights[f"optimizer/{i.state}/{i.name}"] = i.real.to(i.fake.dtype) if is_rounded else i.real
        elif i.kind == "state" and len(initial[i.state]) > 1:  # a flat buffer has one initial value
            weights[f"optimizer/{i.state}/{i.name}"] = torch.full(i.fake.shape, i.init, dtype=i.fake.dtype)
    # Of several optimizers each has states of its own, in one flat buffer.
    parameters = {i.name: i.fake for i, _ in traced.inputs if i.kind == "param"}
    for state, example in {i.state: i for i, _ in traced.inputs if i.kind == "state"}.items():
        key = f"optimizer/{state}/"
        if any(name.startswith(key) for name in weights):
            is_number = any(i.fake.dim() == 0 and parameters[i.name].shape for i, _ in traced.inputs if i.state == state)
            for name in trained:
                if state == MASTER and name in weights and key + name not in weights:
                    weights[key + name] = weights[name].detach().to(example.fake.dtype)
                elif key + name not in weights:
                    dtype = parameters[name].grad_dtype if state == "grad" else example.fake.dtype
                    weights[key + name] = torch.zeros(() if is_number else parameters[name].shape, dtype=dtype)
    return weights
