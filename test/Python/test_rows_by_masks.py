"""Rows that a mask of booleans chooses, x[mask], as losses and metrics of some of the batch are written for eager PyTorch. On ranks
they give eager's numbers, from programs whose shapes are known."""
from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

ROWS, WIDTH, CLASSES = 12, 8, 5


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.norm, self.head = nn.Linear(WIDTH, 16), nn.LayerNorm(16), nn.Linear(16, CLASSES)
        self.table, self.drop = nn.Embedding(CLASSES, 16), nn.Dropout(0.0)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def hidden(self, x):
        return self.up(x).tanh()

    def forward(self, x):
        return self.head(self.hidden(x))


def classes(model, x, y):
    logits, mask = model(x), y > 1
    return F.cross_entropy(logits[mask], y[mask])


def a_mask_for_each(model, x, y):
    """The same mask, computed twice."""
    return F.cross_entropy(model(x)[y != 2], y[y != 2], weight=torch.arange(1.0, CLASSES + 1), label_smoothing=0.1)


def sum_over_count(model, x, y):
    return F.cross_entropy(model(x)[y != 2], y[y != 2], reduction="sum") / (y != 2).sum()


def mean_of_losses(model, x, y):
    return F.cross_entropy(model(x)[y != 2], y[y != 2], reduction="none").square().mean()


def layers_of_rows(model, x, y):
    mask = y != 3
    rows = model.norm(F.gelu(model.hidden(x)[mask]))
    return nn.CrossEntropyLoss()(model.drop(model.head(rows)), y[mask])


def elements(model, x, y):
    mask = x[:, :CLASSES] > -0.5
    return F.binary_cross_entropy_with_logits(model(x)[mask], (x[:, :CLASSES] > 0)[mask].float()) \
        + ((model(x) - x[:, :CLASSES]) ** 2)[mask].mean()


def regression(model, x, y):
    mask = y < 3
    return F.mse_loss(model(x)[mask], x[mask][:, :CLASSES]) + F.l1_loss(model(x)[mask], torch.zeros_like(model(x)[mask]))


def counted(model, x, y):
    rows = model(x)[y < 3]
    return rows.abs().sum() / rows.shape[0] + rows.square().sum() / rows.numel()


def selected(model, x, y):
    out = model(x)
    return out.masked_select(out > 0).mean() + torch.masked_select(out, (y > 1)[:, None]).square().sum()


def written(model, x, y):
    hidden = model.hidden(x).clone()
    hidden[y > 2] = F.relu(hidden[y > 2]) * 2
    hidden[y > 3] += model.norm(hidden[y > 3])
    hidden[y == 0] *= 3
    hidden[y == 1, :4] = model.table(y)[y == 1, :4]
    return model.head(hidden).square().mean()


def written_with_one(model, x, y):
    """The same in the place of each row."""
    hidden, pairs = model.hidden(x).clone(), model.hidden(x).view(3, 4, 16).clone()
    hidden[y > 2] = model.table.weight[0]
    hidden[y == 1] = hidden.mean()
    hidden[torch.where(y == 0)[0]] = model.table.weight[1:2]
    hidden[hidden < 0] = -0.5
    pairs[y.view(3, 4) > 2, :3] = model.table.weight[0, :3]
    return F.cross_entropy(model.head(hidden), y) + model.head(pairs).square().mean()


def similarities(model, x, y):
    """A mask that is the same in every call, so that the number of its rows is known."""
    z = F.normalize(model.hidden(x), dim=1)
    similarity, others = z @ z.T / 0.1, ~torch.eye(len(x), dtype=torch.bool)
    covariance, pairs, some = z.T @ z, torch.ones(4, 4).triu(1).nonzero(), torch.arange(16) % 3 == 0
    assert pairs.shape == (6, 2) and torch.where(some)[0].shape == (6,) and z[:, some].shape == (len(x), 6)
    covariance = covariance + z[pairs[:, 0]].T @ z[pairs[:, 1]] + z[:, some].sum()
    return similarity[others].view(len(x), -1).logsumexp(1).mean() + covariance[~torch.eye(16, dtype=torch.bool)].pow(2).sum()


def even_rows(model, x, y):
    even = torch.arange(len(x)) % 2 == 0
    hidden = model.hidden(x).clone()
    rows = hidden[even]
    assert rows.shape == (ROWS // 2, 16) and len(rows) == ROWS // 2 and rows.numel() == ROWS * 8
    hidden[even] = model.table(y)[::2]
    hidden[even] = hidden[~even] + hidden[even]
    return sum(row.mean() for row in rows) + model.head(hidden).square().mean() + F.batch_norm(rows, None, None, training=True)[0].sum(), \
        rows[1], rows


def places(model, x, y):
    (first,) = (y > 1).nonzero(as_tuple=True)
    second, third = torch.where(y > 2)[0], (y > 0).nonzero().squeeze(1)
    out = model(x)
    hidden = torch.zeros_like(out).index_add(0, second, out[second] * 2)
    return F.cross_entropy(out[first], y[first]) + hidden.square().mean() + out[third].square().mean()


def along_rows(model, x, y):
    rows = model(x)[y > 0]
    q = rows.gather(1, y[y > 0].unsqueeze(1)).squeeze(1)
    return F.smooth_l1_loss(q, x[y > 0].max(1).values) + (rows.softmax(-1) * rows.log_softmax(-1)).sum(-1).mean()


def prototypes(model, x, y):
    hidden = model.hidden(x)
    return sum((hidden[y == number].mean(0) - 1).square().sum() for number in (1, 3))


def tables(model, x, y):
    mask = y > 1
    target = F.one_hot(y[mask], CLASSES).float()
    return F.mse_loss(model.hidden(x)[mask], model.table(y[mask])) + F.cross_entropy(model(x)[mask], target) \
        + F.kl_div(model(x)[mask].log_softmax(-1), target * 0.9 + 0.02, reduction="batchmean")


def joined(model, x, y):
    mask = y > 1
    parts = model.hidden(x)[mask], model.table(y)[mask]
    return (torch.cat(parts, -1).unflatten(1, (2, 16)).sum(1) * torch.stack(parts, dim=1)[:, 0]).square().mean()


def missing_targets(model, x, y):
    target = torch.where(x[:, 0] > 0, x[:, 0] * 2, torch.nan)
    return F.mse_loss(model(x)[:, 0][~target.isnan()], target[~torch.isnan(target)])


def finite_where_chosen(model, x, y):
    """What is done to the rows has neither value nor gradient for others."""
    hidden = model.hidden(x).exp()
    roots = (hidden[y > 1] * y[y > 1, None] - hidden[y > 1]).sqrt()
    return roots.log().mean() + (1 / (hidden[y > 0] * (y[y > 0, None] > 0))).mean() \
        + model(x)[y > 0].gather(1, (y[y > 0] - 1).unsqueeze(1)).mean()


def of_columns(model, x, y):
    out, mask = model(x), y > 1
    return out[mask, 0].mean() + out[mask, 1:3].square().mean() + out[mask, None].sum() * 0.01


def sequences(model, x, y):
    out, target = model(x.view(3, 4, WIDTH)), y.view(3, 4)
    mask, is_long = target > 0, target[:, 0] > 1
    return F.cross_entropy(out[mask].view(-1, CLASSES), target[mask].view(-1)) \
        + F.cross_entropy(out.transpose(1, 2)[is_long], target[is_long])


def experts(model, x, y):
    hidden = model.hidden(x)
    chosen = hidden[:, :3].argmax(-1)
    out, total = torch.empty_like(hidden), torch.zeros_like(hidden)
    for number, expert in enumerate(model.experts):
        out[chosen == number] = expert(hidden[chosen == number]).relu()
        total[chosen == number] += out[chosen == number] * hidden[chosen == number, number, None]
    return F.cross_entropy(model.head(total), y)


def decisions(model, x, y):
    rows = model(x)[y > 1]
    return torch.where((rows > 100).any(), 1e9, rows.mean()) + torch.where((rows < 100).all(), 0.0, 1e9)


def metrics(model, x, y):
    mask = y != 4
    out = model(x)
    with torch.no_grad():
        correct = out[mask].argmax(-1) == y[mask]
    return F.cross_entropy(out[mask], y[mask]), correct.float().mean(), correct.sum()


def named_arguments(model, x, y):
    rows, up = model(x)[y > 1], model.up
    return rows.sum(axis=0).square().sum() + rows.mean(axis=-1, keepdims=True).square().sum() + torch.sum(input=rows) * rows.size(dim=1) \
        + F.linear(x[y > 1], weight=up.weight).square().mean() + torch.masked_select(input=model(x), mask=(y > 1)[:, None]).mean() \
        + model(x)[torch.nonzero(input=y > 1, as_tuple=True)[0]].mean() + F.normalize(rows, dim=-1).sum() + torch.norm(rows, dim=1).mean()


def flags(model, x, y):
    mask, first, second = y > 1, x[:, 0] > 0, x[:, 1] > 0
    return torch.where(first[mask], model(x)[mask, 0], 0.0).sum() + model(x)[mask, 1].masked_fill(second[mask], 2.0).square().sum(), \
        (~first[mask]).sum(), (first[mask] & second[mask] | ~second[mask]).float().mean()


def written_with_numbers(model, x, y):
    """Integers that are no float's."""
    first, second, total = y * 100000007 + 1, y * 100000007 + 1, model(x).sum()
    first[y > 2] = 2.5
    second[y > 2] = torch.tensor(2.5)
    return total, first, second


def known_rows_elsewhere(model, x, y):
    even, hidden, few = torch.arange(len(x)) % 2 == 0, model(x).clone(), torch.zeros(ROWS // 2, CLASSES)
    few[:ROWS // 2] = hidden[even]
    rows = hidden[even]
    first = rows[0].sum()
    rows.mul_(3)
    hidden[even] = rows
    hidden[~even] = hidden[even]
    return few.square().mean() + hidden.square().mean() + first + (hidden[even].T @ hidden[~even]).sum()


def weighted(model, x, y):
    out, target = model(x), x[:, :CLASSES]
    return F.mse_loss(out[y > 1], target[y > 1], weight=target.abs()[y > 1]) \
        + F.huber_loss(out[y > 1], target[y > 1], weight=target.abs()[y > 1], reduction="sum")


def metrics_in_inference_mode(model, x, y):
    out = model(x)
    with torch.inference_mode():
        is_two = y == 2
        correct, twos = (out[y > 0].argmax(-1) == y[y > 0]).float().mean(), out[is_two].sum() + out[torch.where(is_two)[0]].mean()
    return F.cross_entropy(out[y > 0], y[y > 0]), correct, twos


def quotients(model, x, y):
    """Of integers that are 0 where no row is chosen."""
    return model(x).sum(), torch.remainder(100, y[y > 0]).sum(), torch.div(100, y[y > 0], rounding_mode="floor").sum()


def masks_written_as_data(model, x, y):
    mask, out = y > 2, model(x)
    with torch.no_grad():
        before = out[mask].sum()
        mask.data.fill_(True)
        after = out[mask].sum()
    return out.sum(), before, after


LOSSES = (classes, a_mask_for_each, sum_over_count, mean_of_losses, layers_of_rows, elements, regression, counted, selected, written,
          written_with_one, similarities, even_rows, places, along_rows, prototypes, tables, joined, missing_targets,
          finite_where_chosen, of_columns, sequences, experts, decisions, metrics,
          named_arguments, flags, written_with_numbers, known_rows_elsewhere, weighted, metrics_in_inference_mode, quotients,
          masks_written_as_data)


def step_of(loss_of: Callable[..., Any]) -> Callable[..., Any]:
    def train_step(model, optimizer, x, y):
        results = loss_of(model, x, y)
        optimizer.zero_grad()
        (results[0] if isinstance(results, tuple) else results).backward()
        optimizer.step()
        return results
    return train_step


def check(loss_of: Callable[..., Any], sizes: tuple[int, ...], **options: Any) -> Any:
    model = Model()
    eager, step = copy.deepcopy(model), step_of(loss_of)
    compiled = spmd.compile(step, **options)
    ours, theirs = (torch.optim.AdamW(m.parameters(), lr=0.05) for m in (model, eager))
    for number, rows in enumerate(sizes):
        draw = torch.Generator().manual_seed(number)
        x, y = torch.randn(rows, WIDTH, generator=draw), torch.randint(0, CLASSES, (rows,), generator=draw)
        y[:CLASSES] = torch.arange(CLASSES)
        torch.testing.assert_close(compiled(model, ours, x, y), step(eager, theirs, x, y), rtol=1e-5, atol=1e-5)
    for (name, found), want in zip(model.named_parameters(), eager.parameters()):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    return compiled


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("loss_of", LOSSES)
@pytest.mark.sample(4)
def test_trains_as_in_eager(loss_of: Callable[..., Any], ranks: int) -> None:
    check(loss_of, (ROWS,) * 3, ranks=ranks)


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
@pytest.mark.parametrize("loss_of", [a_mask_for_each, sum_over_count, written, places, metrics])
def test_rows_that_a_batch_does_not_have_are_never_chosen(loss_of: Callable[..., Any]) -> None:
    assert check(loss_of, (14, 9, 5), ranks=2, dynamic_batch=14).compiles == 1


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
def test_no_row_is_nan_as_in_eager() -> None:
    model = Model()
    none = step_of(lambda model, x, y: (model(x).sum() * 0 + model(x)[y > 9].sum(), model(x)[y > 9].mean(),
                                        F.cross_entropy(model(x)[y > 9], y[y > 9])))
    total, mean, loss = spmd.compile(none, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(ROWS, WIDTH),
                                                    torch.zeros(ROWS, dtype=torch.int64))
    assert total == 0 and mean.isnan() and loss.isnan()


def test_each_rank_has_its_own_mean_with_a_local_view() -> None:
    """As FSDP's processes do, each over its rows; gradients are averaged."""
    model = Model()
    eager = copy.deepcopy(model)
    x, y = torch.randn(ROWS, WIDTH), torch.tensor([0, 0, 0, 0, 0, 2] + [2, 3, 4, 2, 3, 4])
    spmd.compile(step_of(classes), ranks=2, view="local")(model, torch.optim.SGD(model.parameters(), lr=0.5), x, y)
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.5)
    sum(classes(eager, *part) / 2 for part in zip(x.chunk(2), y.chunk(2))).backward()
    optimizer.step()
    for found, want in zip(model.parameters(), eager.parameters()):
        torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-6)


def gives_rows(model, x, y):
    return model(x).sum(), model(x)[y > 1]


def keeps_rows(model, x, y):
    model.last = model(x)[y > 1]
    return model(x).sum()


def norms_of_all(model, x, y):
    return F.batch_norm(model(x)[y > 1], None, None, training=True).square().mean()


def softmax_of_all(model, x, y):
    return model(x)[y > 1].softmax(0).square().mean()


def pairs(model, x, y):
    """Eager takes pairs by their order, of which there are as many only by chance."""
    return F.mse_loss(model(x)[y > 1], model(x)[y < 1])


def written_in_between(model, x, y):
    y = y.clone()
    first = model(x)[y > 1]
    y[:6].add_(1)
    return F.cross_entropy(first, y[y > 1])


def written_through_a_view(model, x, y):
    rows = model(x)[y > 1]
    view = rows[:, :2]
    view += 1
    return rows.sum()


def counts_in_python(model, x, y):
    return model(x).mean() * len(x[y > 1])


def other_dims(model, x, y):
    return model(x)[:, x[0, :CLASSES] > 0].mean()


def all_targets(model, x, y):
    return F.cross_entropy(model(x)[y > 1], y)


def listed_columns(model, x, y):
    """Eager takes the places of the mask and of the list in pairs."""
    return model(x)[y > 1, [0]].sum()


def writes_listed_columns(model, x, y):
    out = model(x).clone()
    out[y > 1, [0]] = 3.0
    return out.square().mean()


def rows_become_columns(model, x, y):
    """As eager broadcasts: [n, 1] and [n] make [n, n]."""
    return F.mse_loss(model(x)[:, :1][y > 1], x[:, 0][y > 1])


def subtracts_rows_from_columns(model, x, y):
    return (model(x)[:, :1][y > 1] - x[:, 0][y > 1]).square().mean()


def writes_fewer_dims(model, x, y):
    out = model(x).clone()
    out[y > 1] = x[:, 0][y > 1]
    return out.square().mean()


def writes_elsewhere(model, x, y):
    out = model(x).clone()
    out[:7] = out[y > 1]
    return out.square().mean()


def flips_rows(model, x, y):
    return (model(x)[y > 1].flip(1, 0) * x[y > 1][:, :CLASSES]).sum()


def is_in_rows(model, x, y):
    return model(x).sum() + torch.isin(y[y > 1], (y + 1)[y > 1]).sum()


def is_equal(model, x, y):
    return model(x).sum() * torch.equal(y[y > 1], y[y > 1])


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows):
        return rows.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


def writes_column_of_copy(model, x, y):
    rows = model(x)[y > 1]
    rows[:, 0] = 5.0
    return rows.sum()


def copied_places(model, x, y):
    return model(x)[torch.where(y > 1)[0].clone()].sum()


def own_backward(model, x, y):
    return Tripled.apply(model(x)[y > 1]).sum() + model(x).sum()


def views_by_count(model, x, y):
    rows = model(x)[y > 1]
    return rows.view(rows.size(0), -1).sum()


def weighted_l1(model, x, y):
    return F.l1_loss(model(x)[y > 1], x[y > 1][:, :CLASSES], weight=x[y > 1][:, :CLASSES].abs())


def experts_in_place(model, x, y):
    hidden, one_hot = model.hidden(x), F.one_hot(y, CLASSES)
    out = torch.zeros_like(hidden)
    for number in range(CLASSES):
        (places,) = torch.where(one_hot[:, number])
        rows = hidden[places]
        F.relu(rows, inplace=True)
        out.index_add_(0, places, rows)
    return out.square().sum()


@pytest.mark.parametrize("loss_of, what", [
    (listed_columns, "indexing by a mask that is not the first index"), (writes_listed_columns, "at other places than theirs"),
    (rows_become_columns, "mse_loss of rows"), (subtracts_rows_from_columns, "sub of rows"),
    (writes_fewer_dims, "what has more dims or less"), (writes_elsewhere, "into places that are others'"), (flips_rows, "flip of rows"),
    (is_in_rows, "isin of rows"), (is_equal, "equal of rows"), (own_backward, "Tripled of rows"), (copied_places, "indexing of rows"),
    (writes_column_of_copy, "writing of rows"),
    (views_by_count, "view of rows"), (weighted_l1, "l1_loss of rows.*with weights"), (experts_in_place, "relu of rows.*in place"),
    (gives_rows, "the step returns rows"), (keeps_rows, "the step returns rows"), (norms_of_all, "batch_norm of rows"), (softmax_of_all, "softmax of rows"),
    (pairs, "mse_loss of rows.*together with others"), (written_in_between, "together with others"),
    (written_through_a_view, "add_ of rows"), (counts_in_python, "how many there are of rows"),
    (other_dims, "indexing by a mask that is not the first index"), (all_targets, "a tensor that has all rows")])
def test_what_would_tell_how_many_are_chosen_is_refused(loss_of: Callable[..., Any], what: str) -> None:
    model = Model()
    with pytest.raises(spmd.CaptureError, match=f"(?s){what}.*depends on data.*test_rows_by_masks.py.*hint: "):
        spmd.compile(step_of(loss_of), ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(ROWS, WIDTH),
                                                torch.randint(0, CLASSES, (ROWS,)))
