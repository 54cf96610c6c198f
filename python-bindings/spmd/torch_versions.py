"""Which releases of PyTorch a step can be captured with, and what differs between them.

Capturing follows the tracer, which is no public interface. Every release of the range was seen to pass the tests of
capturing; the whole suite runs on TESTED.
"""
from __future__ import annotations

import inspect
from typing import Any

OLDEST, TESTED, NEWEST = (2, 10), (2, 13), (2, 15)

# The range as pip writes it, and in words.
REQUIREMENT = f"torch>={OLDEST[0]}.{OLDEST[1]},<{NEWEST[0]}.{NEWEST[1] + 1}"
RANGE = f"PyTorch {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"


def why_not(version: str) -> str | None:
    """Why a step cannot be captured with this torch.__version__, and the cure; None if it can be."""
    try:
        major, minor = (int(part) for part in version.split("+")[0].split(".")[:2])
    except ValueError:
        major, minor = 0, 0
    if OLDEST <= (major, minor) <= NEWEST:
        return None
    return f"capturing follows the tracer of {RANGE}; this is {version}\n  cure: pip install '{REQUIREMENT}'"


def make_fx_options() -> dict[str, Any]:
    """What make_fx is called with; 2.10 cannot leave out the mode that records torch functions, which nobody reads."""
    from torch.fx.experimental.proxy_tensor import make_fx
    # "real" under the caller's own fake mode: "fake" would make new fakes, unknown to model and optimizer
    options = {"tracing_mode": "real", "_disable_torch_fn_metadata_mode": True}
    return {name: value for name, value in options.items() if name in inspect.signature(make_fx).parameters}
