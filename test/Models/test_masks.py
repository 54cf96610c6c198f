"""Masks that models build out of positions, comparisons and padding never become tensors of queries x keys."""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pipeline
import spmd
import zoo

LONG = 2048


class Attention(nn.Module):
    """One attention with whatever mask `make_mask(documents)` gives."""

    def __init__(self, make_mask, width: int = 16, heads: int = 2):
        super().__init__()
        self.heads, self.make_mask = heads, make_mask
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, documents):
        batch, time, width = x.shape
        q, k, v = (t.view(batch, time, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.make_mask(documents))
        return self.out(y.transpose(1, 2).reshape(batch, time, width))


def positions(documents):
    time = torch.arange(documents.shape[1], device=documents.device)
    return time[:, None], time[None, :]


def packed(documents):
    query, key = positions(documents)
    return (key <= query) & (documents[:, None, :, None] == documents[:, None, None, :])


def sliding(documents):
    query, key = positions(documents)
    return (key <= query) & (key > query - 5)


def prefix(documents):
    """Bidirectional over the first positions, causal after; some documents are padding and see nothing."""
    query, key = positions(documents)
    return ((key <= query) | (key < 4)) & (documents != 0)[:, None, :, None]


def additive(documents):
    query, key = positions(documents)
    bias = torch.zeros(query.shape[0], key.shape[1]).masked_fill(key > query, float("-inf"))
    return bias[None, None].expand(documents.shape[0], 1, -1, -1)


def alibi(documents):
    query, key = positions(documents)
    distance = (key - query).float() * 0.1
    return torch.where(key <= query, distance, float("-inf"))


MASKS = [packed, sliding, prefix, additive, alibi]


def step(model, optimizer, x, documents):
    loss = model(x, documents).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def capture(make_mask, folder: Path, batch: int, time: int, reference: int = 0) -> Path:
    torch.manual_seed(0)
    model = Attention(make_mask)
    batches = [(torch.randn(batch, time, 16), torch.arange(time)[None].div(4, rounding_mode="floor")
                .sub(torch.arange(batch)[:, None] % 2)) for _ in range(max(reference, 1))]
    package = spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), *batches[0],
                           reference=batches[:reference])
    package.save(folder / "mask.step")
    return folder / "mask.step"


def largest_buffer(step_package: Path, ranks: int = 2) -> int:
    """Bytes of the largest buffer of the plan."""
    plan = step_package.with_suffix(".plan.mlir")
    pipeline.run("compile", pipeline.find_tool("spmd-compile"), step_package, f"--ranks={ranks}", "--compile-to=plan",
                 "-o", plan)
    sizes = [int(n) for n in re.findall(r"plan\.buffer @\S+ .*? bytes (\d+)", plan.read_text())]
    assert sizes
    return max(sizes)


@pytest.mark.parametrize("make_mask", MASKS, ids=lambda f: f.__name__)
def test_equal_and_never_a_tensor(make_mask, tmp_path) -> None:
    small = capture(make_mask, tmp_path, batch=5, time=12, reference=3)
    case = zoo.Case("Attention", "", {}, dict, "Linear")
    local = {ranks: pipeline.compare(small, case, ranks) for ranks in (2, 3)}
    pipeline.train(small, case, 2)
    # No collective but those of the parameters and of the loss.
    assert pipeline.count(local[2]).all_reduce == 1
    long = capture(make_mask, tmp_path, batch=2, time=LONG)
    assert largest_buffer(long) < LONG * LONG


@pytest.mark.parametrize("name", ["LlamaForCausalLM (padded)", "MistralForCausalLM", "BertForMaskedLM"])
def test_masks_of_transformers(name, tmp_path, monkeypatch) -> None:
    pytest.importorskip("transformers", minversion="5.23.0")
    monkeypatch.setattr(zoo, "TIME", LONG)
    monkeypatch.setattr(zoo, "BATCH", 2)
    case = zoo.find(name)
    case = dataclasses.replace(case, options={**case.options, "max_position_embeddings": LONG})
    assert largest_buffer(pipeline.capture(case, tmp_path, "sgd", steps=0)) < LONG * LONG
