"""Llama on a tensor axis, cut as torchtitan's plan cuts it: heads that share keys, the vocabulary of embedding and loss."""
from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Callable

import pytest
import torch
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.nn import functional as F

import spmd
from spmd.placements import placement_text
from step_check import StepCheck

WORDS, WIDTH, HEADS = 24, 16, 8


def turned(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions."""
    angle = torch.outer(torch.arange(x.shape[1]).float(), 0.3 ** torch.arange(x.shape[-1] // 2).float())
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, shared: int):
        super().__init__()
        size = WIDTH // HEADS
        self.wq, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.wk, self.wv = (nn.Linear(WIDTH, shared * size, bias=False) for _ in range(2))
        self.size = size

    def forward(self, x):
        q, k, v = (w(x).view(*x.shape[:2], -1, self.size) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(turned(q).transpose(1, 2), turned(k).transpose(1, 2), v.transpose(1, 2),
                                           is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, shared: int):
        super().__init__()
        self.attention = Attention(shared)
        self.w1, self.w3 = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.w2 = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Llama(nn.Module):
    def __init__(self, shared: int = 4, layers: int = 2, tied: bool = False, padding: int | None = None):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding)
        self.layers = nn.ModuleList(Block(shared) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        if tied:
            self.output.weight = self.embedding.weight

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


COLUMNS, ROWS = Shard(0), Shard(1)
BLOCK = {**{f"*.w{name}.weight": COLUMNS for name in "qkv13"}, **{f"*.w{name}.weight": ROWS for name in "o2"}}
VOCABULARY = {"embedding.weight": Shard(0), "output.weight": Shard(0)}
SHARED_BY_ALL = {**BLOCK, "*.wk.weight": Replicate(), "*.wv.weight": Replicate()}


def mean_loss(logits, y):
    return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())


def make_step(loss_of: Callable):
    def train_step(model, optimizer, x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return train_step


def setup(**arguments):
    torch.manual_seed(0)
    model = Llama(**arguments)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches(count: int):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        tokens = torch.randint(WORDS, (4, 9), generator=generator)
        yield tokens[:, :-1], tokens[:, 1:]


# Beside 2 + 2 of each block and the message of norms: one for the embedding; of the output layer one in backward; of the loss
# the largest value, the sum, what was looked up, and the sum in backward.
@pytest.mark.parametrize("shared, placements, more", [(4, BLOCK, 0), (2, BLOCK, 0), (4, {**BLOCK, **VOCABULARY}, 1 + 1 + 4),
                                                      (2, {**BLOCK, "embedding.weight": Shard(0)}, 1)])
def test_trains_as_one_rank(shared: int, placements, more: int) -> None:
    """Losses and parameters are those of eager PyTorch."""
    model, optimizer = setup(shared=shared)
    eager = copy.deepcopy(model)
    eager_optimizer = torch.optim.AdamW(eager.parameters(), lr=1e-2)
    train_step = make_step(mean_loss)
    step = spmd.compile(train_step, mesh=(2, 2), policy="class:Block", override_placements=placements)
    for x, y in batches(3):
        torch.testing.assert_close(step(model, optimizer, x, y), train_step(eager, eager_optimizer, x, y), rtol=1e-5, atol=1e-6)
    states = step.state_dict()
    for name, value in eager.state_dict().items():
        torch.testing.assert_close(states[name], value, rtol=1e-3, atol=1e-4)
    plan = json.loads((Path(step.artifact) / "train_step.plan.json").read_text())
    assert sum(c.get("comm", "").endswith(".tensor") for c in plan["commands"]) == 2 * (2 + 2) + 1 + more


def summed(logits, y):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum", ignore_index=3)


def weighted(logits, y):
    weight = torch.arange(1, WORDS + 1).float()
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), weight, ignore_index=WORDS - 1)


def smoothed(logits, y):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), label_smoothing=0.1)


def by_row(logits, y):
    """A loss for each row, and PaLM's z-loss."""
    losses = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none", ignore_index=0)
    return (losses * (y.flatten() > 4)).mean() + 1e-2 * logits.logsumexp(-1).square().mean()


def of_probabilities(logits, y):
    return (logits.softmax(-1) - F.one_hot(y, WORDS)).square().mean() + logits.var(-1).mean()


@pytest.mark.parametrize("mesh", ["tensor:2", "shard:3,tensor:4", "replicate:2,shard:2,tensor:2"])
@pytest.mark.parametrize("loss, arguments, placements", [
    (mean_loss, {}, {**BLOCK, **VOCABULARY}), (mean_loss, {"shared": 1}, {**SHARED_BY_ALL, **VOCABULARY}),
    (summed, {"tied": True}, {"embedding.weight": Shard(0)}), (weighted, {"layers": 0}, VOCABULARY),
    (smoothed, {"layers": 0, "padding": 5}, VOCABULARY), (by_row, {"layers": 0}, VOCABULARY),
    (of_probabilities, {"layers": 0, "tied": True}, {"embedding.weight": Shard(0)})],
    ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.sample(4)
def test_agrees_with_one_rank(tmp_path, mesh: str, loss: Callable, arguments, placements) -> None:
    """In doubles, to 1e-12: losses, parameters and optimizer state."""
    package = spmd.capture(make_step(loss), *setup(**arguments), *next(batches(1)))
    ranks = {"tensor:2": 2, "shard:3,tensor:4": 12, "replicate:2,shard:2,tensor:2": 8}[mesh]
    StepCheck(package, tmp_path).interpret(ranks, "class:Block" if arguments.get("layers") != 0 else "none", f"--mesh={mesh}",
                                           f"--override-placements={placement_text(placements)}")


def test_what_cannot_be_is_an_error_at_the_op() -> None:
    """Two heads of keys on four ranks, and keys that are whole beside heads of queries that are cut."""
    for placements, message in ((BLOCK, r"test_tensor_axis_llama.py:\d+: error: 'aten.view' needs dimension 1 of operand 0 whole"),
                                (SHARED_BY_ALL, r"'aten.sdpa' needs dimension 1 of operand 0 whole, .*\(layers.0.attention")):
        with pytest.raises(spmd.CompileError, match=message):
            spmd.compile(make_step(mean_loss), mesh="shard:1,tensor:4", override_placements=placements)(
                *setup(shared=2), *next(batches(1)))
    with pytest.raises(spmd.CompileError, match=r"override-placements=layers.\d.attention.w[kv].weight=shard\(0\)"):
        spmd.compile(make_step(mean_loss), mesh=(2, 2), override_placements=SHARED_BY_ALL)(*setup(shared=2), *next(batches(1)))
