"""Batches, losses and parameters in the memory of GPUs, by DLPack: no copy through the host, and ordered with the streams of
the library that has them, on the stand-ins, which report each access that nothing orders."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from python_processes import PYTHON, torchrun

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])
STANDINS = SOURCE / "scripts" / "with-standins"
INPUTS = SOURCE / "test" / "Cuda" / "Inputs"
MLP = SOURCE / "test" / "Inputs" / "mlp-sgd.step"
TINY = SOURCE / "test" / "Inputs" / "gpt-tiny.step"

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")

    def get(step: pathlib.Path, ranks: int = 1) -> pathlib.Path:
        path = folder / f"{step.stem}-{ranks}.spmd"
        if not path.exists():
            subprocess.run([BIN / "spmd-compile", step, "-o", path, f"--ranks={ranks}", "--target=cuda:sm_90", "--emulation",
                            "--epilogues=none", "--quiet"], check=True)
        return path
    return get


def call(*command, settings: tuple[str, ...] = (), fails: bool = False) -> tuple[str, str]:
    done = subprocess.run([str(word) for word in (STANDINS, *settings, *command)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
    assert fails or done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def train(artifact: pathlib.Path, how: str, *settings: str, launcher: tuple = (PYTHON,)) -> str:
    return call(*launcher, INPUTS / "device_batches.py", artifact, how, settings=settings)[0]


@pytest.mark.parametrize("step", [MLP, TINY], ids=lambda step: step.stem)
def test_they_give_what_the_host_s_give(compiled, step) -> None:
    """In whatever order a GPU may choose, with the caller's stream and without one, and where the caller writes to them as
    soon as a step is issued; and so do parameters."""
    expected = train(compiled(step), "host")
    assert expected.count("loss") == 12 and expected.count("whole") >= 4
    for how in ("ours", "stream", "mixed", "reused"):
        assert train(compiled(step), how) == expected, how
    for schedule in ("lifo", "avoid:0", "avoid:1", "random:1") if step is MLP else ("random:2",):
        assert train(compiled(step), "reused", f"schedule={schedule}") == expected, schedule
        assert train(compiled(step), "ours", f"schedule={schedule}") == expected, schedule


def test_nothing_goes_through_the_host(compiled, tmp_path) -> None:
    """A step has a copy on the device for each input, one of hyper-parameters, and the host waits for row numbers only."""
    calls = calls_of(compiled(MLP), tmp_path)
    step, copy = (collections.Counter(name for _, name in part) for part in calls)
    print("counts: calls of the driver for a step with its batch on the GPU:", ", ".join(f"{n} {name}" for name, n in sorted(step.items())))
    assert step["cuMemcpyDtoDAsync"] == 2 and step["cuMemcpyHtoDAsync"] == 1, step
    assert step["cuMemcpyDtoHAsync"] == 2 and step["cuStreamSynchronize"] == 1, "labels are looked at; what a step gives"
    assert copy == {"cuEventRecord": 2, "cuStreamWaitEvent": 2, "cuMemcpyDtoDAsync": 1, "cuCtxSetCurrent": 1}, copy


@pytest.mark.parametrize("looks", [True, False], ids=["with row numbers", "without"])
def test_every_wait_is_needed(compiled, tmp_path, looks) -> None:
    """Left out in turn, records and waits between the caller's stream and the runtime's are races. Not so the record of a
    step's end, for which nothing here waits; and of a batch whose row numbers the host looks at it has waited already."""
    artifact = tmp_path / "a.spmd"
    shutil.copytree(compiled(MLP), artifact)
    manifest = json.loads((artifact / "manifest.json").read_text())
    bounds = [entry.pop("index_bound", None) for entry in manifest["batch"] if not looks]
    (artifact / "manifest.json").write_text(json.dumps(manifest))
    assert looks or any(bounds)
    ordering = [call for part in calls_of(artifact, tmp_path) for call in part
                if call[1] in ("cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize")]
    silent = [name for number, name in ordering if "race" not in
              call(PYTHON, INPUTS / "device_waits.py", artifact, settings=(f"skip={name}:{number}",), fails=True)[1]]
    print(f"counts: {len(ordering)} records and waits of a step with its batch on the GPU, {len(ordering) - len(silent)} reported")
    assert len(ordering) == 9 + 2 * looks and silent == ["cuStreamWaitEvent"] * looks + ["cuEventRecord"], silent


def calls_of(artifact: pathlib.Path, folder: pathlib.Path) -> list[list[tuple[int, str]]]:
    """Calls of the driver, each with its number among those of the name: of a step with a batch on the device, and of a copy
    of what it gives."""
    log, counts, parts = folder / "log", collections.Counter(), [[]]
    call(PYTHON, INPUTS / "device_waits.py", artifact, settings=(f"--log={log}",))
    for name in log.read_text().split():
        counts[name] += 1
        parts[-1].append((counts[name], name))
        if name == "cuDeviceGetCount":
            parts.append([])
    return [[entry for entry in part[:-1] if entry[1] != "cuEventQuery"] for part in (parts[-4], parts[-2])]


def test_processes_with_rows_of_their_own(compiled) -> None:
    """Each on its own GPU, whose number is that of the process."""
    losses = {how: re.findall("loss .*", train(compiled(TINY, 2), how, launcher=torchrun("--nproc-per-node=2"))) for how in ("host", "stream", "ours")}
    assert len(losses["host"]) == 12 and losses["stream"] == losses["ours"] == losses["host"]


def test_errors_are_one_sentence_and_change_nothing(compiled) -> None:
    lines = call(PYTHON, INPUTS / "device_errors.py", compiled(TINY))[0].splitlines()
    assert lines == [
        "device: input 'x' is on GPU 1, and rank 0 computes on GPU 0; give it on GPU 0 or the host",
        "kind: input 'x': expected i64[8, 16], found i32[8, 16]",
        "shape: input 'x': expected i64[8, 16], found i64[1, 16]",
        "strides: input 'x' has strides [128, 8]; expected a contiguous tensor",
        "dtype: input 'x' has a dtype of DLPack's code 5 with 128 bits and 1 lanes, which is not supported; expected one of bf16, f16, f32, f64, i1, "
        "i16, i32, i64, i8, u8",
        "row: input 'x': value 1073741824 at position [1, 2] is not a row id in [0, 65)",
        "out: output 0 is f32[], not f32[3]",
        "out: output 0 is copied to a tensor on GPU 0, where the rank of this process computes; this one is on GPU 1",
        "out: output 0 is copied to a tensor on GPU 0, where the rank of this process computes; this one is on the host"]
