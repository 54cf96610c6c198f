"""What a step does beside its results, in modules' code, hooks and autograd.Functions, forward and backward; and errors
that it catches: right, or an error that names the line."""
from __future__ import annotations

import functools
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import spmd

HERE = Path(__file__).resolve()
LOG: list = []
COUNTS = {"calls": 0}
KEPT: dict = {}
CALLS = 0
SUMS = torch.zeros(3)
ARRAY = np.zeros(2)


class Meter:
    total = 0
    last = None

    def __init__(self):
        self.count = 0

    def update(self):
        self.count += 1


METER = Meter()


def append(value):
    LOG.append(1)  # HERE append


def count(value):
    global CALLS
    CALLS += 1  # HERE count


def count_in_dict(value):
    COUNTS["calls"] += 1  # HERE count_in_dict


def count_in_class(value):
    Meter.total += 1  # HERE count_in_class


def count_in_method(value):
    METER.update()


def keep(value):
    KEPT["value"] = value  # HERE keep


def keep_in_class(value):
    Meter.last = value  # HERE keep_in_class


def write_tensor(value):
    SUMS.add_(1)  # HERE write_tensor


def write_traced(value):
    SUMS[0] = value.sum().detach()  # HERE write_traced


def write_array(value):
    ARRAY[0] += 1  # HERE write_array


def through_numpy(value):
    SUMS.numpy()[0] = 5.0  # HERE through_numpy


WRITES = {append: "number of entries of 'LOG'", count: "changes 'CALLS'", count_in_dict: "changes 'COUNTS",
          count_in_class: "changes 'Meter.total'", count_in_method: "changes 'METER.count'",
          keep: r"""stores a tensor in "KEPT\['value'\]\"""", keep_in_class: "stores a tensor in Meter.last",
          write_tensor: "aten.add_.Tensor writes into a tensor that is neither", write_array: "the state of 'ARRAY'",
          write_traced: "writes into a tensor that is neither", through_numpy: "converted to numpy"}


def double_forward(write):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            write(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2
    return Double


def double_backward(write):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.scale = 2  # the context is the function's own
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            write(gradient)
            return gradient * ctx.scale
    return Double


class Calls(nn.Module):
    """Its forward, or what that calls, writes."""

    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(4, 4), function

    def forward(self, x):
        return self.function(self.linear(x))


def build(place: str, write) -> nn.Module:
    """A model whose `place` calls `write`."""
    if place == "module":
        return Calls(lambda x: (write(x), x)[1])
    if place.startswith("function"):
        function = (double_forward if place == "function forward" else double_backward)(write)
        return Calls(lambda x: function.apply(x))
    model = nn.Sequential(nn.Linear(4, 4))
    if place == "forward hook":
        model[0].register_forward_hook(lambda module, inputs, output: write(output))
    elif place == "backward hook":
        model[0].register_full_backward_hook(lambda module, inputs, outputs: write(outputs[0]))
    else:
        model[0].weight.register_post_accumulate_grad_hook(lambda parameter: write(parameter.grad))
    return model


def finish(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def plain_step(model, optimizer, x):
    return finish(model(x).square().mean(), optimizer)


PLACES = ["module", "function forward", "function backward", "forward hook", "backward hook", "parameter hook"]


@pytest.mark.parametrize("place", PLACES)
def test_writes_outside_are_errors_at_their_line(place: str) -> None:
    for write, message in WRITES.items():
        LOG.clear(), KEPT.clear()
        Meter.last = None
        model = build(place, write)
        before = SUMS.clone()
        with pytest.raises(spmd.CaptureError, match=message) as error:
            spmd.capture(plain_step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
        if write is not count_in_method:
            line = next(n for n, text in enumerate(HERE.read_text().splitlines(), 1)
                        if text.endswith(f"# HERE {write.__name__}"))
            assert f'line {line}, in {write.__name__}' in str(error.value), (place, str(error.value))
        assert torch.equal(SUMS, before), "nothing was written for real"
    model = build(place, lambda value: None)
    assert spmd.capture(plain_step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4)).step["nodes"]


def set_number(module, value):
    module.calls = module.calls + 1


def set_tensor(module, value):
    module.last = value.detach()


def append_tensor(module, value):
    module.seen.append(value.detach())


@pytest.mark.parametrize("write, message", [(set_number, "changes '0.calls' from 0 to 1"),
                                            (set_tensor, "stores a tensor in '0.last'"),
                                            (append_tensor, "stores a tensor in '0.seen'")])
def test_attributes_that_hooks_set_on_torchs_modules(write, message: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    model[0].calls, model[0].seen = 0, []
    model[0].register_forward_hook(lambda module, inputs, output: write(module, output))
    with pytest.raises(spmd.CaptureError, match=message):
        spmd.capture(plain_step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
    assert model[0].calls == 0 and not hasattr(model[0], "last")


def test_old_weight_norm_sets_what_it_always_sets() -> None:
    model = nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(4, 4)), nn.RNN(4, 4), nn.Flatten())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model, optimizer, x):
        return finish(model[1](model[0](x))[0].square().mean(), optimizer)

    assert spmd.capture(step, model, optimizer, torch.randn(2, 3, 4)).step["nodes"]


def refused_operator(model, optimizer, x):
    loss = model(x).square().mean()
    for attempt in (lambda: x @ torch.ones(99, 3), lambda: loss.view(7), lambda: x.add_(torch.ones(17))):
        try:
            attempt()
        except RuntimeError:
            loss = loss * 2
    return finish(loss, optimizer)


def test_an_operator_that_raised_leaves_nothing() -> None:
    """It raises in eager, too, and the step goes on as it does there."""
    def build():
        torch.manual_seed(0)
        model = nn.Linear(4, 4)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    x = torch.randn(6, 4)
    ours, eager = build(), build()
    compiled = spmd.compile(refused_operator, ranks=2)
    for _ in range(2):
        torch.testing.assert_close(compiled(*ours, x), refused_operator(*eager, x), rtol=1e-5, atol=1e-6)
    forward = {node["op"] for node in compiled.package.step["nodes"] if node["phase"] == "forward"}
    assert "aten.addmm.default" in forward
    assert forward.isdisjoint({"aten.mm.default", "aten.view.default", "aten.add_.Tensor"})


def on_a_value(loss, x):
    return loss * 0.5 if loss > 3 else loss


def selecting(loss, x):
    return loss + x[x > 0].std()


def to_numpy(loss, x):
    return loss * float(loss.detach().numpy())


def as_array(loss, x):
    return loss * np.asarray(loss.detach()).item()


def as_number(loss, x):
    return loss * (1 / float(loss))


def as_text(loss, x):
    return loss * len(f"{loss:.3f}")


@pytest.mark.parametrize("use", [on_a_value, selecting, to_numpy, as_array, as_number, as_text])
def test_a_traces_own_error_ends_the_capture_whoever_catches_it(use) -> None:
    """Eager would not have raised, so the way that the step goes after it is not eager's."""
    def step(model, optimizer, x):
        loss = model(x).square().mean()
        try:
            loss = use(loss, x)
        except Exception:
            loss = loss * 2
        return finish(loss, optimizer)

    model = nn.Linear(4, 4)
    place = f"(?s)File \".*{re.escape(HERE.name)}\", line .*in {use.__name__}.*hint"
    with pytest.raises(spmd.CaptureError, match=place):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))


def test_a_tensors_memory_is_no_fakes() -> None:
    """np.asarray of a tensor that the step reaches gave what lay in no memory of it."""
    scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def step(model, optimizer, x):
        return finish((model(x) * float(np.asarray(scale).sum())).square().mean(), optimizer)

    model = nn.Linear(4, 4)
    with pytest.raises(spmd.CaptureError, match="numpy"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
    assert functools.reduce(lambda a, b: a + b, scale.numpy()) == 10.0


def scaled(model, optimizer, x, y):
    return train(model, optimizer, x.mul_(2.0), y)


def rows(model, optimizer, x, y):
    x[0].zero_()
    y[y > 0] = 1.0
    return train(model, optimizer, x, y)


def through_a_view(model, optimizer, x, y):
    x.view(-1)[::2].add_(1.0)
    return train(model, optimizer, x, y)


def when_done(model, optimizer, x, y):
    loss = train(model, optimizer, x, y)
    x.add_(loss.detach())
    return loss


def train(model, optimizer, x, y):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("step", [scaled, rows, through_a_view, when_done])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_batch_that_the_step_writes_is_written(step, ranks: int) -> None:
    runs = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        call = spmd.compile(step, ranks=ranks) if compiled else step
        batches = [(torch.randn(5, 4), torch.randn(5, 2)) for _ in range(3)]
        losses = torch.stack([call(model, optimizer, *batch).detach() for batch in batches])
        runs.append([losses, *(tensor for batch in batches for tensor in batch)])
    torch.testing.assert_close(runs[1], runs[0], rtol=1e-5, atol=1e-6)


def test_a_batch_that_cannot_be_written_is_an_error() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    both = torch.ones(6, 4)
    with pytest.raises(ValueError, match=r"writes into batch input 'x', which shares memory with batch input 'y'\n  hint"):
        spmd.compile(scaled, ranks=2)(model, optimizer, both, both)
    assert torch.equal(both, torch.ones(6, 4))
    package = spmd.capture(scaled, model, optimizer, torch.ones(6, 4), torch.zeros(6, 4))
    assert [output["path"] for output in package.step["outputs"]] == [""], "an artifact writes into no tensor of a caller"


def reduced_loss(loss):
    torch.distributed.reduce(loss, 0)


def exchanged(loss):
    torch.distributed.all_to_all_single(torch.zeros(1), loss.view(1))


@pytest.mark.parametrize("communicate", [reduced_loss, exchanged], ids=lambda f: f.__name__)
def test_collectives_of_the_users_are_errors_at_their_line(communicate) -> None:
    def step(model, optimizer, x):
        loss = finish(model(x).square().mean(), optimizer).detach().clone()
        communicate(loss)
        return loss

    model = nn.Linear(4, 4)
    if not (known := torch.distributed.is_initialized()):
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(spmd.CaptureError, match=rf"communicates between processes[^\0]*in {communicate.__name__}[^\0]*remove it"):
            spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
    finally:
        if not known:
            torch.distributed.destroy_process_group()


def draws_numpy(seeds_first):
    def step(model, optimizer, x):
        if not seeds_first:
            np.random.rand()
        np.random.seed(7)
        random.seed(3)
        return finish(model(x[np.random.permutation(6)]).square().mean() * random.random(), optimizer)
    return step


def test_a_generator_that_the_step_seeds_first(monkeypatch, tmp_path) -> None:
    """Draws are those of eager, and so is what is drawn between the calls."""
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    found = []
    for wrap in (lambda step: step, lambda step: spmd.compile(step, ranks=2)):
        torch.manual_seed(0)
        np.random.seed(1)
        step, model = wrap(draws_numpy(True)), nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.linspace(-1, 1, 24).reshape(6, 4)
        found.append([(step(model, optimizer, x).detach(), torch.tensor([np.random.rand(), random.random()]))
                      for _ in range(3)])
    torch.testing.assert_close(*found)
    model = nn.Linear(4, 4)
    with pytest.raises(spmd.CaptureError, match="seed them in the step before"):
        spmd.capture(draws_numpy(False), model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))


@functools.lru_cache(None)
def triangle(n: int) -> torch.Tensor:
    return torch.tril(torch.ones(n, n))


@functools.lru_cache(4)
def ramps(n: int) -> dict[str, torch.Tensor]:
    return {"up": torch.arange(float(n))}


def test_a_cache_that_a_trace_has_filled_forgets() -> None:
    """In later calls, compiled or not, nothing of a trace is in it; what was there before is."""
    def step(model, optimizer, x):
        loss = (model(x @ triangle(x.shape[1])) * ramps(4)["up"] * ramps(1)["up"].add(1)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for call in (step, spmd.compile(step, ranks=2)):
        triangle.cache_clear()
        ramps.cache_clear()
        ramps(4)
        torch.manual_seed(0)
        model = nn.Linear(3, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses.append([call(model, optimizer, torch.randn(6, 3)).item() for _ in range(3)])
        losses[-1] += [step(model, optimizer, torch.randn(6, 3)).item()]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("draw", [random.Random(0).random, random.Random(0).gauss, np.random.default_rng(0).random,
                                  np.random.RandomState(0).rand], ids=("random", "gauss", "numpy", "RandomState"))
def test_a_kept_method_of_a_generator_draws_once(draw) -> None:
    class Noise:
        def __init__(self):
            self.draw = draw

        def __call__(self, x):
            return x * (self.draw(0, 1) if "gauss" in str(self.draw) else self.draw())

    noise, model = Noise(), nn.Linear(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(noise(x)).sum()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(spmd.CaptureError, match=r"the step changes the state of '(noise\.)?draw'"):
        spmd.compile(step, ranks=1)(torch.randn(6, 3))
