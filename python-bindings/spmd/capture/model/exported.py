"""An exported program (torch.export) as the module it was made from: parameters that are one tensor in the file are one
again, each op runs in the module that the file's module stack names, and what only asserts is left out.

[Note: exported programs] The graph of a file is run node by node, under whatever traces it: a capture sees the calls
that the exported model's own code made, before autograd. A module of the tree is a stand-in whose class has the name
of the exported one and whose call runs what it is given, so that hooks on modules, wrap policies and errors see the
modules of the file, and the lines of the code that was exported.
"""
from __future__ import annotations

import functools
import re
import weakref
from typing import Any, Callable, Iterator

import torch
import torch.fx
import torch.utils.checkpoint
from torch.export import ExportedProgram

from ...torch_api.modules import buffers_of, non_persistent_buffers_of, parameters_of
from ...torch_api.operators import HigherOrderOperator
from ...torch_api.tracing import GUARDS_MODULE, has_specs, in_spec_of, out_spec_of, pytree
from ..errors import CaptureError, Frame, error_at, is_user_file
from ..observe.memory import memory_of
from ..observe.stacks import at_lines, user_stack

# Assertions about shapes and dtypes: those of the inputs are checked at each call, and follow for all else.
_ASSERTIONS = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "_functional_assert_scalar",
               "_functional_assert_async", "sym_constrain_range", "sym_constrain_range_for_size"}


class ExportedPart(torch.nn.Module):
    """The stand-in of a module: called with what is to run in it."""

    step_module = "spmd.capture.exported"

    def forward(self, run: Callable[[], Any]) -> Any:
        return run()


class ExportedModule(ExportedPart):
    """The stand-in of the exported module itself: called as that one is, with what the file has inputs for.

    `inputs` are the names of its inputs in order, `examples` the values of the export (None when the file has none).
    """

    step_module = "spmd.capture.exported"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.program.run(self, args, kwargs)

    @property
    def inputs(self) -> list[str]:
        return [node.name for node in self.program.placeholders]

    @property
    def examples(self) -> list[Any] | None:
        return self.program.examples

    def call_flat(self, values: list[Any]) -> Any:
        """The outputs, given the inputs in the order of `inputs`."""
        args, kwargs = pytree.tree_unflatten(values, self.program.in_spec)
        return self(*args, **kwargs)


class _Program:
    """The graph of a file and what it is called with and gives; never changed, and shared by copies of the module."""

    def __init__(self, module: torch.fx.GraphModule, examples: Any):
        self.graph, self.in_spec, self.out_spec = torch.fx.Graph(), in_spec_of(module), out_spec_of(module)
        self.graph.output(self.graph.graph_copy(module.graph, {}))  # without the module that has the other graph
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.bodies = {n.target: getattr(module, n.target) for n in self.graph.nodes
                       if n.op == "get_attr" and isinstance(getattr(module, n.target, None), torch.fx.GraphModule)}
        self.examples = None if examples is None else pytree.tree_leaves(examples)

    def __deepcopy__(self, memo: dict) -> _Program:
        return self

    def run(self, module: ExportedModule, args: tuple, kwargs: dict[str, Any]) -> Any:
        values = self._flatten(args, kwargs)
        _check(self.placeholders, values)
        outputs = _Run(module, self.graph, module).run(*values, enable_io_processing=False)
        return pytree.tree_unflatten(list(outputs), self.out_spec)

    def _flatten(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The values of the placeholders. A keyword that the export had a Python value for need not be given."""
        positions, names = pytree.tree_unflatten(list(range(len(self.placeholders))), self.in_spec)
        if self.examples is not None:
            given = pytree.tree_unflatten(self.examples, self.in_spec)[1]
            kwargs = {n: given[n] for n in names if not _has_tensor(given[n])} | kwargs
        if set(kwargs) == set(names):
            values, spec = pytree.tree_flatten((args, {name: kwargs[name] for name in names}))
            if spec == self.in_spec:
                return values
        raise error_at(user_stack()[0], f"the exported program is called with {_signature(len(args), kwargs)}; the file has "
                       f"{_signature(len(positions), names)}: {', '.join(node.name for node in self.placeholders)}",
                       "call it as the module was called in the export")


def exported_module(program: ExportedProgram | torch.fx.GraphModule) -> ExportedModule:
    """The trainable module of a program, with the program's own parameters; the same one for the same program."""
    if program not in _made:
        _made[program] = _make(program)
    return _made[program]


_made: weakref.WeakKeyDictionary[Any, ExportedModule] = weakref.WeakKeyDictionary()


def is_exported(value: Any) -> bool:
    """An ExportedProgram, or what its module() gives."""
    return isinstance(value, ExportedProgram) or (
        isinstance(value, torch.fx.GraphModule) and has_specs(value)
        and any("nn_module_stack" in node.meta for node in value.graph.nodes))


def without_aliases(optimizer: torch.optim.Optimizer, module: ExportedModule) -> torch.optim.Optimizer:
    """An optimizer of a program's parameters, which has tied ones once: of the second objects that the file has for them
    no gradient reaches any, so that eager does not train them either."""
    def once(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        owners = (module.aliases[id(p)][1] if id(p) in module.aliases else p for p in parameters)
        return list({id(p): p for p in owners}.values())

    groups = [{**group, "params": once(group["params"])} for group in optimizer.param_groups]
    if all(len(group["params"]) == len(own["params"]) for group, own in zip(groups, optimizer.param_groups)):
        return optimizer
    made = object.__new__(type(optimizer))
    made.__dict__.update(vars(optimizer))
    made.param_groups = groups
    return made


def _make(program: ExportedProgram | torch.fx.GraphModule) -> ExportedModule:
    examples = program.example_inputs if isinstance(program, ExportedProgram) else None
    source = program.module() if isinstance(program, ExportedProgram) else program
    graph = _Program(source, examples)
    classes = dict(_classes(source.graph))
    paths = [path for path, _ in source.named_modules() if path.split(".")[0] not in (*graph.bodies, GUARDS_MODULE)]
    paths += [path for path in classes if path not in paths]
    parts: dict[str, ExportedPart] = {}
    for path in paths:
        base = ExportedPart if path else ExportedModule
        parts[path] = _named_class(classes.get(path, "torch.nn.modules.module.Module"), base)()
        if path:
            parent, _, name = path.rpartition(".")
            parts[parent].add_module(name, parts[path])
    root = parts[""]
    root.program, root.aliases, owners = graph, {}, {}
    for path, module in source.named_modules():
        if path not in parts:
            continue
        for name, parameter in parameters_of(module).items():
            key = id(parameter) if parameter is None else (memory_of(parameter), parameter.data_ptr(),
                                                           *parameter.shape, *parameter.stride())
            owner = owners.setdefault(key, parameter) if parameter is not None and parameter.numel() else parameter
            if owner is not parameter:
                root.aliases[id(parameter)] = parameter, owner
            parts[path].register_parameter(name, owner)
        for name, buffer in buffers_of(module).items():
            parts[path].register_buffer(name, buffer, name not in non_persistent_buffers_of(module))
        for name, value in vars(module).items():  # constants that the export lifted
            if isinstance(value, torch.Tensor):
                parts[path].register_buffer(name, value, persistent=False)
    return root


def _classes(graph: torch.fx.Graph) -> Iterator[tuple[str, str]]:
    """Modules of the file by path, outermost first, each with its class."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        for path, cls in (node.meta.get("nn_module_stack") or {}).values():
            found.setdefault(_path(path), cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}")
    missing = {path[:i] for path in found for i, letter in enumerate(path) if letter == "."} - set(found)
    yield from sorted({**found, **dict.fromkeys(missing, "torch.nn.modules.module.Module")}.items(),
                      key=lambda entry: entry[0].count(".") + bool(entry[0]))


def _path(path: str) -> str:
    """Without the number of the call that the export puts after the name of a module called twice."""
    return re.sub(r"@\d+", "", path)


def _named_class(name: str, base: type) -> type:
    module, _, cls = name.rpartition(".")
    return type(cls, (base,), {"__module__": module, "__doc__": f"Stands for {name} of an exported program."})


def _asserts(node: torch.fx.Node) -> bool:
    name = getattr(getattr(node.target, "overloadpacket", node.target), "__name__", "")
    return node.op == "call_function" and name in _ASSERTIONS or (node.op, node.target) == ("call_module", GUARDS_MODULE)


class _Run(torch.fx.Interpreter):
    """Runs a graph of `owner`; each op in the module of `root` that it belongs to, with the lines it comes from."""

    def __init__(self, owner: torch.nn.Module, graph: torch.fx.Graph, root: ExportedModule):
        super().__init__(owner, graph=graph)
        self.graph = graph
        self.extra_traceback = False
        self._root, self._parts = root, dict(root.named_modules())
        self._device = next((p.device for p in root.parameters()), torch.device("cpu"))

    def run_node(self, node: torch.fx.Node) -> Any:
        if _asserts(node):
            return None
        if node.op != "call_function":
            return super().run_node(node)
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        path = _path(stack[-1][0]) if stack else ""
        with at_lines(_frames(node)):
            run = functools.partial(super().run_node, node)
            return self._parts[path](run) if path and path in self._parts else run()

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        bodies = self._root.program.bodies if self.module is self._root else {}
        return bodies[target] if target in bodies else super().get_attr(target, args, kwargs)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(target, HigherOrderOperator):
            return self._call_body(target.name(), args)
        if kwargs.get("device") is not None:  # where the export ran; the module may have moved since
            kwargs = {**kwargs, "device": self._device}
        return super().call_function(target, args, kwargs)

    def _call_body(self, name: str, args: tuple) -> Any:
        """Regions: grad mode, autocast and checkpoints, which are a body and its inputs."""
        if name == "wrap_with_set_grad_enabled":
            with torch.set_grad_enabled(args[0]):
                return self._inline(args[1], args[2:])
        if name == "wrap_with_autocast":
            _, dtype, enabled, cache, body, *values = args
            with torch.autocast(self._device.type, dtype, enabled, cache):
                return self._inline(body, values)
        if name == "tag_activation_checkpoint":
            return torch.utils.checkpoint.checkpoint(functools.partial(self._run_body, args[0]), *args[1:], use_reentrant=False)
        if name == "wrap":
            return self._inline(args[0], args[1:])
        if name == "invoke_subgraph":
            return self._inline(args[0], args[2:])
        raise error_at(user_stack()[0], f"the exported program has a {name}, whose number of iterations depends on data",
                       "write it without control flow on values: torch.where, masks")

    def _run_body(self, body: torch.fx.GraphModule, *values: Any) -> Any:
        return self._inline(body, values)

    def _inline(self, body: torch.fx.GraphModule, values: Any) -> Any:
        return _Run(body, body.graph, self._root).run(*values, enable_io_processing=False)


_FRAME = re.compile(r'File "(.*)", line (\d+), in (.*)')


def _frames(node: torch.fx.Node) -> tuple[Frame, ...]:
    frames = [Frame(f, int(line), name) for f, line, name in _FRAME.findall(node.meta.get("stack_trace") or "")]
    return tuple(frame for frame in frames if is_user_file(frame.file))


def _check(placeholders: list[torch.fx.Node], values: list[Any]) -> None:
    """A graph computes for the shapes of its export alone, or for any size of the dims that it leaves open."""
    sizes: dict[Any, int] = {}
    for node, value in zip(placeholders, values, strict=True):
        expected = node.meta.get("val")
        if not isinstance(expected, torch.Tensor):
            if isinstance(expected, (bool, int, float, str, type(None))) and value != expected:
                raise _refuse(node, f"is {value!r}; the export had {expected!r}")
            continue
        if not isinstance(value, torch.Tensor):
            raise _refuse(node, f"is a {type(value).__name__}; the export had a tensor")
        shape = ", ".join(map(str, expected.shape))
        found = f"is {value.dtype}{list(value.shape)}; the export had {expected.dtype}[{shape}]"
        if value.dtype != expected.dtype or value.dim() != expected.dim():
            raise _refuse(node, found)
        for size, wanted in zip(value.shape, expected.shape):
            if not fits(size, wanted, sizes):
                raise _refuse(node, found)


def fits(size: int, wanted: Any, sizes: dict[Any, int]) -> bool:
    """`size` is a dim's size of the export; `sizes` has those of the open dims that were met so far."""
    if isinstance(wanted, int):
        return size == wanted
    expression = wanted.node.expr
    if expression.is_Symbol:
        allowed = wanted.node.shape_env.var_to_range.get(expression)
        if sizes.setdefault(expression, size) != size:
            return False
        return allowed is None or allowed.lower <= size <= allowed.upper
    return not expression.free_symbols <= set(sizes) or int(expression.subs(sizes)) == size


def size_of(wanted: Any, sizes: dict[Any, int], otherwise: int = 1) -> int:
    """A dim's size, given those of the open dims; `otherwise` when they do not say it."""
    if isinstance(wanted, int):
        return wanted
    expression = wanted.node.expr
    return int(expression.subs(sizes)) if expression.free_symbols <= set(sizes) else otherwise


def _refuse(node: torch.fx.Node, found: str) -> CaptureError:
    return error_at(user_stack()[0], f"input {node.name!r} of the exported program {found}",
                    "call it with the inputs of the export, or export it with dynamic_shapes for the dims that differ")


def _has_tensor(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))


def _signature(positions: int, names: Any) -> str:
    return f"{positions} arguments by position and {', '.join(names) or 'none'} by name"
