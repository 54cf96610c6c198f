"""A sample of test/Kinds/readers.py: no way to read an offloaded tensor gives an old value."""
from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch

from conftest import ROOT

sys.path.insert(0, str(ROOT / "test/Kinds"))
import harness  # noqa: E402
import readers  # noqa: E402

REFUSED = ["parameter; {}; torch.tensor", "parameter; {}; torch.as_tensor, dtype", "mean; {}; torch.Tensor", "mean; {}; torch.asarray, copy",
           "parameter; {}; torch.nested.nested_tensor", "momentum; {}; _make_subclass", "gradient; {}; func.grad", "scale; {}; torch.full",
           "count; {}; torch.arange", "mean; {}; data of another"]
RIGHT = ["parameter; {}; nn.Parameter", "scale; {}; torch.tensor of a list", "mean; {}; torch.tensor of entries", "parameter; {}; func.jvp",
         "parameter; {}; vmap of a closure", "momentum; {}; is_shared", "gradient; {}; torch.as_tensor", "count; {}; range",
         "mean; {}; ForkingPickler"]


@pytest.mark.parametrize("setting", ["f32", "masters, freed"])
def test_sample(setting: str) -> None:
    for kind, names in (("refused", REFUSED), ("right", RIGHT)):
        for name in names:
            found = harness.outcome_of(lambda: readers.case(name.format(setting)))
            assert found.kind == kind, f"{name}: {found}"


@pytest.fixture
def training() -> readers.Training:
    made = readers.Training("f32")
    made.step()
    return made


def test_the_error_names_the_tensor_and_says_what_helps(training) -> None:
    p = training.tensor("parameter")
    with pytest.raises(RuntimeError, match=r"hold the value of parameter 'layer.weight', .*\n  hint: give the function p.detach\(\)"):
        torch.as_tensor(p, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="the value of optimizer state 'momentum_buffer' of parameter 'layer.weight'"):
        torch.as_tensor(training.tensor("momentum"), dtype=torch.float64)
    assert torch.equal(torch.as_tensor(p.detach(), dtype=torch.float64).float(), p)


def test_a_failed_fetch_leaves_the_tensor_offloaded(training, monkeypatch) -> None:
    p, trainer = training.tensor("mean"), training.compiled.trainer
    read, errors = type(trainer).read, [OSError("once")]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if errors:
            raise errors.pop()
        return read(*args, **kwargs)

    before = p.detach().clone()
    training.step()
    monkeypatch.setattr(type(trainer), "read", failing)
    with pytest.raises(OSError, match="once"):
        p.sum()
    assert not torch.equal(p.detach(), before)


def test_threads_that_read_keep_the_memory(training) -> None:
    """A thread may be inside a function that is about to use the memory."""
    p = training.tensor("mean")
    thread = threading.Thread(target=p.sum)
    thread.start()
    thread.join()
    training.step()
    with torch._C.DisableTorchFunctionSubclass():
        assert p.untyped_storage().nbytes() == 16
