"""Runs files of tests, each in a fork of a process that has imported PyTorch: importing it takes seconds of each.

Reads the arguments of pytest from standard input, a JSON list in a line, and answers with a line of JSON: the exit code, all that
was printed and the seconds of processor time.
"""
from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import fork_server


def run(arguments: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as output:
        folder = Path(tempfile.mkdtemp())
        python = fork_server.make_python(folder)
        end, scripts = _start_scripts(folder, python)
        child = os.fork()
        if child == 0:
            os.close(end)
            os.environ["SPMD_TEST_PYTHON"] = str(python)
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            code = 1
            try:
                import pytest
                code = int(pytest.main(arguments))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                atexit._run_exitfuncs()
                os._exit(code)
        _, status, used = os.wait4(child, 0)
        os.close(end)
        _, _, used_by_scripts = os.wait4(scripts, 0)
        shutil.rmtree(folder)
        output.seek(0)
        printed = output.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        printed += f"\nended by signal {-code}\n"
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in (used, used_by_scripts))
    return {"code": code, "output": printed, "seconds": seconds}


def _start_scripts(folder: Path, python: Path) -> tuple[int, int]:
    """Starts the server of the scripts that a file of tests runs; the pipe that ends it, and its process."""
    listener, (end_of_server, end) = fork_server.listen(folder), os.pipe()
    scripts = os.fork()
    if scripts == 0:
        os.close(end)
        fork_server.serve(listener, end_of_server, python)
    listener.close()
    os.close(end_of_server)
    return end, scripts


def main() -> None:
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # before the imports: what they print is no answer
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import safetensors.torch  # noqa: F401
    import torch._dynamo  # noqa: F401
    import spmd.training.compiled_step  # noqa: F401
    gc.collect()
    gc.freeze()
    for line in requests:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
