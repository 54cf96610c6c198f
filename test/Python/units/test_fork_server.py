"""Scripts that fork_server.py runs behave as processes of `python`: arguments, variables, streams, exit codes and signals."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from python_processes import PYTHON

pytestmark = pytest.mark.skipif(PYTHON == sys.executable, reason="pytest runs without pytest_server.py")


def run(*arguments: object, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run([PYTHON, *map(str, arguments)], capture_output=True, text=True, env=os.environ | variables, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


def test_a_script_is_a_process_of_python(script: Path) -> None:
    script.write_text("import os, sys, helper\n"
                      "print(__name__, sys.argv[1:], os.environ['GIVEN'], 'torch' in sys.modules, helper.VALUE)\n"
                      "print('on the other stream', file=sys.stderr)\nsys.exit(7)\n")
    script.with_name("helper.py").write_text("VALUE = 5\n")
    assert run(script, "a", "b", GIVEN="x") == (7, "__main__ ['a', 'b'] x True 5\n", "on the other stream\n")
    assert run("-c", "import sys; print(sys.argv)", "a") == (0, "['-c', 'a']\n", "")
    assert run("-W", "ignore", "-u", "-m", "platform", "terse")[0] == 0


def test_an_error_has_the_frames_of_the_script(script: Path) -> None:
    script.write_text("def fail():\n    raise ValueError('this')\n\n\nfail()\n")
    code, _, error = run(script)
    assert code == 1 and error.startswith(f'Traceback (most recent call last):\n  File "{script}", line 5, in <module>\n')
    assert error.endswith("ValueError: this\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_signal_ends_both(script: Path, number: int) -> None:
    script.write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    assert run(script)[0] == -number


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_script_ends_with_its_program(script: Path, number: int) -> None:
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([PYTHON, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    child = Path("/proc") / process.stdout.readline().strip()
    process.send_signal(number)
    assert process.wait(30) == -number
    limit = time.monotonic() + 20
    while child.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not child.exists()
