"""The walk over the user's Python objects: edges, order, limits, paths, and places that find an object again."""
from __future__ import annotations

import collections
import functools
import math
import types
import weakref
from typing import Any

import pytest
import torch
import spmd
from spmd.capture.world import paths
from spmd.capture.world.closure_objects import ClosureObjects
from spmd.capture.world.host_state import host_state
from spmd.capture.world.leaked_values import WatchedTables
from spmd.capture.world.user_code import has_users_class
from spmd.capture.world.walk import (ENTRIES, ENTRY, EVERY, HOST_STATE, NOTHING, Edge, Limits, Node, Visitor, children,
                                     walk)

GLOBAL = types.SimpleNamespace(rate=0.5)


class Base:
    inherited = "of the base"


class Plain(Base):
    own = "of the class"

    def __init__(self, **attributes: Any):
        vars(self).update(attributes)

    def method(self) -> Any:
        return self


class Slotted:
    __slots__ = ("first", "unset", "__dict__")

    def __init__(self, first: Any):
        self.first = first


def decorated(scale: float = 2.0, *, shift: float = 1.0) -> Any:
    return GLOBAL, scale, shift


decorated.calls = [0]


def closure(captured: Any) -> Any:
    def inner() -> Any:
        return captured
    return inner


def below(path: str, value: Any, edges: frozenset[Edge] = EVERY, longest: float = math.inf) -> dict[str, Node]:
    """The children of a value by path, without its class and what that leads to."""
    return {node.path: node for node in children(Node.root(path, value), edges - {Edge.CLASS}, longest)}


def edges_of(value: Any) -> dict[str, Edge]:
    return {path: node.edge for path, node in below("x", value).items()}


class Recorder(Visitor):
    """Follows `edges` from every object."""

    def __init__(self, edges: frozenset[Edge] = EVERY, limits: Limits = Limits(math.inf),
                 ignored: tuple[type, ...] = ()):
        self.edges, self.limits, self.ignored = edges, limits, ignored
        self.nodes: list[Node] = []
        self.paths: list[tuple[str, bool]] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        self.nodes.append(node)
        self.paths.append((node.path, node.is_new))
        return self.edges


def walked(roots: dict[str, Any], visitor: Recorder) -> list[str]:
    walk([Node.root(name, value) for name, value in roots.items()], visitor)
    return [path for path, _ in visitor.paths]


CONTAINERS = {
    "dict": ({"a": 1, 2: 3}, {"x['a']": Edge.ENTRY, "x[2]": Edge.ENTRY}),
    "list": ([1, 2], {"x[0]": Edge.ENTRY, "x[1]": Edge.ENTRY}),
    "tuple": ((1,), {"x[0]": Edge.ENTRY}),
    "deque": (collections.deque([1]), {"x[0]": Edge.ENTRY}),
    "set": ({1}, {"x[0]": Edge.ELEMENT}),
    "frozenset": (frozenset({1}), {"x[0]": Edge.ELEMENT}),
    "UserDict": (collections.UserDict(a=1), {"x['a']": Edge.MAPPED, "x.data": Edge.ATTRIBUTE}),
    "ChainMap": (collections.ChainMap({"a": 1}), {"x['a']": Edge.MAPPED, "x.maps": Edge.ATTRIBUTE}),
    "MappingProxy": (types.MappingProxyType({"a": 1}), {"x['a']": Edge.MAPPED}),
    "values": ({"a": 1}.values(), {"x[0]": Edge.MAPPED}),
    "instance": (Plain(a=1, b=2), {"x.a": Edge.ATTRIBUTE, "x.b": Edge.ATTRIBUTE}),
    "slots": (Slotted(1), {"x.first": Edge.SLOT}),
    "partial": (functools.partial(Plain, 1),
                {"x.func": Edge.ARGUMENT, "x.args": Edge.ARGUMENT, "x.keywords": Edge.ARGUMENT}),
    "property": (property(len), {"x": Edge.FUNCTION}),
    "weakref": (weakref.ref(Plain), {"x": Edge.REFERENT}),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_edges_of_objects(name: str) -> None:
    value, expected = CONTAINERS[name]
    assert edges_of(value) == expected


def test_edges_of_functions() -> None:
    captured = Plain()
    found = below("f", closure(captured))
    assert {path: (node.edge, node.value) for path, node in found.items()} == {"captured": (Edge.CELL, captured)}
    found = below("lookup", decorated)
    assert {path: node.edge for path, node in found.items()} == {
        "GLOBAL": Edge.GLOBAL, "decorated.0": Edge.DEFAULT, "decorated.shift": Edge.DEFAULT,
        "lookup.calls": Edge.ATTRIBUTE}
    assert found["GLOBAL"].value is GLOBAL
    assert "decorated.calls" in below("", decorated)


def test_edges_of_methods() -> None:
    plain = Plain(a=1)
    nodes = list(children(Node.root("", plain.method)))
    assert [(node.path, node.edge) for node in nodes] == [("self", Edge.BOUND), ("", Edge.FUNCTION)]
    assert nodes[0].value is plain and nodes[1].value is Plain.method
    for wrapper in (staticmethod(decorated), classmethod(decorated)):
        assert [node.value for node in children(Node.root("f", wrapper), frozenset({Edge.FUNCTION}))] == [decorated]


def test_edges_of_classes_and_of_empty_cells() -> None:
    found = below("C", Plain)
    assert found["C.own"].edge is Edge.MEMBER and found["C.inherited"].value == "of the base"
    assert [node.value for node in children(Node.root("x", Plain()))] == [Plain]
    if False:
        unset = None  # noqa: F841

    def function() -> Any:
        return unset
    assert below("f", function) == {}


def test_libraries_lead_nowhere() -> None:
    assert below("collections", collections) == below("OrderedDict", collections.OrderedDict) == {}
    assert set(below("wraps", functools.wraps)) == set()
    users = types.ModuleType("users")
    users.__file__, users.rate = __file__, 0.5
    assert below("users", users)["users.rate"].edge is Edge.ATTRIBUTE


def test_edges_of_torch_modules() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Flatten())
    model[2].register_buffer("unset", None)
    model[0].teacher = [1]
    found = below("m", model)
    registered = [path for path, node in found.items() if node.edge is Edge.REGISTERED]
    assert registered == ["m.0.weight", "m.0.bias", "m.1.weight", "m.1.bias", "m.1.running_mean", "m.1.running_var",
                          "m.1.num_batches_tracked"]
    assert found["m.0.teacher"].edge is Edge.ATTRIBUTE and found["m.0.teacher"].value == [1]
    assert "m._parameters" not in found and "m.training" in found
    alone = below("m", model, EVERY - {Edge.SUBMODULE})
    assert "m.training" in alone and "m.0.teacher" not in alone
    classes = [node for node in children(Node.root("m", model)) if node.edge is Edge.CLASS]
    assert [(node.path, node.value) for node in classes] == [
        ("m", torch.nn.Sequential), ("m.0", torch.nn.Linear), ("m.1", torch.nn.BatchNorm1d), ("m.2", torch.nn.Flatten)]


def test_only_edges_that_are_followed() -> None:
    for value, expected in CONTAINERS.values():
        for edge in Edge:
            assert {node.edge for node in below("x", value, frozenset({edge})).values()} <= {edge}
            assert (edge in expected.values()) == bool(below("x", value, frozenset({edge})))


def test_places_find_a_child_again() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model[0].teacher = [1]
    values = [value for value, _ in CONTAINERS.values()] + [
        closure(1), decorated, Plain().method, staticmethod(len), Plain, Plain(a=1), model]
    found = 0
    for value in values:
        for node in children(Node.root("x", value)):
            assert node.place.now() is node.value and node.place.path == node.path, (value, node.path)
            found += 1
    assert found > 60


def test_a_place_finds_what_replaced_an_object() -> None:
    trainer = Plain(teachers=[{"scale": 1}])
    recorder = Recorder()
    walk([Node.root("trainer", trainer)], recorder)
    place = next(node.place for node in recorder.nodes if node.path == "trainer.teachers[0]['scale']")
    assert place.get() == 1 and place.sizes() == (1, 1)
    trainer.teachers = [{"scale": 2}, {}]
    assert place.get() == 2 and place.sizes() == (2, 1)
    trainer.teachers = []
    assert place.now() is None
    trainer.current, trainer.teachers = "one", ["one"]
    both = next(children(Node.root("trainer", trainer))).place._replace(others=(lambda: trainer.current,))
    assert both.now() is None
    trainer.current = trainer.teachers
    assert both.now() is trainer.teachers
    root = next(node.place for node in recorder.nodes if node.path == "trainer")
    assert root.now() is trainer
    read = Node.root("trainer", trainer, lambda: Plain(teachers="read"))
    assert next(children(read)).place.now() == "read"


def test_a_cell_a_global_and_an_element_keep_their_source() -> None:
    functions = {"f": closure(1)}
    cell = next(children(next(children(Node.root("d", functions)))))
    functions.clear()
    assert cell.place.now() == 1
    elements = [{Plain}]
    element = next(children(next(children(Node.root("l", elements), ENTRY)), ENTRIES))
    elements.clear()
    assert element.place.now() is Plain


def test_breadth_first_and_each_object_once() -> None:
    shared = ["inner"]
    visitor = Recorder(ENTRIES)
    assert walked({"a": [[shared]], "b": shared}, visitor) == ["a", "b", "a[0]", "b[0]", "a[0][0]"]
    assert visitor.paths[-1] == ("a[0][0]", False)
    assert [path for path, is_new in visitor.paths if is_new] == ["a", "b", "a[0]", "b[0]"]


def test_order_of_a_depth_first_walk() -> None:
    visitor = Recorder(ENTRIES)
    walked({"a": [[1], 2], "b": 3}, visitor)
    assert [node.path for node in visitor.nodes] == ["a", "b", "a[0]", "a[1]", "a[0][0]"]
    assert [node.path for node in sorted(visitor.nodes, key=lambda node: node.order)] == [
        "a", "a[0]", "a[0][0]", "a[1]", "b"]


def test_cycles_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    trainer = Plain(log=cycle)
    trainer.me = trainer
    visitor = Recorder(EVERY - {Edge.CLASS})
    assert walked({"t": trainer}, visitor) == ["t", "t.log", "t.me", "t.log[0]"]


def test_limits() -> None:
    nested = {"a": {"b": {"c": 1}}, "long": list(range(4))}
    assert walked({"x": nested}, Recorder(ENTRIES, Limits(2, 3))) == ["x", "x['a']", "x['long']", "x['a']['b']"]
    assert walked({"x": nested}, Recorder(ENTRIES, Limits(0))) == ["x"]
    assert "x['long'][3]" in walked({"x": nested}, Recorder(ENTRIES, Limits(2, 4)))
    assert walked({"x": nested}, Recorder(ENTRIES, Limits(9, 9, visits=3))) == ["x", "x['a']", "x['long']"]
    assert walked({"x": nested}, Recorder(NOTHING)) == ["x"]
    assert walked({"x": nested, "n": 1}, Recorder(ENTRIES, ignored=(int, list))) == [
        "x", "x['a']", "x['a']['b']"]
    users = collections.UserDict({str(number): number for number in range(4)})
    assert set(below("u", users, longest=3)) == {"u.data"}
    assert [Recorder(limits=Limits(1)).is_at_the_end(node) for node in (
        Node.root("x", [1]), next(children(Node.root("x", [1]))))] == [False, True]


def test_only_the_size_of_a_large_container_is_host_state() -> None:
    few, many = [0] * HOST_STATE.entries, [0] * (HOST_STATE.entries + 1)
    found = [str(watched) for watched in host_state({"few": few, "many": many}, has_users_class)]
    assert found[:2] == ["the number of entries of 'few'", "the number of entries of 'many'"]
    assert len(found) == 2 + len(few) and found[-1] == f"'few[{len(few) - 1}]'"


def test_visitors_spell_an_object_alike() -> None:
    teacher, log = torch.nn.Linear(2, 2), {"step": {"rate": 1.0}}
    trainer = Plain(teachers={"old": [teacher]}, log=log, slotted=Slotted({"deep": torch.zeros(3)}),
                    chosen={torch.ones(2)})
    log["options"] = [torch.ones(1)]
    names = {"self": trainer}
    reached = ClosureObjects([], torch.nn.Linear(1, 1), names, [])
    watched = host_state(names, has_users_class)
    tables = WatchedTables(names)._tables
    recorder = Recorder()
    walked(names, recorder)
    spelled = {id(node.value): node.path for node in recorder.nodes if node.is_new}
    assert [place.path for place, _ in reached.modules] == [spelled[id(teacher)]] == ["self.teachers['old'][0]"]
    tensors = {place.path for place, _ in reached.tensors.values()}
    assert {"self.log['options'][0]", "self.slotted.first['deep']", "self.chosen[0]"} <= tensors
    assert {what.path for what in watched if what.aspect.name == "STATE"} == tensors - {
        "self.teachers['old'][0].weight", "self.teachers['old'][0].bias"}
    assert [table.path for table in tables] == [
        "self", "self.teachers", "self.log", "self.slotted", "self.log['step']", "self.slotted.first"]
    assert all(spelled[id(table.entries)] == table.path for table in tables if not table.of_object)


PATHS = [
    ("model", "model", [], None),
    ("a.b[0]", "a", [".b", "[0]"], "b"),
    ("d['key']", "d", ["['key']"], None),
    ("d['x.y'].z", "d", ["['x.y']", ".z"], "z"),
    ("a.b['x.y']", "a", [".b", "['x.y']"], "b"),
    ("d['x].y'].q", "d", ["['x].y']", ".q"], "q"),
    (r"d['it\'].s'].q", "d", [r"['it\'].s']", ".q"], "q"),
    ("d[(2, [1], color.RED)].q", "d", ["[(2, [1], color.RED)]", ".q"], "q"),
    ("d[(1, [2])][tensor 3]", "d", ["[(1, [2])]", "[tensor 3]"], None),
    ("self.layers.0.w", "self", [".layers", ".0", ".w"], "w"),
]


@pytest.mark.parametrize("path, root, steps, attribute", PATHS)
def test_paths_are_parsed(path: str, root: str, steps: list[str], attribute: str | None) -> None:
    assert paths.split_path(path) == (root, steps)
    assert paths.root_of(path) == root and paths.last_attribute(path) == attribute
    assert "".join([root, *steps]) == path


def test_paths_are_written() -> None:
    assert paths.attribute_path("", "a") == "a" and paths.attribute_path("a", "b") == "a.b"
    assert paths.entry_path("d", "it's") == 'd["it\'s"]' and paths.entry_path("d", 1) == "d[1]"
    assert paths.entry_path("d", torch.zeros(2), 3) == "d[tensor 3]"
    assert below("d", {torch.zeros(2): 1, "k": 2}).keys() == {"d[tensor 0]", "d['k']"}
    assert paths.is_below("a.b", "a") and paths.is_below("a[0]", "a") and not paths.is_below("ab", "a")
    assert not paths.is_below("a", "a")
    assert paths.identifier("self.teachers[0]") == "teachers_0" and paths.identifier("self.") == "held"


def test_a_traced_value_is_found_behind_a_container_of_any_size():
    class Keeper:
        def __init__(self):
            self.data, self.pairs = list(range(600_000)), [([],)]

        def step(self, model, optimizer, x):
            loss = model(x).sum()
            self.pairs[0][0].append(loss)
            loss.backward()
            return loss

    model = torch.nn.Linear(2, 1)
    with pytest.raises(spmd.CaptureError, match="stores a tensor in"):
        spmd.capture(Keeper().step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(1, 2))
