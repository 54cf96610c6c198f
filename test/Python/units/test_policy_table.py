"""Every row of the table in docs/shard-units.md: Python's form, the command line's, and PyTorch itself."""
from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from torch import nn
from torch.distributed.fsdp import _wrap_utils as upstream
from torch.distributed.fsdp.wrap import (CustomPolicy, ModuleWrapPolicy, _or_policy, _Policy, always_wrap_policy,
                                         lambda_auto_wrap_policy, size_based_auto_wrap_policy,
                                         transformer_auto_wrap_policy)

import spmd
from spmd import fully_shard
from spmd.units.choice import policy_words
from tools import Block, Model, comparable, report, report_json, write_step

DOC = Path(__file__).parent.parent.parent.parent / "docs/shard-units.md"


def rows() -> list[tuple[str, str]]:
    lines = DOC.read_text().splitlines()
    start = lines.index("| PyTorch | command line | what differs, and why |")
    found = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            return found
        python, command, why = (cell.strip() for cell in line.strip("|").split(" | "))
        assert why
        found.append((python.strip("`"), command.strip("`")))
    raise AssertionError("the table does not end")


class UserPolicy(_Policy):
    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {root_module.norm: {}, root_module.h[1]: {}}


class OldPolicy:
    @property
    def policy(self):
        return partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})


def wrap_blocks(model: Model) -> None:
    with spmd.enable_wrap():
        for block in model.h:
            assert spmd.wrap(block) is block


def is_annotation(python: str) -> bool:
    return python.startswith(("[", "wrap_", "fully_shard("))


def evaluate(python: str, model: Model):
    names = dict(globals(), model=model)
    return eval(python, names)


@pytest.mark.parametrize("python, command", rows())
def test_row(python: str, command: str, tmp_path) -> None:
    model = Model()
    value = evaluate(python, model)
    policy = None if is_annotation(python) else "none" if value is None else value
    units = spmd.shard_units(model, policy, ranks=4)

    step, plan = write_step(model, tmp_path / "model.step"), tmp_path / "plan.json"
    units.save(plan)
    words = [f"--policy-file={plan}"] if command == "--policy-file" else [f"--policy={command}"]
    reported = report_json(step, *words, "--ranks=4")
    assert comparable(reported) == comparable(units)
    assert reported["warnings"] == units.warnings and reported["remarks"] == units.remarks

    if not is_annotation(python):
        found = []
        if value is not None:
            upstream._auto_wrap(model, getattr(value, "policy", value), set(), set(), {"mixed_precision": None},
                                lambda module, **options: found.append(module) or module)
        names = {m: path for path, m in model.named_modules()}
        assert [u.name for u in units] == [names[m] for m in found] + [""]
    else:
        blocks = [f"h.{i}" for i in range(3)]
        assert [u.name for u in units] == (blocks if "norm" not in python else [*blocks, "norm"]) + [""]


def test_the_table_has_every_policy() -> None:
    text = " ".join(python for python, _ in rows())
    for name in ("always_wrap_policy", "lambda_auto_wrap_policy", "ModuleWrapPolicy", "transformer_auto_wrap_policy",
                 "size_based_auto_wrap_policy", "CustomPolicy", "_or_policy", "UserPolicy", "fully_shard",
                 "wrap_blocks"):
        assert name in text


def test_several_policies_are_ored(tmp_path) -> None:
    step = write_step(Model(), tmp_path / "model.step")
    one = report_json(step, "--policy=or(class:Block;class:LayerNorm)")
    assert comparable(report_json(step, "--policy=class:Block", "--policy=class:LayerNorm")) == comparable(one)
    assert [u["name"] for u in one["units"]] == ["h.0", "h.1", "h.2", "norm", ""]


def test_the_plan_of_the_documentation(tmp_path) -> None:
    text = DOC.read_text()
    plan = tmp_path / "plan.json"
    plan.write_text(text[text.index("```json plan\n") + 13:text.index("```\n", text.index("```json plan\n"))]
                    .replace("head.bias", "head.weight"))
    units = report_json(write_step(Model(), tmp_path / "model.step"), f"--policy-file={plan}", "--ranks=2")
    assert [(u["name"], u["modules"]) for u in units["units"]] == [
        ("h.0.ffn", ["h.0.ffn"]), ("h.1.ffn", ["h.1.ffn"]), ("h.1", ["h.1"]), ("h.2.ffn", ["h.2.ffn"]),
        ("h.2", ["h.2"]),
        ("norm", ["norm", "head"]), ("", [""])]
    assert units["units"][0]["given_options"] == {"mode": "replicate"}
    assert units["units"][2]["given_options"] == {"reshard_after_forward": False, "prefetch": 1}
    assert [p["name"] for p in units["ignored"]["parameters"]] == ["head.weight"]
    assert report(tmp_path / "model.step", "--policy-file=" + str(plan), "--policy=always").stderr == \
        "spmd-report: error: --policy and --policy-file exclude each other\n"


@pytest.mark.parametrize("policy, words", [
    (None, []), ("always", ["--policy=always"]),
    (ModuleWrapPolicy({nn.Linear}), ["--policy=class:torch.nn.modules.linear.Linear"]),
    (size_based_auto_wrap_policy, ["--policy=size:100000000"]),
    (partial(size_based_auto_wrap_policy, min_num_params=1e3, exclude_wrap_modules={nn.Linear}),
     ["--policy=size:1000,exclude=torch.nn.modules.linear.Linear"]),
    (partial(_or_policy, policies=[always_wrap_policy, ModuleWrapPolicy({nn.Linear})]),
     ["--policy=or(always;class:torch.nn.modules.linear.Linear)"])])
def test_a_policy_for_a_captured_step(policy, words, tmp_path) -> None:
    assert policy_words(policy, tmp_path) == words


def test_a_policy_that_has_to_see_the_model(tmp_path) -> None:
    for policy in (UserPolicy(), CustomPolicy(lambda m: True), lambda module, recurse, nonwrapped_numel: True):
        with pytest.raises(TypeError, match="needs the model: pass spmd.shard_units"):
            policy_words(policy, tmp_path)
    units = spmd.shard_units(Model(), UserPolicy())
    assert policy_words(units, tmp_path) == [f"--policy-file={tmp_path}/plan.json"]
    assert comparable(report_json(write_step(Model(), tmp_path / "m.step"),
                                  *policy_words(units, tmp_path))) == comparable(units)
