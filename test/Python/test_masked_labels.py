"""F.ctc_loss of labels that a mask chooses, as recognizers of speech call it."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import spmd

pytestmark = pytest.mark.filterwarnings("ignore")
STEPS, CLASSES = 12, 6


def train_step(model, optimizer, x, labels, lengths):
    mask = labels >= 0
    loss = F.ctc_loss(model(x).log_softmax(-1).transpose(0, 1), labels.masked_select(mask), torch.full((len(x),), STEPS),
                      mask.sum(-1) if lengths is None else lengths, reduction="mean", zero_infinity=True)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def make() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torch.nn.Linear(5, CLASSES)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels of 0 to 5 places, not all at the front."""
    generator = torch.Generator().manual_seed(number)
    labels = torch.randint(1, CLASSES, (4, 5), generator=generator)
    return torch.randn(4, STEPS, 5, generator=generator), labels.where(torch.rand(4, 5, generator=generator) < 0.6, -100)


@pytest.mark.parametrize("ranks", [1, 2])
def test_losses_are_eagers(ranks: int) -> None:
    (model, optimizer), (twin, other) = make(), make()
    step = spmd.compile(train_step, ranks=ranks)
    for number in range(3):
        torch.testing.assert_close(step(model, optimizer, *batch(number), None), train_step(twin, other, *batch(number), None))
    torch.testing.assert_close(dict(model.named_parameters()), dict(twin.named_parameters()))


def test_other_lengths_are_an_error() -> None:
    x, labels = batch(0)
    step = spmd.compile(train_step, ranks=1)
    with pytest.raises(RuntimeError, match="ctc_loss: target_lengths are not how many labels the mask chooses in each row"):
        step(*make(), x, labels, (labels >= 0).sum(-1).roll(1))


def test_sparse_gradients_name_a_hint() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(7, 3, sparse=True), torch.nn.Flatten(), torch.nn.Linear(6, 1))

    def step(model, optimizer, x):
        model(x).sum().backward()
        optimizer.step()
    with pytest.raises(spmd.CaptureError) as error:
        spmd.compile(step)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.zeros(4, 2, dtype=torch.long))
    assert "the gradient of an embedding is a sparse tensor" in str(error.value) and "with sparse=False" in str(error.value)
    assert f"test_masked_labels.py\", line {step.__code__.co_firstlineno + 1}" in str(error.value)
