"""Ops that few models use: parts of floating numbers, medians of what is a number, logarithms of empty sums."""
from __future__ import annotations

import copy
import pytest
import torch
from step_check import compute

import spmd

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")
TARGETS = ["interpreter", "--target=host", "--target=emulate:sm_90"]
INF, NAN = float("inf"), float("nan")


def check(function, inputs: tuple[torch.Tensor, ...], target: str, folder) -> None:
    for ours, expected in zip(compute(function, inputs, folder, target), function(*inputs), strict=True):
        assert ours.dtype == expected.dtype
        torch.testing.assert_close(ours, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_frexp(dtype: torch.dtype, target: str, tmp_path) -> None:
    info = torch.finfo(dtype)
    tiny, normal = info.smallest_normal * info.eps, info.smallest_normal
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, tiny, -tiny, 3 * tiny, normal, -normal, normal - tiny, info.max,
             info.min, INF, -INF, 1 - info.eps / 2, 1 + info.eps, -0.1, 1024.0]
    torch.manual_seed(0)
    random = torch.randn(200, dtype=torch.float64) * torch.exp2(torch.randint(-12, 12, (200,)).double())
    x = torch.cat([torch.tensor(edges, dtype=torch.float64), random]).to(dtype)
    check(lambda x: tuple(torch.frexp(x)), (x,), target, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_nanmedian(target: str, tmp_path) -> None:
    rows = torch.tensor([[3.0, 1.0, 2.0, 5.0, 4.0, 0.0], [NAN, 7.0, NAN, 5.0, 9.0, -1.0], [NAN] * 6,
                         [NAN, INF, 2.0, NAN, -INF, NAN], [4.0, *[NAN] * 5], [INF, INF, INF, 1.0, NAN, NAN]])
    whole = torch.tensor([[4, 2, 9], [7, 1, 8]])

    def medians(x, y):
        by_row, by_column = torch.nanmedian(x, 1), torch.nanmedian(x, 0, keepdim=True)
        known = ~by_row.values.isnan()  # of no numbers PyTorch's place is any
        return (torch.nanmedian(x), by_row.values, torch.where(known, by_row.indices, 0), by_column.values,
                torch.nanmedian(y), torch.nanmedian(y, 1).values)
    check(medians, (rows, whole), target, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_nanmedian_has_a_gradient(target: str, tmp_path) -> None:
    x = torch.tensor([[3.0, NAN, 2.0, 5.0], [NAN, 7.0, 1.0, 5.0]])

    def slope(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad((x * x).nanmedian(1).values.sum() + torch.frexp(x).mantissa.nansum(), x)
    check(slope, (x,), target, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_a_number_in_the_place_of_a_tensor(target: str, tmp_path) -> None:
    """It promotes as a number does."""
    x, whole, truth = torch.tensor([0.5, -1.25, 3.0]), torch.tensor([3, -4, 7]), torch.tensor([True, False, True])

    def sums(x, whole, truth):
        return (torch.add(0.5, x, alpha=2), torch.add(0.3333, truth, alpha=0.6667), torch.sub(1, whole),
                torch.mul(2, x.bfloat16()), torch.add(0.5, whole))
    check(sums, (x, whole, truth), target, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_logsumexp_of_nothing(target: str, tmp_path) -> None:
    def sums(x):
        nothing = x[:, :0]
        return nothing.logsumexp(1), nothing.logsumexp(1, keepdim=True), nothing.logsumexp((0, 1)), x.logsumexp(1)
    x = torch.randn(3, 4)
    for ours, expected in zip(compute(sums, (x,), tmp_path, target), sums(x), strict=True):
        assert ours.shape == expected.shape
        assert torch.equal(ours == -INF, expected == -INF)


def test_embedding_with_a_longest_norm(monkeypatch, tmp_path) -> None:
    """The rows that are looked up are shortened where they are, and no others."""
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    found = []
    for wrap in (lambda step: spmd.compile(step, ranks=2), lambda step: step):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Embedding(11, 6, max_norm=1.0, padding_idx=2), torch.nn.Linear(6, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

        @wrap
        def step(x, y):
            loss = torch.nn.functional.cross_entropy(model(x).sum(1), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss
        found.append(([step(torch.randint(0, 9, (6, 3)), torch.randint(0, 3, (6,))).detach() for _ in range(3)],
                      model.state_dict()))
    torch.testing.assert_close(*found)


def test_cat_of_several_types_and_of_nothing() -> None:
    """Operands of two types, with a tensor of shape [0] beside ones without elements, as caches begin."""
    weight = torch.nn.Linear(4, 4)

    def step(model, optimizer, x):
        half = model(x).to(torch.bfloat16)
        loss = torch.cat([torch.tensor([]), torch.cat([half, x * 2], -1)]).square().mean()
        loss = loss + torch.cat([torch.tensor([]), model(x)[:, :0]], -1).sum() + half.float().sum() * 0.1
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    model, eager = copy.deepcopy(weight), copy.deepcopy(weight)
    x = torch.randn(6, 4)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, eager)]
    assert spmd.compile(step, ranks=2)(model, optimizers[0], x).item() == pytest.approx(step(eager, optimizers[1], x).item(), rel=1e-2)
    torch.testing.assert_close(model.weight, eager.weight, rtol=1e-2, atol=1e-3)
