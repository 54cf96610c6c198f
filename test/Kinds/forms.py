"""Forms of a step that were refused without need: attention of other dims and types, gradients that expand to their own
shape, checks of values, embeddings, and regions of autocast for another device that are off.

Each form is crossed with precision, ranks, two microbatches and activation checkpointing. Losses of three steps are
eager's.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import harness
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import spmd

ROWS, CLASSES = 8, 3
# Sums of three steps: features, dims of a head, up to 48 keys of 8 rows, rows and classes. Products in bf16 sum in f32, and
# about 14 values on the way are rounded to bf16.
CHAIN = 3 * (5 + 8 + 48 * 8 + ROWS + CLASSES)
TOLERANCES = {name: (dtype, 2 * math.sqrt(chain) * torch.finfo(dtype).eps / 2) for name, dtype, chain in (
    ("f64", torch.float64, CHAIN), ("f32", torch.float32, CHAIN), ("bf16", torch.bfloat16, 14))}


class Attention(nn.Module):
    """Attention to itself of [rows, …, sequence, dim], or without rows."""

    def __init__(self, shape: tuple[int, ...], **options: Any):
        super().__init__()
        self.shape, self.project, self.options = shape, nn.Linear(5, 24), options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x)[..., None].chunk(3, 1)
        given = [self._shaped(t) for t in (query, key, value)]
        options = {name: t.to(x.dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t
                   for name, t in self.options.items()}
        found = F.scaled_dot_product_attention(*given, **options)
        return found.reshape(len(x) if len(self.shape) > 2 else 1, -1)[:, :CLASSES].expand(len(x), CLASSES)

    def _shaped(self, t: torch.Tensor) -> torch.Tensor:
        """[rows, 8, 1] in the shape, with other values at each place."""
        if len(self.shape) == 2:
            t = t.reshape(-1, 8)[:self.shape[-2]]
        else:
            t = t.reshape(len(t), 1, 8).expand(len(t), 48, 8).reshape(len(t), *self.shape[1:-1], 8)
        return t * torch.linspace(0.5, 1.5, t[0].numel(), dtype=t.dtype).reshape(t[0].shape)


class Tokens(nn.Module):
    """PEFT's trainable tokens: a parameter that is the source of an index operator."""

    def __init__(self, how: str):
        super().__init__()
        self.how, self.table = how, nn.Embedding(11, 5)
        self.table.weight.requires_grad_(False)
        self.delta, self.head = nn.Parameter(self.table.weight[[1, 5]].detach().clone()), nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = getattr(self.table.weight, self.how)(0, torch.tensor([1, 5]), self.delta)
        return self.head(F.embedding((x.abs() * 3).long() % 11, weight).mean(1))


class Embedding(nn.Module):
    def __init__(self, **options: Any):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 5, **options), nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.table((x.abs() * 3).long() % 7).mean(1))


class Speech(nn.Module):
    """The loss of a recognizer, of labels that a mask chooses: one row of each length."""

    def __init__(self, choose: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]):
        super().__init__()
        self.choose, self.project, self.head = choose, nn.Linear(5, 12 * 4), nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        labels = (x.abs() * 3).long() % 3 + 1
        labels = torch.where(torch.arange(5) <= (x.abs().sum(1, keepdim=True) * 7).long() % 5, labels, -100)
        mask = labels >= 0
        logits = self.project(x).unflatten(1, (12, 4)).log_softmax(-1).transpose(0, 1)
        loss = F.ctc_loss(logits.float() if x.dtype is torch.bfloat16 else logits, self.choose(labels, mask),
                          torch.full((len(x),), 12), mask.sum(-1), zero_infinity=True)
        return self.head(x) * (1 + loss.to(x.dtype))


class Checked(nn.Module):
    def __init__(self, check: Callable[[torch.Tensor, torch.Tensor], None]):
        super().__init__()
        self.check, self.head = check, nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.head(x)
        self.check(x, out)
        return out


class Off(nn.Module):
    """Its forward is a region of autocast for GPUs that is off."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, CLASSES)

    @torch.autocast("cuda", enabled=False)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)


_LOWER = torch.ones(4, 4).tril()
_BLIND = _LOWER.index_fill(0, torch.tensor([2]), 0)
FORMS: dict[str, Callable[[], nn.Module]] = {
    "attention of 2 dims": lambda: Attention((6, 8)),
    "attention of 4 dims": lambda: Attention((ROWS, 2, 24, 8)),
    "attention of 5 dims": lambda: Attention((ROWS, 3, 4, 4, 8)),
    "attention of 6 dims": lambda: Attention((ROWS, 3, 2, 2, 4, 8)),
    "causal attention of 5 dims": lambda: Attention((ROWS, 3, 4, 4, 8), is_causal=True),
    "attention of 5 dims, mask of 2": lambda: Attention((ROWS, 3, 4, 4, 8), attn_mask=_LOWER.bool()),
    "attention of 5 dims, mask of 4": lambda: Attention((ROWS, 3, 4, 4, 8), attn_mask=_LOWER.expand(3, 1, 4, 4).bool()),
    "attention of 5 dims, bias of 5": lambda: Attention((ROWS, 3, 4, 4, 8), attn_mask=_LOWER.expand(1, 3, 1, 4, 4)),
    "attention, a row that sees nothing": lambda: Attention((ROWS, 3, 4, 4, 8), attn_mask=torch.log(_BLIND)),
    "index_copy": lambda: Tokens("index_copy"), "index_add": lambda: Tokens("index_add"),
    "scale_grad_by_freq": lambda: Embedding(scale_grad_by_freq=True),
    "scale_grad_by_freq, padding": lambda: Embedding(scale_grad_by_freq=True, padding_idx=0),
    "ctc of labels[mask]": lambda: Speech(lambda labels, mask: labels[mask]),
    "ctc of masked_select": lambda: Speech(lambda labels, mask: labels.masked_select(mask)),
    "_check_tensor_all of the batch": lambda: Checked(lambda x, out: torch._check_tensor_all(x < 1e9)),
    "_check_tensor_all": lambda: Checked(lambda x, out: torch._check_tensor_all(out.isfinite())),
    "_assert_async": lambda: Checked(lambda x, out: torch._assert_async(out.isfinite().all())),
    "_check of a read value": lambda: Checked(lambda x, out: torch._check(2 * out.argmax().item() + 1 > 0)),
    "autocast off": Off}


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, parts: int,
               recomputes: bool) -> torch.Tensor:
    total = torch.zeros((), dtype=x.dtype)
    for rows, labels in zip(x.chunk(parts), y.chunk(parts)):
        out = checkpoint(model, rows, use_reentrant=False) if recomputes else model(rows)
        loss = F.cross_entropy(out, labels) / parts
        loss.backward()
        total = total + loss.detach()
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 0.1)
    optimizer.step()
    optimizer.zero_grad()
    return total


def names() -> list[str]:
    return [f"{form}; {dtype}; {ranks} ranks; {how}" for form in FORMS for dtype in TOLERANCES for ranks in (1, 2)
            for how in ("plain", "microbatches", "checkpointing")]


def case(name: str) -> harness.Outcome:
    form, precision, ranks, how = name.split("; ")
    dtype, tolerance = TOLERANCES[precision]
    parts, losses = 1 + (how == "microbatches"), []
    for step in (train_step, spmd.compile(train_step, ranks=int(ranks.split()[0]))):
        torch.manual_seed(0)
        model = FORMS[form]().to(dtype)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.3)
        batch = torch.randn(ROWS, 5, dtype=dtype), torch.arange(ROWS) % CLASSES
        losses.append([step(model, optimizer, *batch, parts, how == "checkpointing").item() for _ in range(3)])
    return harness.compare(*losses, tolerance)


if __name__ == "__main__":
    harness.main("forms", names(), case)
