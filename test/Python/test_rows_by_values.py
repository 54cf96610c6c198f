"""Rows of which only values say how many there are: experts of a mixture that cut tokens up by Python, as they are written for
eager PyTorch. On ranks they give eager's numbers, from programs whose shapes are known."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

ROWS, WIDTH, HIDDEN, EXPERTS, CHOSEN = 12, 8, 16, 4, 2


class Experts(nn.Module):
    """Two layers for each expert, in stacked weights."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) * 0.3)
        self.bias = nn.Parameter(torch.randn(EXPERTS, HIDDEN) * 0.3)
        self.down = nn.Parameter(torch.randn(EXPERTS, HIDDEN // 2, WIDTH) * 0.3)

    def expert(self, rows, number):
        gate, up = (F.linear(rows, self.up[number], self.bias[number])).chunk(2, dim=-1)
        return (F.silu(gate.float()).to(rows.dtype) * up) @ self.down[number]

    def route(self, x):
        return self.router(x).sigmoid().topk(CHOSEN, -1)


class Split(Experts):
    """Sorted by expert, cut by counts that become Python numbers, and put together again."""

    def forward(self, x):
        scores, chosen = self.route(x)
        order = chosen.flatten().argsort(stable=True)
        counts = F.one_hot(chosen.flatten(), EXPERTS).sum(0)
        parts = x[order // CHOSEN].split(counts.tolist(), dim=0)
        rows = torch.cat([self.expert(part, number) for number, part in enumerate(parts)])
        return torch.zeros_like(x).index_add(0, order // CHOSEN, rows * scores.flatten()[order, None]).square().mean()


class SplitToModules(Split):
    """Each expert is a module of its own, and one of them gets no row."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))
        with torch.no_grad():
            self.router.weight[1] = 0

    def expert(self, rows, number):
        return 0.5 * self.experts[number](rows).relu()

    def route(self, x):
        scores, chosen = (self.router(x).sigmoid() - torch.tensor([0.0, 1.0, 0.0, 0.0])).topk(CHOSEN, -1)
        return scores, chosen


def step(model, optimizer, x):
    loss = model(x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
@pytest.mark.parametrize("kind", [Split, SplitToModules])
def test_trains_as_in_eager(kind: type[nn.Module]) -> None:
    model = kind()
    eager, compiled = copy.deepcopy(model), spmd.compile(step, ranks=2)
    ours, theirs = (torch.optim.AdamW(m.parameters(), lr=0.05) for m in (model, eager))
    for number in range(4):
        x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(number))
        assert compiled(model, ours, x).item() == pytest.approx(step(eager, theirs, x).item(), rel=1e-5)
    for (name, found), want in zip(model.named_parameters(), eager.parameters()):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


class Sums(Split):
    def expert(self, rows, number):
        return super().expert(rows, number) - rows.mean(0)


class Counts(Split):
    def expert(self, rows, number):
        return super().expert(rows, number) / len(rows)


class OutOfOrder(Split):
    def forward(self, x):
        parts = x.split(F.one_hot(self.route(x)[1][:, 0], EXPERTS).sum(0).tolist())
        return torch.cat(parts[::-1]).square().mean()


class Differs(Split):
    def expert(self, rows, number):
        return super().expert(rows, number) * (number + 1)


@pytest.mark.parametrize("kind, what", [(Sums, "mean of rows"), (Counts, "how many there are of rows"),
                                        (OutOfOrder, "not all parts"), (Differs, "after the same steps")])
def test_what_needs_more_than_one_row_is_refused(kind: type[nn.Module], what: str) -> None:
    model = kind()
    with pytest.raises(spmd.CaptureError, match=f"(?s){what}.*test_rows_by_values.py.*hint: compute on each row separately"):
        spmd.compile(step, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(ROWS, WIDTH))


class Loop(Experts):
    """Expert by expert, those that some row has chosen, as transformers' experts do by themselves."""

    def masks(self, chosen):
        return F.one_hot(chosen, EXPERTS + 1).permute(2, 1, 0)

    def numbers(self, masks):
        return torch.greater(masks.sum((-1, -2)), 0).nonzero()

    def turn(self, number):
        number = number[0]
        return None if number == EXPERTS else number

    def forward(self, x):
        scores, chosen = self.route(x)
        with torch.no_grad():
            masks = self.masks(chosen)
        out = torch.zeros_like(x)
        for number in self.numbers(masks):
            number = self.turn(number)
            if number is None:
                continue
            position, token = torch.where(masks[number])
            if token.numel() == 0:
                continue
            rows = self.expert(x[token], number) * scores[token, position][:, None]
            out.index_add_(0, token, rows)
        return out.square().mean()


class LoopOverNumbers(Loop):
    """The number is one of Python's, and some experts give back what they get."""

    def turn(self, number):
        return int(number.item())

    def masks(self, chosen):
        return F.one_hot(chosen, EXPERTS).permute(2, 1, 0)

    def expert(self, rows, number):
        return nn.Identity()(rows) if number >= 2 else super().expert(rows, number)


class LoopOverAll(Loop):
    """With modules, and masks that are no one_hot."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))

    def forward(self, x):
        scores, chosen = self.route(x)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, position = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, token, expert(x[token]).relu() * scores[token, position, None])
        return out.square().mean()


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
@pytest.mark.parametrize("kind", [Loop, LoopOverNumbers, LoopOverAll])
def test_loops_train_as_in_eager(kind: type[nn.Module]) -> None:
    test_trains_as_in_eager(kind)


def test_loops_are_grouped_products(tmp_path) -> None:
    """A product for all experts that did the same, not one for each."""
    model = Loop()
    package = spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(ROWS, WIDTH))
    package.save(tmp_path / "loop.step")
    text = (tmp_path / "loop.step" / "step.json").read_text()
    assert text.count('"spmd.grouped_mm') == 3 and text.count('"spmd.grouped_outer') == 2


class CountsTurns(Loop):
    def forward(self, x):
        count = 0
        for number in self.numbers(self.masks(self.route(x)[1])):
            count += 1
        return super().forward(x) / count


class CountsTurnsThatAdd(Loop):
    def forward(self, x):
        out, masks, count = torch.zeros_like(x), self.masks(self.route(x)[1]), 1
        for number in self.numbers(masks):
            token = torch.where(masks[number[0]])[1]
            out.index_add_(0, token, x[token])
            count += 1
        return self.router(out).mean() / count


class NumbersTurns(Loop):
    def forward(self, x):
        out, masks = torch.zeros_like(x), self.masks(self.route(x)[1])
        for place, number in enumerate(self.numbers(masks)):
            token = torch.where(masks[number[0]])[1]
            out.index_add_(0, token, x[token] * (place + 1))
        return self.router(out).mean()


class CollectsTurns(Loop):
    def forward(self, x):
        out, masks, seen = torch.zeros_like(x), self.masks(self.route(x)[1]), []
        for number in self.numbers(masks):
            token = torch.where(masks[number[0]])[1]
            out.index_add_(0, token, x[token])
            seen.append(number)
        return self.router(out).mean() / (1 + len(seen))


class AddsOtherwise(Loop):
    def forward(self, x):
        out, masks, extra = torch.zeros_like(x), self.masks(self.route(x)[1]), 0.0
        for number in self.numbers(masks):
            token = torch.where(masks[number[0]])[1]
            out.index_add_(0, token, x[token])
            extra = extra + self.down[number[0]].sum()
        return self.router(out).mean() + extra


class ReadsSum(Loop):
    def forward(self, x):
        out, masks = torch.zeros_like(x), self.masks(self.route(x)[1])
        for number in self.numbers(masks):
            token = torch.where(masks[number[0]])[1]
            out.index_add_(0, token, x[token] * (1 + out.sum()))
        return self.router(out).mean()


class AddsToOne(Loop):
    def forward(self, x):
        out, masks = torch.zeros_like(x), self.masks(self.route(x)[1])
        for number in self.numbers(masks):
            token = torch.where(masks[number[0]])[1]
            sums = out.index_add(0, token, x[token])
        return self.router(sums).mean()


class KeepsNumber(Loop):
    def forward(self, x):
        out, masks = torch.zeros_like(x), self.masks(self.route(x)[1])
        for number in self.numbers(masks):
            token = torch.where(masks[number[0]])[1]
            out.index_add_(0, token, x[token])
        return self.router(out)[:, int(number)].mean()


class WritesMask(Loop):
    def forward(self, x):
        mask = self.route(x)[1][:, 0] == 1
        (token,) = torch.where(mask)
        mask.zero_()
        return self.router(torch.zeros_like(x).index_add(0, token, x[token])).mean()


class GivesRows(Loop):
    def forward(self, x):
        return x[torch.where(self.route(x)[1][:, 0] == 1)[0]]


@pytest.mark.parametrize("kind, what", [
    (CountsTurns, "that changes 'count'"), (CountsTurnsThatAdd, "that changes 'count'"), (AddsOtherwise, "is used elsewhere"),
    (NumbersTurns, "that changes 'place'"), (CollectsTurns, "that changes 'seen'"),
    (ReadsSum, "that reads what rows are added to"), (AddsToOne, "of which each adds to the same tensor"),
    (KeepsNumber, "used when its turn is over"), (WritesMask, "chosen by a tensor that was written meanwhile"),
    (GivesRows, "backward of rows")])
def test_what_would_tell_how_many_are_chosen_is_refused(kind: type[nn.Module], what: str) -> None:
    model = kind()
    with pytest.raises(spmd.CaptureError, match=f"(?s){what}.*test_rows_by_values.py.*hint: "):
        spmd.compile(step, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(ROWS, WIDTH))


class NoneOfSome(LoopOverNumbers):
    """Where the batch begins with a large number, only experts without parameters are chosen."""

    def route(self, x):
        scores, chosen = super().route(x)
        return scores, torch.where(x[0, 0] > 100, chosen % 2 + 2, chosen)


def test_no_row_for_a_parameter_is_an_error() -> None:
    """Eager leaves its gradient None, and the optimizer leaves it alone."""
    model = NoneOfSome()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    good = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))
    bad = good.clone()
    bad[0, 0] = 200.0
    eager = copy.deepcopy(model)
    eager(bad).backward()
    assert eager.up.grad is None and eager.router.weight.grad is not None

    def twice(model, optimizer, *parts):
        for part in parts:
            loss = model(part)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    compiled = spmd.compile(twice, ranks=2)
    for parts in ((good, good), (bad, good), (good, bad)):
        assert compiled(model, optimizer, *parts).isfinite()
    with pytest.raises(RuntimeError, match="(?s)step 3: no row has chosen any number of a loop.*in forward\n.*for number in "
                                           "self.numbers.*hint: go over all numbers"):
        compiled(model, optimizer, bad, bad)
    assert compiled.compiles == 1


class HasModules(LoopOverAll):
    """As Switch Transformers has them. Where the batch begins with a large number, the last expert gets no row."""

    forward = Loop.forward

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.0)

    def route(self, x):
        scores, chosen = super().route(x)
        return scores, torch.where(x[0, 0] > 100, chosen % (EXPERTS - 1), chosen)

    def expert(self, rows, number):
        return self.dropout(self.experts[number](rows))


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
def test_modules_of_which_one_gets_no_row() -> None:
    """Of an expert that no row has chosen, eager has no gradient: the same for plain SGD, but not for AdamW."""
    good = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))
    bad = good.clone()
    bad[0, 0] = 200.0
    model = HasModules()
    eager, compiled = copy.deepcopy(model), spmd.compile(step, ranks=2)
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=1e-6) for m in (model, eager))
    for x in (good, bad, good):
        assert compiled(model, ours, x).item() == pytest.approx(step(eager, theirs, x).item(), rel=1e-5)
    for (name, found), want in zip(model.named_parameters(), eager.parameters()):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    model = HasModules()
    eager, compiled = copy.deepcopy(model), spmd.compile(step, ranks=2)
    ours, theirs = (torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, eager))
    for x in (good, good):
        assert compiled(model, ours, x).item() == pytest.approx(step(eager, theirs, x).item(), rel=1e-5)
    with pytest.raises(RuntimeError, match="(?s)step 2: no row has chosen some number of a loop whose turns have parameters of their "
                                           "own.*for number in self.numbers.*hint: go over all numbers"):
        compiled(model, ours, bad)


class Miscounts(Split):
    """The counts are those of all rows, but where the batch begins with a large number."""

    def forward(self, x):
        scores, chosen = self.route(x)
        order = chosen.flatten().argsort(stable=True)
        counts = F.one_hot(chosen.flatten(), EXPERTS).sum(0) + (self.up[0, 0, 0] * 0 + x[0, 0] > 100) * self.extra
        parts = x[order // CHOSEN].split(counts.tolist(), dim=0)
        return torch.cat([self.expert(part, number) for number, part in enumerate(parts)]).square().mean()


@pytest.mark.parametrize("extra", [-1, 1])
def test_counts_that_do_not_add_up_are_an_error(extra: int) -> None:
    """Eager refuses them, too, before it has updated anything."""
    model = Miscounts()
    model.extra = torch.tensor([0, 0, extra, 0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    good = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))
    compiled = spmd.compile(step, ranks=2)
    for _ in range(2):
        assert compiled(model, optimizer, good).isfinite()
    bad = good.clone()
    bad[0, 0] = 200.0
    with pytest.raises(RuntimeError, match="split_with_sizes"):
        step(copy.deepcopy(model), optimizer, bad)
    with pytest.raises(RuntimeError, match=f"(?s)step 2: split by counts that do not add up to the {ROWS * CHOSEN} rows.*"
                                           "test_rows_by_values.py.*x.order // CHOSEN..split.*hint: count each row once"):
        compiled(model, optimizer, bad)
    assert compiled.compiles == 1
    assert model.down.isnan().any()
    package = spmd.capture(step, model, optimizer, good)
    assert not [o for o in package.step["outputs"] if "check" in o["path"]]
