"""Checkpoints of torch.distributed.checkpoint both ways: stock FSDP2 in two processes goes on from ours, we from theirs."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from fsdp2_checkpoint import AT, STEPS, batch, make_model, make_optimizer, train_step
from python_processes import torchrun
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

import spmd

SCRIPT = Path(__file__).parent / "fsdp2_checkpoint.py"


def fsdp2(what: str, folder: Path) -> list[float]:
    done = subprocess.run([*torchrun("--nproc-per-node=2"), SCRIPT, what, folder], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / f"{what}.json").read_text())


class Training:
    def __init__(self, seed: int, ranks: int = 2):
        self.model = make_model(seed)
        self.optimizer = make_optimizer(self.model)
        self.step = spmd.compile(train_step, ranks=ranks, policy="class:Linear")

    def run(self, first: int, last: int) -> list[float]:
        return [self.step(self.model, self.optimizer, *batch(number)).item() for number in range(first, last)]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> tuple[Path, list[float]]:
    """What FSDP2 has saved, and its losses after that."""
    folder = tmp_path_factory.mktemp("fsdp2")
    return folder, fsdp2("save", folder)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_going_on_from_fsdp2(theirs, tmp_path, ranks: int) -> None:
    folder, expected = theirs
    checkpoint = spmd.checkpoint.from_dcp(folder / "dcp", tmp_path)
    assert checkpoint == tmp_path / f"step-{AT:08d}" and [p.name for p in tmp_path.iterdir()] == [checkpoint.name]
    training = Training(7, ranks)
    training.optimizer.param_groups[1]["betas"] = (0.5, 0.5)
    assert training.step.load_checkpoint(tmp_path) == AT
    np.testing.assert_allclose(training.run(AT, STEPS), expected, rtol=1e-5)
    groups = training.optimizer.param_groups
    assert [(g["betas"], g["weight_decay"]) for g in groups] == [((0.8, 0.99), 0.01), ((0.8, 0.99), 0.0)]


def test_fsdp2_goes_on(tmp_path) -> None:
    training = Training(0)
    training.run(0, AT)
    spmd.checkpoint.to_dcp(training.step.save_checkpoint(tmp_path, kind="sharded"), tmp_path / "dcp")
    np.testing.assert_allclose(fsdp2("resume", tmp_path), training.run(AT, STEPS), rtol=1e-5)


def test_there_and_back(theirs, tmp_path) -> None:
    """Every tensor is the same; of names given, too, and of a model alone."""
    training = Training(0)
    training.run(0, 2)
    ours = training.step.save_checkpoint(tmp_path)
    spmd.checkpoint.to_dcp(ours, tmp_path / "dcp", model="net", optimizer="app.optim")
    back = spmd.checkpoint.from_dcp(tmp_path / "dcp", tmp_path / "back", model="net", optimizer="app.optim")
    assert spmd.checkpoint.from_dcp(tmp_path / "dcp", tmp_path / "found").name == back.name
    with spmd.checkpoint.Checkpoint(ours) as a, spmd.checkpoint.Checkpoint(back) as b, \
            spmd.checkpoint.Checkpoint(tmp_path / "found") as c:
        assert a.tensors == b.tensors == c.tensors and a.step == b.step == 2
        assert all(np.array_equal(a.read(key), other.read(key)) for key in a.tensors for other in (b, c))
        assert [g["params"] for g in a.notes["param_groups"]] == [g["params"] for g in b.notes["param_groups"]]
    dcp.save({"weights": training.model.state_dict()}, checkpoint_id=tmp_path / "alone", no_dist=True)
    with pytest.raises(ValueError, match="has no model under the name 'model'; it has weights"):
        spmd.checkpoint.from_dcp(tmp_path / "alone", tmp_path / "weights", model="model")
    alone = spmd.checkpoint.from_dcp(tmp_path / "alone", tmp_path / "weights", model="weights")
    with spmd.checkpoint.Checkpoint(alone) as checkpoint:
        assert set(checkpoint.tensors) == set(training.model.state_dict()) and checkpoint.step == 0
    with pytest.raises(spmd.RunError, match="is a checkpoint of torch.distributed.checkpoint\n  hint: .*from_dcp"):
        training.step.load_checkpoint(tmp_path / "dcp")


def test_state_dicts_of_a_compiled_training(theirs) -> None:
    """get_state_dict and dcp.load work on the live tensors, set_state_dict gives them to the ranks."""
    folder, expected = theirs
    training = Training(7)
    training.run(0, 2)
    weights, state = get_state_dict(training.model, training.optimizer)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=folder / "dcp", no_dist=True)
    set_state_dict(training.model, training.optimizer, model_state_dict=weights, optim_state_dict=state)
    np.testing.assert_allclose(training.run(AT, STEPS), expected, rtol=1e-5)


def test_a_file_of_pytorch(tmp_path) -> None:
    """Weights from elsewhere, as a checkpoint: what is not in it stays as it is."""
    from safetensors.torch import save_file
    training = Training(0)
    weights = {name: value.clone() for name, value in make_model(3).state_dict().items()}
    save_file(weights, tmp_path / "w.safetensors")
    assert spmd.checkpoint.Checkpoint.make(tmp_path / "w.safetensors", tmp_path / "c", step=5).name == "step-00000005"
    with pytest.raises(spmd.RunError, match="it lacks 'optimizer/exp_avg/embed.weight'|it lacks 'optimizer/"):
        training.run(0, 1)
        training.step.load_checkpoint(tmp_path / "c")
    assert training.step.load_checkpoint(tmp_path / "c", strict=False) == 5
    assert torch.equal(training.model.layers[0].weight, weights["layers.0.weight"])
    assert training.optimizer.state[training.model.layers[0].weight]["step"] == 1
