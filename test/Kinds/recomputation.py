"""Activation checkpointing, compiled against eager: python test/Kinds/recomputation.py --all

Crosses the form of the checkpoint, precision, what the region has in it, and ranks. Eager PyTorch runs its own checkpoint, with the
random numbers of the compiled step. Compared are losses, parameters, buffers, gradients that are left, and the random generator.
"""
from __future__ import annotations

import functools
import itertools
from typing import Any, Callable

import harness
import torch
import torch.nn.functional as F
import torch.utils.checkpoint as checkpoints
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy
from transformers.modeling_layers import GradientCheckpointingLayer

import spmd
from spmd.capture.ops.composites import one_op_composites
from spmd.capture.ops.draws import Draws

WIDTH, ROWS, STEPS, BLOCKS = 8, 8, 3, 2
BF16 = torch.bfloat16


class Layer(GradientCheckpointingLayer):
    """As a decoder layer of transformers: checkpoint() gets its forward, inside of the module's hooks."""

    def __init__(self, block: nn.Module, use_reentrant: bool):
        super().__init__()
        self.block, self.gradient_checkpointing = block, True
        self._gradient_checkpointing_func = functools.partial(checkpoints.checkpoint, use_reentrant=use_reentrant)

    def forward(self, *args, **kwargs):
        return self.block(*args, **kwargs)


class Called(nn.Module):
    """Calls checkpoint() itself."""

    def __init__(self, block: nn.Module, call: Callable):
        super().__init__()
        self.block, self.call = block, call

    def forward(self, *args):
        return self.call(self.block, *args)


def saves_products(context: Any, operator: Any, *args: Any, **kwargs: Any) -> checkpoints.CheckpointPolicy:
    policies = checkpoints.CheckpointPolicy
    return policies.MUST_SAVE if operator is torch.ops.aten.mm.default else policies.MUST_RECOMPUTE


def selective(policy: Any) -> Callable:
    return functools.partial(checkpoints.checkpoint, use_reentrant=False,
                             context_fn=functools.partial(checkpoints.create_selective_checkpoint_contexts, policy))


FORMS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "called": lambda block: Called(block, functools.partial(checkpoints.checkpoint, use_reentrant=False)),
    "called reentrant": lambda block: Called(block, functools.partial(checkpoints.checkpoint, use_reentrant=True)),
    "transformers": lambda block: Layer(block, False),
    "transformers reentrant": lambda block: Layer(block, True),
    "wrapper": checkpoint_wrapper,
    "wrapper reentrant": lambda block: checkpoint_wrapper(block, CheckpointImpl.REENTRANT),
    "selective": lambda block: Called(block, selective(saves_products)),
    "selective list": lambda block: Called(block, selective([torch.ops.aten.tanh.default])),
    "selective wrapper": lambda block: checkpoint_wrapper(
        block, context_fn=functools.partial(checkpoints.create_selective_checkpoint_contexts, saves_products)),
}
PRECISIONS = ("f64", "masters", "masters of layers", "autocast")
PARTS = ("plain", "dropout", "fresh dropout", "batch norm", "nested", "microbatches", "several results", "without gradient", "hooks")
RANKS = (1, 2)
NAMES = tuple("/".join(map(str, name)) for name in itertools.product(FORMS, PRECISIONS, PARTS, RANKS))
_FRESH = ("called", "called reentrant", "wrapper", "wrapper reentrant")  # forms that pass preserve_rng_state=False on


class Block(nn.Module):
    """`by_hand`: casts parameters and arguments itself, as masters with computation in bf16 do."""

    def __init__(self, part: str, by_hand: bool):
        super().__init__()
        self.part, self.by_hand = part, by_hand
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.norm = nn.BatchNorm1d(2 * WIDTH) if part == "batch norm" else None

    def product(self, linear: nn.Linear, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, linear.weight.to(BF16)) if self.by_hand else linear(x)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(self.product(self.up, x).sin(), 0.25).exp()

    def forward(self, x: torch.Tensor, scale: float = 1.0, name: str = "") -> Any:
        if self.part == "nested":
            h = checkpoints.checkpoint(self.inner, x, use_reentrant=False)
        else:
            h = self.product(self.up, x)
        if self.norm is not None:
            h = self.norm(h.float()).to(BF16) if self.by_hand else self.norm(h)
        if self.part == "without gradient":
            with torch.no_grad():
                center = h.mean(0, keepdim=True)
            h = h - center
        h = torch.tanh(h * scale)
        if self.part == "hooks" and h.requires_grad:
            h.register_hook(lambda gradient: gradient * 0.5)
        if self.part in ("dropout", "fresh dropout", "microbatches"):
            h = F.dropout(h, 0.25)
        y = x + self.product(self.down, h)
        return (y, h * 0.5, name) if self.part == "several results" else y


class Net(nn.Module):
    def __init__(self, form: str, part: str, by_hand: bool, width: int = WIDTH):
        super().__init__()
        self.part, self.by_hand = part, by_hand
        self.first, self.last = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 1, bias=False)
        self.blocks = nn.ModuleList(FORMS[form](Block(part, by_hand)) for _ in range(BLOCKS))
        if part == "fresh dropout":
            for block in self.blocks:
                if isinstance(block, Called):
                    block.call = functools.partial(block.call, preserve_rng_state=False)
                else:
                    block.checkpoint_fn = functools.partial(block.checkpoint_fn, preserve_rng_state=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = functools.partial(Block.product, self)
        x = product(self.first, x.to(BF16) if self.by_hand else x)
        x = F.dropout(x, 0.125) if "dropout" in self.part else x
        for block in self.blocks:
            if self.part == "several results":
                x, other, name = block(x, 0.5, "a name")
                assert name == "a name"
                x = x + other.sum(1, keepdim=True)
            else:
                x = block(x)
        return product(self.last, F.dropout(x, 0.125) if "dropout" in self.part else x)


def train_step(model, optimizer, x):
    optimizer.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    parts = x.chunk(2) if model.part == "microbatches" else (x,)
    for rows in parts:
        with torch.autocast("cpu", BF16, enabled=model.autocasts):
            loss = model(rows).double().square().mean() / len(parts)
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    return total


def make(form: str, precision: str, part: str, is_eager: bool) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Net(form, part, by_hand=is_eager and precision.startswith("masters")).train()
    model = model.double() if precision == "f64" else model
    model.autocasts = precision == "autocast"
    if part == "hooks":
        model.first.weight.register_hook(lambda gradient: gradient * 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)


def train(form: str, precision: str, part: str, ranks: int, is_eager: bool) -> list[torch.Tensor]:
    model, optimizer = make(form, precision, part, is_eager)
    options: dict[str, Any] = {}
    if not is_eager and precision == "masters":
        options = {"precision": "param=bf16,reduce=f32"}
    elif not is_eager and precision == "masters of layers":
        for layer in [*model.blocks, model]:
            spmd.fully_shard(layer, mp_policy=MixedPrecisionPolicy(BF16, torch.float32))
    state = torch.get_rng_state()
    data = [torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(number)) for number in range(STEPS)]
    data = [x.double() for x in data] if precision == "f64" else data
    if is_eager:
        seed, count = torch.tensor(torch.initial_seed()), torch.tensor(0)
        losses = []
        for x in data:
            with one_op_composites(), Draws(seed, count).entered():
                losses.append(train_step(model, optimizer, x))
    else:
        compiled = spmd.compile(train_step, ranks=ranks, threads=1, keep_grads=True, **options)
        losses = [compiled(model, optimizer, x) for x in data]
    kept = torch.tensor(float(torch.equal(state, torch.get_rng_state())))
    return [torch.stack([loss.detach().double() for loss in losses]), kept, *(p.detach().double() for p in model.parameters()),
            *(b.detach().double() for b in model.buffers()), *(p.grad.double() for p in model.parameters())]


def case(name: str) -> Any:
    form, precision, part, ranks = name.split("/")
    if part == "fresh dropout" and form not in _FRESH:
        part = "dropout"
    torch.manual_seed(0)
    expected, found = (train(form, precision, part, int(ranks), is_eager) for is_eager in (True, False))
    return harness.compare(expected, found, 1e-9 if precision == "f64" else 0.06)


if __name__ == "__main__":
    harness.main("recomputation", NAMES, case)
