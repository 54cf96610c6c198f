"""What the Python of a step reads is guarded, and what it writes is written by each call, wherever it is and however the code gets there."""
from __future__ import annotations

import argparse
import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import json
import operator
import os
import tempfile
import types
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import prune
from torch.testing._internal.distributed.fake_pg import FakeStore

import spmd
from spmd.capture.world.reads import files

ROWS, CALLS = 4, 4
GLOBAL = 1.0
CONTEXT: contextvars.ContextVar[float] = contextvars.ContextVar("scale", default=1.0)
settings = types.ModuleType("settings")


@dataclasses.dataclass
class Options:
    scale: float = 1.0


class Slotted:
    __slots__ = ("scale",)

    def __init__(self) -> None:
        self.scale = 1.0


class Parent:
    gain = 1.0

    def weight(self) -> float:
        return self.scale


class OfParent(Parent):
    def __init__(self) -> None:
        self.scale = 1.0

    def weight(self) -> float:
        return super().weight() * super().gain


class Doubled(OfParent):
    def weight(self) -> float:
        return 2 * self.scale


class Computed:
    def __init__(self) -> None:
        self.inner = {"scale": 1.0}

    @property
    def scale(self) -> float:
        return self.inner["scale"]

    def __getattr__(self, name: str) -> float:
        if name == "other":
            return self.__dict__["inner"]["scale"]
        raise AttributeError(name)


class Meta(type):
    gain = 1.0


class OfClass(metaclass=Meta):
    scale = 1.0


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0


class Mode(enum.Enum):
    A = 1.0


def make_file() -> Path:
    path = Path(tempfile.mkdtemp()) / "scale"
    path.write_text("1.0")
    return path


def handed(owner: Any) -> float:
    return owner.scale


def make_closure() -> tuple[Callable[[], float], Callable[[float], None]]:
    scale = 1.0

    def read() -> float:
        return scale

    def write(value: float) -> None:
        nonlocal scale
        scale = value
    return read, write


# Each case: makes an object, reads a number of it in the step, and sets the number between calls.
CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], float], Callable[[Any, float], None]]] = {
    "attribute": (Options, lambda o: o.scale, lambda o, v: setattr(o, "scale", v)),
    "getattr": (Options, lambda o: getattr(o, "sca" + "le"), lambda o, v: setattr(o, "scale", v)),
    "vars": (Options, lambda o: vars(o)["scale"], lambda o, v: setattr(o, "scale", v)),
    "table": (Options, lambda o: o.__dict__.get("scale", 3.0), lambda o, v: setattr(o, "scale", v)),
    "object's getattribute": (Options, lambda o: object.__getattribute__(o, "scale"), lambda o, v: setattr(o, "scale", v)),
    "function": (Options, handed, lambda o, v: setattr(o, "scale", v)),
    "attrgetter": (Options, operator.attrgetter("scale"), lambda o, v: setattr(o, "scale", v)),
    "copy": (Options, lambda o: copy.copy(o).scale, lambda o, v: setattr(o, "scale", v)),
    "asdict": (Options, lambda o: dataclasses.asdict(o)["scale"], lambda o, v: setattr(o, "scale", v)),
    "branches": (lambda: [Options(), Options()], lambda o: (o[0] if len(o) > 1 else o[1]).scale, lambda o, v: setattr(o[0], "scale", v)),
    "slot": (Slotted, lambda o: o.scale, lambda o, v: setattr(o, "scale", v)),
    "super": (OfParent, lambda o: o.weight(), lambda o, v: setattr(o, "scale", v)),
    "super's attribute": (OfParent, lambda o: o.weight(), lambda o, v: setattr(Parent, "gain", v)),
    "property": (Computed, lambda o: o.scale, lambda o, v: o.inner.update(scale=v)),
    "fallback": (Computed, lambda o: o.other, lambda o, v: o.inner.update(scale=v)),
    "class": (lambda: OfClass, lambda o: o.scale, lambda o, v: setattr(OfClass, "scale", v)),
    "class of an object": (OfClass, lambda o: o.scale, lambda o, v: setattr(OfClass, "scale", v)),
    "metaclass": (lambda: OfClass, lambda o: o.gain, lambda o, v: setattr(Meta, "gain", v)),
    "closure": (make_closure, lambda o: o[0](), lambda o, v: o[1](v)),
    "global": (lambda: None, lambda o: GLOBAL, lambda o, v: globals().update(GLOBAL=v)),
    "module": (lambda: None, lambda o: settings.scale, lambda o, v: setattr(settings, "scale", v)),
    "environment": (lambda: None, lambda o: float(os.environ.get("SPMD_TEST_SCALE", 1.0)), lambda o, v: os.environ.update(SPMD_TEST_SCALE=str(v))),
    "context variable": (lambda: None, lambda o: CONTEXT.get(), lambda o, v: CONTEXT.set(v)),
    "namespace": (lambda: argparse.Namespace(scale=1.0), lambda o: o.scale, lambda o, v: setattr(o, "scale", v)),
    "dict": (lambda: {"a": 1.0}, lambda o: o["ab"[0]], lambda o, v: o.update(a=v)),
    "items": (lambda: {"a": {"b": 1.0}}, lambda o: sum(x for _, inner in o.items() for x in inner.values()), lambda o, v: o["a"].update(b=v)),
    "keywords": (lambda: {"a": 1.0}, lambda o: (lambda a: a)(**o), lambda o, v: o.update(a=v)),
    "list": (lambda: [1.0, 2.0], lambda o: max(o) - 1, lambda o, v: operator.setitem(o, 1, v + 1)),
    "list in a list": (lambda: [[1.0]], lambda o: sum(sum(x) for x in o), lambda o, v: operator.setitem(o[0], 0, v)),
    "unpacking": (lambda: [1.0, 2.0], lambda o: (lambda a, b: a)(*o), lambda o, v: operator.setitem(o, 0, v)),
    "deque": (lambda: collections.deque([1.0]), lambda o: o[0], lambda o, v: (o.clear(), o.append(v))),
    "set": (lambda: {1.0}, lambda o: 2.0 if 2.0 in o else 1.0, lambda o, v: (o.clear(), o.add(v))),
    "size": (lambda: [0], lambda o: float(len(o)), lambda o, v: o.extend([0] * int(v - 1))),
    "is empty": (lambda: [], lambda o: 2.0 if o else 1.0, lambda o, v: o.extend([0] * int(v - 1))),
    "chain map": (lambda: collections.ChainMap({}, {"a": 1.0}), lambda o: o["a"], lambda o, v: o.update(a=v)),
    "array": (lambda: np.ones(2), lambda o: float(o[1]), lambda o, v: operator.setitem(o, 1, v)),
    "partial": (lambda: [functools.partial(float, 1.0)], lambda o: o[0](), lambda o, v: operator.setitem(o, 0, functools.partial(float, v))),
    "method in an attribute": (lambda: argparse.Namespace(f=Options(1.0).__eq__, o=Options()), lambda o: 1.0 if o.f(Options()) else 2.0,
                               lambda o, v: setattr(o, "f", Options(v).__eq__)),
    "function in an attribute": (lambda: argparse.Namespace(f=lambda: 1.0), lambda o: o.f(), lambda o, v: setattr(o, "f", lambda: 1.0 * v)),
    "layers": (lambda: nn.ModuleList([Layer(), Layer()]), lambda o: sum(x.scale for x in o) / 2, lambda o, v: [setattr(x, "scale", v) for x in o]),
    "layer of a dict": (lambda: nn.ModuleDict({"a": Layer()}), lambda o: o["a"].scale, lambda o, v: setattr(o["a"], "scale", v)),
    "class of the owner": (lambda: argparse.Namespace(o=OfParent()), lambda o: o.o.weight(),
                           lambda o, v: setattr(o.o, "__class__", Doubled if v > 1 else OfParent)),
    "missing": (argparse.Namespace, lambda o: 2.0 if hasattr(o, "scale") else 1.0, lambda o, v: v > 1 and setattr(o, "scale", v)),
    "raised": (argparse.Namespace, lambda o: read_or_one(o), lambda o, v: v > 1 and setattr(o, "scale", v)),
    "method of a dict": (lambda: argparse.Namespace(get={"a": 1.0}.get), lambda o: o.get("a"), lambda o, v: o.get.__self__.update(a=v)),
    "method of a dict in map": (lambda: {"a": 1.0}, lambda o: list(map(o.__getitem__, ["a"]))[0], lambda o, v: o.update(a=v)),
    "attribute of a function": (lambda: make_closure()[0], lambda o: vars(o).get("scale", 1.0), lambda o, v: setattr(o, "scale", v)),
    "pattern": (Options, lambda o: matched(o), lambda o, v: setattr(o, "scale", v)),
    "value of an enum": (lambda: Mode, lambda o: o.A.value, lambda o, v: setattr(o.A, "_value_", v)),
    "file": (make_file, lambda o: float(open(o).read()), lambda o, v: o.write_text(str(v))),
    "whether a file is there": (make_file, lambda o: 1.0 if o.exists() else 2.0, lambda o, v: o.unlink() if v > 1 else o.write_text("")),
}


def matched(owner: Any) -> float:
    match owner:
        case Options(scale):
            return scale
    return 3.0


def read_or_one(owner: Any) -> float:
    try:
        return owner.scale
    except AttributeError:
        return 1.0


def losses(read: Callable[[Any], float], owner: Any, put: Callable[[Any, float], None], wrap: Callable) -> tuple[list[float], Any]:
    """Those of a few calls, of which the third finds another number, and the last the first one again."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2, dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean() * read(owner)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    run, found = wrap(step), []
    for number in range(CALLS):
        put(owner, 2.0 if number == 2 else 1.0)
        found.append(run(torch.full((ROWS, 3), 1.0 + number, dtype=torch.float64)).item())
    return found, run


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "GLOBAL", 1.0)
    monkeypatch.setattr(OfClass, "scale", 1.0)
    monkeypatch.setattr(Parent, "gain", 1.0)
    monkeypatch.setattr(Meta, "gain", 1.0)
    monkeypatch.setenv("SPMD_TEST_SCALE", "1.0")
    monkeypatch.setattr(Mode.A, "_value_", 1.0)
    settings.scale = 1.0
    CONTEXT.set(1.0)


@pytest.mark.parametrize("name", CASES)
def test_a_number_that_changes_makes_another_program(name: str) -> None:
    make, read, put = CASES[name]
    expected, _ = losses(read, make(), put, lambda step: step)
    put(None if name in ("global", "module", "environment", "context variable") else make(), 1.0)
    ours, run = losses(read, make(), put, lambda step: spmd.compile(step, ranks=2))
    assert ours == pytest.approx(expected, rel=1e-12)
    assert run.compiles == (1 if name in ("size", "is empty", "missing", "raised") and expected[2] == expected[1] else 2)


TOTAL = 0


class Counter:
    """Writes in all ways, and reads some of it."""

    total = 0

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(3, 2, dtype=torch.float64)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.calls, self.weight, self.phase, self.log = 0, 0.5, "a", {"calls": 0}
        self.slotted, self.seen = Slotted(), 0

    def update(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        loss = self.model(x).square().mean() * scale
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def counts(self, x: torch.Tensor) -> torch.Tensor:
        global TOTAL
        self.calls += 1
        self.weight -= 0.25
        TOTAL += 2
        type(self).total += 3
        return self.update(x)

    def alternates(self, x: torch.Tensor) -> torch.Tensor:
        self.phase = "b" if self.phase == "a" else "a"
        self.log[self.phase] = True
        return self.update(x, 2.0 if self.phase == "a" else 1.0)

    def reads_its_count(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.log["calls"] = self.calls
        self.slotted.scale = self.calls * 0.5
        return self.update(x, 1.0 if self.calls % 2 else 2.0)

    def begins(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "ready"):
            self.ready = True
            return self.update(x, 3.0)
        return self.update(x)

    def state(self) -> list[Any]:
        return [self.calls, self.weight, self.phase, self.log, self.slotted.scale, TOTAL, Counter.total, getattr(self, "ready", None)]


@pytest.mark.parametrize("name, compiles", [("counts", 1), ("alternates", 2), ("reads_its_count", 2), ("begins", 2)])
def test_what_a_step_writes_is_written_by_each_call(name: str, compiles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(Counter, "total", 0)
        monkeypatch.setitem(globals(), "TOTAL", 0)
        owner = Counter()
        step = getattr(owner, name)
        step = spmd.compile(step, ranks=2) if compiled else step
        found.append([(step(torch.full((ROWS, 3), 1.0 + number, dtype=torch.float64)).item(), copy.deepcopy(owner.state())) for number in range(5)])
    for (loss, state), (our_loss, our_state) in zip(*found):
        assert our_state == state and our_loss == pytest.approx(loss, rel=1e-12)
    assert step.compiles == compiles


def test_a_step_that_fails_writes_nothing() -> None:
    owner = Counter()
    step = spmd.compile(owner.counts, ranks=2)
    step(torch.ones(ROWS, 3, dtype=torch.float64))
    before = owner.state()
    with pytest.raises(Exception, match="reduction dim"):
        step(torch.ones(ROWS, 5, dtype=torch.float64))
    assert owner.state() == before


@pytest.mark.parametrize("make", [lambda data: itertools.cycle(data), lambda data: itertools.chain(data, data), lambda data: iter(data),
                                  lambda data: map(abs, data), lambda data: (x for x in data)], ids=["cycle", "chain", "list", "map", "generator"])
def test_an_iterator_that_the_step_moves_on_is_an_error(make: Callable) -> None:
    owner = Counter()
    owner.data = make([torch.ones(ROWS, 3, dtype=torch.float64)] * 6)

    def step() -> torch.Tensor:
        return owner.update(next(owner.data))

    with pytest.raises(spmd.CaptureError, match=r"data'[^\0]*return owner.update\(next\(owner.data\)\)[^\0]*hint: take"):
        spmd.compile(step, ranks=2)()


def test_a_place_is_named_with_what_is_new() -> None:
    owner = Counter()
    owner.options = Options()
    step = spmd.compile(lambda x: owner.update(x, owner.options.scale), ranks=2)
    step(torch.ones(ROWS, 3, dtype=torch.float64))
    owner.options.scale = 2.0
    with pytest.warns(spmd.Remark, match="compiled again: 'owner.options.scale' is 2.0, it was 1.0"):
        step(torch.ones(ROWS, 3, dtype=torch.float64))


def test_a_file_that_is_only_asked_for_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.File, "status", lambda file: pytest.fail("its size and time are compared"))
    _, run = losses(lambda o: 1.0 if o.exists() and os.path.isfile(o) else 2.0, make_file(), lambda o, v: o.write_text("x" * int(v)),
                    lambda step: spmd.compile(step, ranks=2))
    assert run.compiles == 1
    assert open.__module__ == "io" and isinstance(os.listdir, types.BuiltinFunctionType)


@pytest.fixture
def two_ranks() -> Iterator[None]:
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    yield
    dist.destroy_process_group()


def test_a_graph_that_follows_from_the_rank_is_an_error(two_ranks: None) -> None:
    owner = Counter()

    def scales(x: torch.Tensor) -> torch.Tensor:
        return owner.update(x, 1.0 + dist.get_rank())

    with pytest.raises(spmd.CaptureError, match=r"depends on torch.distributed.get_rank\(\)[^\0]*1.0 \+ dist.get_rank[^\0]*hint: pass"):
        spmd.compile(scales, view="local", ranks=2, launcher="none")(torch.ones(ROWS, 3, dtype=torch.float64))


def test_a_step_that_asks_for_the_rank_to_log(two_ranks: None) -> None:
    owner = Counter()

    def counts_on_one(x: torch.Tensor) -> torch.Tensor:
        if dist.get_rank() == 0:
            owner.calls += 1
        return owner.update(x)

    step = spmd.compile(counts_on_one, view="local", ranks=2, launcher="none")
    for _ in range(2):
        step(torch.ones(ROWS, 3, dtype=torch.float64))
    assert owner.calls == 2 and step.compiles == 1


@pytest.mark.parametrize("hooked", [lambda layer: prune.l1_unstructured(layer, "weight", amount=0.4), nn.utils.weight_norm],
                         ids=["prune", "weight_norm"])
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
def test_a_weight_that_a_hook_of_the_library_sets(hooked: Callable) -> None:
    """The next pruning chooses by the weight that the last forward has set."""
    found = []
    for compiled in (False, True):
        owner = Counter()
        hooked(owner.model)
        owner.optimizer = torch.optim.SGD(owner.model.parameters(), lr=0.1)
        step = spmd.compile(owner.update, ranks=2) if compiled else owner.update
        for number in range(3):
            loss = step(torch.full((ROWS, 3), 1.0 + number, dtype=torch.float64))
        found.append(torch.cat([loss.reshape(1), owner.model.weight.detach().flatten()]))
    torch.testing.assert_close(found[1], found[0])


def test_a_package_lists_what_was_read(tmp_path: Path) -> None:
    """Ahead of time there is no Python: a value that was read stays."""
    owner = Counter()
    owner.options = Options()

    def step(x: torch.Tensor) -> torch.Tensor:
        return owner.update(x, owner.options.scale)

    package = spmd.capture(step, torch.ones(ROWS, 3, dtype=torch.float64))
    found = json.loads((package.save(tmp_path / "a.step") / "step.json").read_text())["reads"]
    line = inspect.getsourcelines(step)[1] + 1
    assert {"path": "owner.options.scale", "value": 1.0, "file": __file__, "line": line} in found
    assert "reads" not in json.loads((package.save(tmp_path / "b.step", reads=False) / "step.json").read_text())
