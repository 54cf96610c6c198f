"""Runs files of tests, each in a fork of a process that has imported PyTorch: importing it takes seconds of each.

Reads the arguments of pytest from standard input, a JSON list in a line, and answers with a line of JSON: the exit code, all that
was printed and the seconds of processor time.
"""
from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import tempfile
from typing import Any


def run(arguments: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
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
        output.seek(0)
        printed = output.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        printed += f"\nended by signal {-code}\n"
    return {"code": code, "output": printed, "seconds": used.ru_utime + used.ru_stime}


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
