"""@spmd.compile for GPUs, on the stand-ins of NVIDIA's libraries: in one process, and under torchrun with rows of their own."""
import os
import pathlib
import subprocess
import sys

import pytest

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
    return lines(sys.executable, SCRIPT, "emulate:sm_90", 2, "--epilogues=none")


def test_one_process(emulated, tmp_path) -> None:
    """And whatever a step gives comes to the host by one copy for each rank, without a wait for more than the step."""
    log = tmp_path / "calls"
    found = lines(SOURCE / "scripts" / "with-standins", f"--log={log}", sys.executable, SCRIPT, "cuda:sm_90", 2, "--emulation",
                  "--epilogues=none")
    assert found == emulated and len(found) == 5
    calls = log.read_text().split()
    launches = [i for i, name in enumerate(calls) if name == "cuGraphLaunch"]
    step = calls[launches[-3]:launches[-1]]
    assert step.count("cuMemcpyDtoHAsync") == 2 and "cuStreamSynchronize" not in step, step


def test_processes_with_their_rows(emulated) -> None:
    torchrun = pathlib.Path(sys.executable).parent / "torchrun"
    assert lines(SOURCE / "scripts" / "with-standins", torchrun, "--standalone", "--nproc-per-node=2", SCRIPT, "cuda:sm_90", 2,
                 "--emulation", "--epilogues=none") == emulated


@pytest.mark.parametrize("view", ["global", "local"])
def test_row_numbers_that_the_step_computes(view: str) -> None:
    """Right ones train; a wrong one is the error of other targets when the step is over, no read outside a table, and on
    no rank a change of the state: the next step is what it would have been."""
    script = SCRIPT.parent / "row_numbers.py"

    def run(*command) -> list[str]:
        done = subprocess.run([*map(str, command), "--epilogues=none", *(["local"] if view == "local" else [])],
                              capture_output=True, text=True, timeout=300, env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    *losses, error = run(sys.executable, script, "emulate:sm_90")
    last = run(sys.executable, script, "emulate:sm_90", "good")[-1]
    *found, late, kept, after = run(SOURCE / "scripts" / "with-standins", sys.executable, script, "cuda:sm_90", "--emulation")
    assert len(losses) == 4 and found == losses
    where = "'embedding': row number 7 at position 1 of rank 1 is not in [0, 7)"
    assert "error 3" in error and where in error and "row_numbers.py:21" in error
    assert "error 2" in late and where + "; GPUs go on with the nearest row" in late and "row_numbers.py:21" in late
    assert (kept, after) == ("kept", last)


def test_losses_are_waited_for_when_they_are_read(tmp_path) -> None:
    """Of one rank a call returns when its step is issued: whatever is used of what it gave, and whenever, has the value that it
    has on the CPU; not with check_finite, which looks at it."""
    script = SCRIPT.parent / "late_losses.py"

    def run(prefix, target, how, *options) -> tuple[list[str], str]:
        done = subprocess.run([*map(str, prefix), sys.executable, str(script), target, how, *options], capture_output=True, text=True,
                              timeout=300, env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines(), done.stderr

    standins, log = (SOURCE / "scripts" / "with-standins",), tmp_path / "calls"
    expected = {how: run((), "emulate:sm_90", how, "--epilogues=none") for how in ("each", "some")}
    assert len(expected["each"][0]) == 21 and "read at once" in expected["each"][1]
    for how in ("each", "end", "some"):
        found, said = run((*standins, f"--log={log}", "schedule=random:5"), "cuda:sm_90", how, "--emulation", "--epilogues=none")
        assert found == expected["some" if how == "some" else "each"][0], how
        assert said.splitlines()[-1:] == ["late"], said
    found, said = run(standins, "cuda:sm_90", "finite", "--emulation", "--epilogues=none")
    assert found == expected["each"][0] and "read at once" in said
    found, _ = run((*standins, "fail=cuGraphLaunch:9:700"), "cuda:sm_90", "fails", "--emulation", "--epilogues=none")
    assert found[0].startswith("error") and "cuGraphLaunch" in found[0] and found[1] == "lost", found
