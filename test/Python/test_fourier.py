"""Fourier transforms in a step: as eager, forward and backward."""
from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import spmd

fft = torch.fft


def network(x):
    """FNet's mixing, over both dims."""
    return fft.fft(fft.fft(x, dim=-1), dim=-2).real


def odd(x):
    return fft.irfft(fft.rfft(x[..., :9], norm="ortho") * torch.linspace(0, 1, 5), n=9) + fft.rfft(x[..., :9]).abs().sum()


def padded(x):
    return fft.irfft(torch.complex(x, x.flip(-1)), n=15) + fft.hfft(torch.complex(x, 2 * x), n=15)


def two_dims(x):
    return fft.irfft2(fft.rfft2(x, norm="ortho") * (1 + 2j), norm="ortho")


def convolution(x):
    """One of 12 by 16, and one of a prime number."""
    long = fft.irfft(fft.rfft(x, n=192) * fft.rfft(x.flip(0), n=192), n=192)
    return long[..., :16] + fft.fft(x, n=67).abs().sum()


def modes(x):
    """A Fourier neural operator's layer."""
    weights = torch.complex(torch.linspace(0, 1, 144).reshape(12, 12), torch.linspace(1, 0, 144).reshape(12, 12))
    spectrum = fft.rfft(x, dim=1)
    out = torch.zeros_like(spectrum)
    out[:, :3] = torch.einsum("bki,io->bko", spectrum[:, :3], weights)
    return fft.irfft(out, n=x.shape[1], dim=1)


def shifted(x):
    return fft.ifft(fft.ifftshift(fft.fftshift(fft.fft(x)) * 2)).real


def short_time(x):
    window = torch.hann_window(16)
    frames = torch.stft(x.flatten(1), 16, 4, window=window, return_complex=True)
    return frames.abs().log1p().sum() + torch.istft(frames, 16, 4, window=window)


def without_a_batch(x):
    """stft squeezes its result in place."""
    frames = torch.stft(x.flatten(), 16, 4, return_complex=True)
    return frames.real[1] + frames.abs()[2]


def train(compute, step_of):
    def step(model, optimizer, x):
        out = compute(model(x))
        loss = (out * torch.linspace(0, 1, out.shape[-1])).tanh().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    model = nn.Linear(12, 12)
    optimizer, step = torch.optim.SGD(model.parameters(), lr=0.1), step_of(step)
    x = torch.randn(4, 6, 12)
    return [step(model, optimizer, x + i).detach() for i in range(2)], list(model.parameters())


@pytest.mark.sample(4)
@pytest.mark.parametrize("compute", [modes, network, padded, odd, convolution, short_time, without_a_batch, two_dims, shifted])
def test_trains_as_eager(compute, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    torch.testing.assert_close(train(compute, lambda step: spmd.compile(step, ranks=2)), train(compute, lambda step: step),
                               rtol=1e-4, atol=1e-5)


def test_in_float64_to_its_rounding(monkeypatch, tmp_path) -> None:
    """Of 90 numbers, which are 9 by 10."""
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))

    def step(model, optimizer, x):
        spectrum = fft.rfft(x * model.weight)
        loss = spectrum.abs().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return torch.view_as_real(spectrum), loss

    model = nn.Linear(90, 2, bias=False, dtype=torch.float64)
    twin = copy.deepcopy(model)
    optimizer, twins = (torch.optim.SGD(m.parameters(), lr=1e-3) for m in (model, twin))
    x = torch.randn(2, 90, dtype=torch.float64)
    ours, expected = spmd.compile(step, ranks=2)(model, optimizer, x), step(twin, twins, x)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(model.weight, twin.weight, rtol=1e-12, atol=1e-12)
