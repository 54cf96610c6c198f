"""How tests start processes of Python that import PyTorch."""
from __future__ import annotations

import os
import sys

#: Runs a script, -m MODULE or -c CODE: in a fork of a process that has imported PyTorch where lit runs the tests (fork_server.py),
#: else by the interpreter. Tests of imports, and scripts that MPI starts, take sys.executable.
PYTHON: str = os.environ.get("SPMD_TEST_PYTHON", sys.executable)


def torchrun(*options: str) -> list[str]:
    """The command that starts processes on this host: `torchrun(f"--nproc-per-node=2", SCRIPT)`."""
    return [PYTHON, "-m", "torch.distributed.run", "--standalone", *options]
