"""@spmd.compile for GPUs, on the stand-ins of NVIDIA's libraries: in one process, and under torchrun with rows of their own."""
import os
import pathlib
import re
import subprocess

import pytest
from python_processes import PYTHON, torchrun

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])
SCRIPT = SOURCE / "test" / "Cuda" / "Inputs" / "train.py"

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")


def lines(*command) -> list[str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(("loss", "sum"))]


@pytest.fixture(scope="module")
def emulated() -> list[str]:
    return lines(PYTHON, SCRIPT, "emulate:sm_90", 2, "--epilogues=none")


def test_one_process(emulated, tmp_path) -> None:
    """And whatever a step gives comes to the host by one copy for each rank, without a wait for more than the step."""
    log = tmp_path / "calls"
    found = lines(SOURCE / "scripts" / "with-standins", f"--log={log}", PYTHON, SCRIPT, "cuda:sm_90", 2, "--emulation",
                  "--epilogues=none")
    assert found == emulated and len(found) == 5
    calls = log.read_text().split()
    launches = [i for i, name in enumerate(calls) if name == "cuGraphLaunch"]
    step = calls[launches[-3]:launches[-1]]
    assert step.count("cuMemcpyDtoHAsync") == 2 and "cuStreamSynchronize" not in step, step


def test_processes_with_their_rows(emulated) -> None:
    assert lines(SOURCE / "scripts" / "with-standins", *torchrun("--nproc-per-node=2"), SCRIPT, "cuda:sm_90", 2,
                 "--emulation", "--epilogues=none") == emulated


@pytest.mark.parametrize("view", ["global", "local"])
@pytest.mark.sample(2)
def test_row_numbers_that_the_step_computes(view: str) -> None:
    """Right ones train; a wrong one is the error of other targets when the step is over, no read outside a table, and on
    no rank a change of the state: the next step is what it would have been."""
    script = SCRIPT.parent / "row_numbers.py"

    def run(*command) -> list[str]:
        done = subprocess.run([*map(str, command), "--epilogues=none", *(["local"] if view == "local" else [])],
                              capture_output=True, text=True, timeout=300, env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    *losses, error = run(PYTHON, script, "emulate:sm_90")
    last = run(PYTHON, script, "emulate:sm_90", "good")[-1]
    *found, late, kept, after = run(SOURCE / "scripts" / "with-standins", PYTHON, script, "cuda:sm_90", "--emulation")
    assert len(losses) == 4 and found == losses
    where = "'embedding': row number 7 at position 1 of rank 1 is not in [0, 7)"
    assert "error 3" in error and where in error and "row_numbers.py:21" in error
    assert "error 2" in late and where + "; GPUs go on with the nearest row" in late and "row_numbers.py:21" in late
    assert (kept, after) == ("kept", last)


@pytest.mark.parametrize("ranks, processes", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.sample(2)
def test_losses_are_waited_for_when_they_are_read(tmp_path, ranks, processes) -> None:
    """A call returns when its step is issued: whatever is used of what it gave, and whenever, has the value that it has on the
    CPU, also where one of several processes looks alone; not with check_finite, which looks at it."""
    script = SCRIPT.parent / "late_losses.py"

    def run(prefix, target, how, *options) -> tuple[list[str], str]:
        python = torchrun("--nproc-per-node=2") if prefix and processes == 2 else (PYTHON,)
        done = subprocess.run([*map(str, (*prefix, *python, script)), target, how, str(ranks), *options, "--epilogues=none"],
                              capture_output=True, text=True, timeout=300, env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines(), [line for line in done.stderr.splitlines() if line in ("late", "copied", "read at once")]

    standins, log = (SOURCE / "scripts" / "with-standins",), tmp_path / "calls"
    expected = {how: run((), "emulate:sm_90", how) for how in (("each", "some") if ranks == 1 else ("some",))}
    assert all(said == ["read at once"] for _, said in expected.values()) and len(expected["some"][0]) == 9
    for how in ("each", "end", "some") if ranks == 1 else ("some",):
        found, said = run((*standins, f"--log={log}", "schedule=random:5"), "cuda:sm_90", how, "--emulation")
        assert found == expected["some" if how == "some" else "each"][0], how
        assert said == ["late"], said
    if ranks == 1:
        found, said = run(standins, "cuda:sm_90", "finite", "--emulation")
        assert found == expected["each"][0] and len(found) == 21 and said == ["read at once"]
        found, said = run(standins, "cuda:sm_90", "device", "--emulation")
        assert found == expected["each"][0] and said == ["copied"], (found, said)
    found, _ = run((*standins, "fail=cuGraphLaunch:9:700"), "cuda:sm_90", "fails", "--emulation")
    assert len(found) == 2 * processes and "cuGraphLaunch" in found[0] and set(found[1::2]) == {"lost"}, found
    assert len(set(found[::2])) == 1 and found[0].startswith("error"), found
    if ranks > 1:
        found, _ = run((*standins, "stuck=1:9"), "cuda:sm_90", "fails", "--emulation")
        assert len(found) == 2 * processes and set(found[1::2]) == {"lost"} and len(set(found[::2])) == 1, found
        assert re.search(r"time-out after 5 s on communicator '\w+': rank \d waits in \w+ .*at .*late_losses.py:\d+", found[0]), found
