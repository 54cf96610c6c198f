"""Finds private names of PyTorch in Python sources, without running them.

A name is private if it begins with one underscore, or lies in torch.fx.experimental. Names of operators
(torch.ops.aten._conj) are not private. Types are unknown, so attributes of instances are recognized by their names:
`attributes` lists those of PyTorch's objects. Any other private attribute is reported too if no source defines it,
because it belongs to a library.
"""
from __future__ import annotations

import ast
import re
from typing import Collection, Iterator, Mapping, NamedTuple

_PATH = re.compile(r"torch(\.\w+)*\.(_[a-z]\w*|fx\.experimental)(\.\w+)*")


class Found(NamedTuple):
    file: str
    line: int
    name: str


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def find_private_names(sources: Mapping[str, str], attributes: Collection[str],
                       others: Collection[str] = ()) -> list[Found]:
    """The private names of PyTorch in `sources`, which maps the names of files to their texts.

    `attributes`: known private attributes of PyTorch's objects. `others`: private attributes of other libraries.
    """
    trees = {file: ast.parse(text) for file, text in sources.items()}
    defined = {name for tree in trees.values() for name in _defined(tree)}
    found = {Found(file, line, name) for file, tree in trees.items()
             for line, name in _File(tree, attributes, defined | set(others)).find()}
    return sorted(found)


def _defined(tree: ast.AST) -> Iterator[str]:
    """The private names that a source gives to classes, functions and variables, and to attributes of self and cls."""
    for node in ast.walk(tree):
        name = node.name if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) else \
            node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else _own_attribute(node)
        if name is not None and is_private(name):
            yield name


def _own_attribute(node: ast.AST) -> str | None:
    is_store = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return node.attr if is_store and _is_self(node.value) else None


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _chain(node: ast.AST) -> list[str]:
    """The names of a.b.c; empty for any other expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    before = _chain(node.value) if isinstance(node, ast.Attribute) else []
    return [*before, node.attr] if before else []


class _File:
    def __init__(self, tree: ast.Module, attributes: Collection[str], defined: Collection[str]):
        self._tree, self._attributes, self._defined = tree, attributes, defined
        self._own = {name for name in map(_own_attribute, ast.walk(tree)) if name is not None}
        self._own |= {statement.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
                      for statement in node.body if isinstance(statement, ast.FunctionDef)}
        self._modules: dict[str, str] = {}  # local names of modules of PyTorch: their paths
        self._operators: set[str] = set()  # local names of parts of torch.ops
        self._skipped: set[int] = set()  # nodes of docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._modules |= {alias.asname or "torch": alias.name if alias.asname else "torch"
                                  for alias in node.names if alias.name.split(".")[0] == "torch"}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch" and not node.level:
                self._modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Assign) and _chain(node.value)[:2] == ["torch", "ops"]:
                self._operators |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                self._skipped.add(id(node.value))

    def find(self) -> Iterator[tuple[int, str]]:
        for node in ast.walk(self._tree):
            for name in self._names(node):
                yield node.lineno, name

    def _names(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _PATH.fullmatch(alias.name))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            paths = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (path for path in paths if _is_private_path(path))
        elif isinstance(node, ast.Attribute):
            yield from self._names_of_attribute(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in self._skipped:
            if node.value in self._attributes or _PATH.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.keyword) and node.arg in self._attributes:
            yield node.arg
        elif isinstance(node, ast.ClassDef) and node.bases:
            yield from (statement.name for statement in node.body
                        if isinstance(statement, ast.FunctionDef) and statement.name in self._attributes)

    def _names_of_attribute(self, node: ast.Attribute) -> Iterator[str]:
        chain = _chain(node)
        if chain and chain[0] in self._operators:
            return
        if chain and chain[0] in self._modules:
            path = ".".join([self._modules[chain[0]], *chain[1:]])
            if not path.startswith("torch.ops.") and (is_private(node.attr) or path == "torch.fx.experimental"):
                yield path
        elif node.attr in self._attributes:
            if not (_is_self(node.value) and node.attr in self._own):
                yield node.attr
        elif is_private(node.attr) and node.attr not in self._defined:
            yield node.attr


def _is_private_path(path: str) -> bool:
    parts = path.split(".")
    return parts[0] == "torch" and (any(map(is_private, parts)) or parts[1:3] == ["fx", "experimental"])
