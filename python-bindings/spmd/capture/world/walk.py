"""The walk over the user's Python objects: what each kind of object leads to, in which order, and how far.

children() knows every kind of object and gives each child with its path, the edge that leads to it, and a getter that
finds the child again. walk() visits objects breadth first, so that the first path to an object is a shortest one. A
Visitor gives the edges that the walk follows from an object; it has no walking code of its own.
"""
from __future__ import annotations

import collections
import collections.abc
import enum
import functools
import math
import types
import weakref
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch

from ...torch_api.modules import TABLES, TENSOR_TABLES
from .paths import Place, attribute_path, entry_path, same
from .user_code import global_names, is_library_class, is_library_file, is_users_file

NUMBERS = (bool, int, float, complex, str, types.NoneType)
OPAQUE = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, types.ModuleType, type)  # compared in other ways
SEQUENCES = (list, tuple, collections.deque)
SETS = (set, frozenset)
SIZED = (dict, *SEQUENCES, *SETS)
MAPPINGS = (collections.UserDict, collections.ChainMap, types.MappingProxyType)  # that are no dicts
_MAPPED = (*MAPPINGS, collections.abc.MappingView)
_WRAPPERS = (functools.partial, staticmethod, classmethod, property, weakref.ref)  # whose own attributes are no way to anything else


class Limits(NamedTuple):
    """How far a walk goes. A container of more `entries` is visited but not entered; after `visits` the walk ends."""

    depth: float  # edges from a root
    entries: float = 10_000  # more are data, not a configuration
    visits: float = 500_000  # seconds; a graph of objects that is larger is no training script


CLOSURE_OBJECTS = Limits(depth=math.inf)  # code can reach a teacher through any number of objects
MODEL_AND_OPTIMIZERS = Limits(depth=4)  # self.trainers["gan"].optimizers[0]
HELD_OPTIMIZERS = Limits(depth=3)  # an attribute, or a dict of lists in an attribute
TRACED_VALUES = Limits(depth=4, entries=math.inf, visits=math.inf)  # a traced value is an error in a container of any size
RETURNED_VALUES = Limits(depth=4, entries=math.inf, visits=math.inf)
HOST_STATE = Limits(depth=4, entries=64, visits=200_000)  # compared at every call of a compiled step


class Edge(enum.Enum):
    """How an object leads to another one."""

    ATTRIBUTE = enum.auto()  # of an instance, a function or a Python module: its __dict__
    SLOT = enum.auto()  # of an instance whose class has __slots__
    ENTRY = enum.auto()  # of a dict, list, tuple or deque
    ELEMENT = enum.auto()  # of a set
    MAPPED = enum.auto()  # an entry of a mapping that is no dict, or of a view of one
    CELL = enum.auto()  # a variable that a function closes over
    GLOBAL = enum.auto()  # a global that a function names
    DEFAULT = enum.auto()  # a default value of a function's parameter
    BOUND = enum.auto()  # the object of a bound method
    FUNCTION = enum.auto()  # of a bound method, a staticmethod, a classmethod or a property
    ARGUMENT = enum.auto()  # the function, the arguments and the keywords of a partial()
    REFERENT = enum.auto()  # of a weak reference
    CLASS = enum.auto()  # of an instance
    MEMBER = enum.auto()  # an attribute that a class, or one of its bases, has
    REGISTERED = enum.auto()  # a parameter or buffer of a torch.nn.Module
    SUBMODULE = enum.auto()  # from a torch.nn.Module, what the other edges lead to from each module inside of it


NOTHING: frozenset[Edge] = frozenset()
ENTRY = frozenset({Edge.ENTRY})
ENTRIES = frozenset({Edge.ENTRY, Edge.ELEMENT})
ATTRIBUTE = frozenset({Edge.ATTRIBUTE})
ATTRIBUTES = frozenset({Edge.ATTRIBUTE, Edge.SLOT})
EVERY = frozenset(Edge)


class Node:
    """An object on a walk: its path, and the `edge` and the `key` by which its `owner` leads to it. A root of a walk
    has no owner. `is_new`: no other path led to the object before."""

    __slots__ = ("path", "value", "edge", "key", "owner", "depth", "index", "is_new", "_source")

    def __init__(self, path: str, value: Any, edge: Edge | None = None, key: Any = None, owner: Node | None = None):
        self.path, self.value, self.edge, self.key, self.owner = path, value, edge, key, owner
        self.depth, self.index, self.is_new = (0 if owner is None else owner.depth + 1), 0, True
        self._source: Callable[[], Any] | None = None  # None: read from the owner

    @staticmethod
    def root(path: str, value: Any, get: Callable[[], Any] | None = None) -> Node:
        """Where a walk begins; `get` reads it anew."""
        node = Node(path, value)
        node._source = functools.partial(same, value) if get is None else get
        return node

    def kept_in(self, source: Any) -> Node:
        """This node, read from a cell, a table or a class, whatever replaces the owner."""
        self._source = functools.partial(same, source)
        return self

    @property
    def get(self) -> Callable[[], Any]:
        """Finds the object again, or what is in its place now."""
        if self.edge in (Edge.ELEMENT, Edge.DEFAULT):  # read once: an element has no key, and defaults are rarely replaced
            return functools.partial(same, self.value)
        if self.edge is None:
            return self._source or functools.partial(same, self.value)
        return functools.partial(_read, _READERS[self.edge], self._source or self.owner.get, self.key)

    @property
    def place(self) -> Place:
        """The path with the getter, and the containers on the way."""
        containers, owner = [], self.owner
        while owner is not None:
            if isinstance(owner.value, SIZED):
                containers.append(owner.get)
            owner = owner.owner
        return Place(self.path, self.get, tuple(reversed(containers)))

    @property
    def order(self) -> tuple[int, ...]:
        """Sorts nodes as a walk that is depth first would have found them: in the order of the program."""
        return (*(() if self.owner is None else self.owner.order), self.index)


class Visitor:
    """Decides where a walk goes. `limits` are among those above; objects of an `ignored` type are not visited."""

    limits: Limits
    ignored: tuple[type, ...] = ()

    def visit(self, node: Node) -> frozenset[Edge]:
        """Called once for each path that leads to an object; gives the edges that the walk follows from there. The walk
        enters each object once, by the path that led there first."""
        raise NotImplementedError

    def is_at_the_end(self, node: Node) -> bool:
        """True where the walk enters no object any more."""
        return node.depth >= self.limits.depth


def walk(roots: Iterable[Node], visitor: Visitor) -> None:
    """Visits the roots and what they lead to, breadth first, roots and children in the order of the program."""
    seen: dict[int, Any] = {}  # by id; an object that is alive keeps its id
    queue: collections.deque[Node] = collections.deque()
    visits, limits = 0, visitor.limits

    def add(nodes: Iterable[Node]) -> None:
        for index, node in enumerate(nodes):
            if not isinstance(node.value, visitor.ignored):
                node.index = index
                queue.append(node)

    add(roots)
    while queue and visits < limits.visits:
        node = queue.popleft()
        visits += 1
        node.is_new = id(node.value) not in seen
        edges = visitor.visit(node)
        if node.is_new:
            seen[id(node.value)] = node.value
            if edges and node.depth < limits.depth:
                add(children(node, edges, limits.entries))


def children(node: Node, edges: frozenset[Edge] = EVERY, longest: float = math.inf) -> Iterator[Node]:
    """What an object leads to by some edges; nothing for a container of more than `longest` entries.

    What belongs to a library leads nowhere: globals and defaults of its functions, attributes of its Python modules and
    members of its classes. The attributes of a torch.nn.Module are those that are not registered in it.
    """
    value = node.value
    if isinstance(value, torch.nn.Module):
        yield from _of_torch_module(node, edges)
        return
    if isinstance(value, SIZED):
        if len(value) <= longest:
            yield from _entries(node, edges)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(node, edges)
        return
    elif isinstance(value, types.ModuleType):
        if Edge.ATTRIBUTE in edges and is_users_file(getattr(value, "__file__", None) or "<"):
            yield from _attributes(node, value)
        return
    elif isinstance(value, type):
        if Edge.MEMBER in edges:
            yield from (Node(attribute_path(node.path, name), child, Edge.MEMBER, name, node).kept_in(base)
                        for base in value.__mro__ if not is_library_class(base)
                        for name, child in list(vars(base).items()))
        return
    elif isinstance(value, types.MethodType):
        if Edge.BOUND in edges:
            yield Node(node.path or "self", value.__self__, Edge.BOUND, "__self__", node)
        if Edge.FUNCTION in edges:
            yield Node(node.path, value.__func__, Edge.FUNCTION, "__func__", node)
        return  # its attributes are the function's
    elif isinstance(value, _MAPPED):
        if Edge.MAPPED in edges and len(value) <= longest:
            yield from _entries(node, edges)
    elif isinstance(value, _WRAPPERS):
        yield from _of_wrapper(node, edges)
        return
    if Edge.ATTRIBUTE in edges:
        yield from _attributes(node, value)
    if Edge.SLOT in edges:
        yield from (Node(attribute_path(node.path, name), getattr(value, name), Edge.SLOT, name, node)
                    for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name))
    if Edge.CLASS in edges:
        yield Node(node.path, type(value), Edge.CLASS, None, node)


def _entries(node: Node, edges: frozenset[Edge]) -> Iterator[Node]:
    path, value = node.path, node.value
    if isinstance(value, (dict, *MAPPINGS)):
        edge = Edge.ENTRY if isinstance(value, dict) else Edge.MAPPED
        if edge in edges:
            for number, (key, child) in enumerate(list(value.items())):
                yield Node(entry_path(path, key, number), child, edge, key, node)
        return
    edge = Edge.ENTRY if isinstance(value, SEQUENCES) else Edge.ELEMENT if isinstance(value, SETS) else Edge.MAPPED
    if edge in edges:
        for number, child in enumerate(value):
            yield Node(f"{path}[{number}]", child, edge, number, node)


def _of_function(node: Node, edges: frozenset[Edge]) -> Iterator[Node]:
    """A closure's variables and globals have the names that the function has for them; its other parts, its own."""
    function, code = node.value, node.value.__code__
    if Edge.CELL in edges:
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                yield Node(name, cell.cell_contents, Edge.CELL, "cell_contents", node).kept_in(cell)
            except ValueError:  # empty
                continue
    if not is_library_file(code.co_filename):
        if Edge.GLOBAL in edges:
            own = function.__globals__
            yield from (Node(name, own[name], Edge.GLOBAL, name, node).kept_in(own)
                        for name in global_names(code) if name in own)
        if Edge.DEFAULT in edges:
            defaults = [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
            yield from (Node(f"{function.__name__}.{name}", child, Edge.DEFAULT, name, node)
                        for name, child in defaults)
    if Edge.ATTRIBUTE in edges:
        path = node.path or function.__name__
        yield from (Node(attribute_path(path, name), child, Edge.ATTRIBUTE, name, node).kept_in(function)
                    for name, child in list(vars(function).items()))


def _of_torch_module(node: Node, edges: frozenset[Edge]) -> Iterator[Node]:
    for path, module in node.value.named_modules() if Edge.SUBMODULE in edges else [("", node.value)]:
        inner = Node(attribute_path(node.path, path), module, Edge.SUBMODULE, path, node) if path else node
        inner.depth = node.depth
        if Edge.REGISTERED in edges:
            yield from (Node(attribute_path(inner.path, name), tensor, Edge.REGISTERED, (table, name), inner)
                        for table in TENSOR_TABLES for name, tensor in getattr(module, table).items()
                        if tensor is not None)
        if Edge.ATTRIBUTE in edges:
            yield from _attributes(inner, module, _OF_TORCH_MODULES)
        if Edge.CLASS in edges:
            yield Node(inner.path, type(module), Edge.CLASS, None, inner)


_OF_TORCH_MODULES = frozenset({*TABLES, "_spmd_unit"})  # what is registered, and our annotation


def _of_wrapper(node: Node, edges: frozenset[Edge]) -> Iterator[Node]:
    """Objects that lead to a function or to another object."""
    path, value = node.path, node.value
    if isinstance(value, functools.partial) and Edge.ARGUMENT in edges:
        yield from (Node(attribute_path(path, name), getattr(value, name), Edge.ARGUMENT, name, node)
                    for name in ("func", "args", "keywords"))
    elif isinstance(value, (staticmethod, classmethod)) and Edge.FUNCTION in edges:
        yield Node(path, value.__func__, Edge.FUNCTION, "__func__", node)
    elif isinstance(value, property) and Edge.FUNCTION in edges:
        yield from (Node(path, getattr(value, name), Edge.FUNCTION, name, node) for name in ("fget", "fset"))
    elif isinstance(value, weakref.ref) and Edge.REFERENT in edges:
        yield Node(path, value(), Edge.REFERENT, None, node)


def _attributes(node: Node, value: Any, skipped: frozenset[str] = frozenset()) -> Iterator[Node]:
    try:
        own = dict(value.__dict__)
    except Exception:  # it has none, or is a proxy that answers for another object
        return
    yield from (Node(attribute_path(node.path, name), child, Edge.ATTRIBUTE, name, node)
                for name, child in own.items() if name not in skipped)


def _slots(cls: type) -> Iterator[str]:
    slots = cls.__dict__.get("__slots__", ())
    return (name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__"))


def _read(reader: Callable[[Any, Any], Any], get: Callable[[], Any], key: Any) -> Any:
    return reader(get(), key)


_READERS: dict[Edge, Callable[[Any, Any], Any]] = {
    Edge.ATTRIBUTE: lambda owner, name: vars(owner)[name],
    Edge.SLOT: getattr,
    Edge.ENTRY: lambda owner, key: owner[key],
    Edge.MAPPED: lambda owner, key: owner[key] if isinstance(owner, MAPPINGS) else list(owner)[key],
    Edge.CELL: getattr,
    Edge.GLOBAL: lambda table, name: table[name],
    Edge.BOUND: getattr,
    Edge.FUNCTION: getattr,
    Edge.ARGUMENT: getattr,
    Edge.REFERENT: lambda reference, _: reference(),
    Edge.CLASS: lambda owner, _: type(owner),
    Edge.MEMBER: lambda cls, name: vars(cls)[name],
    Edge.SUBMODULE: lambda module, path: module.get_submodule(path),
    Edge.REGISTERED: lambda module, key: getattr(module, key[0])[key[1]],
}
