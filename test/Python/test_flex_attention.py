"""flex_attention() and varlen_attn(): a sample of test/Kinds/flex_attention.py, tables of blocks, packed documents, errors, plans."""
from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, and_masks, create_block_mask, flex_attention
from torch.nn.attention.varlen import varlen_attn

import spmd
from step_check import capture_function, run, tool

sys.path.insert(0, str(Path(__file__).parent.parent / "Kinds"))
import flex_attention as kind  # noqa: E402
import harness  # noqa: E402

BATCH, TIME, HEADS, WIDTH = 2, 32, 2, 8
SAMPLE = ["0", "1"]


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str) -> None:
    found = harness.outcome_of(lambda: kind.case(name))
    assert found.kind == "right", found.text


def test_on_an_emulated_gpu() -> None:
    """Documents, padding and a bias by distance."""
    found = harness.outcome_of(lambda: kind.case("12", "emulate:sm_90"))
    assert found.kind == "right", found.text


@pytest.mark.skipif("SPMD_TEST_ALL" not in os.environ, reason="SPMD_TEST_ALL=1 runs a tenth of the kind")
@pytest.mark.parametrize("name", kind.NAMES[5::10])
def test_more(name: str) -> None:
    found = harness.outcome_of(lambda: kind.case(name))
    assert found.kind != "wrong", found.text


def causal(b, h, q, k):
    return q >= k


def heads(seed: int, tokens: int = TIME) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(BATCH, HEADS, tokens, WIDTH, generator=generator, requires_grad=True) for _ in range(3)]


def dense(q, k, v, mask):
    """The formula. A query that sees nothing has zeros."""
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e30)
    return scores.softmax(-1).masked_fill(~mask, 0) @ v


class Step:
    """One attention whose operands are parameters."""

    def __init__(self, attend):
        self.model = nn.ParameterList(heads(0))
        self.optimizer, self.attend = torch.optim.SGD(self.model.parameters(), lr=0.5), attend

    def __call__(self, model, optimizer, *batch):
        loss = self.attend(*model, *batch).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def check(self, reference, batches) -> None:
        """The compiled step gives the losses and parameters of `reference` in f64."""
        other = Step(reference)
        other.model = nn.ParameterList([p.detach().double() for p in self.model])
        other.optimizer = torch.optim.SGD(other.model.parameters(), lr=0.5)
        compiled = spmd.compile(self.__call__, ranks=2)
        for batch in batches:
            loss = compiled(self.model, self.optimizer, *batch)
            torch.testing.assert_close(loss.double(), other(other.model, other.optimizer, *batch), rtol=1e-5, atol=1e-6)
        for mine, theirs in zip(self.model, other.model):
            torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5)


def test_blocks_that_a_table_leaves_out() -> None:
    """`mask_mod` allows more than the table lists, as from_kv_blocks() can have it."""
    counts, indices = torch.ones(1, 1, 2, dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    narrow = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=16, mask_mod=causal)
    mask = torch.ones(TIME, TIME).tril().bool()
    mask[16:, :16] = False
    Step(lambda q, k, v: flex_attention(q, k, v, block_mask=narrow)).check(lambda q, k, v: dense(q, k, v, mask), [()])


def test_another_mask_in_the_same_object() -> None:
    """`mask_mod` and the tables of a cached mask are read at every call."""
    masks = [create_block_mask(mod, None, None, TIME, TIME, device="cpu", BLOCK_SIZE=16) for mod in (causal, lambda b, h, q, k: q <= k)]
    cached, (q, k, v) = masks[0], [p.detach() for p in heads(0)]
    step = Step(lambda q, k, v: flex_attention(q, k, v, block_mask=cached))
    step.optimizer.param_groups[0]["lr"] = 0.0
    compiled = spmd.compile(step.__call__, ranks=2)
    for mask in (torch.ones(TIME, TIME).tril().bool(), torch.ones(TIME, TIME).triu().bool()):
        torch.testing.assert_close(compiled(step.model, step.optimizer), dense(q, k, v, mask).square().sum())
        vars(cached).update(vars(masks[1]))


def test_documents_compile_once() -> None:
    """New ids of documents, and rows with another number of documents, are values of the batch."""
    programs = []

    def attend(q, k, v, ids):
        programs.append(ids)
        same = create_block_mask(and_masks(causal, lambda b, h, q, k: ids[b, q] == ids[b, k]), BATCH, None, TIME, TIME, device="cpu")
        return flex_attention(q, k, v, block_mask=same)
    batches = [(torch.randint(0, n, (BATCH, TIME)).sort(-1).values,) for n in (1, 3, 5, 20, 2)]
    reference = lambda q, k, v, ids: dense(q, k, v, ((ids[:, :, None] == ids[:, None]) & torch.ones(TIME, TIME).tril().bool())[:, None])  # noqa: E731
    Step(attend).check(reference, batches)
    assert len(programs) <= 3, f"{len(programs)} traces for {len(batches)} batches"


def attend_by_document(q, k, v, ends, window):
    """The formula, document by document; tokens are a dim."""
    out, begin = torch.zeros_like(q), 0
    for end in ends[1:].tolist():
        mask = torch.ones(end - begin, end - begin, dtype=torch.bool)
        if window[1] >= 0:
            mask = mask.tril(window[1])
        if window[0] >= 0:
            mask = mask.triu(-window[0])
        if end > begin:
            out[:, :, begin:end] = dense(*(t[:, :, begin:end] for t in (q, k, v)), mask)
        begin = end
    return out


@pytest.mark.parametrize("window", [(-1, 0), (3, 0)], ids=str)
@pytest.mark.sample(1)
def test_varlen(window) -> None:
    """Documents of any length, empty ones, and tokens of none."""
    def attend(q, k, v, ends):
        flat = [t[:1].squeeze(0).transpose(0, 1) for t in (q, k, v)]
        return varlen_attn(*flat, ends, ends, TIME, TIME, window_size=window)
    batches = [(torch.tensor(ends, dtype=torch.int32),) for ends in ([0, 5, 5, 20, TIME], [0, 1, 2, 3, 30], [0, 8, 16, 31, TIME])]
    Step(attend).check(lambda q, k, v, ends: attend_by_document(q[:1], k[:1], v[:1], ends, window), batches)


def test_no_scores_in_the_plan(tmp_path: Path) -> None:
    tokens = 1024

    def function(q, k, v, ids):
        same = create_block_mask(and_masks(causal, lambda b, h, q, k: ids[b, q] == ids[b, k]), BATCH, None, tokens, tokens, device="cpu")
        out = flex_attention(*(t.detach().requires_grad_() for t in (q, k, v)), score_mod=lambda s, b, h, q, k: s - 0.1 * (q - k),
                             block_mask=same)
        return out
    package = capture_function(function, [*(t.detach() for t in heads(0, tokens)), torch.zeros(BATCH, tokens, dtype=torch.int64)])
    package.save(tmp_path / "s.step")
    run(tool("spmd-compile"), tmp_path / "s.step", "--quiet", "--compile-to=plan", "-o", tmp_path / "plan.mlir")
    largest = max(int(n) for n in re.findall(r"plan\.buffer @\S+ .*? bytes (\d+)", (tmp_path / "plan.mlir").read_text()))
    assert largest < tokens * tokens


@pytest.mark.parametrize("score_mod, message", [
    (lambda s, b, h, q, k: 20 * torch.tanh(s / 20), "a score_mod computes aten.div.Tensor of the score"),
    (lambda s, b, h, q, k: (q - k) * 1.0, "values that do not depend on the score"),
    (lambda s, b, h, q, k: s.mul_(2), "a score_mod writes into the score"),
    (lambda s, b, h, q, k: torch.where(q >= k, s.add_(1), float("-inf")), "a score_mod writes into the score"),
    (lambda s, b, h, q, k: torch.where(q >= k, s, -1e9), "a score_mod computes aten.where.self of the score"),
], ids=["soft-cap", "constant", "in place", "in place, masked", "finite"])
def test_functions_of_scores_that_are_refused(score_mod, message) -> None:
    with pytest.raises(spmd.CaptureError, match=re.escape(message)) as error:
        capture_function(lambda q, k, v: flex_attention(q, k, v, score_mod=score_mod), [t.detach() for t in heads(0)])
    assert "hint:" in str(error.value) and "test_flex_attention.py" in str(error.value)


def test_gradients_of_captured_tensors_are_refused() -> None:
    step = Step(lambda q, k, v: flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + v[:, 0, 0, 0][b]))
    with pytest.raises(spmd.CaptureError, match="reads a tensor that requires a gradient"):
        spmd.capture(step.__call__, step.model, step.optimizer)
