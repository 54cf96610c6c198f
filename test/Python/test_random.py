"""Random ops: the same draws on any number of ranks, in the interpreter, on the CPU and in the eager reference."""
from __future__ import annotations

import copy
import json
import subprocess
from typing import Any

import mlp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from spmd.capture.ops.draws import Draws
from spmd.compiler import compile_package
from spmd.tools import find_tool
from torch import nn
from torch.utils.checkpoint import checkpoint

import spmd
from spmd import philox

BATCHES = [(torch.randn(5, 12), torch.randint(4, (5,))) for _ in range(4)]


class Noisy(nn.Module):
    """Every kind of dropout, and noise."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.drop = nn.Linear(12, 16), nn.Linear(16, 4), nn.Dropout(0.3)

    def forward(self, x):
        h = self.drop(self.fc1(x).relu())
        h = F.dropout(h, 0.2, True, inplace=True)
        h = h * h.new_empty(h.shape[0], 1).bernoulli_(0.9).div_(0.9)  # timm's drop path
        h = F.alpha_dropout(h + 0.1 * torch.randn_like(h), 0.1, True)
        h = F.dropout1d(h.view(-1, 4, 4), 0.2, True).flatten(1)
        h = F.feature_alpha_dropout(h.view(-1, 4, 4), 0.2, True).flatten(1)
        h = h + torch.rand(16) * torch.bernoulli(torch.full_like(h, 0.5)) + h.new_empty(16).uniform_(-0.1, 0.1)
        h = h * (1 + h.new_empty(h.shape).normal_(0, 0.01)) * torch.randint(1, 3, (16,))
        h = F.rrelu(h, training=True)[torch.randperm(h.shape[0])]
        h = h * torch.multinomial(h.detach().softmax(-1), 1) + torch.multinomial(torch.arange(16.0), 9).sum()
        h = F.rrelu(h + torch.multinomial(h.detach().abs() + 1, 16, replacement=True), inplace=True, training=True)
        return self.fc2(h) * F.gumbel_softmax(torch.zeros(4), 2.0).detach()


class Transformer(nn.Module):
    """A GPT of one block with dropout of embeddings and residual branches."""

    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.norm1, self.norm2, self.drop = nn.LayerNorm(8), nn.LayerNorm(8), nn.Dropout(0.2)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp, self.head = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8),
                                            nn.Dropout(0.2)), nn.Linear(8, 11)

    def forward(self, tokens):
        h = self.drop(self.embed(tokens) + self.position(torch.arange(6)))
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(self.norm1(h)).split(8, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.drop(self.out(attended.transpose(1, 2).flatten(2)))
        return self.head(h + self.mlp(self.norm2(h))).flatten(0, 1)


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fails(*command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 2, done
    return done.stderr


TEXTS = [(torch.randint(11, (5, 6)), torch.randint(11, (30,))) for _ in range(4)]


@pytest.fixture(scope="module", params=[Noisy, Transformer], ids=lambda p: p.__name__)
def package(request, tmp_path_factory):
    torch.manual_seed(3)
    model = request.param()
    batches = BATCHES if request.param is Noisy else TEXTS
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    path = tmp_path_factory.mktemp("drawing") / "drawing.step"
    return spmd.capture(train_step, model, optimizer, *batches[0], reference=batches).save(path)


def test_the_imported_step_gives_the_reference(package, tmp_path):
    run(find_tool("spmd-translate"), "--import-step", package, "-o", tmp_path / "step.mlir")
    run(find_tool("spmd-interpret"), tmp_path / "step.mlir", f"--weights={package}", "--reference", "--dtype=program")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.sample(2)
def test_any_number_of_ranks_draws_the_same(package, tmp_path, ranks):
    """In doubles, on an uneven batch of 5, down to the kernels."""
    run(find_tool("spmd-translate"), "--import-step", package, "-o", tmp_path / "step.mlir")
    for phase in ("partition", "kernels"):
        run(find_tool("spmd-opt"), tmp_path / "step.mlir",
            f"--spmd-pipeline=to={phase} ranks={ranks} policy=always", "-o",
            tmp_path / "ranks.mlir")
        run(find_tool("spmd-interpret"), tmp_path / "ranks.mlir", f"--ranks={ranks}",
            f"--compare={tmp_path / 'step.mlir'}",
            "--steps=2", f"--rtol={1e-6 if phase == 'kernels' else 1e-12}")  # kernels hold constants in f32


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.sample(2)
def test_trains_like_the_reference(package, tmp_path, ranks):
    run(find_tool("spmd-compile"), package, "-o", tmp_path / "a.spmd", f"--ranks={ranks}", "--quiet")
    assert "passed" in run(find_tool("spmd-run"), tmp_path / "a.spmd", "--check")


def masked(model, optimizer, x):
    h = F.dropout(x * model.weight, 0.4)
    h.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return h.detach() != 0, torch.rand_like(x)


def test_masks_are_bits_of_the_element(tmp_path):
    """On 1, 2, 4 and 8 ranks, fused or not, the very bits of the definition; other ones in every step, and with another
    seed."""
    model = nn.Module()
    model.weight = nn.Parameter(torch.ones(7))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x = torch.ones(5, 7)
    torch.manual_seed(11)
    package = spmd.capture(masked, model, optimizer, x)
    package.save(tmp_path / "masked.step")
    index = np.arange(35).reshape(5, 7)
    for ranks, options in ((1, []), (2, []), (4, []), (8, []), (3, ["--fuse=false"])):
        artifact = compile_package(package, [f"--ranks={ranks}", *options])
        with spmd.load(artifact, weights=tmp_path / "masked.step/weights.safetensors") as trainer:
            for step in (1, 2):
                mask, noise = trainer.step(x)
                assert np.array_equal(mask.numpy(), philox.uniform(11, step, index, 0) < np.float32(0.6))
                assert np.array_equal(noise.numpy(), philox.uniform(11, step, index, 1))
            trainer.write("rng", "seed", np.array(12))
            assert np.array_equal(trainer.step(x)[1].numpy(), philox.uniform(12, 3, index, 1))


def test_draws_continue_where_a_checkpoint_stopped(tmp_path):
    """Seed and step counter are state: saved with the optimizer, loaded with the weights."""
    package = spmd.capture(train_step, *_model(), *BATCHES[0])
    package.save(tmp_path / "random.step")
    artifact, weights = compile_package(package, ["--ranks=2"]), tmp_path / "random.step/weights.safetensors"
    with spmd.load(artifact, weights=weights) as whole, spmd.load(artifact, weights=weights) as first:
        losses = [float(whole.step(*b)) for b in BATCHES]
        for b in BATCHES[:2]:
            first.step(*b)
        first.save_parameters(tmp_path / "state.safetensors", with_optimizer=True)
    assert load_file(tmp_path / "state.safetensors")["rng/step"] == 2
    with spmd.Trainer(artifact, weights=tmp_path / "state.safetensors") as second:
        assert [float(second.step(*b)) for b in BATCHES[2:]] == losses[2:]


def test_weights_without_a_step_are_said(tmp_path, recwarn):
    """Training from parameters alone draws the first masks again; a step package's are of the first step."""
    package = spmd.capture(train_step, *_model(), *BATCHES[0])
    package.save(tmp_path / "random.step")
    artifact = compile_package(package, ["--ranks=2"])
    with spmd.load(artifact, weights=tmp_path / "random.step/weights.safetensors") as trainer:
        trainer.step(*BATCHES[0])
        trainer.save_parameters(tmp_path / "whole.safetensors", with_optimizer=True)
        trainer.save_parameters(tmp_path / "parameters.safetensors")
    spmd.load(artifact, weights=tmp_path / "whole.safetensors").close()
    assert not [str(w.message) for w in recwarn if "random numbers" in str(w.message)]
    with pytest.warns(UserWarning, match=r"parameters.safetensors' does not say how many steps have drawn random "
                                         r"numbers \('rng/step'\): dropout and the like begin again with those of the"):
        spmd.load(artifact, weights=tmp_path / "parameters.safetensors").close()


def _model():
    torch.manual_seed(4)
    model = Noisy()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def test_seed_option(package, tmp_path):
    run(find_tool("spmd-compile"), package, "-o", tmp_path / "a.spmd", "--ranks=2", "--quiet")
    losses = [run(find_tool("spmd-run"), tmp_path / "a.spmd", f"--seed={seed}").splitlines()[2:5] for seed in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]
    assert "drew with seed 3" in fails(find_tool("spmd-run"), tmp_path / "a.spmd", "--check", "--seed=4")


def test_checkpointed_blocks_draw_the_same_again(tmp_path):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.out = nn.Linear(12, 12), nn.Linear(12, 4)

        def forward(self, x):
            return self.out(checkpoint(lambda t: F.dropout(self.fc(t), 0.5), x, use_reentrant=False))

    torch.manual_seed(0)
    model = Block()
    package = spmd.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), *BATCHES[0],
                           reference=BATCHES)
    drawn = [dict(n["args"])["stream"] for n in package.step["nodes"] if n["op"] == "spmd.philox_uniform.default"]
    assert drawn == [{"int": 0}] * 2, "once in the forward and once in the backward"
    run(find_tool("spmd-compile"), package.save(tmp_path / "c.step"), "-o", tmp_path / "c.spmd", "--ranks=2", "--quiet")
    assert "passed" in run(find_tool("spmd-run"), tmp_path / "c.spmd", "--check")


def test_draws_have_the_right_distribution():
    with Draws(torch.tensor(1), torch.tensor(0)).entered():
        uniform, normal = torch.rand(100, 1000), torch.randn(100, 1000)
        kept = F.dropout(torch.ones(100, 1000), 0.25)
        integers = torch.randint(3, 8, (100, 1000))
        orders = torch.stack([torch.randperm(4) for _ in range(4000)])
        slopes = -F.rrelu(torch.full((100, 1000), -1.0), 0.25, 0.75, training=True)
        weights = torch.tensor([1.0, 0.0, 3.0, 4.0]).expand(40000, 4)
        once = torch.multinomial(weights, 1)
        pairs = torch.multinomial(weights, 2)
        triples = torch.multinomial(weights, 3, replacement=True)
    assert abs(uniform.mean() - 0.5) < 0.005 and uniform.min() >= 0 and uniform.max() < 1
    assert abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01
    assert abs((kept != 0).float().mean() - 0.75) < 0.005
    assert set(kept.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert integers.min() == 3 and integers.max() == 7 and abs(integers.float().mean() - 5) < 0.02
    assert len(orders.unique(dim=0)) == 24 and torch.equal(orders.sort(-1)[0], torch.arange(4).expand(4000, 4))
    assert (torch.stack([(orders[:, i] == j).float().mean() for i in range(4) for j in range(4)]) - 0.25).abs().max() < 0.03
    assert slopes.min() >= 0.25 and slopes.max() <= 0.75 and abs(slopes.mean() - 0.5) < 0.005
    for drawn in (once, pairs[:, :1], triples[:, 0], triples[:, 2]):
        shares = F.one_hot(drawn.flatten(), 4).float().mean(0)
        assert shares[1] == 0 and (shares - torch.tensor([0.125, 0, 0.375, 0.5])).abs().max() < 0.01
    both = (pairs == 2).any(1) & (pairs == 3).any(1)  # the third first, then the fourth, or the other way round
    assert abs(both.float().mean() - (0.375 * 4 / 5 + 0.5 * 3 / 4)) < 0.01 and not (pairs[:, 0] == pairs[:, 1]).any()
    assert abs((triples[:, 0] == triples[:, 1]).float().mean() - (0.125**2 + 0.375**2 + 0.5**2)) < 0.01
    assert abs(np.corrcoef(uniform.flatten(), normal.flatten())[0, 1]) < 0.02


@pytest.mark.parametrize("draw", [lambda x: torch.poisson(x.abs()), lambda x: torch.distributions.Beta(0.4, 0.4).sample()])
def test_what_has_no_form_is_an_error(draw):
    def step(model, optimizer, x):
        loss = (model.weight * x).sum() + draw(x).sum()
        loss.backward()
        optimizer.step()
        return loss
    model = nn.Module()
    model.weight = nn.Parameter(torch.ones(12))
    with pytest.raises(spmd.CaptureError, match="an order of its own"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), BATCHES[0][0])


def test_a_step_that_draws_nothing_has_no_seed(tmp_path):
    model = nn.Linear(12, 4)
    package = spmd.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), *BATCHES[0],
                           reference=BATCHES)
    assert not any(i["kind"] == "rng" for i in json.loads(package.text())["inputs"])
    run(find_tool("spmd-compile"), package.save(tmp_path / "a.step"), "-o", tmp_path / "a.spmd", "--ranks=1", "--quiet")
    assert "draws no random numbers" in fails(find_tool("spmd-run"), tmp_path / "a.spmd", "--seed=4")


def dropping(model, optimizer, x, y):
    loss = F.cross_entropy(model(F.dropout(x, 0.5)), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def resumable(optimizer, ranks: int = 2, steps: int = 0) -> tuple[list[float], Any, Any, Any]:
    """Losses of a training with dropout."""
    model = copy.deepcopy(mlp.setup()["model"])
    made = optimizer(model.parameters())
    step = spmd.compile(dropping, ranks=ranks)
    return [step(model, made, *mlp.setup()["args"]).item() for _ in range(steps)], step, model, made


def test_a_resumed_training_draws_what_comes_next() -> None:
    """The counter of the draws follows the optimizer's: a new process, a loaded state, a reset."""
    adam = lambda parameters: torch.optim.AdamW(parameters, lr=0.1)
    args = mlp.setup()["args"]
    whole, *_ = resumable(adam, steps=6)
    first, step, model, optimizer = resumable(adam, steps=3)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    assert step.rng["step"] == 3
    _, second, other, other_optimizer = resumable(adam, ranks=1)
    other.load_state_dict(saved[0])
    other_optimizer.load_state_dict(copy.deepcopy(saved[1]))
    rest = [second(other, other_optimizer, *args).item() for _ in range(3)]
    torch.testing.assert_close(first + rest, whole)
    second.reset()
    other.load_state_dict(saved[0])
    other_optimizer.load_state_dict(copy.deepcopy(saved[1]))
    torch.testing.assert_close([second(other, other_optimizer, *args).item() for _ in range(3)], rest)
    other.load_state_dict(saved[0])
    other_optimizer.load_state_dict(copy.deepcopy(saved[1]))
    torch.testing.assert_close([second(other, other_optimizer, *args).item() for _ in range(3)], rest, msg="loaded between")


def test_draws_are_set() -> None:
    """Of an optimizer that counts nothing nobody knows how many steps it has taken."""
    momentum = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    args = mlp.setup()["args"]
    whole, *_ = resumable(momentum, steps=4)
    first, step, model, optimizer = resumable(momentum, steps=2)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict(), step.rng))
    losses = []
    for rng in (None, saved[2]):
        _, second, other, other_optimizer = resumable(momentum)
        assert second.rng == {}
        other.load_state_dict(saved[0])
        other_optimizer.load_state_dict(copy.deepcopy(saved[1]))
        if rng is None:
            with pytest.warns(spmd.Remark, match=r"does not count them[^\0]*hint: set dropping.rng to what it was"):
                second(other, other_optimizer, *args)
        else:
            second.rng = rng
            losses = [second(other, other_optimizer, *args).item() for _ in range(2)]
    torch.testing.assert_close(first + losses, whole)
    second.rng = {"step": 0}
    assert second.rng == {"seed": torch.initial_seed(), "step": 0}
    with pytest.raises(ValueError, match="rng is {'steps': 1}; allowed: "):
        second.rng = {"steps": 1}
