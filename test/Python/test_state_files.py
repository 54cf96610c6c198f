"""Files of other programs: a training goes on from what torch.save or safetensors has, under its own names or others."""
from __future__ import annotations

import subprocess

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from step_check import tool
from torch import nn

import spmd
from spmd import checkpoint


class Net(nn.Module):
    def __init__(self, width: int = 6):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(4, width), nn.BatchNorm1d(width), nn.Linear(width, 2)

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


BATCH = torch.linspace(-1, 1, 24).reshape(6, 4), torch.linspace(1, -1, 12).reshape(6, 2)


def make(seed: int = 1, width: int = 6, device: str = "cpu"):
    torch.manual_seed(seed)
    with torch.device(device):
        model = Net(width)
    return model, torch.optim.AdamW([{"params": [model.second.weight, model.first.weight], "weight_decay": 0.1},
                                     {"params": [model.first.bias, model.second.bias, *model.norm.parameters()]}], lr=0.05)


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    """Files that eager PyTorch has written after 3 steps, and the losses of the 2 after them."""
    folder = tmp_path_factory.mktemp("files")
    model, optimizer = make(0)
    for _ in range(3):
        train_step(model, optimizer, *BATCH)
    optimizer.param_groups[0]["lr"] = 0.02
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": 30}
    torch.save(state, folder / "both.pt")
    torch.save(state["model"], folder / "weights.pth")
    torch.save({"state_dict": {f"module.{n}": t for n, t in state["model"].items()}, "optimizer": [state["optimizer"]],
                "meta": {"iter": 3}}, folder / "mmengine.pth")
    save_file(state["model"], folder / "weights.safetensors")
    return folder, [train_step(model, optimizer, *BATCH).item() for _ in range(2)]


def losses_after(loads, device: str = "cpu", steps: int = 0, ranks: int = 2) -> list[float]:
    """Of a training that has taken some steps, and loads then."""
    model, optimizer = make(device=device)
    step = spmd.compile(train_step, ranks=ranks)
    for _ in range(steps):
        step(model, optimizer, *BATCH)
    loads(step)
    return [step(model, optimizer, *BATCH).item() for _ in range(2)]


RULES = [(r"^module\.", "")]


@pytest.mark.parametrize("name, options", [("both.pt", {}), ("both.pt", {"map_location": "cpu"}),
                                           ("mmengine.pth", {"revise_keys": RULES})], ids=["pt", "map_location", "revise_keys"])
@pytest.mark.parametrize("device, steps", [("cpu", 0), ("cpu", 1), ("meta", 0)], ids=["before", "after", "meta"])
def test_a_training_goes_on(eager, name, options, device, steps) -> None:
    folder, expected = eager
    found = losses_after(lambda step: step.load_checkpoint(folder / name, **options), device, steps)
    assert found == pytest.approx(expected, rel=1e-5)


def test_steps_and_options_of_groups(eager) -> None:
    folder, _ = eager
    model, optimizer = make()
    step = spmd.compile(train_step)
    assert step.load_checkpoint(folder / "both.pt") == 30 == step.steps
    step(model, optimizer, *BATCH)
    assert optimizer.param_groups[0]["lr"] == 0.02 and optimizer.state[model.first.weight]["step"] == 4


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_weights_alone(eager, name, tmp_path) -> None:
    """The optimizer begins anew; one that has taken steps is not left with state of other weights."""
    folder, expected = eager
    model, optimizer = make()
    model.load_state_dict(torch.load(folder / "weights.pth"))
    anew = [train_step(model, optimizer, *BATCH).item() for _ in range(2)]
    assert losses_after(lambda step: step.load_checkpoint(folder / name)) == pytest.approx(anew, rel=1e-5)

    def after(step):
        with pytest.raises(ValueError, match=r"does not fit the model, nothing was loaded: it lacks optimizer/\*/first.weight, "
                                             r"(?s:.*)\n  hint: strict=False"):
            step.load_checkpoint(folder / name)
        step.load_checkpoint(folder / name, strict=False)

    assert losses_after(after, steps=1)[0] == pytest.approx(expected[0], rel=1e-5)


def test_other_names_in_a_folder(eager, tmp_path) -> None:
    """revise_keys works on checkpoints of ours, too."""
    folder, expected = eager
    made = checkpoint.Checkpoint.make(folder / "mmengine.pth", tmp_path / "made", model=nn.ModuleDict({"module": make()[0]}))
    assert made.name == "step-00000000"
    wrapped = nn.ModuleDict({"module": make()[0]})
    _, groups = make()
    optimizer = torch.optim.AdamW([
        {"params": [wrapped["module"].second.weight, wrapped["module"].first.weight]},
        {"params": [wrapped["module"].first.bias, wrapped["module"].second.bias, *wrapped["module"].norm.parameters()]}])
    made = checkpoint.Checkpoint.make(folder / "mmengine.pth", tmp_path / "both", model=wrapped, optimizer=optimizer)
    assert made.name == "step-00000003"
    for steps in (0, 1):
        found = losses_after(lambda step: step.load_checkpoint(tmp_path / "both", revise_keys=RULES), steps=steps)
        assert found == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="revise_keys maps both '.*' and '.*' to 'x'"):
        spmd.compile(train_step).load_checkpoint(tmp_path / "both", revise_keys=[("^.*$", "x")])


def test_callbacks(eager, tmp_path) -> None:
    """They may look, and change what torch.save was given."""
    folder, expected = eager
    seen = []

    def unwrap(content):
        seen.append(sorted(content))
        content["state_dict"] = {name.removeprefix("module."): t for name, t in content["state_dict"].items()}

    assert losses_after(lambda step: step.load_checkpoint(folder / "mmengine.pth", callback=unwrap)) == \
        pytest.approx(expected, rel=1e-5)
    model, optimizer = make()
    checkpoint.Checkpoint.make(folder / "both.pt", tmp_path, model=model, optimizer=optimizer)
    losses_after(lambda step: step.load_checkpoint(tmp_path, callback=lambda found: seen.append(found.step)))
    assert seen == [["meta", "optimizer", "state_dict"], 30]
    with pytest.warns(spmd.Remark, match="map_location is 'cuda', and has no effect on a folder of checkpoints"):
        spmd.compile(train_step).load_checkpoint(tmp_path, map_location="cuda")


def test_plain_pytorch(eager) -> None:
    folder, expected = eager
    for name, options in (("both.pt", {}), ("mmengine.pth", {"revise_keys": RULES})):
        model, optimizer = make()
        checkpoint.load(folder / name, model, optimizer, **options)
        assert [train_step(model, optimizer, *BATCH).item() for _ in range(2)] == pytest.approx(expected, rel=1e-6)


class Table(nn.Module):
    """Buffers that its state dict lacks, one of which the step writes, and one that it has under two names."""

    def __init__(self):
        super().__init__()
        self.fc, self.other = nn.Linear(4, 2), nn.Module()
        self.register_buffer("scale", torch.tensor([0.5, 2.0]), persistent=False)
        self.register_buffer("calls", torch.zeros(()), persistent=False)
        self.register_buffer("shift", torch.tensor([0.1, -0.1]))
        self.other.register_buffer("shift", self.shift)

    def forward(self, x):
        self.calls += 1
        return self.fc(x) * self.scale + self.shift + 0.01 * self.calls


def test_buffers_of_no_state_dict(tmp_path) -> None:
    """Nothing that is saved has them, and what is loaded leaves them as they are: as in eager."""
    torch.manual_seed(0)
    model = Table()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    twin = Table()
    twin.load_state_dict(model.state_dict())
    twin_optimizer = torch.optim.SGD(twin.parameters(), lr=0.05)
    step = spmd.compile(train_step, ranks=2)
    assert [step(model, optimizer, *BATCH).item() for _ in range(2)] == pytest.approx(
        [train_step(twin, twin_optimizer, *BATCH).item() for _ in range(2)], rel=1e-6)
    saved = twin.state_dict()
    for kind in ("full", "sharded"):
        folder = step.save_checkpoint(tmp_path / kind, kind=kind)
        found = checkpoint.Checkpoint(folder).tensors
        assert {key for key in found if "/" not in key} == set(saved)
    assert {key for key in step.state_dict() if "/" not in key} == set(saved)
    assert not {"scale", "calls"} & set(step.local_shards(0))
    train_step(twin, twin_optimizer, *BATCH)
    step(model, optimizer, *BATCH)
    twin.load_state_dict(saved)
    twin.calls.fill_(3.0)
    torch.save(saved, tmp_path / "model.pt")
    for source in (tmp_path / "full", tmp_path / "model.pt"):
        step.load_checkpoint(source)
        assert model.calls == 3
    assert step(model, optimizer, *BATCH).item() == pytest.approx(
        train_step(twin, twin_optimizer, *BATCH).item(), rel=1e-6)


def test_what_does_not_fit_is_listed(eager) -> None:
    """All of it, and nothing has changed."""
    folder, _ = eager
    model, optimizer = make(width=5)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    with pytest.raises(ValueError) as error:
        checkpoint.load(folder / "mmengine.pth", model, optimizer, revise_keys=[(r"^module\.f", "F")])
    message = str(error.value)
    assert "it lacks first.weight, first.bias, norm.weight" in message and "unexpected First" not in message[:60]
    assert "unexpected Firs" in message and "module.norm.weight" in message and "and 1" in message
    with pytest.raises(ValueError, match=r"it has first.weight as \[6, 4\], not \[5, 4\], first.bias as \[6\], not \[5\]"):
        checkpoint.load(folder / "both.pt", model, optimizer, strict=False)
    torch.testing.assert_close(dict(model.state_dict()), before, rtol=0, atol=0)
    assert not optimizer.state


class Own:
    pass


def test_files_that_are_no_state(eager, tmp_path) -> None:
    step = spmd.compile(train_step)
    for name, content in (("own.pt", {"model": Own()}), ("list.pt", [1]), ("none.pt", {"weights": 1})):
        torch.save(content, tmp_path / name)
    (tmp_path / "text.pt").write_text("no such thing")
    torch.export.save(torch.export.export(nn.Linear(4, 4), (torch.zeros(2, 4),)), tmp_path / "m.pt2")
    for name, message in (
            ("own.pt", "own.pt' has more than tensors and plain values, which only a program that trusts it may load\n  hint"),
            ("list.pt", "list.pt' has a list, and no state dict\n  hint"),
            ("none.pt", "none.pt' has no state dict of a model: looked for model, state_dict, .*; it has weights"),
            ("text.pt", "text.pt' has more than tensors|text.pt' is no file of torch.save or of safetensors: "),
            ("m.pt2", "m.pt2' is a model of torch.export, and no state dict\n  hint")):
        with pytest.raises(ValueError, match=message):
            step.load_checkpoint(tmp_path / name)
    with pytest.raises(spmd.RunError, match="no checkpoint is in"):
        step.load_checkpoint(tmp_path / "nowhere.pt")


def test_artifacts(eager, tmp_path) -> None:
    """spmd.load takes weights of torch.save; the command line says how to make some that it takes."""
    folder, _ = eager
    model, optimizer = make()
    step = spmd.compile(train_step)
    step(model, optimizer, *BATCH)
    artifact = step.save(tmp_path / "a.spmd")
    loaded = spmd.load(artifact, weights=folder / "weights.pth")
    torch.testing.assert_close(torch.from_numpy(loaded.read("param", "first.weight")),
                               torch.load(folder / "weights.pth")["first.weight"], rtol=0, atol=0)

    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([tool("spmd-run"), artifact, *words], capture_output=True, text=True)

    done = run(f"--weights={folder}/weights.pth")
    assert done.returncode == 2 and "weights.pth' is a file of torch.save, and none of safetensors\n  hint: in Python, " \
        f"spmd.checkpoint.to_safetensors(\"{folder}/weights.pth\", FILE)" in done.stderr
    done = run(f"--resume={folder}/both.pt")
    assert done.returncode == 2 and "both.pt' is a file, and no folder of checkpoints\n  hint: in Python, " \
        f"spmd.checkpoint.Checkpoint.make(\"{folder}/both.pt\", FOLDER)" in done.stderr
    checkpoint.to_safetensors(folder / "both.pt", tmp_path / "w.safetensors")
    done = run(f"--weights={tmp_path}/w.safetensors")
    assert "there is nothing to train on" in done.stderr  # it has been taken
    with pytest.warns(spmd.Remark, match="both.pt' has optimizer state by number, which is left out\n  hint: "):
        made = checkpoint.Checkpoint.make(folder / "both.pt", tmp_path / "c")
    assert made.name == "step-00000030"
