"""A step that asks for values that are computed from sizes and numbers alone goes its way as eager does; others are refused."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

import spmd

X, Y = torch.linspace(-1, 1, 24).reshape(6, 4), torch.linspace(1, -1, 12).reshape(6, 2)


def ones(x):
    return torch.ones(x.shape[0]).any().item()


def like(x):
    return torch.full_like(x, 3).sum() > 70


def written(x):
    mask = torch.zeros(x.shape[:1], dtype=torch.bool)
    mask[1:3] = True
    return mask.sum().item() == 2


def through_a_view(x):
    mask = torch.zeros(4, 4)
    mask[0].add_(1)
    return mask.flatten()[3]


def sizes(x):
    return torch.div(x.size(1), 2, rounding_mode="trunc") == torch.tensor(2)


def arange(x):
    return bool((torch.arange(x.shape[1]) < x.shape[0]).all())


def compared(x):
    return torch.equal(torch.eye(3), torch.ones(3).diag())


def counted(x):
    return int(torch.tril_indices(3, 3).max()) - 1


def with_ones(x):
    """Of which only the last two columns are known."""
    return torch.cat([torch.rand_like(x), torch.ones(x.shape[0], 2)], -1)


def cut_out(x):
    return with_ones(x)[..., -1].bool().all()


def split_off(x):
    unknown, first, last = torch.split(with_ones(x).unsqueeze(0), [4, 1, 1], dim=-1)
    return (first == last).all()


def cut_across(x):
    return torch.cat([with_ones(x).t(), torch.zeros(1, x.shape[0])])[4:].sum() == 12


def cut_and_written(x):
    packed = with_ones(x)
    known = packed[:, 4:]
    packed[:, 5].zero_()
    return known.sum() == 6


def part_written_later(x):
    mask = torch.ones(x.shape[0], 1)
    packed = torch.cat([torch.rand_like(x), mask], 1)
    mask.zero_()
    return packed[:, -1].any()


def unknown_cut_joined_again(x):
    unknown, known = with_ones(x).split([4, 2], 1)
    return torch.cat([known, unknown], 1)[:, :2].sum() + known.sum() == 24


def train(question):
    def step(model, optimizer, x, y):
        out = model(x)
        if question(x):
            out = out * 2
        loss = F.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    return step, model, torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("question", [ones, like, written, through_a_view, sizes, arange, compared, counted, cut_out, split_off,
                                      cut_across, cut_and_written, part_written_later, unknown_cut_joined_again])
def test_known(question, negated: bool, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    step, model, optimizer = train((lambda x: not question(x)) if negated else question)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=2)
    for i in range(2):
        torch.testing.assert_close(compiled(model, optimizer, X + i, Y), step(twin, twin_optimizer, X + i, Y))


def of_the_batch(x):
    return (x > 0).any()


def of_a_parameter(x):
    return (torch.zeros(3) + x.sum()).any()


def drawn(x):
    return torch.rand(3).sum() > 1


def overwritten(x):
    mask = torch.zeros(4, 4)
    mask[0] = x[0]
    return mask[1].any()


def overwritten_by_a_view(x):
    mask = torch.zeros(4, 4)
    row = mask[2]
    mask.view(-1)[8:12].copy_(x[0])
    return row.any()


def empty(x):
    return torch.empty(3).fill_(x[0, 0]).any()


def cut_with_more(x):
    return with_ones(x)[:, 3:].any()


def cut_and_overwritten(x):
    packed = with_ones(x)
    known = packed[:, 4]
    packed.mul_(torch.rand(6))
    return known.any()


def cut_and_overwritten_by_strides(x):
    packed = with_ones(x)
    known = packed[:, 4]
    packed.as_strided((3,), (1,), 3).copy_(torch.rand(3))
    return known.any()


def shown_by_strides(x):
    parts = torch.rand(1, 2, 2, 2), torch.ones(1, 2, 2, 2)
    return torch.cat([part.contiguous(memory_format=torch.channels_last) for part in parts], 1).as_strided((2,), (1,), 8).any()


def cut_of_other_data(x):
    packed = with_ones(x)
    packed.data = torch.rand(6, 6)
    return packed[:, 4].any()


@pytest.mark.parametrize("question", [of_the_batch, of_a_parameter, drawn, overwritten, overwritten_by_a_view, empty, cut_with_more,
                                      cut_and_overwritten, cut_and_overwritten_by_strides, shown_by_strides, cut_of_other_data])
def test_unknown(question) -> None:
    step, model, optimizer = train(question)
    with pytest.raises(spmd.CaptureError, match="depends on a tensor's value"):
        spmd.capture(step, model, optimizer, X, Y)
