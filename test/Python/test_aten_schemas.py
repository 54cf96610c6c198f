"""Every op of the aten dialect has exactly PyTorch's schema, and its attributes are arguments of that schema."""
import os
import re
import subprocess

import pytest
import torch

TRANSLATE = os.path.join(os.environ.get("SPMD_BIN", "build/bin"), "spmd-translate")

# Attributes that say what PyTorch has no argument for: shard units, param groups, segment sizes.
OURS = {"unit", "groups", "lr_values", "operandSegmentSizes", "resultSegmentSizes"}


def dialect_ops():
    text = subprocess.run([TRANSLATE, "--print-aten-schemas"], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


OPS = dialect_ops()


def test_dialect_is_not_empty():
    assert len(OPS) > 100


@pytest.mark.parametrize("name, schema, attributes", OPS, ids=[op[0] for op in OPS])
def test_schema_is_pytorchs(name, schema, attributes):
    if schema.startswith("spmd::"):
        pytest.skip("an op of our own")
    packet, _, overload = name.removeprefix("aten.").partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    assert schema == str(op._schema)


@pytest.mark.parametrize("name, schema, attributes", OPS, ids=[op[0] for op in OPS])
def test_attributes_are_arguments(name, schema, attributes):
    arguments = schema[schema.index("(") + 1:schema.rindex(") -> ")]
    names = set(re.findall(r"(\w+)(?:=[^,]*)?(?:,|$)", arguments))
    unknown = set(filter(None, attributes.split(","))) - names - OURS
    assert not unknown, f"{name} has attributes {unknown} that {schema} does not"


def covered_ops():
    """The functional names of the ATen ops in docs/coverage.md: they are imported, printed, read and run there."""
    text = open(os.path.join(os.environ.get("SPMD_SOURCE", "."), "docs", "coverage.md")).read()
    return {f"aten.{op}" for op in re.findall(r"`([\w.]+)`", text)}


def test_every_op_is_in_a_round_trip_test_or_covered():
    folder = os.path.join(os.environ.get("SPMD_SOURCE", "."), "test", "dialects", "Aten")
    text = "".join(open(os.path.join(folder, file)).read() for file in os.listdir(folder)
                   if file.startswith("roundtrip"))
    tested = set(re.findall(r"aten\.[\w.]+", text))
    assert {op[0] for op in OPS} <= tested | covered_ops()
