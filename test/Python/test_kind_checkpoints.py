"""A sample of test/Kinds/checkpoints.py, and what its generator does not cross."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

import spmd

sys.path.insert(0, str(Path(__file__).parent.parent / "Kinds"))
import checkpoints  # noqa: E402
import harness  # noqa: E402

SAMPLE = ["twice, sharded, checkpoint_wrapper, checkpoint_wrapper, AdamW, at 3, 2 to 3, new, lacks nothing",
          "first, full, plain, checkpoint_wrapper, SGD, at 3, 1 to 2, new, lacks nothing",
          "later, sharded, plain, plain, Adagrad, at 4, 2 to 2, running, lacks nothing",
          "never, torch.save, plain, plain, AdamW, at 3, 2 to 2, new, lacks step"]


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str) -> None:
    found = harness.outcome_of(lambda: checkpoints.case(name))
    assert found.kind == "right", found.text


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


BATCH = torch.linspace(-1, 1, 30).reshape(6, 5), torch.arange(6) % 3


def frozen_after_two_steps():
    """A compiled training whose first layer was frozen after two steps."""
    model, optimizer = make()
    step = spmd.compile(train_step, ranks=2)
    for number in range(3):
        model[0].requires_grad_(number < 2)
        step(model, optimizer, *BATCH)
    return model, optimizer, step


def test_state_of_frozen_parameters_is_everywhere(tmp_path) -> None:
    """In checkpoints, state dicts, shards, plain PyTorch and checkpoints of torch.distributed."""
    model, optimizer, step = frozen_after_two_steps()
    key, expected = "optimizer/exp_avg/0.weight", optimizer.state[model[0].weight]["exp_avg"].clone()
    for kind in ("full", "sharded"):
        checkpoint = spmd.checkpoint.Checkpoint(step.save_checkpoint(tmp_path / kind, kind=kind))
        assert torch.equal(checkpoint.read_torch(key), expected) and checkpoint.tensors[key].shape == (7, 5)
    assert torch.equal(step.state_dict()[key], expected)
    assert torch.equal(step.local_shards(0)[key].values.reshape(7, 5), expected) and key not in step.local_shards(1)
    plain, plain_optimizer = make()
    spmd.checkpoint.load(tmp_path / "sharded", plain, plain_optimizer)
    assert torch.equal(plain_optimizer.state[plain[0].weight]["exp_avg"], expected)
    spmd.checkpoint.to_dcp(tmp_path / "full", tmp_path / "dcp")
    back = spmd.checkpoint.from_dcp(tmp_path / "dcp", tmp_path / "back")
    assert torch.equal(spmd.checkpoint.Checkpoint(back).read_torch(key), expected)


@pytest.mark.parametrize("how", ["removed", "loaded"])
def test_frozen_parameters_begin_anew(tmp_path, how) -> None:
    """Where their state was removed, or a checkpoint has none, the next program does not take what ranks still have."""
    def losses(step, save, load):
        model, optimizer = make()
        model[0].requires_grad_(False)
        found = [step(model, optimizer, *BATCH).item()]
        kept = save(model, optimizer)
        for trains in (True, True, False):
            model[0].requires_grad_(trains)
            found.append(step(model, optimizer, *BATCH).item())
        if how == "loaded":
            load(model, optimizer, kept)
        else:
            for parameter in model[0].parameters():
                del optimizer.state[parameter]
        for trains in (False, True, True):
            model[0].requires_grad_(trains)
            found.append(step(model, optimizer, *BATCH).item())
        return found

    def load(model, optimizer, kept):
        model.load_state_dict(kept[0])
        optimizer.load_state_dict(kept[1])

    step = spmd.compile(train_step, ranks=2)
    expected = losses(train_step, lambda model, optimizer: ({k: v.clone() for k, v in model.state_dict().items()},
                                                            torch.load(_saved(optimizer.state_dict(), tmp_path))), load)
    found = losses(step, lambda *unused: step.save_checkpoint(tmp_path), lambda *unused: step.load_checkpoint(tmp_path))
    assert found == pytest.approx(expected, rel=1e-6)


def _saved(state, folder: Path) -> Path:
    torch.save(state, folder / "optimizer.pt")
    return folder / "optimizer.pt"


def test_what_is_left_unread_is_named(tmp_path) -> None:
    model, optimizer = make()
    step = spmd.compile(train_step, ranks=2)
    step(model, optimizer, *BATCH)
    state = model.state_dict()
    torch.save({"other.weight": torch.zeros(2)} | {name: value for name, value in state.items() if name != "2.bias"}, tmp_path / "a.pt")
    with pytest.warns(spmd.Remark, match=r"a.pt' does not have the tensors of the training; what it lacks stays as it is: 2.bias, "
                                         r"optimizer/\*/0.weight, .*; what is unexpected is left out: other.weight"):
        step.load_checkpoint(tmp_path / "a.pt", strict=False)
    folder = spmd.checkpoint.Checkpoint.make(_weights({"other.weight": torch.zeros(2), "0.bias": torch.zeros(7)}, tmp_path), tmp_path)
    with pytest.warns(spmd.Remark, match="what it lacks stays as it is: 0.weight, .*; what is unexpected is left out: other.weight"):
        step.load_checkpoint(folder, strict=False)


def _weights(tensors, folder: Path) -> Path:
    from safetensors.torch import save_file
    save_file(tensors, folder / "w.safetensors")
    return folder / "w.safetensors"


@pytest.mark.parametrize("prefix", ["_orig_mod.", "0._checkpoint_wrapped_module."])
def test_names_of_wrappers_in_a_file(tmp_path, prefix) -> None:
    """A file of a compiled, or of a wrapped, model loads into the plain one; a name that is there as it is stays."""
    model, optimizer = make()
    state = {prefix + name.removeprefix("0." * prefix.startswith("0.")): value + 1 for name, value in model.state_dict().items()
             if name.startswith("0.") or not prefix.startswith("0.")}
    torch.save({name: value for name, value in model.state_dict().items()} | state, tmp_path / "both.pt")
    with pytest.raises(ValueError, match=f"unexpected {prefix}"):
        spmd.checkpoint.load(tmp_path / "both.pt", model, optimizer)
    torch.save({"2.weight": model[2].weight, "2.bias": model[2].bias} | state if prefix.startswith("0.") else state, tmp_path / "a.pt")
    expected = model[0].weight + 1
    spmd.checkpoint.load(tmp_path / "a.pt", model, optimizer)
    assert torch.equal(model[0].weight, expected)


def test_buffers_of_wrapped_modules_are_saved(tmp_path) -> None:
    """state_dict() of checkpoint_wrapper() has other names than named_buffers()."""
    torch.manual_seed(0)
    model = nn.Sequential(checkpoint_wrapper(nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))))
    step = spmd.compile(train_step, ranks=2)
    step(model, torch.optim.SGD(model.parameters(), lr=0.1), *BATCH)
    found = spmd.checkpoint.Checkpoint(step.save_checkpoint(tmp_path)).tensors
    assert len(found) == len(model.state_dict()) and any(name.endswith("1.running_var") for name in found)
