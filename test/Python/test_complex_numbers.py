"""Complex numbers inside a step, computed with pairs of real ones: as eager, forward and backward."""
from __future__ import annotations

import pytest
import torch
from torch import nn

import spmd


def rotations(length: int, width: int) -> torch.Tensor:
    angles = torch.outer(torch.arange(length).float(), 1 / 100 ** (torch.arange(0, width, 2).float() / width))
    return torch.polar(torch.ones_like(angles), angles)


def as_complex(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))


class Model(nn.Module):
    """`compute` gets complex activations [rows, 6, 4] and rotations [6, 4], and gives a number or a tensor."""

    def __init__(self, compute):
        super().__init__()
        self.linear, self.compute = nn.Linear(8, 8), compute
        self.register_buffer("rotations", rotations(6, 8), persistent=False)

    def forward(self, x):
        return self.compute(as_complex(self.linear(x)), self.rotations)


def rotary(z, r):
    return torch.view_as_real(z * r.view(1, 6, 4)).flatten(2)


def slices(z, r):
    return torch.view_as_real(z[:, 1:4] * r[:3].unsqueeze(0)).sum() + z[:, -1].abs().mean() + z[..., 2].real.sum()


def arithmetic(z, r):
    return ((z + r) / (2 - 1j * z.conj()) - 0.5 * z + (1 + 2j) * r).abs()


def real_and_complex(z, r):
    weights = torch.linspace(0.1, 1, 4)
    return (weights * z).imag + (z / weights + weights).real + (z - weights).angle()


def exponentials(z, r):
    return torch.exp(0.1 * z).real * torch.polar(z.abs(), z.angle()).imag


def reductions(z, r):
    return z.sum((1, 2)).abs() + z.mean(-1).imag.sum(-1) + z.sum().abs()


def products(z, r):
    return (z @ z.mH).real + torch.einsum("bik,ij->bkj", z, r).abs().sum()


def moved(z, r):
    w = torch.cat([z.transpose(1, 2), z.permute(0, 2, 1).flip(0)], 1) if z.shape[0] == 0 else z.transpose(-1, -2)
    a, b = torch.stack([w, 2 * w], 1).unbind(1)
    c, d = torch.cat([a, b], -1).split([5, 7], -1)
    return c.abs().sum() + (d * d).real + c.reshape(z.shape[0], -1).unsqueeze(1).squeeze(1).imag.mean()


def indexed(z, r):
    positions = torch.tensor([3, 1, 0, 2, 5, 5])
    chosen = torch.gather(z, 1, torch.tensor([[[0, 1, 2, 3]]]).expand(z.shape[0], 1, 4))
    return torch.view_as_real(r[positions] * z).mean() + chosen.abs() + torch.where(z.real > 0, z, r).imag.mean()


def made(z, r):
    return (torch.complex(z.real, 2 * z.imag) * torch.ones(4, dtype=torch.complex64) + torch.zeros_like(z)).sgn().real


def double(z, r):
    return torch.view_as_real(z.to(torch.complex128) * r).float()


def written(z, r):
    w = z.clone()
    w[:, 0] = 0
    w[..., 1] = r[:, 1] * 2
    part = w[:, 2:]
    part.mul_(1j).add_(0.5)
    return w.abs() + torch.view_as_real(part).mean()


CASES = [rotary, slices, arithmetic, real_and_complex, exponentials, reductions, products, moved, indexed, made, double,
         written]


def step(model, optimizer, x):
    loss = model(x).tanh().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def build(compute):
    torch.manual_seed(0)
    model = Model(compute)
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def batch(number: int, rows: int = 6) -> torch.Tensor:
    return torch.randn(rows, 6, 8, generator=torch.Generator().manual_seed(number))


@pytest.mark.parametrize("compute", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.sample(3)
def test_trains_as_in_eager(compute, ranks: int) -> None:
    ours, eager = build(compute), build(compute)
    compiled = spmd.compile(step, ranks=ranks)
    for number in range(3):
        torch.testing.assert_close(compiled(*ours, batch(number)), step(*eager, batch(number)), rtol=1e-4, atol=1e-5)
    for name, value in eager[0].named_parameters():
        torch.testing.assert_close(ours[0].get_parameter(name).detach(), value.detach(), rtol=1e-4, atol=1e-5)
    assert not any("complex" in str(i) for i in compiled.package.step["inputs"])


def test_a_buffer_that_changes_is_read_again() -> None:
    ours, eager = build(rotary), build(rotary)
    compiled = spmd.compile(step, ranks=2)
    for number in range(6):
        torch.testing.assert_close(compiled(*ours, batch(number)), step(*eager, batch(number)))
        for model, _ in (ours, eager):
            if number == 2:
                model.rotations.mul_(1j)
            elif number == 3:
                model.rotations = model.rotations * 0.5


def test_what_is_reached_in_other_ways() -> None:
    """A plain tensor of the module, of a closure, and a buffer of a teacher."""
    def run(compile):
        torch.manual_seed(0)
        model, teacher, phases = Model(rotary), Model(rotary), [rotations(6, 8)]
        model.extra = rotations(6, 8) ** 2
        optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []

        def step(x):
            z = as_complex(model.linear(x))
            loss = (torch.view_as_real(z * phases[0] * model.extra).flatten(2) - teacher(x).detach()).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        compiled = compile(step)
        for number in range(6):
            losses.append(compiled(batch(number)).detach())
            if number == 1:
                phases[0].mul_(1j)
            elif number == 2:
                model.extra = model.extra.conj().resolve_conj()
            elif number == 3:
                teacher.rotations.mul_(-1)
        return torch.stack(losses)

    torch.testing.assert_close(run(lambda step: spmd.compile(step, ranks=2)), run(lambda step: step))


class Weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, dtype=torch.complex64))

    def forward(self, x):
        return (as_complex(x) * self.weight).abs()


def through_a_conjugate(z, r):
    w = z.clone()
    w.conj().mul_(1j)
    return w.real


def logarithm(z, r):
    return torch.log(z).abs()


@pytest.mark.parametrize("compute, message", [(through_a_conjugate, "aten.mul_.Tensor"), (logarithm, "aten.log")])
def test_what_is_not_captured_is_an_error_at_its_line(compute, message: str) -> None:
    with pytest.raises(spmd.CaptureError, match=rf"({message})[^\0]*complex numbers[^\0]*in {compute.__name__}[^\0]*hint"):
        spmd.capture(step, *build(compute), batch(0))


def test_complex_parameters_batches_and_results_are_errors() -> None:
    model = Weight()
    with pytest.raises(spmd.CaptureError, match="'weight' has dtype torch.complex64[^\0]*pairs"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), batch(0))
    with pytest.raises(spmd.CaptureError, match="torch.complex64"):
        spmd.capture(lambda model, optimizer, x, z: step(model, optimizer, x * z.real), *build(rotary), batch(0),
                     torch.randn(6, 6, 8, dtype=torch.complex64))
    with pytest.raises(spmd.CaptureError, match="complex64"):
        spmd.capture(lambda model, optimizer, x: (step(model, optimizer, x), model.rotations * 2), *build(rotary), batch(0))
