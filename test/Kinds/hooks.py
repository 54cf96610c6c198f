"""All hooks that a library offers: each runs as in eager, is refused with a hint, or is reached by no step.

    python test/Kinds/hooks.py torch            # every tenth case of PyTorch's hooks
    python test/Kinds/hooks.py torch --all      # all cases, ten minutes
    python test/Kinds/hooks.py torch "Tensor.register_hook | before | plain"

The table of a library is in hooks_of_LIBRARY.py, with what is expected of each hook, and its counts in hooks_of_LIBRARY.json. A case is
"wrong" if its numbers are not eager's, and if it is refused or runs where the table expects the other.
"""
from __future__ import annotations

import importlib
import sys
from typing import Any

import harness

LIBRARIES = ("torch", "transformers", "lightning", "mmengine")


def table_of(library: str) -> Any:
    """The table of a library's hooks: names(), run(name) and expected_of(name)."""
    return importlib.import_module(f"hooks_of_{library}")


def run(library: str, name: str) -> harness.Outcome:
    """The outcome of a case, "wrong" where the table expects another one."""
    table = table_of(library)
    found, expected = harness.outcome_of(lambda: table.run(name)), table.expected_of(name)
    return found if found.kind in (expected, "wrong") else harness.Outcome("wrong", f"{found.kind}, expected {expected}: {found.text}")


if __name__ == "__main__":
    library = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if library not in LIBRARIES:
        sys.exit(f"library is {library!r}; allowed: {', '.join(LIBRARIES)}")
    harness.main(f"hooks_of_{library}", table_of(library).names(), lambda name: run(library, name))
