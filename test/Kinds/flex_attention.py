"""Random functions of scores and masks for flex_attention(), compiled against the formula in f64: python test/Kinds/flex_attention.py --all

Each case draws a mask_mod and a score_mod from a grammar of positions, documents and captured tensors, and crosses them with heads that
share keys, scales, the log-sum-exp, torch.compile, and ranks. The formula evaluates the same functions on grids of positions and keeps
all scores, forward and backward. Compared are the losses of two steps and the parameters after them.
"""
from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import torch
from torch import nn
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention, or_masks

import spmd

BATCH, TIME, WIDTH, HEADS, STEPS = 4, 20, 16, 4, 2
NAMES = tuple(map(str, range(200)))
_COMPILED = torch.compile(flex_attention)


class Tensors(NamedTuple):
    """What functions capture: the documents of the batch, the lengths of its rows, and numbers of heads and positions."""

    documents: torch.Tensor
    lengths: torch.Tensor
    slopes: torch.Tensor
    of_keys: torch.Tensor


# Each draws a function of positions. `t` are the captured tensors.
MASKS: dict[str, Callable[[random.Random], Callable]] = {
    "causal": lambda r: lambda t: lambda b, h, q, k: q >= k,
    "window": lambda r: (lambda n: lambda t: lambda b, h, q, k: q - k < n)(r.randint(1, 9)),
    "ahead": lambda r: (lambda n: lambda t: lambda b, h, q, k: k <= q + n)(r.randint(0, 5)),
    "prefix": lambda r: (lambda n: lambda t: lambda b, h, q, k: k < n + h)(r.randint(1, 6)),
    "documents": lambda r: lambda t: lambda b, h, q, k: t.documents[b, q] == t.documents[b, k],
    "padding": lambda r: lambda t: lambda b, h, q, k: k < t.lengths[b],
    "rows": lambda r: lambda t: lambda b, h, q, k: q < t.lengths[b],
    "dilated": lambda r: (lambda n: lambda t: lambda b, h, q, k: (q - k) % n == 0)(r.randint(2, 3)),
    "blocks": lambda r: (lambda n: lambda t: lambda b, h, q, k: q // n == k // n)(r.randint(2, 7)),
    "heads": lambda r: lambda t: lambda b, h, q, k: (k <= q) | (h == 0),
}
SCORES: dict[str, Callable[[random.Random], Callable]] = {
    "cap": lambda r: (lambda c: lambda t: lambda s, b, h, q, k: c * torch.tanh(s / c))(r.choice([0.5, 2.0, 20.0])),
    "alibi": lambda r: lambda t: lambda s, b, h, q, k: s + t.slopes[h] * (k - q),
    "distance": lambda r: lambda t: lambda s, b, h, q, k: s - 0.05 * (q - k).abs(),
    "keys": lambda r: lambda t: lambda s, b, h, q, k: s + t.of_keys[h, k],
    "scaled": lambda r: lambda t: lambda s, b, h, q, k: s * (1 + t.of_keys[h, q] ** 2),
    "chosen": lambda r: lambda t: lambda s, b, h, q, k: torch.where(q >= k, s, 0.5 * s),
    "hidden": lambda r: lambda t: lambda s, b, h, q, k: torch.where(q >= k, s, float("-inf")),
    "bonus": lambda r: lambda t: lambda s, b, h, q, k: torch.where(t.documents[b, q] == t.documents[b, k], s + 0.5, s),
    "curve": lambda r: lambda t: lambda s, b, h, q, k: s + 0.1 * torch.sin(s) + 0.01 * s * s,
    "clamped": lambda r: lambda t: lambda s, b, h, q, k: torch.clamp(s, -0.3, 0.3),
}


class Case(NamedTuple):
    """One drawn case."""

    masks: list[Callable]
    joins: list[str]
    scores: list[Callable]
    kv_heads: int
    scale: float | None
    has_lse: bool
    is_compiled: bool
    ranks: int
    text: str

    def mask_mod(self, t: Tensors) -> Callable | None:
        """The masks, joined."""
        if not self.masks:
            return None
        joined = self.masks[0](t)
        for join, mask in zip(self.joins, self.masks[1:]):
            joined = (and_masks if join == "and" else or_masks)(joined, mask(t))
        return joined

    def score_mod(self, t: Tensors) -> Callable | None:
        """The functions of scores, one after the other."""
        if not self.scores:
            return None
        functions = [score(t) for score in self.scores]

        def changed(s, b, h, q, k):
            for function in functions:
                s = function(s, b, h, q, k)
            return s
        return changed


def draw(name: str) -> Case:
    """The case of a name."""
    r = random.Random(zlib.crc32(name.encode()))
    masks = [r.choice(list(MASKS)) for _ in range(r.randint(0, 3))]
    scores = [r.choice(list(SCORES)) for _ in range(r.randint(0 if masks else 1, 2))]
    joins = [r.choice(["and", "or"]) for _ in masks[1:]]
    return Case([MASKS[m](r) for m in masks], joins, [SCORES[s](r) for s in scores], r.choice([1, 2, HEADS]), r.choice([None, 0.7]),
                r.random() < 0.25, r.random() < 0.25, r.choice([1, 2]), f"{masks} {joins} {scores}")


def formula(q, k, v, case: Case, t: Tensors):
    """Attention with all scores in memory; (out, logsumexp)."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * (q.shape[-1] ** -0.5 if case.scale is None else case.scale)
    grid = torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij")
    if (score_mod := case.score_mod(t)) is not None:
        scores = score_mod(scores, *grid)
    hidden = scores == float("-inf")
    if (mask_mod := case.mask_mod(t)) is not None:
        hidden = hidden | ~mask_mod(*grid)
    weights = torch.where(hidden, 0, torch.exp(scores.masked_fill(hidden, 0)))
    sums = weights.sum(-1, keepdim=True)
    out = (weights / torch.where(sums == 0, 1, sums)) @ v
    return out, torch.where(sums == 0, 1, sums).log().squeeze(-1)


class Attention(nn.Module):
    """One attention; `attend` is flex_attention() or the formula."""

    def __init__(self, case: Case, attend: Callable):
        super().__init__()
        self.case, self.attend = case, attend
        self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * case.kv_heads * WIDTH // HEADS)
        self.register_buffer("slopes", torch.linspace(-0.3, 0.4, HEADS))
        self.register_buffer("of_keys", torch.linspace(-1, 1, HEADS * TIME).sin().view(HEADS, TIME))

    def forward(self, x, documents, lengths):
        t = Tensors(documents, lengths, self.slopes, self.of_keys)
        heads = [p.view(BATCH if self.attend is formula else x.shape[0], x.shape[1], n, -1).transpose(1, 2) for p, n in zip(
            (self.q(x), *self.kv(x).chunk(2, -1)), (HEADS, self.case.kv_heads, self.case.kv_heads))]
        out, logsumexp = self.attend(*heads, self.case, t)
        if self.case.has_lse:
            out = out * torch.sigmoid(logsumexp).masked_fill(logsumexp == float("-inf"), 0.5).unsqueeze(-1)
        return out.transpose(1, 2).flatten(2)


def flex(q, k, v, case: Case, t: Tensors):
    """The same by flex_attention()."""
    mask_mod, call = case.mask_mod(t), _COMPILED if case.is_compiled else flex_attention
    block_mask = None if mask_mod is None else create_block_mask(mask_mod, q.shape[0], HEADS, TIME, TIME, device="cpu")
    return call(q, k, v, score_mod=case.score_mod(t), block_mask=block_mask, scale=case.scale, enable_gqa=case.kv_heads != HEADS,
                return_lse=True)


def step(model, optimizer, x, documents, lengths):
    out = model(x, documents, lengths)
    loss = out.square().mean() + out.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def trained(model: nn.Module, call: Callable, batches: list[Any]) -> list[Any]:
    """Losses, then parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = [call(model, optimizer, *batch).detach().clone() for batch in batches]
    return [*losses, *(p.detach().clone() for p in model.parameters())]


def case(name: str, target: str = "host") -> harness.Outcome:
    drawn, generator = draw(name), torch.Generator().manual_seed(int(name))
    torch.manual_seed(int(name))
    model, reference = Attention(drawn, flex), Attention(drawn, formula)
    reference.load_state_dict(model.state_dict())
    batches = [(torch.randn(BATCH, TIME, WIDTH, generator=generator),
                torch.randint(0, 4, (BATCH, TIME), generator=generator).sort(-1).values,
                torch.randint(0, TIME + 1, (BATCH,), generator=generator)) for _ in range(STEPS)]
    expected = trained(reference.double(), step, [(x.double(), *rest) for x, *rest in batches])
    found = trained(model, spmd.compile(step, ranks=drawn.ranks, target=target), batches)
    outcome = harness.compare(expected, found, 2e-5)
    return outcome if outcome.kind == "right" else harness.Outcome(outcome.kind, f"{outcome.text} {drawn.text}")


if __name__ == "__main__":
    harness.main("flex_attention", NAMES, case)
