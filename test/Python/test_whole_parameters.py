"""Optimizers that compute with whole parameters, where ranks have parts of them: norms (LAMB, as its users write it),
products of matrices (torch.optim.Muon), and means of rows and columns, which are its state (torch.optim.Adafactor)."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from step_check import StepCheck
from torch import nn

import spmd


class LAMB(torch.optim.Optimizer):
    """You et al., Large Batch Optimization for Deep Learning, algorithm 2, without bias corrections."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                average, square = state["exp_avg"], state["exp_avg_sq"]
                average.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                update = average / (square.sqrt() + group["eps"]) + group["weight_decay"] * p
                weight_norm, update_norm = p.norm().clamp(0, 10), update.norm()
                trust = torch.where((weight_norm > 0) & (update_norm > 0), weight_norm / update_norm,
                                    torch.ones_like(weight_norm))
                p.add_(update * trust, alpha=-group["lr"])


class Net(nn.Module):
    def __init__(self, bias: bool):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(7, 12, bias), nn.Tanh(), nn.Linear(12, 5, bias))

    def forward(self, x):
        return self.layers(x)


def lamb(model):
    return LAMB(model.parameters(), lr=0.05)


def muon(model):
    """With other options than the defaults, and the learning rate adjusted by the matrix's shape."""
    return torch.optim.Muon(model.parameters(), lr=0.02, momentum=0.9, ns_steps=4, adjust_lr_fn="match_rms_adamw")


def adafactor(model):
    return torch.optim.Adafactor(model.parameters(), lr=0.05, weight_decay=0.1)


def adafactor_lists(model):
    """Other options, two groups; the matrix of another is updated as PyTorch updates lists."""
    first, second = model.layers[0], model.layers[2]
    return torch.optim.Adafactor([{"params": first.parameters()}, {"params": second.parameters(), "lr": 0.2}], lr=0.05,
                                 beta2_decay=-0.5, eps=(1e-6, 1e-2), d=1.5, weight_decay=0, foreach=True, maximize=True)


EXACT = [lamb, adafactor, adafactor_lists]


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def batches(count: int = 4):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(30, 7, generator=generator), torch.randn(30, 5, generator=generator)) for _ in range(count)]


def make(kind):
    model = Net(bias=kind is not muon)
    return model, kind(model)


def train(kind, step=train_step) -> tuple[list[float], list[torch.Tensor]]:
    """Losses, and how far each parameter has moved."""
    model, optimizer = make(kind)
    start = [p.detach().clone() for p in model.parameters()]
    losses = [step(model, optimizer, x, y).item() for x, y in batches()]
    return losses, [p.detach() - before for p, before in zip(model.parameters(), start)]


@pytest.fixture(scope="module")
def eager():
    """Of each optimizer, eager's results and the largest relative difference allowed.

    Muon iterates in bfloat16 and so multiplies roundings: eager is as far from its own arithmetic in float32 as that
    makes it, and we may be three times that far from eager, as --check allows of a reference (reference_movement).
    """
    found = {kind: train(kind) for kind in (*EXACT, muon)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor)
        _, exact = train(muon)
    movement = max(((a - b).norm() / a.norm()).item() for a, b in zip(found[muon][1], exact))
    assert 1e-3 < movement < 0.05
    return {kind: (*found[kind], 1e-5) for kind in EXACT} | {muon: (*found[muon], 3 * movement)}


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
@pytest.mark.parametrize("kind", [*EXACT, muon])
@pytest.mark.parametrize("ranks, options", [(1, {}), (2, {"policy": "class:Linear"}), (3, {"mode": "shard_optimizer"}),
                                            (3, {"mode": "replicate"})], ids=["1", "2", "3 zero1", "3 ddp"])
@pytest.mark.sample(3)
def test_trains_like_eager(eager, kind, ranks: int, options) -> None:
    losses, moved = train(kind, spmd.compile(train_step, ranks=ranks, **options))
    expected, expected_moved, allowed = eager[kind]
    assert losses == pytest.approx(expected, rel=allowed)
    for ours, theirs in zip(moved, expected_moved):
        assert (ours - theirs).norm() <= allowed * theirs.norm()


@pytest.mark.parametrize("kind", [*EXACT, muon])
def test_partitioned_step_equals_captured(kind, tmp_path) -> None:
    """In float64, loss, parameters and optimizer state, to 1e-12."""
    model, optimizer = make(kind)
    check = StepCheck(spmd.capture(train_step, model, optimizer, *batches(1)[0]), tmp_path)
    for ranks, policy in ((1, "none"), (2, "class:Linear"), (4, "none")):
        check.interpret(ranks, policy)


@pytest.mark.parametrize("kind", [adafactor, muon])
def test_state_is_read_and_goes_on(kind, tmp_path) -> None:
    """The optimizer's state is eager's between steps; from a checkpoint of 2 ranks, 3 go on as if nothing had been."""
    model, optimizer = make(kind)
    expected, eager = make(kind)
    compiled = spmd.compile(train_step, ranks=2, policy="class:Linear")
    for x, y in batches()[:2]:
        compiled(model, optimizer, x, y)
        train_step(expected, eager, x, y)
    allowed = 1e-5 if kind is adafactor else 1e-3  # of momenta
    for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        found, wanted = optimizer.state[ours], eager.state[theirs]
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            assert found[name].shape == value.shape and found[name].dtype == value.dtype
            assert (found[name] - value).norm() <= allowed * value.norm(), name
    compiled.save_checkpoint(tmp_path, kind="sharded")
    resumed, again = make(kind)
    other = spmd.compile(train_step, ranks=3)
    other.load_checkpoint(tmp_path)
    for x, y in batches()[2:]:
        assert other(resumed, again, x, y).item() == pytest.approx(compiled(model, optimizer, x, y).item(), rel=1e-5)
