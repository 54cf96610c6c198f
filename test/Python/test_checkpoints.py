"""Checkpoints from Python: saved by one training, gone on with by another on other ranks, units, modes and precision."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from python_processes import PYTHON
from safetensors.torch import load_file, save_file
from torch import nn
from torch.optim.lr_scheduler import LinearLR

import spmd

STEPS, AT = 20, 10


class Net(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.embed, self.norm = nn.Embedding(16, 8), nn.BatchNorm1d(8)
        self.fc, self.out = nn.Linear(8, width), nn.Linear(width, 16)
        self.dropout = nn.Dropout(0.1)
        self.out.bias.requires_grad_(False)

    def forward(self, x):
        return self.out(self.dropout(F.gelu(self.fc(self.norm(self.embed(x))))))


def train_step(model, optimizer, x, y):
    """Accumulates over two microbatches."""
    total = 0
    for a, b in zip(x.chunk(2), y.chunk(2)):
        loss = F.cross_entropy(model(a), b) / 2
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def batch(number: int):
    x = torch.randint(0, 16, (24,), generator=torch.Generator().manual_seed(number))
    return x, (5 * x + 3) % 16


class Training:
    """A model, its optimizer and a schedule in the middle of its warm-up, and the compiled step."""

    def __init__(self, ranks: int, seed: int = 5, optimizer=torch.optim.AdamW, width: int = 24, **options):
        torch.manual_seed(seed)
        self.model = Net(width)
        self.optimizer = optimizer([p for p in self.model.parameters() if p.requires_grad], lr=0.02)
        self.schedule = LinearLR(self.optimizer, 0.1, total_iters=15)
        self.step = spmd.compile(train_step, ranks=ranks, **options)

    def run(self, first: int, last: int) -> list[float]:
        losses = []
        for number in range(first, last):
            losses.append(self.step(self.model, self.optimizer, *batch(number)).item())
            self.schedule.step()
        return losses

    def save(self, folder, **options):
        return self.step.save_checkpoint(folder, objects={"schedule": self.schedule}, **options)

    def load(self, folder) -> int:
        return self.step.load_checkpoint(folder, objects={"schedule": self.schedule})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Checkpoints of both kinds after 10 steps on 4 ranks, and the losses of the 10 after them."""
    folder = tmp_path_factory.mktemp("saved")
    training = Training(4, seed=0)
    training.run(0, AT)
    for kind in ("full", "sharded"):
        assert training.save(folder / kind, kind=kind) == folder / kind / "step-00000010"
    return folder, training.run(AT, STEPS)


F32, BF16 = 1e-5, 2 * 2 ** -7  # losses in f32 may differ so much; two epsilons of the coarser type
OTHERS = [(4, {}, 0), (1, {}, F32), (2, {"policy": "class:Linear"}, F32), (3, {"mode": "replicate"}, F32),
          (8, {"policy": "class:Embedding"}, F32), (2, {"precision": "param=bf16,reduce=f32"}, BF16)]


@pytest.mark.parametrize("kind", ["full", "sharded"])
@pytest.mark.parametrize("ranks, options, tolerance", OTHERS, ids=[f"{ranks}-{'-'.join(o) or 'same'}" for ranks, o, _ in OTHERS])
@pytest.mark.sample(3)
def test_a_training_goes_on(saved, kind, ranks, options, tolerance) -> None:
    folder, expected = saved
    training = Training(ranks, **options)
    assert training.load(folder / kind) == AT
    assert training.step.rng["step"] == AT == training.step.steps
    losses = training.run(AT, STEPS)
    assert training.step.steps == STEPS and training.step.rng["step"] == STEPS
    np.testing.assert_allclose(losses, expected, rtol=tolerance)
    if tolerance == 0:
        assert losses == expected


def test_the_counter_follows_what_counts_none(saved, tmp_path) -> None:
    """The state of another program: dropout goes on after the steps taken."""
    folder, expected = saved
    tensors = load_file(folder / "full/step-00000010/state.safetensors")
    save_file({name: value for name, value in tensors.items() if not name.startswith("rng/")}, tmp_path / "w.safetensors")
    spmd.checkpoint.Checkpoint.make(tmp_path / "w.safetensors", tmp_path / "c", step=AT)
    training = Training(4)
    training.step.load_checkpoint(tmp_path / "c")
    training.optimizer.param_groups[0]["lr"] = 0.02 * (0.1 + 0.9 * AT / 15)
    torch.manual_seed(0)  # the seed is not in it, either
    np.testing.assert_allclose(training.run(AT, AT + 1), expected[:1], rtol=F32)
    assert training.step.rng["step"] == AT + 1


def test_the_counter_can_be_set_after_loading(saved) -> None:
    folder, _ = saved
    training = Training(1)
    training.load(folder / "full")
    training.step.rng = {"step": 77}
    training.run(0, 1)
    assert training.step.rng["step"] == 78


@pytest.mark.parametrize("kind", ["full", "sharded"])
def test_going_back(saved, kind) -> None:
    """A training that runs takes a checkpoint: tensors that were read, written or kept see its values."""
    folder, expected = saved
    training = Training(4, seed=0)
    first = training.run(0, AT)
    kept, before = training.model.fc.weight.data, training.model.fc.weight.detach().clone()
    assert training.run(AT, STEPS) == expected and not torch.equal(kept, before)
    with torch.no_grad():
        training.model.out.weight.zero_()
    assert training.load(folder / kind) == AT
    assert torch.equal(training.model.fc.weight, before) and torch.equal(kept, before)
    assert training.model.out.weight.abs().sum() > 0
    assert training.optimizer.state[training.model.fc.weight]["step"] == AT
    assert training.run(AT, STEPS) == expected and len(first) == AT


def test_what_was_written_is_saved(tmp_path) -> None:
    """A tensor of the model that was written, and optimizer state that was replaced, since the last step."""
    training = Training(2)
    training.run(0, 2)
    with torch.no_grad():
        training.model.fc.weight.fill_(0.5)
    state = training.optimizer.state_dict()
    state["state"][0]["exp_avg"] = torch.full_like(state["state"][0]["exp_avg"], 0.25)
    training.optimizer.load_state_dict(state)
    found = load_file(training.save(tmp_path) / "state.safetensors")
    assert found["fc.weight"].unique() == 0.5 and found["optimizer/exp_avg/embed.weight"].unique() == 0.25


def test_plain_pytorch_goes_on(saved) -> None:
    """Both kinds load into a model and an optimizer that nobody compiled, which then trains as the ranks do."""
    folder, _ = saved
    states = []
    for kind in ("full", "sharded"):
        training = Training(1)
        assert spmd.checkpoint.load(folder / kind, training.model, training.optimizer) == AT
        states.append((training.model.state_dict(), training.optimizer.state_dict()))
        assert training.optimizer.state_dict()["state"][0]["step"] == AT
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)
    training = Training(1)
    saved_model = load_file(folder / "full/step-00000010/state.safetensors")
    training.model.load_state_dict({name: value for name, value in saved_model.items() if "/" not in name})
    torch.testing.assert_close(training.model.state_dict(), states[0][0], rtol=0, atol=0)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_what_does_not_fit_is_listed(saved, before: bool) -> None:
    """Nothing has changed then: the training goes on as if it had not been tried."""
    folder, _ = saved
    twin, training = Training(2, width=16), Training(2, width=16)
    expected = twin.run(0, 4)
    losses = [] if before else training.run(0, 2)
    with pytest.raises(spmd.RunError, match=r"'fc.weight' as .24, 8., not .16, 8., 'fc.bias' as .24., not .16.,") as error:
        training.step.load_checkpoint(folder / "sharded")
        training.run(0, 1)
    assert "does not fit the step, nothing was loaded: it has" in str(error.value)
    if not before:
        assert losses + training.run(2, 4) == expected


def test_missing_and_unexpected(saved, tmp_path) -> None:
    folder, _ = saved
    training = Training(2, optimizer=lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9))
    training.run(0, 1)
    training.save(tmp_path / "sgd")
    before = training.model.fc.weight.detach().clone()
    for kind in ("full", "sharded"):
        with pytest.raises(spmd.RunError) as error:
            training.step.load_checkpoint(folder / kind)
        message = str(error.value)
        assert "it lacks 'optimizer/momentum_buffer/embed.weight', 'optimizer/momentum_buffer/" in message
        assert "unexpected 'optimizer/exp_avg/" in message and "and 10 more" in message and "hint: strict=False" in message
        assert torch.equal(training.model.fc.weight, before)
    assert training.step.load_checkpoint(folder / "full", strict=False) == AT
    assert torch.equal(training.model.fc.weight, load_file(folder / "full/step-00000010/state.safetensors")["fc.weight"])
    own = load_file(tmp_path / "sgd/step-00000001/state.safetensors")["optimizer/momentum_buffer/fc.weight"]
    assert torch.equal(training.optimizer.state[training.model.fc.weight]["momentum_buffer"], own)
    with pytest.raises(ValueError, match="unexpected optimizer/"):
        spmd.checkpoint.load(folder / "full", Net(), torch.optim.AdamW(nn.Linear(2, 2).parameters()))


def test_other_types_are_converted(saved) -> None:
    """A model in bf16 takes what one in f32 has saved, rounded."""
    folder, _ = saved
    training = Training(2)
    training.model.bfloat16()
    training.step.load_checkpoint(folder / "sharded")
    x, y = batch(AT)
    training.step(training.model, training.optimizer, x, y)
    assert training.model.fc.weight.dtype == torch.bfloat16
    plain = load_file(folder / "full/step-00000010/state.safetensors")["out.bias"]  # is frozen
    assert torch.equal(training.model.out.bias, plain.bfloat16())


def test_metadata_and_keeping(saved, tmp_path) -> None:
    folder, _ = saved
    training = Training(2)
    for number in range(4):
        training.run(number, number + 1)
        training.save(tmp_path, kind="sharded", keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-00000003", "step-00000004"]
    with spmd.checkpoint.Checkpoint(tmp_path) as checkpoint:
        info = checkpoint.info
        assert (checkpoint.step, info["kind"], info["ranks"], info["program"]) == (4, "sharded", 2, "train_step")
        assert info["compiler"] and len(info["artifact"]) == 16 and info["time"].endswith("Z")
        assert checkpoint.notes["torch"] == torch.__version__ and checkpoint.notes["objects"] == ["schedule"]
        assert checkpoint.notes["param_groups"][0]["betas"] == [0.9, 0.999]
        assert checkpoint.tensors["fc.weight"].shape == (24, 8) and checkpoint.read("rng/step") == 4
        with pytest.raises(KeyError, match="no tensor 'fc'"):
            checkpoint.read("fc")
    index = json.loads((tmp_path / "step-00000004/index.json").read_text())
    assert len(index["files"]) == 3 and len(index["tensors"]["fc.weight"]["pieces"]) >= 1


def test_saving_again_replaces(tmp_path) -> None:
    training = Training(2)
    training.run(0, 1)
    training.save(tmp_path)
    with torch.no_grad():
        training.model.fc.bias.fill_(3)
    checkpoint = training.save(tmp_path, kind="sharded")
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    with spmd.checkpoint.Checkpoint(checkpoint) as found:
        assert found.info["kind"] == "sharded" and set(found.read("fc.bias")) == {3}


def test_a_damaged_one_is_passed_over(saved, tmp_path) -> None:
    folder, expected = saved
    shutil.copytree(folder / "sharded", tmp_path / "c")
    training = Training(4)
    training.load(tmp_path / "c")
    training.run(AT, AT + 1)
    newest = training.save(tmp_path / "c", kind="sharded")
    file = newest / "rank-00001.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    training = Training(4)
    with pytest.warns(UserWarning, match="step-00000011' is damaged: .*rank-00001.safetensors': its bytes from 0 on have"):
        assert training.load(tmp_path / "c") == AT
    assert training.run(AT, STEPS) == expected
    (newest / "rank-00000.safetensors").unlink()
    with pytest.raises(spmd.RunError, match="is damaged: cannot read '.*rank-00000.safetensors': No such file"):
        training.load(newest)


def test_an_artifact_goes_on(saved, tmp_path) -> None:
    """spmd.load without PyTorch's model: the same methods, and learning rates along."""
    folder, expected = saved
    training = Training(2)
    training.run(0, 1)
    trainer = spmd.load(training.step.save(tmp_path / "a.spmd"))
    checkpoint = trainer.load_checkpoint(folder / "sharded")
    assert checkpoint.step == AT and trainer.read("rng", "step") == AT
    trainer.set_hyper("lr", 0, checkpoint.notes["param_groups"][0]["lr"])
    assert trainer.step(*batch(AT)).item() == pytest.approx(expected[0], rel=1e-5)
    trainer.save_checkpoint(tmp_path / "c", step=AT + 1)
    trainer.load_checkpoint(folder / "full")
    first = trainer.step(*batch(AT)).item()
    trainer.load_checkpoint(tmp_path / "c")
    assert trainer.read("rng", "step") == AT + 1 and first == pytest.approx(expected[0], rel=1e-5)


def test_a_lost_state_is_loaded(saved) -> None:
    folder, expected = saved
    training = Training(4, seed=0)
    training.run(0, 2)
    training.step.training_state.live.lose(RuntimeError("a rank ended"), 2)
    with pytest.raises(spmd.StateLostError):
        training.run(2, 3)
    assert training.load(folder / "sharded") == AT and training.run(AT, STEPS) == expected


class Loader:
    """A stateful data loader, as torchdata's: its own order in each epoch, and where it is."""

    def __init__(self, seed: int):
        self.generator, self.order, self.position = torch.Generator().manual_seed(seed), torch.empty(0).long(), 0

    def __next__(self):
        if self.position == len(self.order):
            self.order, self.position = torch.randperm(5, generator=self.generator), 0
        self.position += 1
        return batch(int(self.order[self.position - 1]))

    def state_dict(self) -> dict:
        return {"generator": self.generator.get_state(), "order": self.order, "position": self.position}

    def load_state_dict(self, state: dict) -> None:
        self.generator.set_state(state["generator"])
        self.order, self.position = state["order"], state["position"]


def test_a_data_loader_goes_on_where_it_was(tmp_path) -> None:
    """In the middle of an epoch, and into the next one."""
    training, loader = Training(2), Loader(1)
    for _ in range(3):
        training.step(training.model, training.optimizer, *next(loader))
    training.step.save_checkpoint(tmp_path, objects={"loader": loader})
    expected = [training.step(training.model, training.optimizer, *next(loader)) for _ in range(4)]
    training, loader = Training(2, seed=1), Loader(2)
    training.step.load_checkpoint(tmp_path, objects={"loader": loader})
    assert [training.step(training.model, training.optimizer, *next(loader)) for _ in range(4)] == expected


def test_mistakes(saved, tmp_path) -> None:
    folder, _ = saved
    training = Training(2)
    with pytest.raises(RuntimeError, match="has not been called yet"):
        training.save(tmp_path)
    with pytest.raises(spmd.RunError, match="no checkpoint is in"):
        training.step.load_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="has no object 'loader'; it has 'schedule'"):
        training.step.load_checkpoint(folder / "full", objects={"loader": training.schedule})
    training.run(0, 1)
    with pytest.raises(spmd.RunError, match="kind is 'half'; allowed: full, sharded"):
        training.save(tmp_path, kind="half")
    (tmp_path / "file").write_text("")
    with pytest.raises(spmd.RunError, match="cannot make folder"):
        training.save(tmp_path / "file")
    twin = Training(2)
    twin.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    with pytest.raises(ValueError, match="has 1 param groups, the optimizer has 2"):
        twin.step.load_checkpoint(folder / "full")
        twin.run(0, 1)


@pytest.mark.parametrize("kind", ["full", "sharded"])
def test_saving_beside_the_training(saved, tmp_path, kind) -> None:
    """The state of its step, whatever is trained meanwhile; it is there with a later step, or when it is waited for."""
    folder, expected = saved
    training = Training(4)
    training.load(folder / "full")
    assert training.run(AT, AT + 2) == expected[:2]
    place = training.save(tmp_path / "beside", kind=kind, mode="beside")
    assert training.run(AT + 2, STEPS) == expected[2:]
    training.step.finish_checkpoint()
    assert [p.name for p in (tmp_path / "beside").iterdir()] == [place.name] == ["step-00000012"]
    twin = Training(4)
    twin.load(folder / "full")
    twin.run(AT, AT + 2)
    twin.save(tmp_path / "wait", kind=kind)
    with spmd.checkpoint.Checkpoint(place) as one, spmd.checkpoint.Checkpoint(tmp_path / "wait") as other:
        assert one.tensors == other.tensors and one.info["kind"] == kind
        assert all(np.array_equal(one.read(key), other.read(key)) for key in one.tensors)
    training.save(tmp_path / "more", mode="beside", keep=1)  # finished by the next one, and by loading
    training.run(0, 1)
    training.save(tmp_path / "more", mode="beside", keep=1)
    assert [p.name for p in (tmp_path / "more").glob("step*")] == ["step-00000020"]
    assert training.load(tmp_path / "more") == 21
    while not (tmp_path / "steps/step-00000021").is_dir():
        if not (tmp_path / "steps").is_dir():
            training.save(tmp_path / "steps", mode="beside")
        training.run(0, 1)


def test_a_copy_that_cannot_be_written(tmp_path) -> None:
    training = Training(2)
    training.run(0, 1)
    training.save(tmp_path / "a", mode="beside")
    while (tmp_path / "a").exists():  # while files are made in it
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
    with pytest.raises(spmd.RunError, match="cannot|No such file"):
        training.step.finish_checkpoint()
    training.step.finish_checkpoint()  # is said once
    training.run(1, 2)
    with pytest.raises(ValueError, match="mode is 'soon'; allowed: wait, beside"):
        training.save(tmp_path / "b", mode="soon")


def test_a_program_that_ends_finishes_its_checkpoint(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"""
import sys
sys.path[:0] = {[*sys.path[:3], str(Path(__file__).parent.parent)]!r}
from test_checkpoints import Training
training = Training(2)
training.run(0, 1)
training.save({str(tmp_path / "c")!r}, mode="beside")
""")
    subprocess.run([PYTHON, script], check=True, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    assert spmd.checkpoint.Checkpoint(tmp_path / "c").step == 1


class _PeakOfMemory:
    """How many bytes of its own the process has at most within it more than before."""

    def __enter__(self):
        self.before, self.peak, self._done = self._now(), 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.002):
            self.peak = max(self.peak, self._now() - self.before)

    def __exit__(self, *unused) -> None:
        self._done.set()
        self._thread.join()

    @staticmethod
    def _now() -> int:
        return 1024 * int(re.search(r"Anonymous: +(\d+)", Path("/proc/self/smaps_rollup").read_text()).group(1))


@pytest.mark.parametrize("kind", ["full", "sharded"])
def test_saving_takes_no_more_memory_than_the_largest_unit(tmp_path, kind: str) -> None:
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6)))
    optimizer = torch.optim.AdamW(model.parameters())

    @spmd.compile(ranks=2, policy="class:Linear")
    def train(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    train(torch.randn(4, 1024))
    train.save_checkpoint(tmp_path / "first", kind=kind)  # what is made once
    train(torch.randn(4, 1024))
    with _PeakOfMemory() as memory:
        train.save_checkpoint(tmp_path, kind=kind)
    unit, state = 4 * (1024 * 1024 + 1024), 6 * 3 * 4 * 1024 * 1024
    assert memory.peak <= unit + 2 ** 20 < state / 10  # a megabyte for this thread and Python
