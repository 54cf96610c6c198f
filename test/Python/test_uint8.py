"""uint8 tensors in a step: images, masks and labels as bytes; on CPUs and, emulated, on a GPU."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from step_check import StepCheck, compute, run, tool

import spmd

TARGETS = ["--target=host", "--target=emulate:sm_90"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.fc = torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.Linear(4 * 3 * 4, 5)

    def forward(self, images):
        x = images.float() / 255
        return self.fc(torch.relu(self.conv((x - 0.45) / 0.22)).flatten(1))


def train_step(model, optimizer, images, labels, keep):
    """Images, class numbers and a mask of examples, all of them bytes."""
    losses = F.cross_entropy(model(images), labels.long(), reduction="none")
    loss = (losses * keep).sum() / keep.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss, torch.where(keep.bool(), labels, 255), images.flip(3)[:, 1]


@pytest.mark.parametrize("ranks,batch", [(2, 6), (2, 7)])
def test_trains_on_bytes_like_eager(ranks: int, batch: int) -> None:
    """A batch that ranks share evenly, and one that they do not."""
    torch.manual_seed(1)
    model = Images()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(train_step, ranks=ranks)
    for _ in range(3):
        images = torch.randint(0, 256, (batch, 3, 8, 10), dtype=torch.uint8)
        labels = torch.randint(0, 5, (batch,), dtype=torch.uint8)
        keep = torch.randint(0, 2, (batch,), dtype=torch.uint8)
        keep[0] = 1
        loss, kept, flipped = compiled(model, optimizer, images, labels, keep)
        expected, expected_kept, expected_flipped = train_step(twin, twin_optimizer, images, labels, keep)
        assert abs(loss.item() - expected.item()) < 1e-5
        assert kept.dtype == flipped.dtype == torch.uint8
        assert torch.equal(kept, expected_kept) and torch.equal(flipped, expected_flipped)
    compiled.sync()
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=1e-4, atol=1e-6, msg=name)


def conversions(u, x, i, flag):
    return (u.float(), u.double(), u.to(torch.bfloat16), u.long(), u.to(torch.int32), u.to(torch.int8),
            u.to(torch.int16), u.bool(), x.to(torch.uint8), i.to(torch.uint8), flag.to(torch.uint8))


def arithmetic(u, v, s):
    """Modulo 256; quotients, comparisons and shifts of numbers from 0 to 255."""
    return (u + v, u - v, u * v, -u, u * 3, u - 200, u // v, u % v, torch.maximum(u, v), torch.minimum(u, v), u & v,
            u | v, u ^ v, ~u, u << 3, u >> 3, u > v, u >= 200, u == v, u.clamp(10, 200), u + s, u < s,
            torch.where(u > 127, u, v), u.abs(), u.sign())


def movement(u, table, rows):
    return (u.t(), u.flip(1), u[:, 1::2], torch.cat([u, u + 1], 1), u.roll(1, 0), F.pad(u, (1, 2), value=200),
            table[rows], u.repeat(2, 1), u.masked_fill(u > 100, 7), torch.tril(u),
            u.clone().index_copy(0, rows[:3], table[:3]))


def reductions(u, rows):
    values, places = u.sort(1)
    top, top_places = u.topk(3, 1)
    return (u.sum(), u.sum(1), u.amax(0), u.amin(1), u.max(), u.argmax(1), u.cumsum(1), values, places, top,
            top_places, u.prod(1), u.float().mean(), u.any(), u.all(1), u.cummax(1).values, u.median(1).values,
            torch.zeros(4, 6, dtype=torch.uint8).scatter_reduce(0, (rows[:, None] % 4).expand(5, 6), u, "amax"))


def cases() -> list:
    torch.manual_seed(2)
    u, v = (torch.randint(0, 256, (5, 6), dtype=torch.uint8) for _ in range(2))
    u[0, :4], v[v == 0] = torch.tensor([0, 1, 127, 255], dtype=torch.uint8), 1
    x = torch.tensor([0.0, 0.9, 1.0, 127.5, 128.0, 254.999, 255.0])
    i = torch.tensor([-1, 0, 127, 128, 255, 256, 300, -200])
    rows = torch.tensor([4, 0, 3, 3, 1])
    return [(conversions, (u, x, i, i > 100)), (arithmetic, (u, v, torch.randint(-128, 128, (5, 6), dtype=torch.int8))),
            (movement, (u, torch.randint(0, 256, (5, 6), dtype=torch.uint8), rows)), (reductions, (u, rows))]


def regression(model, optimizer, images, labels, keep):
    """The interpreter's random bytes are 0 and 1: made large, and put side by side, so that they are in memory again."""
    images = torch.cat([images[..., :5] * 255, images[..., 5:] * 131], 3)
    labels, keep = torch.cat([labels, keep + 1]).mul(140).chunk(2)
    loss = ((model(images) - labels[:, None]).square() * (keep > 127)[:, None]).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss, labels // 3 + keep, images.sort(3).values, torch.maximum(images, labels[:, None, None, None])


@pytest.mark.parametrize("phase", ["collectives", "kernels"])
def test_every_phase_computes_the_same(phase: str, tmp_path) -> None:
    """In float64, as far as kernels keep it, of random bytes."""
    torch.manual_seed(1)
    model = Images()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randint(0, 256, (7, 3, 8, 10), dtype=torch.uint8)
    labels, keep = (torch.randint(0, 256, (7,), dtype=torch.uint8) for _ in range(2))
    check = StepCheck(spmd.capture(regression, model, optimizer, images, labels, keep), tmp_path)
    program = tmp_path / "phase.mlir"
    run(tool("spmd-compile"), check.step, "--ranks=2", f"--compile-to={phase}", "--quiet", "-o", program)
    tolerance = [] if phase == "collectives" else ["--rtol=1e-6"]
    run(tool("spmd-interpret"), program, "--ranks=2", f"--compare={check.base}", "--steps=2", *tolerance)


@pytest.mark.filterwarnings("ignore:the step does not")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function,inputs", cases(), ids=lambda value: getattr(value, "__name__", ""))
def test_ops(function, inputs, target: str, tmp_path) -> None:
    got = compute(function, inputs, tmp_path, "--ranks=2", target)
    for number, (ours, expected) in enumerate(zip(got, function(*inputs), strict=True)):
        assert ours.dtype == expected.dtype and torch.equal(ours, expected), (number, ours, expected)
