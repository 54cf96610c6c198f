"""A small transformer's step by precision, accumulation and checkpointing, and the modes and meshes that it runs on
(test_modes_product.py)."""
from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import spmd
from spmd.capture import capture_call
from spmd.capture.call import CallOptions, CaptureOptions, StepCall
from spmd.precision import Precision

WIDTH, TOKENS, ROWS, LENGTH = 12, 13, 6, 5


class Block(nn.Module):
    """Sizes that few numbers of ranks divide; keys have no bias, whose gradient would be zero but for roundings."""

    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.fc(x))))


class CastBlock(nn.Module):
    """Casts its own parameters in its forward."""

    def __init__(self):
        super().__init__()
        self.inner = Block()

    def forward(self, x):
        narrow = {name: parameter.bfloat16() for name, parameter in self.inner.named_parameters()}
        return torch.func.functional_call(self.inner, narrow, (x.bfloat16(),)).float()


class Transformer(nn.Module):
    def __init__(self, checkpointed: bool, block: type[nn.Module]):
        super().__init__()
        self.checkpointed = checkpointed
        self.embed, self.norm = nn.Embedding(TOKENS, WIDTH), nn.LayerNorm(WIDTH)
        self.blocks = nn.ModuleList(block() for _ in range(2))
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(self.norm(x))


def _loss(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())


def _update(model, optimizer):
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()


def whole_step(model, optimizer, x, y):
    loss = _loss(model, x, y)
    loss.backward()
    _update(model, optimizer)
    return loss.detach()


def microbatches(model, optimizer, x, y):
    """The gradients of two microbatches add up within the call."""
    losses = []
    for part, target in zip(x.chunk(2), y.chunk(2)):
        loss = _loss(model, part, target) / 2
        loss.backward()
        losses.append(loss.detach())
    _update(model, optimizer)
    return sum(losses)


def micro_step(model, optimizer, x, y, ends: bool):
    """Gradients add up over calls."""
    loss = _loss(model, x, y)
    (loss / 2).backward()
    if ends:
        _update(model, optimizer)
    return loss.detach()


# As spmd.compile's precision has them; "casts" is a model that casts its own parameters, "bf16" one whose parameters
# and optimizer state are bf16.
PRECISIONS = ("f32", "param=bf16,reduce=f32", "param=bf16", "reduce=bf16", "param=f16,reduce=f32",
              "param=bf16,reduce=f32,output=f32", "casts", "bf16")


def coarsest(precision: str) -> torch.dtype:
    return torch.bfloat16 if "bf16" in precision or precision == "casts" else \
        torch.float16 if "f16" in precision else torch.float32


# The programs of a step: what it is called with besides the batch, and whether parameters have gradients when it begins.
ACCUMULATIONS = {"none": ("whole",), "within": ("microbatches",), "sharded": ("begins", "adds", "ends"),
                 "unsharded": ("begins", "adds", "ends")}


class Program(NamedTuple):
    function: object
    arguments: tuple[bool, ...] = ()
    has_gradients: bool = False


PROGRAMS = {"whole": Program(whole_step), "microbatches": Program(microbatches), "begins": Program(micro_step, (False,)),
            "adds": Program(micro_step, (False,), True), "ends": Program(micro_step, (True,), True)}

MESHES = ("shard:1", "shard:2", "shard:3", "shard:4", "shard:8", "replicate:2,shard:2", "replicate:2,shard:3",
          "replicate:2,shard:4")


def modes_of(mesh: str) -> list[tuple[str, ...]]:
    """Options of spmd-compile: every mode that a mesh has, and every size of groups to reshard to."""
    if mesh == "replicate:2,shard:4":  # for the groups alone
        return [("--mode=hybrid", "--reshard-after-forward=2")]
    modes = [("--mode=fully_shard",), ("--mode=shard_grad_op",), ("--mode=shard_optimizer",), ("--mode=replicate",),
             ("--mode=default", "--memory-budget=200kB"), ("--mode=default", "--memory-budget=1GB")]
    if "replicate" in mesh:
        return [*modes, ("--mode=hybrid",), ("--mode=hybrid", "--reshard-after-forward=false")]
    ranks = int(mesh.removeprefix("shard:"))
    return modes + [("--mode=fully_shard", f"--reshard-after-forward={n}") for n in range(2, ranks) if ranks % n == 0]


def capture(precision: str, program: str, checkpointed: bool) -> spmd.StepPackage:
    torch.manual_seed(0)
    model = Transformer(checkpointed, CastBlock if precision == "casts" else Block)
    if precision == "bf16":
        model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    function, arguments, has_gradients = PROGRAMS[program]
    x = torch.randint(TOKENS, (ROWS, LENGTH))
    policy = Precision.of(precision if "=" in precision else None, "precision")
    call = StepCall(function, (model, optimizer, x, x, *arguments), {}, CallOptions(policy))
    return capture_call(call, CaptureOptions(gradients=frozenset(id(p) for p in model.parameters() if has_gradients)))


def policy_of(precision: str) -> str:
    return "class:CastBlock" if precision == "casts" else "class:Block"


def cases() -> list[tuple]:
    """(precision, accumulation, whether checkpointed, mesh, options of the mode); those of one program one after the other."""
    return [(precision, accumulation, checkpointed, mesh, mode)
            for precision, accumulation, checkpointed in itertools.product(PRECISIONS, ACCUMULATIONS, (False, True))
            for mesh in MESHES for mode in modes_of(mesh)]
