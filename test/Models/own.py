"""Models written here, what `transformers` does not have, or not small enough to see through; and steps that train
them."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    """Spelled out, as most models have it, or PyTorch's own."""

    def __init__(self, width: int, fused: bool):
        super().__init__()
        self.weight, self.fused = nn.Parameter(torch.ones(width)), fused

    def forward(self, x):
        if self.fused:
            return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotate(x, cos, sin, sliced=False):
    first, second = (x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]) if sliced else x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def repeat_heads(x, times):
    batch, heads, time, width = x.shape
    return x[:, :, None].expand(batch, heads, times, time, width).reshape(batch, heads * times, time, width)


class LlamaBlock(nn.Module):
    """Rotary positions, grouped-query attention, SwiGLU. `spelled` is how `transformers` writes them: halves are slices,
    and keys and values are repeated for the query heads."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int, fused: bool, spelled: bool):
        super().__init__()
        self.heads, self.kv_heads, self.spelled, head = heads, kv_heads, spelled, width // heads
        self.norm_1, self.norm_2 = RMSNorm(width, fused), RMSNorm(width, fused)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_heads * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        batch, time, width = x.shape
        split = lambda t, heads: t.view(batch, time, heads, -1).transpose(1, 2)
        h = self.norm_1(x)
        q, k = (rotate(split(p(h), n), cos, sin, self.spelled)
                for p, n in ((self.q, self.heads), (self.k, self.kv_heads)))
        v = split(self.v(h), self.kv_heads)
        if self.spelled:
            k, v = (repeat_heads(t, self.heads // self.kv_heads) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=not self.spelled)
        x = x + self.o(y.transpose(1, 2).reshape(batch, time, width))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, fused: bool = False, vocabulary: int = 37, width: int = 24, heads: int = 4, kv_heads: int = 2,
                 spelled: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, kv_heads, 40, fused, spelled) for _ in range(2))
        self.norm, self.head = RMSNorm(width, fused), nn.Linear(width, vocabulary, bias=False)
        self.rotary = width // heads

    def forward(self, tokens, labels):
        frequencies = 10000.0 ** (-torch.arange(0, self.rotary, 2, device=tokens.device) / self.rotary)
        angles = torch.arange(tokens.shape[1], device=tokens.device)[:, None] * frequencies
        angles = torch.cat((angles, angles), -1)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten(), ignore_index=-100)


class MixtureOfExperts(nn.Module):
    """Dense dispatch: every expert sees every token, weighted by its gate; the load loss is over the whole batch."""

    def __init__(self, width: int = 16, experts: int = 3, hidden: int = 20):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, hidden) * 0.3)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) * 0.3)

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        hidden = F.silu(torch.einsum("btc,ech->bteh", x, self.up))
        out = torch.einsum("bteh,ehc,bte->btc", hidden, self.down, weights)
        share = weights.mean((0, 1))
        return out, weights.shape[-1] * (share * share).sum()


class MoE(nn.Module):
    def __init__(self, vocabulary: int = 37, width: int = 16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(MixtureOfExperts(width) for _ in range(2))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, labels):
        x, load = self.embedding(tokens), 0.0
        for layer in self.layers:
            y, extra = layer(x)
            x, load = x + y, load + extra
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten(), ignore_index=-100) + 0.1 * load


class Contrastive(nn.Module):
    """Two towers; each row's positive is its own partner and its negatives are all others of the batch (CLIP)."""

    def __init__(self, width: int = 12):
        super().__init__()
        self.left, self.right = nn.Linear(7, width), nn.Linear(9, width)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, left, right):
        a, b = F.normalize(self.left(left), dim=-1), F.normalize(self.right(right), dim=-1)
        scores = self.temperature.exp() * a @ b.t()
        target = torch.arange(scores.shape[0], device=scores.device)
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.t(), target)) / 2


class Weighted(nn.Module):
    """A loss per token, the mean over those that count, wherever they are in the batch."""

    def __init__(self, width: int = 12, classes: int = 5):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(7, width), nn.Tanh(), nn.Linear(width, classes))

    def forward(self, x, labels):
        return F.cross_entropy(self.layers(x).flatten(0, 1), labels.flatten(), ignore_index=-100)


def step(model, optimizer, x, y):
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def clipped_step(model, optimizer, x, y):
    loss = model(x, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss
