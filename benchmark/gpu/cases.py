"""The steps that are measured: the same code is captured by `pack` and trained by PyTorch in `run`."""
from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples")]  # gpt2.py is beside this file in a pack

import gpt2

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class LlamaBlock(nn.Module):
    """RMS norm, rotary embeddings, grouped keys, SwiGLU: as Llama 3 has them (Touvron et al. 2023; Grattafiori 2024)."""

    def __init__(self, width: int, heads: int, groups: int, inner: int):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.attention_norm, self.mlp_norm = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
        self.query, self.output = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.size, bias=False)
        self.value = nn.Linear(width, groups * self.size, bias=False)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        h = self.attention_norm(x)

        def split(t: torch.Tensor, heads: int) -> torch.Tensor:
            return t.view(batch, length, heads, self.size).transpose(1, 2)

        def rotate(t: torch.Tensor) -> torch.Tensor:
            low, high = t.chunk(2, dim=-1)
            return t * cos + torch.cat((-high, low), dim=-1) * sin

        q, k, v = split(self.query(h), self.heads), split(self.key(h), self.groups), split(self.value(h), self.groups)
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
        x = x + self.output(y.transpose(1, 2).reshape(batch, length, width))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, vocab: int, width: int, layers: int, heads: int, groups: int, inner: int, length: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, inner) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, 1e-5), nn.Linear(width, vocab, bias=False)
        size = width // heads
        angles = torch.arange(length)[:, None] / 500000.0 ** (torch.arange(0, size, 2) / size)
        self.register_buffer("cos", torch.cat((angles, angles), dim=1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat((angles, angles), dim=1).sin(), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos.to(x.dtype), self.sin.to(x.dtype))
        return self.head(self.norm(x))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


@dataclasses.dataclass(frozen=True)
class Case:
    """`rows` of each rank, `length` tokens in each; `block` is the class whose modules are shard units."""
    name: str
    dtype: str
    rows: int
    length: int
    vocab: int
    block: str

    def model(self) -> nn.Module:
        """The same parameters everywhere: CPU, one seed."""
        torch.manual_seed(0)
        if self.name.startswith("gpt2"):
            config = dataclasses.replace(gpt2.CONFIGS[self.name.split("-")[1]], vocab=self.vocab, context=self.length)
            model: nn.Module = gpt2.GPT(config)
        elif self.name == "llama-nano":
            model = Llama(self.vocab, 64, 2, 4, 2, 96, self.length)
        else:
            model = Llama(self.vocab, 2048, 16, 32, 8, 8192, self.length)  # Llama-3.2-1B's sizes
        return model.to(DTYPES[self.dtype])

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def batches(self, ranks: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and labels of all ranks, [steps * rows, length]: text that can be learned, half of it repeated."""
        random = np.random.default_rng(1)
        half = random.integers(0, self.vocab, (steps * ranks * self.rows, self.length // 2 + 1))
        tokens = np.concatenate((half, half), axis=1)[:, :self.length + 1]
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()

    def key(self, ranks: int) -> str:
        return f"{self.name}-{self.dtype}-{ranks}"


#: Correctness and speed; those of --small are for a machine without a GPU, where kernels are emulated.
FULL = [Case("gpt2-124m", dtype, rows, 1024, 50304, "Block") for dtype, rows in (("f32", 4), ("bf16", 8))]
FULL += [Case("gpt2-124m-50257", "bf16", 8, 1024, 50257, "Block")]  # its own vocabulary, rows of which are not aligned
FULL += [Case("llama-1b", dtype, rows, 2048, 128256, "LlamaBlock") for dtype, rows in (("f32", 1), ("bf16", 2))]
SMALL = [Case("gpt2-tiny", dtype, 2, 16, 96, "Block") for dtype in ("f32", "bf16")]
SMALL += [Case("llama-nano", dtype, 2, 16, 96, "LlamaBlock") for dtype in ("f32", "bf16")]
#: What compute-sanitizer runs; in bf16, attention is on tensor cores.
NANO = [Case("gpt2-nano", dtype, 2, 64, 96, "Block") for dtype in ("f32", "bf16")]


def describe(case: Case, ranks: int) -> dict[str, Any]:
    return {**dataclasses.asdict(case), "ranks": ranks, "artifact": f"{case.key(ranks)}.spmd"}
