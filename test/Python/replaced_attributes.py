"""Finds Python code that replaces attributes of PyTorch, of Python or of other libraries."""
from __future__ import annotations

import ast
from typing import Iterator

_MUTATORS = {"patch", "append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault"}
_LOOKUPS = {"logging.getLogger", "importlib.import_module", "sys.modules.get", "dynamo_config", "getattr", "vars"}
_PATCHERS = {"patch.object", "mock.patch", "patch.dict", "config.patch", "compiler.set_stance", "set_mkldnn_enabled"}
# Tables that a program adds entries to: where Python finds modules, and the annotations of the nodes of a trace.
_TABLES = {"os.environ", "sys.path", "sys.modules", "fx_traceback.current_meta"}
_OF_CTYPES = {"restype", "argtypes"}  # declarations of C functions
_OF_TENSORS = "torch._C._set_throw_on_mutable_data_ptr"  # sets a flag of its argument
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def replaced_attributes(source: str) -> list[str]:
    """A line "number: code" for each place of `source` that replaces an attribute of a library, in order.

    Libraries are all imported modules except the modules of spmd. Names from spmd.torch_api count as PyTorch's. The
    search follows assignments such as `place = torch.nn.Module`, loops over tuples, and lookups of modules and loggers.
    It does not follow other calls: their results are objects of the caller. A call of setattr() counts unless its
    object is `self` or a class of the source.
    """
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)} | {"self", "cls"}
    found = sorted(_found(tree, {}, own), key=lambda node: node.lineno)
    return [f"{node.lineno}: {ast.unparse(node)}" for node in found]


def _found(scope: ast.AST, outer: dict[str, bool], own: set[str]) -> Iterator[ast.AST]:
    """`outer`: for each name of the enclosing scopes, whether it is a library or an attribute of a library."""
    nodes = list(ast.iter_child_nodes(scope))
    for node in nodes:  # grows; what is in a function is the function's own
        nodes += getattr(node, "decorator_list", []) if isinstance(node, _FUNCTIONS) else ast.iter_child_nodes(node)
    names = dict(outer)
    if isinstance(scope, _FUNCTIONS):
        arguments = scope.args
        names |= dict.fromkeys([a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)], False)
    for node in nodes:
        _bind(node, names)
    for node in nodes:
        if _replaces(node, names, own):
            yield node
    for node in nodes:
        if isinstance(node, _FUNCTIONS):
            yield from _found(node, names, own)


def _bind(node: ast.AST, names: dict[str, bool]) -> None:
    if isinstance(node, ast.Import):
        names.update({(alias.asname or alias.name).split(".")[0]: alias.name.split(".")[0] != "spmd"
                      for alias in node.names})
    elif isinstance(node, ast.ImportFrom):
        path = (node.module or "").split(".")
        is_library = "torch_api" in path or not node.level and path[0] != "spmd"
        names.update({alias.asname or alias.name: is_library for alias in node.names})
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            _bind_target(target, node.value, names)
    elif isinstance(node, (ast.NamedExpr, ast.AnnAssign)) and node.value is not None:
        _bind_target(node.target, node.value, names)
    elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.Tuple, ast.List)):
        for element in node.iter.elts:
            _bind_target(node.target, element, names)


def _bind_target(target: ast.expr, value: ast.expr, names: dict[str, bool]) -> None:
    if isinstance(target, ast.Name):
        names[target.id] = names.get(target.id, False) or _is_of_library(value, names)
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for each, part in zip(target.elts, value.elts):
            _bind_target(each, part, names)


def _is_of_library(node: ast.expr, names: dict[str, bool]) -> bool:
    """A library, or an attribute of a library."""
    if isinstance(node, ast.Name):
        return names.get(node.id, False)
    if isinstance(node, ast.Attribute):
        return _is_of_library(node.value, names)
    if isinstance(node, ast.Subscript):
        return _is_of_library(node.value, names) and _dotted(node.slice) != "__name__"  # sys.modules[__name__] is ours
    if isinstance(node, ast.Call) and _dotted(node.func) in _LOOKUPS:
        is_of_argument = _dotted(node.func) in ("getattr", "vars")
        return _is_of_library(node.args[0], names) if is_of_argument else True
    return False


def _replaces(node: ast.AST, names: dict[str, bool], own: set[str]) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        imported = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        return any("mock" in name.split(".") for name in imported)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return _is_of_library(node.value, names) and node.attr not in _OF_CTYPES
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return _is_of_library(node.value, names) and _dotted(node.value) not in _TABLES
    if not isinstance(node, ast.Call):
        return False
    function = _dotted(node.func)
    if function in ("setattr", "delattr"):
        return _dotted(node.args[0]) not in own
    if function.startswith("torch._C._set_"):
        return function != _OF_TENSORS
    if function.endswith("Library"):
        return any(isinstance(argument, ast.Constant) and argument.value == "IMPL" for argument in node.args)
    if ".".join(function.split(".")[-2:]) in _PATCHERS:
        return True
    return isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS \
        and _is_of_library(node.func.value, names) and _dotted(node.func.value) not in _TABLES


def _dotted(node: ast.expr) -> str:
    """A name with its attributes, as "torch.nn.Module"; "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before else ""
