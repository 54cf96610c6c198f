"""Meshes of two axes: units cut along one, the same along the other."""
from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from rounding import rounding
from small_net import batches, setup, train_step
from step_check import StepCheck
from test_precision import capture

import spmd
from spmd.meshes import count_ranks


# The sums of a step of small_net on 12 x 10 tokens: twice a block's norm and products, a norm, the logits, the loss and its mean;
# backward twice as many.
CHAIN = 3 * (2 * (2 * 32 + 32 + 128) + 2 * 32 + 32 + 64 + 120)


class Mesh:
    """What of a DeviceMesh is looked at, without a process group."""

    def __init__(self, *sizes: int):
        self.mesh = torch.arange(torch.Size(sizes).numel()).reshape(sizes)
        self.ndim = len(sizes)

    def size(self) -> int:
        return self.mesh.numel()


def test_annotations_arrange_the_ranks() -> None:
    """fully_shard's own mesh is that of the step; ranks and meshes that differ from it are errors."""
    model, _ = setup()
    for module in (*model.blocks, model):
        spmd.fully_shard(module, mesh=Mesh(2, 2))
    wrong = copy.deepcopy(model)
    with pytest.raises(spmd.CompileError, match="annotated for a mesh of replicate:2,shard:2, there are 2 ranks"):
        spmd.compile(train_step, ranks=2)(wrong, torch.optim.AdamW(wrong.parameters(), lr=1e-2), *batches(1)[0])
    step = spmd.compile(train_step, ranks=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    eager, eager_optimizer = setup()
    for x, y in batches(3):
        torch.testing.assert_close(step(model, optimizer, x, y), train_step(eager, eager_optimizer, x, y))
    manifest = json.loads((Path(step.artifact) / "manifest.json").read_text())
    assert [(axis["name"], axis["size"]) for axis in manifest["mesh"]] == [("replicate", 2), ("shard", 2)]
    assert all(unit["axes"] == ["shard"] for unit in manifest["units"])


def test_checkpoints_are_of_any_mesh(tmp_path) -> None:
    """What a mesh of 2 x 2 has saved, 3 ranks go on from, and the other way round: as one rank would."""
    eager, eager_optimizer = setup()
    expected = [train_step(eager, eager_optimizer, x, y) for x, y in batches(6)]
    losses = []
    for part, mesh in enumerate(({"mesh": (2, 2)}, {"ranks": 3}, {"mesh": "replicate:3,shard:2"})):
        model, optimizer = setup()
        step = spmd.compile(train_step, policy="class:Block", **mesh)
        if part:
            step.load_checkpoint(tmp_path / "run")
        losses += [step(model, optimizer, x, y) for x, y in batches(6)[2 * part:2 * part + 2]]
        step.save_checkpoint(tmp_path / "run")
    torch.testing.assert_close(losses, expected)
    for (name, ours), theirs in zip(model.state_dict().items(), eager.state_dict().values()):
        assert (ours - theirs).norm() < rounding(6 * CHAIN) * theirs.norm(), name


@pytest.mark.parametrize("mesh, mode", [("replicate:2,shard:3", "fully_shard"), ("replicate:3,shard:2", "hybrid")])
def test_interpreter(tmp_path, mesh: str, mode: str) -> None:
    check = StepCheck(capture(setup()[0], "param=bf16,reduce=f32"), tmp_path)
    check.interpret(6, "class:Block", f"--mesh={mesh}", f"--mode={mode}")


@pytest.mark.parametrize("order", [2.0, float("inf")])
@pytest.mark.parametrize("mesh", ["shard:3", "replicate:2,shard:2"])
def test_clipping_over_units_of_several_modes(tmp_path, mesh: str, order: float) -> None:
    """Chunks of one unit count once over its row, what another has whole once; one message of numbers adds them up."""
    def clipped(model, optimizer, x, y):
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01, order)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    model, _ = setup()
    with spmd.enable_wrap():
        for block, mode in zip(model.blocks, ("replicate", "shard_optimizer")):
            spmd.wrap(block, mode=mode)
    package = spmd.capture(clipped, model, torch.optim.SGD(model.parameters(), lr=1.0), *batches(1)[0])
    said = StepCheck(package, tmp_path).interpret(count_ranks(mesh), "auto", f"--mesh={mesh}")
    assert "all_reduce" in said and "all_gather" in said and "reduce_scatter" in said, said


def test_what_is_refused(tmp_path) -> None:
    for options, message in (({"mesh": (2, 2), "ranks": 3}, "ranks is 3, and mesh, replicate:2,shard:2, has 4"),
                             ({"mesh": "data:2"}, "expected replicate:N,shard:M"),
                             ({"mesh": "two"}, "mesh is 'two'; expected replicate:N,shard:M or shard:M"),
                             ({"mesh": (2, 1)}, "nothing is cut over an axis of 1 rank"),
                             ({"options": ["--mesh=shard:2"]}, "options has --mesh; say mesh= instead")):
        with pytest.raises((ValueError, spmd.CompileError), match=message):
            model, optimizer = setup()
            spmd.compile(train_step, **options)(model, optimizer, *batches(1)[0])


def test_parts_of_what_all_ranks_compute(tmp_path) -> None:
    """More ranks than rows: gradients are whole on every rank, each takes its chunk by its place along one axis, and a
    norm is combined along that axis alone."""
    def step(model, optimizer, x):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return model.weight.detach().norm()

    model = torch.nn.Linear(7, 4)
    x = torch.randn(3, 7)
    twin = copy.deepcopy(model)
    optimizer, twins = (torch.optim.ASGD(m.parameters(), lr=0.05) for m in (model, twin))
    compiled = spmd.compile(step, mesh=Mesh(2, 4), batch_dims={"x": None})
    for _ in range(3):
        torch.testing.assert_close(compiled(model, optimizer, x), step(twin, twins, x))
