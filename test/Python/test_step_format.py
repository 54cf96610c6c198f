"""docs/step-format.md, its schema and every package in the repository say the same."""
from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Iterator

import pytest
from iterations import unroll
from json_schema import violations
from safetensors import safe_open

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "docs/step-format.schema.json").read_text())
PACKAGES = sorted([*ROOT.glob("test/Inputs/*.step"), *ROOT.glob("examples/*.step")])


def load(folder: Path) -> dict:
    return json.loads((folder / "step.json").read_text())


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.name)
def test_package_fits_schema(folder: Path) -> None:
    assert list(violations(load(folder), SCHEMA, SCHEMA)) == []


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.name)
def test_package_is_consistent(folder: Path) -> None:
    """What a schema cannot say: numbering, use after definition, names that refer to something."""
    step = unroll(load(folder))
    assert [i["id"] for i in step["inputs"]] == list(range(len(step["inputs"])))
    known = len(step["inputs"])
    for node in step["nodes"]:
        names = [name for name, _ in node["args"]]
        for _, argument in node["args"]:
            for value in argument.get("values", [argument.get("value")]):
                assert value is None or value < known, node
        for result in node["results"]:
            if result is not None:
                assert result["id"] == known
                known += 1
        assert set(node.get("mutates", [])) <= set(names) and node.get("view_of", names[0]) in names
        assert node["stack"] is None or node["stack"] < len(step["stacks"])
    assert all(o["value"] < known for o in step["outputs"])
    assert [o["kind"] for o in step["outputs"]].count("loss") == 1
    parameters = {p["name"] for p in step["parameters"]}
    assert {i["of"] for i in step["inputs"] if i["kind"] == "state"} <= parameters
    assert [n for g in step["optimizer"]["groups"] for n in g["parameters"] if n not in parameters] == []
    assert set(step["zero_gradient"]) <= parameters
    modules = {m["name"] for m in step["module_tree"]}
    assert {c for m in step["module_tree"] for c in m["children"]} == modules - {""}
    assert {n["module"] for n in step["nodes"]} - {None} <= modules
    owned = {p for m in step["module_tree"] for p in m["parameters"]}
    assert owned == {n for p in step["parameters"] for n in (p["name"], *p["aliases"])}


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.name)
def test_tensors_fit_the_graph(folder: Path) -> None:
    if not (folder / "weights.safetensors").is_file():
        pytest.skip("a package of a graph alone")
    step = load(folder)
    shapes = {i["name"]: i["shape"] for i in step["inputs"] if i["kind"] in ("param", "buffer")}
    with safe_open(folder / "weights.safetensors", "np") as file:
        assert {k: list(file.get_slice(k).get_shape()) for k in file.keys()} == shapes
    with safe_open(folder / "reference.safetensors", "np") as file:
        steps = int(file.metadata()["steps"])
        assert file.metadata()["format"] == "spmd-reference"
        assert file.get_slice("loss").get_shape() == [steps] and file.get_slice("loss").get_dtype() == "F64"
        for i in step["inputs"]:
            if i["kind"] == "batch":
                for number in range(steps):
                    assert file.get_slice(f"batch/{number}/{i['name']}").get_shape() == i["shape"]
        assert all(file.get_slice(f"final/{name}").get_shape() == shape for name, shape in shapes.items())


def schema_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties":
                yield from value
            if key == "enum":
                yield from (name for name in value if isinstance(name, str))
            yield from schema_names(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from schema_names(item)


def test_document_names_every_key() -> None:
    text = (ROOT / "docs/step-format.md").read_text()
    missing = {name for name in schema_names(SCHEMA) if name not in text} - {"channels_last", "channels_last_3d",
                                                                              "preserve_format"}
    assert missing == set()


def test_the_checker_can_fail() -> None:
    good = load(ROOT / "test/Inputs/mlp-sgd.step")

    def broken(change) -> list[str]:
        step = copy.deepcopy(good)
        change(step)
        return list(violations(step, SCHEMA, SCHEMA))

    assert broken(lambda s: None) == []
    assert broken(lambda s: s.update(version=10)) == ["/version: 10 is none of [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    assert broken(lambda s: s.pop("nodes")) == [": no 'nodes'"]
    assert broken(lambda s: s["nodes"][1]["args"][0].__setitem__(1, {"value": 1, "int": 2})) == \
        ["/nodes/1/args/0/1: 2 entries"]
    assert broken(lambda s: s["inputs"][0].update(dtype="float32"))[0].startswith("/inputs/0: ")
    assert broken(lambda s: s["nodes"][0].update(phase="clip"))[0].startswith("/nodes/0/phase: 'clip' is none of")
    assert broken(lambda s: s["parameters"][0].update(shape=[-1])) == ["/parameters/0/shape/0: -1 is below 0"]
