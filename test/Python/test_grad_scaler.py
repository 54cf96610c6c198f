"""torch.amp.GradScaler in a compiled step, beside eager: what an infinity changes, the scale and its tracker, on any
number of ranks."""
from __future__ import annotations

import copy
import pickle
import re
import warnings
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from step_check import run, tool
from torch import nn

import spmd

ROWS = 8


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 6))


def scaler_of(**options: Any) -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", **{"init_scale": 1024.0, "growth_interval": 2, **options})


def batches(count: int, spoiled: dict[int, float]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """In the batches of `spoiled` one element has that value, in a row of the last rank."""
    torch.manual_seed(1)
    made = [(torch.randn(ROWS, 12), torch.randint(0, 6, (ROWS,))) for _ in range(count)]
    for index, value in spoiled.items():
        made[index][0][ROWS - 1, 3] = value
    return made


def documented(model, optimizer, scaler, x, y):
    """As PyTorch's documentation has it."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


def clipped(model, optimizer, scaler, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()
    return loss


def under_autocast(model, optimizer, scaler, x, y):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


def values(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    state = [v for p in model.parameters() for v in optimizer.state.get(p, {}).values() if isinstance(v, torch.Tensor)]
    return [tensor.detach().clone() for tensor in (*model.parameters(), *state)]


def check_beside_eager(step: Callable, make: Callable, ranks: int, data: list, tolerance: float = 2e-6,
                       **options: Any) -> list[float]:
    """Trains both ways and compares after every step: scales and trackers are equal, values close, and where eager's
    scale fell nothing else has changed. Gives eager's scales."""
    theirs, ours = network(), network()
    optimizers = make(theirs.parameters()), make(ours.parameters())
    scalers = scaler_of(**options), scaler_of(**options)
    compiled, scales = spmd.compile(step, ranks=ranks), [scalers[0].get_scale()]
    for index, (x, y) in enumerate(data):
        before = values(ours, optimizers[1])
        expected = step(theirs, optimizers[0], scalers[0], x, y)
        found = compiled(ours, optimizers[1], scalers[1], x, y)
        torch.testing.assert_close(found, expected, rtol=max(tolerance, 1e-5), atol=0, equal_nan=True)
        assert scalers[1].state_dict() == scalers[0].state_dict(), index
        scales.append(scalers[1].get_scale())
        after = values(ours, optimizers[1])
        if scales[-1] < scales[-2] and index:
            assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True)), index
        if optimizers[0].state:
            for a, b in zip(after, values(theirs, optimizers[0]), strict=True):
                torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    assert re.search(r"\b1 program\b", str(compiled)), compiled
    return scales


SPOILED = {0: float("nan"), 3: float("inf"), 4: float("-inf")}


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("make", [
    lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True), lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)], ids=["foreach", "fused", "sgd"])
@pytest.mark.sample(2)
def test_an_infinity_changes_nothing(make, ranks) -> None:
    scales = check_beside_eager(documented, make, ranks, batches(8, SPOILED))
    assert scales == [1024, 512, 512, 1024, 512, 256, 256, 512, 512]


@pytest.mark.parametrize("make", [lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
                                  lambda p: torch.optim.Adam(p, lr=0.01, fused=True)], ids=["foreach", "fused"])
def test_clipping_after_unscale(make) -> None:
    check_beside_eager(clipped, make, 2, batches(6, {2: float("inf")}))


def test_gradients_that_overflow_f16() -> None:
    """The scale falls until the scaled gradients are numbers in f16, and rises again. On one rank, because what
    overflows on several is a rank's own sum."""
    scales = check_beside_eager(under_autocast, lambda p: torch.optim.SGD(p, lr=0.1, foreach=True), 1, batches(12, {}),
                                tolerance=2.0**-10, init_scale=2.0**21)
    assert scales[1] < scales[0] and max(map(scales.count, scales)) < 6
    assert any(a < b for a, b in zip(scales, scales[1:]))


def test_a_scale_that_grows_past_the_largest_number() -> None:
    scales = check_beside_eager(documented, lambda p: torch.optim.SGD(p, lr=0.0), 2, batches(4, {}),
                                init_scale=2.0**127, growth_interval=1, growth_factor=3.0, backoff_factor=0.3)
    assert all(0 < scale < float("inf") for scale in scales)


def test_state_is_loaded_and_pickled() -> None:
    """A loaded scale and tracker are taken as they are; another factor is another program."""
    model = network()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), scaler_of()
    step = spmd.compile(documented, ranks=2)
    step(model, optimizer, scaler, *batches(1, {})[0])
    assert scaler.state_dict()["_growth_tracker"] == 1
    again = pickle.loads(pickle.dumps(scaler))
    assert again.state_dict() == scaler.state_dict()
    scaler.load_state_dict({**scaler.state_dict(), "scale": 8.0, "_growth_tracker": 1})
    step(model, optimizer, scaler, *batches(1, {})[0])
    assert (scaler.get_scale(), scaler.state_dict()["_growth_tracker"]) == (16.0, 0)
    scaler.update(new_scale=4.0)
    step(model, optimizer, scaler, *batches(1, {0: float("inf")})[0])
    assert scaler.get_scale() == 2.0 and "1 program" in str(step)
    scaler.set_backoff_factor(0.25)
    with pytest.warns(spmd.Remark, match="backoff_factor"):
        step(model, optimizer, scaler, *batches(1, {0: float("inf")})[0])
    assert scaler.get_scale() == 0.5 and "2 programs" in str(step)


class Trainer:
    """Two optimizers, one scaler, in `self`."""

    def __init__(self) -> None:
        self.model, self.scaler = network(), scaler_of()
        self.first = torch.optim.SGD(self.model[0].parameters(), lr=0.1)
        self.second = torch.optim.AdamW(self.model[2].parameters(), lr=0.01)

    def train(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        for optimizer in (self.first, self.second):
            self.scaler.step(optimizer)
        self.scaler.update()
        self.model.zero_grad()
        return loss


def test_two_optimizers_and_a_scaler_in_self() -> None:
    """Each skips its own step, and the scale falls where either did."""
    theirs, ours = Trainer(), Trainer()
    step = spmd.compile(ours.train, ranks=2)
    for x, y in batches(4, {2: float("inf")}):
        theirs.train(x, y)
        step(x, y)
        assert ours.scaler.state_dict() == theirs.scaler.state_dict()
    for a, b in zip(ours.model.parameters(), theirs.model.parameters()):
        torch.testing.assert_close(a, b, rtol=2e-6, atol=2e-6)


def test_captured_ahead_of_time(tmp_path) -> None:
    """One number more is reduced over the ranks; the interpreter agrees on any number of them."""
    model = network()
    package = spmd.capture(clipped, model, torch.optim.AdamW(model.parameters(), lr=0.01), scaler_of(),
                           *batches(1, {})[0])
    buffers = {i["name"]: i["dtype"] for i in package.step["inputs"] if i["kind"] == "buffer"}
    assert buffers == {"scaler.scale": "f32", "scaler.growth_tracker": "i32"}
    package.save(tmp_path / "s.step")
    base = tmp_path / "base.mlir"
    run(tool("spmd-translate"), "--import-step", tmp_path / "s.step", "-o", base)
    for ranks in (1, 2, 3):
        program = tmp_path / f"{ranks}.mlir"
        run(tool("spmd-compile"), tmp_path / "s.step", f"--ranks={ranks}", "--quiet",
            "--compile-to=collectives", "-o", program)
        run(tool("spmd-interpret"), program, f"--ranks={ranks}", f"--compare={base}", "--steps=3",
            "--rtol=1e-12")
    text = program.read_text()
    assert len(re.findall(r"spmd\.reduce_scatter", text)) == 1
    assert len(re.findall(r"spmd\.all_reduce\w* \[[^\]]*max", text)) == 1


def made_inside(model, optimizer, scaler, x, y):
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(F.cross_entropy(model(x), y)).backward()  # HERE
    scaler.step(optimizer)
    scaler.update()


def not_updated(model, optimizer, scaler, x, y):
    scaler.scale(F.cross_entropy(model(x), y)).backward()  # HERE
    scaler.step(optimizer)
    optimizer.zero_grad()


class OwnScaler(torch.amp.GradScaler):
    pass


@pytest.mark.parametrize("step, make, scaler, message", [
    (made_inside, torch.optim.SGD, scaler_of, "the step makes a GradScaler, which would begin anew at every call"),
    (not_updated, torch.optim.SGD, scaler_of, "the step uses a GradScaler and does not update it"),
    (documented, torch.optim.SGD, lambda: OwnScaler("cpu"), "OwnScaler has a way of its own to find infinities"),
    (documented, lambda p: torch.optim.SGD(p, momentum=0.9, dampening=0.5), scaler_of, "SGD with dampening")])
def test_what_is_refused_is_refused_at_the_line(step, make, scaler, message) -> None:
    model = network()
    before = copy.deepcopy(model.state_dict())
    with warnings.catch_warnings(), pytest.raises(spmd.CaptureError, match=message) as error:
        warnings.simplefilter("error")
        spmd.compile(step, ranks=2)(model, make(model.parameters()), scaler(), *batches(1, {})[0])
    assert __file__ in str(error.value) and "hint: " in str(error.value)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
