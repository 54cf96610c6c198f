"""GPT-2, its training step, and the step packages made from it.

    python examples/gpt2.py --config nano --save gpt2-nano.step          # weights and 50 reference steps
    python examples/gpt2.py --config 124m --weights none --save gpt2-124m.step   # graph only, on any laptop
"""
from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_


@dataclasses.dataclass(frozen=True)
class GPTConfig:
    vocab: int = 50257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768


CONFIGS = {
    "tiny": GPTConfig(vocab=65, context=16, layers=2, heads=4, width=32),
    "square": GPTConfig(vocab=8, context=8, layers=1, heads=2, width=8),  # with batch 8: all dims alike
    "uneven": GPTConfig(vocab=67, context=7, layers=1, heads=3, width=33),  # nothing divides by a number of ranks
    "nano": GPTConfig(vocab=0, context=128, layers=4, heads=4, width=128),  # vocab: the characters of the text
    "124m": GPTConfig(),
    "xl": GPTConfig(layers=48, heads=25, width=1600),
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Attention(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.heads = config.heads
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                 for t in self.c_attn(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class MLP(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.c_fc = nn.Linear(config.width, 4 * config.width)
        self.c_proj = nn.Linear(4 * config.width, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """GPT-2 with its token embedding and head tied."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.wte = nn.Embedding(config.vocab, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.h = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.width)
        self.lm_head = nn.Linear(config.width, config.vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * config.layers))
            elif parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-1)
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def plain_train_step(model, optimizer, x, y):
    """Without clipping, which together with Adam would hide a wrongly scaled gradient."""
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def make_optimizer(model: GPT, kind: str) -> torch.optim.Optimizer:
    """AdamW with weight decay on matrices only (fused or foreach), or plain SGD."""
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=0.1)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), foreach=True if kind == "foreach" else None)


def warmup_and_cosine(steps: int, warmup: int = 10):
    """The factor on the learning rate by step: up linearly, then down to a tenth along a cosine."""
    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        return 0.55 + 0.45 * math.cos(math.pi * (step - warmup) / max(1, steps - warmup))
    return factor


def read_text(path: Path) -> tuple[torch.Tensor, int]:
    """The text as character ids, and how many characters there are."""
    text = path.read_text(encoding="utf-8")
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    return torch.tensor([ids[c] for c in text]), len(ids)


def setup(config: str = "tiny", optimizer: str = "fused", batch: int = 8, length: int | None = None, steps: int = 4,
          text: Path | None = None, device: str = "cpu", dtype: str = "f32", seed: int = 0) -> dict:
    """Everything spmd.capture needs: step, model, optimizer, one batch, reference batches.

    With `text`, batches are cut from it; without, they are random tokens with some labels ignored, unevenly.
    """
    torch.manual_seed(seed)
    settings = CONFIGS[config]
    if text is not None:
        tokens, vocab = read_text(text)
        settings = dataclasses.replace(settings, vocab=vocab)
    length = length or settings.context
    with torch.device(device):
        model = GPT(settings).to(DTYPES[dtype])
    batches = []
    for _ in range(max(steps, 1)):
        if text is not None:
            rows = torch.stack([tokens[i:i + length + 1] for i in torch.randint(len(tokens) - length, (batch,))])
        else:
            rows = torch.randint(settings.vocab, (batch, length + 1))
        x, y = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
        if text is None:
            y[torch.rand(y.shape) < torch.linspace(0, 0.6, batch)[:, None]] = -1
        batches.append((x, y))
    step = plain_train_step if optimizer == "sgd" else train_step
    # c_attn's bias has the key bias as its middle third, and softmax does not see a constant added to all its scores
    zero_gradient = [f"h.{i}.attn.c_attn.bias" for i in range(settings.layers)]
    return dict(train_step=step, model=model, optimizer=make_optimizer(model, optimizer), args=batches[0],
                reference=batches if steps else None, zero_gradient=zero_gradient,
                reference_schedule=warmup_and_cosine(steps) if text is not None else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=CONFIGS, default="tiny")
    parser.add_argument("--optimizer", choices=["fused", "foreach", "sgd"], default="fused")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of parameters, gradients and optimizer state")
    parser.add_argument("--batch", type=int, default=8, help="sequences in the global batch")
    parser.add_argument("--length", type=int, help="tokens in a sequence; default the model's context")
    parser.add_argument("--steps", type=int, default=4, help="reference steps to record; 0 for none")
    parser.add_argument("--text", type=Path, help="text file to cut the batches from")
    parser.add_argument("--weights", choices=["save", "none"], default="save")
    parser.add_argument("--reference-state", choices=["all", "zero_gradient", "none"], default="all")
    parser.add_argument("--save", help="step package to write; default gpt2-CONFIG.step")
    options = parser.parse_args()
    import spmd
    path = options.save or f"gpt2-{options.config}.step"
    with_weights = options.weights == "save"
    example = setup(options.config, options.optimizer, options.batch, options.length,
                    options.steps if with_weights else 0, options.text, "cpu" if with_weights else "meta",
                    options.dtype)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                           reference=example["reference"], reference_state=options.reference_state,
                           reference_schedule=example["reference_schedule"], zero_gradient=example["zero_gradient"],
                           name=Path(path).stem)
    package.save(path, weights=with_weights)


if __name__ == "__main__":
    main()
