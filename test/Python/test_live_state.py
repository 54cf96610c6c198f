"""Model and optimizer of a compiled step are never stale: every way to read sees the ranks' values, every way to write
reaches them, and nothing is copied that nobody looked at."""
from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import random
import signal
import threading
import time
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from stand_ins import compiler  # noqa: F401

import spmd
from spmd import native


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 2)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        if self.training:
            self.calls.add_(1.0)
        return self.second(torch.tanh(self.first(x)))


class Pair:
    """A compiled training and its eager twin, some steps on; `step` does one of both."""

    def __init__(self, steps: int = 2, function=train_step, **options):
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.05)
        self.twin, self.twin_optimizer = copy.deepcopy((self.model, self.optimizer))
        self.function, self.compiled = function, spmd.compile(function, ranks=2, **options)
        self.batch = torch.randn(6, 4), torch.randn(6, 2)
        for _ in range(steps):
            self.step()

    def step(self, rows: int = 6) -> None:
        x, y = (tensor[:rows] for tensor in self.batch)
        loss = self.compiled(self.model, self.optimizer, x, y)
        expected = self.function(self.twin, self.twin_optimizer, x, y)
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-5, atol=1e-6)

    @property
    def log(self) -> list[str]:
        return self.compiled.trainer.log

    def check(self) -> None:
        torch.testing.assert_close(self.model.state_dict(), self.twin.state_dict(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(self.optimizer.state_dict()["state"], self.twin_optimizer.state_dict()["state"],
                                   rtol=1e-5, atol=1e-6)


@pytest.fixture
def pair(compiler) -> Pair:
    return Pair()


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


READS = {
    "method": lambda m, o, x: m.first.weight.sum(),
    "data": lambda m, o, x: m.first.weight.data,
    "detach": lambda m, o, x: m.first.weight.detach(),
    "index": lambda m, o, x: m.first.weight[1, 2],
    "numpy": lambda m, o, x: np.asarray(m.first.weight.detach()).copy(),
    "dlpack": lambda m, o, x: torch.from_dlpack(m.first.weight.detach()),
    "tolist": lambda m, o, x: m.first.weight.tolist(),
    "item": lambda m, o, x: m.first.bias[0].item(),
    "repr": lambda m, o, x: repr(m.calls),
    "operator": lambda m, o, x: m.first.weight * 2 + m.first.bias[0],
    "second operand": lambda m, o, x: torch.ones(6) + m.first.bias,
    "keyword": lambda m, o, x: torch.add(torch.ones(6), other=m.first.bias),
    "list": lambda m, o, x: torch.cat([m.first.bias, m.second.bias]),
    "foreach": lambda m, o, x: torch._foreach_norm(list(m.parameters())),
    "aten": lambda m, o, x: torch.ops.aten.sum.default(m.first.weight),
    "functional": lambda m, o, x: F.linear(x, m.first.weight, m.first.bias),
    "forward": lambda m, o, x: m.eval()(x),
    "module": lambda m, o, x: m.first(x),
    "functional_call": lambda m, o, x: torch.func.functional_call(m.eval(), dict(m.named_parameters()), (x,)),
    "vector": lambda m, o, x: torch.nn.utils.parameters_to_vector(m.parameters()),
    "clone": lambda m, o, x: [p.clone() for p in m.parameters()],
    "lerp": lambda m, o, x: torch.zeros(6, 4).lerp_(m.first.weight, 0.5),
    "copy_": lambda m, o, x: torch.zeros(6, 4).copy_(m.first.weight),
    "allclose": lambda m, o, x: torch.allclose(m.first.weight, m.first.weight.detach() + 0),
    "iterate": lambda m, o, x: [row.sum() for row in m.first.weight],
    "buffer": lambda m, o, x: m.calls + 0,
    "state_dict": lambda m, o, x: m.state_dict(),
    "module's state_dict": lambda m, o, x: m.second.state_dict(),
    "named_parameters": lambda m, o, x: {n: p.detach() for n, p in m.named_parameters()},
    "deepcopy": lambda m, o, x: copy.deepcopy(m).state_dict(),
    "deepcopy of one": lambda m, o, x: copy.deepcopy(m.first.weight).detach(),
    "copy": lambda m, o, x: copy.copy(m.first.bias).detach(),
    "pickle": lambda m, o, x: pickle.loads(pickle.dumps(m)).state_dict(),
    "save": lambda m, o, x: saved(m).state_dict(),
    "save of one": lambda m, o, x: saved(m.first.weight).detach(),
    "save of both": lambda m, o, x: saved({"model": m.state_dict(), "optimizer": o.state_dict()}),
    "optimizer.state_dict": lambda m, o, x: o.state_dict()["state"],
    "optimizer.state": lambda m, o, x: o.state[m.first.weight]["exp_avg_sq"] + 0,
    "step counter": lambda m, o, x: o.state[m.first.weight]["step"].item(),
    "optimizer deepcopied": lambda m, o, x: copy.deepcopy((m, o))[1].state_dict()["state"],
    "gradient of a read": lambda m, o, x: torch.autograd.grad(m.first(x).sum(), m.first.weight)[0],
    "vmap": lambda m, o, x: torch.vmap(lambda row: m.second(torch.tanh(m.first(row))))(x),
    "to": lambda m, o, x: m.first.weight.to(torch.float64),
    "double": lambda m, o, x: copy.deepcopy(m).double().first.weight.detach(),
    "norm of all": lambda m, o, x: torch.nn.utils.get_total_norm([p.detach() for p in m.parameters()]),
}


def same(a, b) -> None:
    if isinstance(a, str):
        assert a == b
    else:
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_every_read_is_live(pair) -> None:
    for name, read in READS.items():
        pair.model.train(), pair.twin.train()
        pair.step()
        with torch.set_grad_enabled(name in ("gradient of a read", "module")):
            ours = read(pair.model, pair.optimizer, pair.batch[0])
            theirs = read(pair.twin, pair.twin_optimizer, pair.batch[0])
        try:
            same(ours, theirs)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    pair.check()


def test_nothing_is_copied_that_nobody_reads(pair) -> None:
    pair.step()
    assert pair.log[-3:] == ["run", "run", "run"]
    pair.model.first.bias.sum()
    pair.step()
    assert pair.log[3:] == ["read first.bias", "write first.bias", "run"]
    pair.step()
    assert pair.log[6:] == ["run"]


def test_what_a_tensor_is_does_not_fetch_it(pair) -> None:
    p, buffer = pair.model.first.weight, pair.model.calls
    assert p.shape == (6, 4) and p.dtype == torch.float32 and p.requires_grad and p.is_leaf and p.grad is None
    assert p.numel() == 24 and p.dim() == 2 and p.stride() == (4, 1) and len(p) == 6 and not p.is_cuda
    assert isinstance(p, torch.nn.Parameter) and isinstance(buffer, torch.Tensor) and buffer.device.type == "cpu"
    assert sum(p.numel() for p in pair.model.parameters()) == 44
    repr(pair.model)
    pair.model.zero_grad(), pair.optimizer.zero_grad(), pair.model.train()
    assert pair.log == ["run", "run"]


def test_a_read_tensor_is_as_it_was(pair) -> None:
    p = pair.model.first.weight
    p.mark = "kept"
    pair.step()
    p.sum()
    assert type(p) is torch.nn.Parameter and vars(p) == {"mark": "kept"}
    assert type(pair.model.calls + 0) is torch.Tensor
    assert {p} == {pair.model.first.weight}


def write_all(model, optimizer) -> None:
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.full_like(p, 0.25))


WRITES = {
    "copy_": write_all,
    "data": lambda m, o: m.first.weight.data.copy_(torch.ones(6, 4)),
    "other data": lambda m, o: setattr(m.first.weight, "data", torch.ones(6, 4)),
    "init": lambda m, o: torch.nn.init.ones_(m.first.weight),
    "item": lambda m, o: m.first.weight.data.__setitem__((1, 2), 3.0),
    "numpy": lambda m, o: m.first.weight.detach().numpy().fill(0.5),
    "foreach": lambda m, o: torch._foreach_mul_([p.data for p in m.parameters()], 0.5),
    "buffer": lambda m, o: m.calls.fill_(7.0),
    "load_state_dict": lambda m, o: m.load_state_dict({n: torch.full_like(t, 0.1) for n, t in m.state_dict().items()}),
    "vector": lambda m, o: torch.nn.utils.vector_to_parameters(torch.linspace(-1, 1, 44), m.parameters()),
    "apply": lambda m, o: m.apply(lambda module: [p.data.mul_(2) for p in module.parameters(recurse=False)]),
    "optimizer state": lambda m, o: o.state[m.first.weight]["exp_avg"].zero_(),
    "optimizer.load_state_dict": lambda m, o: o.load_state_dict({
        "state": {k: {n: t + 1.0 for n, t in s.items()} for k, s in o.state_dict()["state"].items()},
        "param_groups": o.state_dict()["param_groups"]}),
    "its own state": lambda m, o: o.load_state_dict(o.state_dict()),
    "a copied state": lambda m, o: o.load_state_dict(copy.deepcopy(o.state_dict())),
    "lr": lambda m, o: o.param_groups[0].update(lr=0.01),
    "lr tensor": lambda m, o: o.param_groups[0].update(lr=torch.tensor(0.02)),
    "eager step": lambda m, o: train_step(m, o, torch.ones(3, 4), torch.ones(3, 2)),
}


def test_every_write_reaches_the_ranks(pair) -> None:
    for name, write in WRITES.items():
        pair.step()
        write(pair.model, pair.optimizer)
        write(pair.twin, pair.twin_optimizer)
        try:
            pair.step()
            pair.check()
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    assert pair.compiled.compiles == 1


def test_a_kept_alias_stays_live(pair) -> None:
    kept, twins = pair.model.state_dict(), pair.twin.state_dict()
    array = pair.model.second.bias.detach().numpy()
    for _ in range(2):
        pair.step()
        torch.testing.assert_close(kept, twins, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(array, pair.twin.second.bias.detach().numpy(), atol=1e-6)
    kept["first.weight"].fill_(0.5)
    twins["first.weight"].fill_(0.5)
    pair.step()
    pair.check()
    del kept, twins, array
    pair.step()
    before = len(pair.log)
    pair.step()
    assert pair.log[before:] == ["run"]


def test_other_parameters_start_anew(pair) -> None:
    state = {name: torch.full_like(value, 0.1) for name, value in pair.model.state_dict().items()}
    for model, optimizer in ((pair.model, "optimizer"), (pair.twin, "twin_optimizer")):
        model.load_state_dict(copy.deepcopy(state), assign=True)
        setattr(pair, optimizer, torch.optim.AdamW(model.parameters(), lr=0.05))
    pair.compiled.reset()
    pair.step()
    pair.check()
    pair.model.load_state_dict(copy.deepcopy(state), assign=True)
    with pytest.warns(spmd.Remark, match="parameters or optimizer state were replaced"):
        with pytest.raises(spmd.CaptureError, match="no parameter of the model"):
            pair.compiled(pair.model, pair.optimizer, *pair.batch)


def test_a_cleared_optimizer_starts_anew(pair) -> None:
    for optimizer in (pair.optimizer, pair.twin_optimizer):
        optimizer.state.clear()
    with pytest.warns(spmd.Remark, match="were replaced"):
        pair.step()
    pair.check()
    assert pair.optimizer.state[pair.model.first.weight]["step"] == 1


def accumulating_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("clear", [lambda o: None, lambda o: o.zero_grad(), lambda o: o.zero_grad(set_to_none=False)])
def test_gradients_that_outlive_the_step(compiler, clear) -> None:
    pair = Pair(steps=1, function=accumulating_step)
    for _ in range(3):
        clear(pair.optimizer), clear(pair.twin_optimizer)
        pair.step()
        with torch.no_grad():
            torch.testing.assert_close(pair.model.first.weight.grad + 0, pair.twin.first.weight.grad + 0, rtol=1e-5,
                                       atol=1e-6)
    pair.check()


def clearing_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def test_a_gradient_that_is_left_and_not_kept_says_so(compiler) -> None:
    pair = Pair(steps=2, function=clearing_step)
    p = pair.model.first.weight
    assert p.grad is not None and p.grad.shape == p.shape
    with pytest.raises(RuntimeError, match="leaves in parameter 'first.weight' is not kept on the ranks"):
        p.grad.norm()
    for clear in (lambda: None, pair.optimizer.zero_grad, lambda: pair.optimizer.zero_grad(set_to_none=False),
                  lambda: pair.model(pair.batch[0]).sum().backward()):
        clear()
        pair.step()
        pair.twin.load_state_dict(pair.model.state_dict())  # the backward counted a call
    pair.compiled.reset()
    assert p.grad is None
    pair.step()
    pair.check()


def test_a_gradient_from_outside_is_added_to(pair) -> None:
    for _ in range(2):
        for model in (pair.model, pair.twin):
            model(pair.batch[0]).sum().backward()
        pair.step()
        pair.check()
        pair.step()
        pair.check()
    assert pair.compiled.compiles == 2 and len(pair.compiled.training_state.programs) == 1  # which has taken the place of the first
    pair.model.first.bias.requires_grad_(False).grad = torch.ones(6)
    with pytest.raises(ValueError, match="'first.bias' has a gradient, and is frozen\n  hint: clear it"):
        pair.compiled(pair.model, pair.optimizer, *pair.batch)


def test_a_backward_over_old_values_is_refused(pair) -> None:
    loss = pair.model(pair.batch[0]).sum()
    pair.compiled(pair.model, pair.optimizer, *pair.batch)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_several_shapes_share_the_state(compiler) -> None:
    pair = Pair(steps=1)
    for rows in (4, 6, 4, 2, 6):
        pair.step(rows)
    trainers = [p.trainer for p in pair.compiled.training_state.programs]
    assert len(trainers) == pair.compiled.compiles == 3
    for trainer in trainers:
        trainer.log.clear()
    for rows in (4, 6, 2):
        pair.step(rows)
    assert [trainer.log for trainer in trainers] == [["run"]] * 3
    pair.check()


def test_programs_with_another_state_take_it_along(compiler) -> None:
    """amsgrad keeps one tensor more."""
    pair = Pair(steps=2)
    for amsgrad in (True, True, False, True):
        for model, optimizer in ((pair.model, pair.optimizer), (pair.twin, pair.twin_optimizer)):
            optimizer.param_groups[0]["amsgrad"] = amsgrad
            for p in model.parameters():
                if amsgrad and "max_exp_avg_sq" not in optimizer.state[p]:
                    optimizer.state[p]["max_exp_avg_sq"] = torch.zeros_like(p)
        pair.step()
        pair.check()
    assert pair.compiled.compiles == 2


def test_compiling_again_when_only_optimizer_state_is_away(compiler) -> None:
    pair = Pair()
    kept = pair.model.state_dict()  # whose parameters come back after every step
    for optimizer in (pair.optimizer, pair.twin_optimizer):
        optimizer.param_groups[0]["weight_decay"] = 0.3
    pair.step()
    pair.check()
    torch.testing.assert_close(dict(kept), dict(pair.twin.state_dict()), rtol=1e-5, atol=1e-6)
    assert pair.compiled.compiles == 2


def test_changed_constants_and_hooks(compiler) -> None:
    """What the modules' code reads, and hooks that come and go: another program each, and the first one again."""
    pair = Pair(steps=1)
    for model in (pair.model, pair.twin):
        handles = [model.register_forward_hook(lambda module, inputs, output: output * 2.0) for _ in range(1)]
        model.spmd_test_handle = handles[0]
    pair.step()
    pair.check()
    assert pair.compiled.compiles == 2
    for model in (pair.model, pair.twin):
        model.spmd_test_handle.remove()
        next(model.parameters()).register_hook(lambda gradient: gradient * 0.5)
    pair.step()
    pair.check()
    assert pair.compiled.compiles == 3


def test_max_compiles(compiler) -> None:
    pair = Pair(steps=1, max_compiles=2)
    with pytest.warns(spmd.Remark,
                      match=r"compiled again: the batch is x\[5, 4\], y\[5, 2\], it was x\[6, 4\], y\[6, 2\]"):
        pair.step(5)
    before = copy.deepcopy(pair.model.state_dict())
    with pytest.raises(RuntimeError,
                       match=r"(?s)compiled 2 times.*\n  x\[6, 4\].*\n  the batch is x\[5, 4\].*\nnow: the batch is x\[4, 4\]"):
        pair.compiled(pair.model, pair.optimizer, *(t[:4] for t in pair.batch))
    torch.testing.assert_close(pair.model.state_dict(), before, rtol=0, atol=0)
    pair.step(5)
    pair.check()


def fail(code: int, message: bytes):
    def run(batch):
        raise spmd.RunError(native.Status(code=code, message=message))
    return run


def test_a_refused_batch_leaves_the_state(pair, monkeypatch) -> None:
    with monkeypatch.context() as context:
        context.setattr(pair.compiled.trainer, "issue", fail(native.BAD_INPUT, b"value 65 is not a row id"))
        with pytest.raises(spmd.RunError, match="65"):
            pair.compiled(pair.model, pair.optimizer, *pair.batch)
        pair.model.first.bias.data.fill_(0.5)
        pair.twin.first.bias.data.fill_(0.5)
    pair.step()
    pair.check()


def test_a_failed_step_loses_the_state_and_says_so(pair, monkeypatch, tmp_path) -> None:
    torch.save({"model": pair.model.state_dict(), "optimizer": pair.optimizer.state_dict()}, tmp_path / "checkpoint")
    pair.model.first.bias.sum()
    with monkeypatch.context() as context:
        context.setattr(pair.compiled.trainer, "issue", fail(native.FAILED, b"rank 1 exited at command 7"))
        with pytest.raises(spmd.RunError, match="rank 1 exited"):
            pair.compiled(pair.model, pair.optimizer, *pair.batch)
    for read in (lambda: pair.model.first.bias.sum(), pair.model.state_dict, lambda: pair.model(pair.batch[0]),
                 lambda: pickle.dumps(pair.optimizer.state_dict()), pair.compiled.sync,
                 lambda: pair.compiled(pair.model, pair.optimizer, *pair.batch)):
        with pytest.raises(spmd.StateLostError,
                           match="(?s)step 2 failed on the ranks.*rank 1 exited.*\n  hint: call reset()"):
            read()
    assert "state lost" in repr(pair.compiled)
    pair.compiled.reset()
    checkpoint = torch.load(tmp_path / "checkpoint")
    pair.model.load_state_dict(checkpoint["model"])
    pair.optimizer.load_state_dict(checkpoint["optimizer"])
    pair.step()
    pair.check()


def test_after_a_lost_state_the_optimizer_begins_anew_where_it_was_never_read(pair, monkeypatch) -> None:
    """What the ranks alone knew is gone: no tensor is left that never had a value."""
    values = {name: tensor.clone() for name, tensor in pair.model.state_dict().items()}  # the last that are read
    with monkeypatch.context() as context:
        context.setattr(pair.compiled.trainer, "issue", fail(native.FAILED, b"rank 1 exited at command 7"))
        with pytest.raises(spmd.RunError, match="rank 1 exited"):
            pair.compiled(pair.model, pair.optimizer, *pair.batch)
    pair.compiled.reset()
    torch.testing.assert_close(dict(pair.model.state_dict()), values, rtol=0, atol=0)
    assert not any(pair.optimizer.state.values())
    pair.twin.load_state_dict(values)
    pair.twin_optimizer.state.clear()
    pair.step()
    pair.check()


def failed(pair, monkeypatch) -> None:
    with monkeypatch.context() as context:
        context.setattr(pair.compiled.trainer, "issue", fail(native.FAILED, b"rank 1 exited at command 7"))
        with pytest.raises(spmd.RunError, match="rank 1 exited"):
            pair.compiled(pair.model, pair.optimizer, *pair.batch)


def test_a_lost_value_is_never_trained_on(pair, monkeypatch) -> None:
    """What nobody had read before the step is nan, and a call is refused until it has been loaded."""
    pair.step()
    saved = copy.deepcopy((pair.twin.state_dict(), pair.twin_optimizer.state_dict()))
    pair.model.first.bias.sum()
    failed(pair, monkeypatch)
    pair.compiled.reset()
    bias = pair.model.first.bias
    torch.testing.assert_close(bias, pair.twin.first.bias, rtol=1e-5, atol=1e-6)
    assert pair.model.first.weight.isnan().all() and pair.model.calls.isnan().all()
    message = r"(?s)first.weight, second.weight, second.bias, calls lost their values when a step.*\n  hint: load_checkpoint"
    with pytest.raises(spmd.StateLostError, match=message):
        pair.compiled(pair.model, pair.optimizer, *pair.batch)
    for name, value in saved[0].items():
        if name != "calls":
            pair.model.state_dict()[name].data.copy_(value)
    with pytest.raises(spmd.StateLostError, match="^calls lost their values"):
        pair.compiled(pair.model, pair.optimizer, *pair.batch)
    pair.model.load_state_dict(saved[0])
    with pytest.warns(spmd.Remark, match="the optimizer's state of first.weight, .* was lost when .* and begins anew"):
        pair.compiled(pair.model, pair.optimizer, *pair.batch)


def test_state_that_was_loaded_before_reset_is_kept(pair, monkeypatch) -> None:
    saved = copy.deepcopy((pair.twin.state_dict(), pair.twin_optimizer.state_dict()))
    failed(pair, monkeypatch)
    pair.optimizer.load_state_dict(saved[1])
    pair.compiled.reset()
    pair.model.load_state_dict(saved[0])
    pair.step()
    pair.check()


def test_a_call_walks_once_over_the_optimizers_states(pair, monkeypatch) -> None:
    """Whether they were replaced is asked, and what was is taken: both of one walk, also of other programs."""
    asked = []
    find = spmd.capture.optimizer.optimizers.Optimizers.state_of
    monkeypatch.setattr(spmd.capture.optimizer.optimizers.Optimizers, "state_of",
                        lambda self, parameter: asked.append(parameter) or find(self, parameter))
    parameters = list(pair.model.parameters())
    for replaces in (False, True, False):
        if replaces:
            state = pair.optimizer.state[parameters[0]], pair.twin_optimizer.state[next(pair.twin.parameters())]
            for one in state:
                one["exp_avg"] = one["exp_avg"] * 0.5
        asked.clear()
        pair.compiled(pair.model, pair.optimizer, *pair.batch)
        assert sorted(map(id, asked)) == sorted(map(id, parameters))
        train_step(pair.twin, pair.twin_optimizer, *pair.batch)
    pair.check()
    # Between the walk and the step another program is compiled, and what was replaced is taken all the same.
    for state in (pair.optimizer.state[parameters[1]], pair.twin_optimizer.state[list(pair.twin.parameters())[1]]):
        state["exp_avg"] = state["exp_avg"] * 0.5
    pair.step(rows=4)
    pair.step()
    pair.check()


def test_an_interrupt_waits_for_the_end_of_the_step(pair, monkeypatch, request) -> None:
    """Ctrl-C while the ranks work, and while a tensor is fetched: what was begun is finished, and nothing is stale."""
    # A shell starts what runs in the background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    run, read = pair.compiled.trainer.issue, pair.compiled.trainer.read

    def interrupted(function):
        def call(*args, **kwargs):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):
                pass  # where Python would raise
            return function(*args, **kwargs)
        return call

    for p in (pair.model.first.weight, pair.twin.first.weight):
        p.data.mul_(0.5)  # here, and to go to the ranks
    with monkeypatch.context() as context:
        context.setattr(pair.compiled.trainer, "issue", interrupted(run))
        with pytest.raises(KeyboardInterrupt):
            pair.compiled(pair.model, pair.optimizer, *pair.batch)
    train_step(pair.twin, pair.twin_optimizer, *pair.batch)
    assert pair.compiled.steps == 3
    with monkeypatch.context() as context:
        context.setattr(pair.compiled.trainer, "read", interrupted(read))
        with pytest.raises(KeyboardInterrupt):
            pair.model.first.weight.sum()
    same(pair.model.first.weight.detach(), pair.twin.first.weight.detach())
    pair.step()
    pair.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_at_any_moment(pair, request) -> None:
    """Ctrl-C from outside, before, in and after a step: a step is done or it is not, and training goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    rng, interrupts = random.Random(0), 0
    for _ in range(20):
        done = pair.compiled.steps
        timer = threading.Timer(rng.uniform(0, 0.004), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            pair.compiled(pair.model, pair.optimizer, *pair.batch)
            time.sleep(10)
        except KeyboardInterrupt:
            interrupts += 1
        for _ in range(pair.compiled.steps - done):
            train_step(pair.twin, pair.twin_optimizer, *pair.batch)
    assert interrupts == 20
    pair.step()
    pair.check()


def test_a_checkpoint_is_eagers(pair, tmp_path, compiler) -> None:
    """Written from a compiled training, it resumes plain PyTorch, and the other way round."""
    torch.save({"model": pair.model.state_dict(), "optimizer": pair.optimizer.state_dict()}, tmp_path / "ours")
    torch.save({"model": pair.twin.state_dict(), "optimizer": pair.twin_optimizer.state_dict()}, tmp_path / "eagers")
    ours, eagers = torch.load(tmp_path / "ours"), torch.load(tmp_path / "eagers")
    assert list(ours["model"]) == list(eagers["model"])
    assert ours["optimizer"]["param_groups"] == eagers["optimizer"]["param_groups"]
    for a, b in zip(ours["optimizer"]["state"].values(), eagers["optimizer"]["state"].values(), strict=True):
        assert [(n, t.dtype, t.shape, t.device) for n, t in a.items()] == \
            [(n, t.dtype, t.shape, t.device) for n, t in b.items()]
    resumed = Pair(steps=0)
    resumed.model.load_state_dict(eagers["model"])
    resumed.optimizer.load_state_dict(eagers["optimizer"])
    resumed.twin.load_state_dict(ours["model"])
    resumed.twin_optimizer.load_state_dict(ours["optimizer"])
    for _ in range(2):
        pair.step(), resumed.step()
    resumed.check()
    torch.testing.assert_close(resumed.model.state_dict(), pair.model.state_dict(), rtol=1e-5, atol=1e-6)


def test_the_values_outlive_the_compiled_step(pair) -> None:
    del pair.compiled
    gc.collect()
    pair.check()


def test_nothing_keeps_the_model(compiler) -> None:
    pair = Pair()
    model, trainer = weakref.ref(pair.model), weakref.ref(pair.compiled.trainer)
    del pair
    gc.collect()
    assert model() is None and trainer() is None


def test_another_thread_reads_whole_steps(pair) -> None:
    """A checkpoint from another thread waits for the step that runs, and sees one step's values."""
    counts, stop = [], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            state = pair.optimizer.state[pair.model.first.weight]["step"]
            counts.append(state.item())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        pair.step()
    stop.set()
    watcher.join()
    assert counts == sorted(counts)
    pair.check()


def test_a_forked_child_reads(pair) -> None:
    pair.step()
    child = os.fork()
    if child == 0:
        same_values = torch.allclose(pair.model.first.weight, pair.twin.first.weight, atol=1e-6)
        os._exit(0 if same_values else 1)
    assert os.waitpid(child, 0)[1] == 0
