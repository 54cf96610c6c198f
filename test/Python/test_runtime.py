"""The runtime from Python, on an artifact made by hand: batches of every kind, results, state, errors."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import spmd
from spmd import native
from spmd.arrays import to_numpy, to_torch

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("artifact") / "hand.spmd"
    maker = ROOT / "test/Runtime/Inputs/make_artifact.py"
    subprocess.run([sys.executable, maker, folder, "--ranks=2", "--steps=5"], check=True)
    return folder


@pytest.fixture
def trainer(artifact):
    with spmd.load(artifact, threads=2) as trainer:
        yield trainer


@pytest.fixture(scope="module")
def reference(artifact) -> dict[str, np.ndarray]:
    return load_file(artifact / "reference.safetensors")


def batch(reference, step: int) -> tuple[np.ndarray, np.ndarray]:
    return reference[f"batch/{step}/x"], reference[f"batch/{step}/t"]


class OnlyDlpack:
    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_describes_itself(trainer) -> None:
    assert (trainer.ranks, trainer.threads) == (2, 2) and trainer.arena_bytes > 0
    assert [(i.name, i.dtype, i.shape) for i in trainer.inputs] == [("x", "i64", (8, 2)), ("t", "f32", (8, 3))]
    assert trainer.outputs[0].state == "loss" and trainer.outputs[0].shape == ()
    embedding = next(t for t in trainer.tensors if t.name == "emb.weight" and t.state == "param")
    assert embedding.aliases == ("tied.weight",) and embedding.shape == (11, 6)
    assert {c.op for c in trainer.collectives} == {"all_gather", "reduce_scatter", "all_reduce"}


@pytest.mark.parametrize("kind", ["numpy", "torch", "dlpack", "lists", "strided"])
def test_trains_to_the_reference(trainer, reference, kind: str) -> None:
    convert = {"numpy": lambda a: a, "torch": torch.from_numpy, "dlpack": OnlyDlpack,
               "lists": lambda a: a.tolist() if a.dtype == np.int64 else a,
               "strided": lambda a: np.asfortranarray(a)}[kind]
    for step in range(5):
        x, t = map(convert, batch(reference, step))
        trainer.set_hyper("lr", 0, reference["hyper/lr/0"][step])
        loss, prediction = trainer.step(x, t=t)
        assert isinstance(loss, torch.Tensor if kind == "torch" else np.ndarray)
        assert abs(float(loss) - reference["loss"][step]) < 1e-6 and tuple(prediction.shape) == (8, 3)
    for name in ("emb.weight", "tied.weight", "fc2.bias"):
        expected = reference[f"final/{'emb.weight' if name == 'tied.weight' else name}"]
        np.testing.assert_allclose(trainer.read("param", name), expected, atol=1e-6)


def test_written_state_is_read_and_saved(trainer, tmp_path) -> None:
    value = np.arange(5, dtype=np.float32)
    trainer.write("param", "fc1.bias", torch.from_numpy(value))
    np.testing.assert_array_equal(trainer.read("param", "fc1.bias"), value)
    trainer.save_parameters(tmp_path / "final.safetensors", with_optimizer=True)
    saved = load_file(tmp_path / "final.safetensors")
    np.testing.assert_array_equal(saved["fc1.bias"], value)
    assert {"tied.weight", "scale", "optimizer/momentum_buffer/fc1.bias"} <= set(saved)


def test_bad_input_is_refused_before_anything_runs(trainer, reference) -> None:
    x, t = batch(reference, 0)
    before = trainer.read("param", "fc1.weight")
    with pytest.raises(spmd.RunError, match=r"'x': expected i64\[8, 2\], found i64\[4, 2\]") as error:
        trainer.step(x[:4], t)
    assert error.value.code == 2
    with pytest.raises(spmd.RunError, match="'x'.*i32"):
        trainer.step(x.astype(np.int32), t)
    with pytest.raises(spmd.RunError, match="11"):
        trainer.step(np.full_like(x, 11), t)
    with pytest.raises(TypeError, match="step takes x, t; got 1 in order and none by name"):
        trainer.step(x)
    with pytest.raises(TypeError, match="step takes x, t"):
        trainer.step(x, t, x=x)
    with pytest.raises(TypeError, match="complex64"):
        trainer.step(x, t.astype(np.complex64))
    with pytest.raises(KeyError, match="no param 'nothing'"):
        trainer.read("param", "nothing")
    with pytest.raises(ValueError, match=r"is f32\[5\], not f64\[5\]"):
        trainer.write("param", "fc1.bias", np.zeros(5))
    with pytest.raises(spmd.RunError):
        trainer.set_hyper("lr", 3, 0.1)
    np.testing.assert_array_equal(trainer.read("param", "fc1.weight"), before)


def test_bad_artifact(artifact, tmp_path) -> None:
    with pytest.raises(spmd.RunError, match="manifest.json"):
        spmd.load(tmp_path / "nothing.spmd")
    with pytest.raises(spmd.RunError, match="ranks"):
        spmd.load(artifact, ranks=3)
    with pytest.raises(spmd.RunError):
        spmd.load(artifact, weights=tmp_path / "nothing.safetensors")


def test_two_programs_share_a_state(artifact, tmp_path, reference) -> None:
    """A step of one is a step of both; each is closed alone. Whoever holds another state is refused."""
    alone, first = spmd.load(artifact, threads=2), spmd.load(artifact, threads=2)
    second = spmd.load(artifact, threads=2, shares=first)
    for step in range(4):
        for trainer in (alone, (first, second)[step % 2]):
            trainer.set_hyper("lr", 0, 0.1)
            trainer.step(*batch(reference, step))
    for trainer in (first, second):
        np.testing.assert_array_equal(trainer.read("param", "emb.weight"), alone.read("param", "emb.weight"))
    first.close()
    second.step(*batch(reference, 4))
    alone.step(*batch(reference, 4))
    np.testing.assert_array_equal(second.read("param", "emb.weight"), alone.read("param", "emb.weight"))
    maker = ROOT / "test/Runtime/Inputs/make_artifact.py"
    subprocess.run([sys.executable, maker, tmp_path / "three.spmd", "--ranks=3"], check=True)
    with pytest.raises(spmd.RunError, match="cannot share a state: this one has 3 ranks, not 2") as error:
        spmd.load(tmp_path / "three.spmd", shares=second)
    assert error.value.code == native.OTHER_STATE


def test_closed_trainer(artifact) -> None:
    trainer = spmd.load(artifact)
    trainer.close()
    trainer.close()
    with pytest.raises(ValueError, match="closed"):
        trainer.run([])


def test_numpy_is_enough(artifact) -> None:
    """Neither importing spmd nor running loads PyTorch."""
    code = ("import sys, numpy as np, spmd\n"
            f"trainer = spmd.load({str(artifact)!r})\n"
            "trainer.step(np.zeros((8, 2), np.int64), np.zeros((8, 3), np.float32))\n"
            "assert 'torch' not in sys.modules\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python-bindings")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_every_dtype_there_and_back() -> None:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                  torch.int8, torch.uint8, torch.bool):
        for value in (torch.tensor([[1, 0], [0, 1]]).to(dtype), torch.tensor(1).to(dtype)):
            array, name = to_numpy(value)
            assert array.shape == tuple(value.shape)
            assert torch.equal(to_torch(array, name), value) and to_torch(array, name).dtype == dtype


def test_a_failed_step_says_what_ranks_did(artifact, reference, tmp_path, monkeypatch) -> None:
    call = spmd.Trainer._call

    def with_fault(self, function, *arguments):
        if function == "spmd_load":
            arguments[1].fault = b"exit:1:22"
        call(self, function, *arguments)
    monkeypatch.setattr(spmd.Trainer, "_call", with_fault)
    with spmd.load(artifact, flight_record=tmp_path / "flight") as trainer:
        with pytest.raises(spmd.RunError, match="rank 1 exited at command 22 .*; what each rank did last is in '.*flight'") as failed:
            trainer.run(batch(reference, 0))
    assert failed.value.flight.startswith("rank 0, step 0: compute: ") and "\nrank 1, step 0: " in failed.value.flight
    assert getattr(failed.value, "__notes__", [failed.value.flight]) == [failed.value.flight]
    assert sorted(path.name for path in (tmp_path / "flight").iterdir()) == ["rank-0.json", "rank-1.json"]
