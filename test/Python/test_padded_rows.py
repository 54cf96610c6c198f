"""Rows of matrices that begin at multiples of 16 bytes change no number: an odd vocabulary, odd widths, two ranks."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from step_check import StepCheck, run, tool
from torch import nn

import spmd

ROWS, LENGTH, VOCAB, WIDTH, INNER = 4, 6, 2051, 20, 45


class Net(nn.Module):
    """A head of more than 4 KiB a row, tied to the embedding; an MLP of 45 elements a row, with what is sliced out of it."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.up, self.gate, self.down = nn.Linear(WIDTH, INNER), nn.Linear(WIDTH, 2 * INNER + 1), nn.Linear(INNER, WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        left, right, _ = self.gate(x).split([INNER, INNER, 1], dim=-1)
        x = x + self.down(nn.functional.gelu(self.up(x)) * left.sigmoid() + right.relu())
        return self.head(x)


def train_step(model, optimizer, x, y):
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def train(folder: Path, name: str, step: Path, *options: str) -> tuple[list[int], bytes]:
    """Leading dimensions of the results of all GEMMs, and the bytes of what three steps leave."""
    artifact, saved = folder / f"{name}.spmd", folder / f"{name}.safetensors"
    run(tool("spmd-compile"), step, "--ranks=2", "--quiet", *options, "-o", artifact)
    run(tool("spmd-run"), artifact, "--steps=3", "--quiet", "--check-finite", f"--save={saved}")
    plan = json.loads(next(artifact.glob("*.plan.json")).read_text())
    return [c["ldc"] for c in plan["commands"] if "ldc" in c], saved.read_bytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
def test_no_bit_changes(tmp_path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Net().to(dtype)
    batches = [torch.randint(0, VOCAB, (2, ROWS, LENGTH)).unbind() for _ in range(3)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    package = spmd.capture(train_step, model, optimizer, *batches[0], reference=batches)
    check = StepCheck(package, tmp_path)
    check.interpret(2)
    step, bytes_of = check.step, torch.finfo(dtype).bits // 8
    for target in ("host", "emulate:sm_90"):
        lds, padded = train(tmp_path, "padded", step, f"--target={target}")
        plain_lds, plain = train(tmp_path, "plain", step, f"--target={target}", "--row-alignment=1")
        assert padded == plain
        rows_of_lines = (4224 if dtype == torch.bfloat16 else 8320) // bytes_of
        assert VOCAB in plain_lds and VOCAB not in lds  # gradients of weights lie as their parameters do
        assert {rows_of_lines, 48} <= set(lds)
