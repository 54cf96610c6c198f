"""Convolutional networks: batch statistics of the global batch, on any number of ranks."""
from __future__ import annotations

import copy
import subprocess

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from spmd.tools import find_tool
from torch import nn

import spmd


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) \
            if stride != 1 else nn.Identity()

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.shortcut(x))


class ResNet(nn.Module):
    """torchvision's plan on 9 x 9 images: a stem with a max pool, residual blocks, a mean over the image."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, 1, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Residual(6, 6, 1), Residual(6, 8, 2))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class UNet(nn.Module):
    """Group norm, strided, transposed and depthwise convolutions, upsampling, a skip connection."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1), nn.GroupNorm(2, 4), nn.SiLU())
        self.middle = nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.SiLU(),
                                    nn.Conv2d(8, 8, 3, 1, 1, groups=8))
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = nn.Conv2d(8, 4, 3, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        up = self.up(self.middle(skip))
        both = torch.cat([skip, F.interpolate(F.avg_pool2d(up, 2), scale_factor=2, mode="bilinear")], 1)
        return self.out(both).mean((2, 3))


class Autoencoder(nn.Module):
    """A variational one: noise of the latent, instance norm, nearest upsampling."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 6, 4, 2, 1, bias=False), nn.InstanceNorm2d(6), nn.ReLU())
        self.mean, self.scale = nn.Conv2d(6, 2, 1), nn.Conv2d(6, 2, 1)
        self.decode = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(2, 4, 3, 1, 1))

    def forward(self, x):
        h = self.encode(x)
        mean, scale = self.mean(h), self.scale(h)
        latent = mean + torch.randn_like(mean) * (0.5 * scale).exp()
        divergence = -0.5 * (1 + scale - mean.square() - scale.exp()).mean()
        return self.decode(latent).flatten(2).mean(2) + divergence


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def batches(count, size, image):
    torch.manual_seed(7)
    return [(torch.randn(size, 3, image, image) + 1, torch.randint(4, (size,))) for _ in range(count)]


def capture(make, optimizer, image, steps, size=5):
    torch.manual_seed(1)
    model = make()
    given = batches(steps, size, image)
    # No convolution before a batch norm has a bias: its gradient would be zero but for rounding.
    return spmd.capture(train_step, model, optimizer(model), *given[0], reference=given)


def run(*command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


CASES = {"resnet sgd": (ResNet, sgd, 9), "resnet adamw": (ResNet, adamw, 9), "unet sgd": (UNet, sgd, 8),
         "vae sgd": (Autoencoder, sgd, 8)}


@pytest.mark.parametrize("case", CASES)
def test_any_number_of_ranks_is_one_device(case, tmp_path):
    """In doubles and on 5 images: loss, parameters, running statistics and optimizer state, and PyTorch's values
    before."""
    package = capture(*CASES[case], steps=2).save(tmp_path / "a.step")
    run(find_tool("spmd-translate"), "--import-step", package, "-o", tmp_path / "step.mlir")
    run(find_tool("spmd-interpret"), tmp_path / "step.mlir", f"--weights={package}", "--reference")
    for ranks in (1, 2, 3, 4, 8):
        run(find_tool("spmd-opt"), tmp_path / "step.mlir",
            f"--spmd-pipeline=to=collectives ranks={ranks} policy=always", "-o",
            tmp_path / "ranks.mlir")
        run(find_tool("spmd-interpret"), tmp_path / "ranks.mlir", f"--ranks={ranks}",
            f"--compare={tmp_path / 'step.mlir'}",
            "--steps=2")
    run(find_tool("spmd-opt"), tmp_path / "step.mlir", "--spmd-pipeline=to=kernels ranks=3 policy=none", "-o",
        tmp_path / "k.mlir")
    run(find_tool("spmd-interpret"), tmp_path / "k.mlir", "--ranks=3",
        f"--compare={tmp_path / 'step.mlir'}", "--steps=1",
        "--rtol=1e-6")  # kernels hold constants in f32


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.sample(2)
def test_trains_like_eager(case, ranks, tmp_path):
    package = capture(*CASES[case], steps=20, size=6).save(tmp_path / "a.step")
    run(find_tool("spmd-compile"), package, "-o", tmp_path / "a.spmd", f"--ranks={ranks}",
        "--policy=size:200", "--quiet")
    assert "passed" in run(find_tool("spmd-run"), tmp_path / "a.spmd", "--check",
                           f"--save={tmp_path / 'final.safetensors'}")
    reference, final = load_file(package / "reference.safetensors"), load_file(tmp_path / "final.safetensors")
    for name, value in final.items():
        if name.startswith("rng/"):
            continue
        expected = reference[f"final/{name}"]
        if "running" in name:
            assert (value - expected).norm() <= 1e-3 * expected.norm(), name
        if "tracked" in name:
            assert value == expected == 20


def test_batch_norm_sends_one_message_each_way(tmp_path):
    """Sum and sum of squares forward, and the two sums of backward, go together; the loss and its count are one
    more."""
    package = capture(ResNet, sgd, 9, steps=1).save(tmp_path / "a.step")
    run(find_tool("spmd-compile"), package, "-o", tmp_path / "a.spmd", "--ranks=2", "--policy=none", "--quiet")
    norms = sum(isinstance(m, nn.BatchNorm2d) for m in ResNet().modules())
    lines = run(find_tool("spmd-run"), tmp_path / "a.spmd", "--steps=1").splitlines()
    assert int(next(line for line in lines if "all_reduce" in line).split()[1]) == 2 * norms + 1


def gradients(model, x, y):
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_averages_of_ranks_would_be_another_gradient(tmp_path, monkeypatch):
    """What data parallelism with statistics per rank computes is far off; ours is eager's on the whole batch."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.manual_seed(1)
    model = ResNet()
    (x, y), = batches(1, 8, 9)
    whole = gradients(copy.deepcopy(model), x, y)
    per_rank = [gradients(copy.deepcopy(model), x[r::2], y[r::2]) for r in range(2)]
    assert (sum(per_rank) / 2 - whole).norm() > 0.1 * whole.norm()

    before = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = spmd.compile(train_step, ranks=2)
    step(model, optimizer, x, y)
    after = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    assert (before - after - whole).norm() < 1e-5 * whole.norm()
