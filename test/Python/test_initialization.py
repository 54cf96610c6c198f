"""Models on the meta device: values are made on the ranks, the same for any number of them, or loaded; and no second copy
of a model is beside that of the ranks."""
from __future__ import annotations

import copy
import weakref

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

import spmd
from spmd.offloaded import slot_of
from spmd.training import initialization


class Scale(nn.Module):
    """Says nothing of its values."""

    def __init__(self, width: int):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(width))
        self.register_buffer("order", torch.arange(width), persistent=False)

    def forward(self, x):
        return x * self.factor + self.order


class Net(nn.Module):
    def __init__(self, scale: type = nn.Identity):
        super().__init__()
        self.embed, self.norm, self.scale = nn.Embedding(16, 8), nn.BatchNorm1d(8), scale(8)
        self.fc, self.head = nn.Linear(8, 24), nn.Linear(24, 16)
        self.tied = nn.Linear(8, 16, bias=False)
        self.tied.weight = self.embed.weight
        self.head.bias.requires_grad_(False)

    def forward(self, x):
        h = self.scale(self.norm(self.embed(x)))
        return self.head(F.gelu(self.fc(h))) + self.tied(h)


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def batch():
    x = torch.randint(0, 16, (24,), generator=torch.Generator().manual_seed(0))
    return x, (5 * x + 3) % 16


def meta_model(scale: type = nn.Identity) -> tuple[nn.Module, torch.optim.Optimizer]:
    with torch.device("meta"):
        model = Net(scale)
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)


def eager_model(seed: int) -> nn.Module:
    """The same values as the ranks make, by PyTorch alone."""
    model = Net()
    for path, module in model.named_modules():
        if hasattr(module, "reset_parameters") and path != "tied":
            torch.manual_seed(initialization._seed_of(seed, path))
            module.reset_parameters()
    return model


def bytes_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Of memory that tensors have here, looked at past what fetches them."""
    with torch._C.DisableTorchFunctionSubclass():
        states = [t for state in optimizer.state.values() for t in state.values()]
        tensors = (*model.parameters(), *model.buffers(), *states)
        slots = [slot_of(t) for t in tensors]
        return sum((t if slot is None or slot.memory is None else slot.memory).untyped_storage().nbytes()
                   for t, slot in zip(tensors, slots))


@pytest.mark.parametrize("ranks, options", [(1, {}), (4, {}), (3, {"mode": "replicate"}), (2, {"policy": "class:Linear"})],
                         ids=["1", "4", "replicate", "units"])
def test_any_number_of_ranks_begins_with_the_same_values(ranks, options) -> None:
    torch.manual_seed(7)
    model, optimizer = meta_model()
    names = [id(p) for p in model.parameters()]
    step = spmd.compile(train_step, ranks=ranks, **options)
    state = torch.random.get_rng_state()
    first = step(model, optimizer, *batch())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert bytes_of(model, optimizer) == 0 and [id(p) for p in model.parameters()] == names
    twin = eager_model(7)
    own = torch.optim.AdamW([p for p in twin.parameters() if p.requires_grad], lr=0.02)
    torch.testing.assert_close(first, train_step(twin, own, *batch()).detach(), rtol=1e-5, atol=1e-6)
    for _ in range(2):
        step(model, optimizer, *batch())
        train_step(twin, own, *batch())
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-4, atol=1e-5)
    assert model.fc.weight.device.type == "cpu" and type(model.fc.weight) is nn.Parameter
    assert model.tied.weight is model.embed.weight and not model.head.bias.requires_grad


def test_functions_that_initialize() -> None:
    """That of the innermost unit, or the step's; one of FSDP's style makes the tensors anew."""
    def halves(module):
        module.to_empty(device="cpu", recurse=False)
        for tensor in module.parameters(recurse=False):
            tensor.fill_(0.5)
        for tensor in module.buffers(recurse=False):
            tensor.zero_()

    def counts(module):
        module.factor.fill_(2)
        module.order.copy_(torch.arange(8))

    with torch.device("meta"):
        model = Net(Scale)
    with spmd.enable_wrap(param_init_fn=counts):
        spmd.wrap(model.scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = spmd.compile(train_step, ranks=2, param_init_fn=halves)
    step(model, optimizer, *batch())
    assert model.fc.weight.unique() == 0.5 and model.embed.weight.unique() == 0.5
    assert model.scale.factor.unique() == 2 and torch.equal(model.scale.order, torch.arange(8))


def test_what_is_loaded_is_not_made(tmp_path) -> None:
    """Values of a checkpoint come to the ranks alone; only what no checkpoint has is made: a buffer of no state dict, too."""
    torch.manual_seed(0)
    model = Net(Scale)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)
    step = spmd.compile(train_step, ranks=2)
    step(model, optimizer, *batch())
    step.save_checkpoint(tmp_path)
    expected = step(model, optimizer, *batch())
    called = []

    def init(module):
        called.append(type(module))
        module.factor.fill_(1)
        module.order.copy_(torch.arange(8))

    other, other_optimizer = meta_model(Scale)
    resumed = spmd.compile(train_step, ranks=2, param_init_fn=init)
    resumed.load_checkpoint(tmp_path)
    assert torch.equal(resumed(other, other_optimizer, *batch()), expected) and called == [Scale]
    called.clear()
    assert bytes_of(other, other_optimizer) == 0
    torch.testing.assert_close(other.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert torch.equal(other.scale.order, torch.arange(8))
    save_file({name: t.clone() for name, t in model.state_dict().items() if "scale" not in name}, tmp_path / "a.safetensors")
    spmd.checkpoint.Checkpoint.make(tmp_path / "a.safetensors", tmp_path / "b")
    other, other_optimizer = meta_model(Scale)
    other_optimizer.param_groups[0]["lr"] = 0.0
    resumed = spmd.compile(train_step, ranks=2, param_init_fn=init)
    resumed.load_checkpoint(tmp_path / "b", strict=False)
    resumed(other, other_optimizer, *batch())
    assert called == [Scale] and other.scale.factor.unique() == 1 and torch.equal(other.scale.order, torch.arange(8))
    assert torch.equal(other.fc.weight, model.fc.weight)


def broken(module):
    """Forgets the bias."""
    nn.init.ones_(module.weight)


@pytest.mark.parametrize("scale, init, error, message", [
    (Scale, None, ValueError, r"module 'scale' \(Scale\) is on the meta device: 'factor', 'order' cannot be initialized without "
                              r"reset_parameters\(\)\n  hint: add reset_parameters\(\) to the class"),
    (nn.Identity, lambda m: broken(m), ValueError,
     r"module 'norm' \(BatchNorm1d\): its initialization \(param_init_fn\) leaves 'bias' without a value"),
    (nn.Identity, 3, TypeError, "param_init_fn is 3; expected a function of a module")])
def test_mistakes(scale, init, error, message) -> None:
    model, optimizer = meta_model(scale)
    before = {name: id(t) for name, t in model.state_dict(keep_vars=True).items()}
    with pytest.raises(error, match=message):
        spmd.compile(train_step, param_init_fn=init)(model, optimizer, *batch())
    assert {name: id(t) for name, t in model.state_dict(keep_vars=True).items()} == before
    assert all(p.is_meta for p in model.parameters())


def test_weak_references() -> None:
    model, optimizer = meta_model()
    kept = weakref.ref(model.fc.weight)
    with pytest.raises(ValueError, match="'fc.weight' is on the meta device, and something has a weak reference to it"):
        spmd.compile(train_step)(model, optimizer, *batch())
    assert kept() is model.fc.weight and all(p.is_meta for p in model.parameters())


def test_optimizer_state_on_the_meta_device() -> None:
    model, optimizer = meta_model()
    for p in optimizer.param_groups[0]["params"]:
        optimizer.state[p] = {"step": torch.zeros(()), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
    with pytest.raises(ValueError, match="'optimizer/exp_avg/embed.weight' is on the meta device, and has no value"):
        spmd.compile(train_step)(model, optimizer, *batch())


def test_memory_is_given_back_until_it_is_used() -> None:
    """One copy of model and optimizer, that of the ranks; what is read at every step keeps its memory."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)
    twin, own = copy.deepcopy((model, optimizer))
    step = spmd.compile(train_step, ranks=2)
    for _ in range(2):
        step(model, optimizer, *batch())
        train_step(twin, own, *batch())
    assert bytes_of(model, optimizer) == 0
    torch.testing.assert_close(model.fc.weight, twin.fc.weight, rtol=1e-5, atol=1e-6)
    assert bytes_of(model, optimizer) == 4 * 24 * 8
    kept = model.fc.bias.data
    with step.unshard_params("head"):
        assert bytes_of(model, optimizer) == 4 * (24 * 8 + 24 + 24 * 16 + 16)
    assert bytes_of(model, optimizer) == 4 * (24 * 8 + 24)
    for _ in range(2):
        step(model, optimizer, *batch())
        train_step(twin, own, *batch())
    assert bytes_of(model, optimizer) == 4 * 24  # that of `kept`
    torch.testing.assert_close(kept, twin.fc.bias.data, rtol=1e-5, atol=1e-6)
    step.reset()
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(optimizer.state_dict()["state"], own.state_dict()["state"], rtol=1e-4, atol=1e-5)


def test_a_graph_does_not_look_where_nothing_is() -> None:
    """A backward through values from before steps is autograd's error, with memory given back as well."""
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    step = spmd.compile(train_step)
    step(model, optimizer, *batch())
    loss = F.cross_entropy(model(batch()[0]), batch()[1])
    for _ in range(2):
        step(model, optimizer, *batch())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_memory_of_others_stays() -> None:
    """That which is shared with other processes, and that which another library has given."""
    model = Net()
    model.fc.weight.data.share_memory_()
    model.head.weight.data = torch.from_numpy(model.head.weight.detach().numpy().copy())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    step = spmd.compile(train_step)
    for _ in range(3):
        step(model, optimizer, *batch())
    assert bytes_of(model, optimizer) == 4 * (24 * 8 + 24 * 16)
