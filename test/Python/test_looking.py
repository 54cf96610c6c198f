"""Looking at the state of a compiled training: unshard_params with the semantics of FSDP, state dicts, own shards."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.head = nn.Linear(8, 4)
        self.head.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


class Training:
    def __init__(self, ranks: int = 3, **options):
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.step = spmd.compile(train_step, ranks=ranks, policy="class:Linear", **options)
        self.batch = torch.randn(6, 8), torch.randn(6, 4)

    def run(self, steps: int = 1) -> list[float]:
        return [self.step(self.model, self.optimizer, *self.batch).item() for _ in range(steps)]

    def away(self) -> set[str]:
        return {name for name, p in self.model.named_parameters() if type(p) is not nn.Parameter}


EVERYTHING = {f"{module}.{kind}" for module in ("layers.0", "layers.1", "head") for kind in ("weight", "bias")}


@pytest.mark.parametrize("units, recurse, expected", [
    (None, True, EVERYTHING), ("layers", True, {n for n in EVERYTHING if n.startswith("layers.")}),
    ("layers.1", True, {"layers.1.weight", "layers.1.bias"}), ("head", False, {"head.weight", "head.bias"}),
    (["head", "layers.0"], False, {n for n in EVERYTHING if not n.startswith("layers.1.")})])
def test_which_parameters_are_here(units, recurse, expected) -> None:
    training = Training()
    training.run()
    assert training.away() == EVERYTHING
    with training.step.unshard_params(units, recurse=recurse):
        assert training.away() == EVERYTHING - expected
    assert training.away() == EVERYTHING
    module = training.model.layers[0]
    with training.step.unshard_params(module):
        assert training.away() == EVERYTHING - {"layers.0.weight", "layers.0.bias"}


@pytest.mark.parametrize("writeback", [True, False])
@pytest.mark.parametrize("rank0_only", [True, False])
@pytest.mark.parametrize("offload", [True, False])
def test_writeback(writeback, rank0_only, offload) -> None:
    """What was written stays, or is as if it had not been; also in a tensor that shares memory with another."""
    training, twin = Training(), Training()
    training.run(2), twin.run(2)
    kept = training.model.layers[0].bias.data
    with training.step.unshard_params(writeback=writeback, rank0_only=rank0_only, offload_to_cpu=offload):
        with torch.no_grad():
            training.model.head.weight.mul_(2)
            kept.add_(1)
    if writeback:
        with torch.no_grad():
            twin.model.head.weight.mul_(2)
            twin.model.layers[0].bias.add_(1)
    assert torch.equal(training.model.head.weight, twin.model.head.weight)
    assert torch.equal(kept, twin.model.layers[0].bias)
    assert training.run(2) == twin.run(2)


def test_what_was_written_before_is_kept() -> None:
    training, twin = Training(), Training()
    training.run(), twin.run()
    for one in (training, twin):
        with torch.no_grad():
            one.model.head.weight.fill_(0.5)
    with training.step.unshard_params(writeback=False):
        with torch.no_grad():
            training.model.head.weight.fill_(7)
    assert training.model.head.weight.unique() == 0.5 and training.run(2) == twin.run(2)


def test_an_error_inside_leaves_all_as_it_was() -> None:
    training = Training()
    training.run()
    before = training.step.state_dict()
    with pytest.raises(KeyError):
        with training.step.unshard_params(writeback=False):
            with torch.no_grad():
                training.model.head.weight.zero_()
            raise KeyError("x")
    assert training.away() == EVERYTHING
    assert torch.equal(training.model.head.weight, before["head.weight"])


def test_gradients() -> None:
    training = Training(keep_grads=True)
    loss = training.run()
    twin = Training()
    expected = F.mse_loss(twin.model(twin.batch[0]), twin.batch[1])
    expected.backward()
    assert loss[0] == pytest.approx(expected.item(), rel=1e-6)
    with training.step.unshard_params("head", with_grads=True):
        assert type(training.model.head.weight.grad) is torch.Tensor
        assert type(training.model.layers[0].weight.grad) is not torch.Tensor
        torch.testing.assert_close(training.model.head.weight.grad, twin.model.head.weight.grad)
    training = Training()
    training.run()
    with pytest.raises(RuntimeError, match="keep_grads=True"):
        with training.step.unshard_params(with_grads=True):
            pass
    assert training.away() == EVERYTHING


def clears(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def test_gradients_that_the_step_clears() -> None:
    """As the optimizer got them; outside, parameters have none, and the training is as it would be."""
    training, plain = Training(), Training()
    training.step = spmd.compile(clears, ranks=3, policy="class:Linear", keep_grads=True)
    plain.step = spmd.compile(clears, ranks=3, policy="class:Linear")
    plain.run()
    with pytest.raises(RuntimeError, match="the step clears the gradient of parameter 'head.bias', .*(?s:.*)keep_grads=True"):
        with plain.step.unshard_params(with_grads=True):
            pass
    plain = Training()
    plain.step = spmd.compile(clears, ranks=3, policy="class:Linear")
    twin = Training()
    for _ in range(2):
        F.mse_loss(twin.model(twin.batch[0]), twin.batch[1]).backward()
        torch.nn.utils.clip_grad_norm_(twin.model.parameters(), 0.5)
        expected = {name: p.grad.clone() for name, p in twin.model.named_parameters()}
        assert training.run() == plain.run()
        twin.optimizer.step()
        twin.optimizer.zero_grad()
        assert training.model.head.weight.grad is None
        with training.step.unshard_params(with_grads=True):
            found = {name: p.grad.clone() for name, p in training.model.named_parameters()}
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
        assert all(p.grad is None for p in training.model.parameters())
    assert "optimizer/grad/head.weight" in training.step.state_dict()
    training.model.head.weight.grad = torch.ones(4, 8)  # to which the step adds, and which it clears
    training.run()
    with pytest.raises(RuntimeError, match="the gradient of parameter '.*' is gone: a call of the step cleared it"):
        with training.step.unshard_params(with_grads=True):
            pass


def test_state_dicts() -> None:
    """Full and sharded ones say the same, and leave the tensors where they are."""
    training = Training(ranks=2)
    training.run(2)
    full, sharded = training.step.state_dict(rank0_only=True), training.step.state_dict("sharded")
    assert training.away() == EVERYTHING
    assert full.keys() == sharded.keys() and "optimizer/exp_avg/head.bias" in full and "head.calls" in full
    for key, value in full.items():
        row = torch.empty(value.numel(), dtype=value.dtype)
        covered = torch.zeros(value.numel(), dtype=torch.int64)
        for shard in sharded[key]:
            assert shard.tensor.shape == tuple(value.shape)
            row[shard.first:shard.first + len(shard.values)] = shard.values
            covered[shard.first:shard.first + len(shard.values)] += 1
        assert torch.equal(row.view(value.shape), value) and (covered == 1).all(), key
    own = [training.step.local_shards(rank) for rank in range(2)]
    assert all(own) and own[0].keys() == training.step.local_shards().keys()
    for key, shards in sharded.items():
        assert [(s.rank, s.first) for s in shards] == [(r, own[r][key].first) for r in range(2) if key in own[r]]
    before = full["head.weight"].clone()
    training.run()
    assert torch.equal(full["head.weight"], before)  # is a copy
    torch.testing.assert_close(training.step.state_dict()["head.weight"], training.model.head.weight.detach(), rtol=0, atol=0)


def test_mistakes() -> None:
    training = Training()
    for use in (lambda: training.step.unshard_params().__enter__(), training.step.state_dict, training.step.local_shards):
        with pytest.raises(RuntimeError, match="has not been called yet"):
            use()
    training.run()
    for units, recurse, message in (("heads", True, "the model has no module 'heads'"),
                                    (nn.Linear(1, 1), True, "a Linear in units is no module of the model"),
                                    ("layers", False, "'layers' is not a shard unit; units: 'head', 'layers.0', 'layers.1'")):
        with pytest.raises(ValueError, match=message):
            with training.step.unshard_params(units, recurse=recurse):
                pass
    with pytest.raises(ValueError, match="kind is 'local'; allowed: full, sharded"):
        training.step.state_dict("local")
    with pytest.raises(spmd.RunError, match="rank 3 is not in this process, which has ranks 0 to 2"):
        training.step.local_shards(3)
