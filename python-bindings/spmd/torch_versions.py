"""The releases of PyTorch that a step can be captured with. torch_api handles what differs between them.

Capturing depends on private names of PyTorch. Every release of the range has passed the tests of capturing; the whole
suite runs on TESTED.
"""
from __future__ import annotations

OLDEST, TESTED, NEWEST = (2, 10), (2, 13), (2, 15)

# The range as pip writes it, and in words.
REQUIREMENT = f"torch>={OLDEST[0]}.{OLDEST[1]},<{NEWEST[0]}.{NEWEST[1] + 1}"
RANGE = f"PyTorch {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"


def why_not(version: str) -> str | None:
    """Why a step cannot be captured with this torch.__version__, and the hint; None if it can be."""
    try:
        major, minor = (int(part) for part in version.split("+")[0].split(".")[:2])
    except ValueError:
        major, minor = 0, 0
    if OLDEST <= (major, minor) <= NEWEST:
        return None
    return f"capturing follows the tracer of {RANGE}; this is {version}\n  hint: pip install '{REQUIREMENT}'"
