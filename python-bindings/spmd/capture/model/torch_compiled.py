"""torch.compile, looked through: a step is compiled as a whole, with what a compiled module or function was made from."""
from __future__ import annotations

import contextlib
import sys
from typing import ContextManager

import torch


def traced_through() -> ContextManager[None]:
    """While entered, a trace goes through what torch.compile and Module.compile() have made."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and importing it takes a second
        return contextlib.nullcontext()
    return torch._dynamo.config.patch(error_on_nested_fx_trace=False)


def run_eagerly() -> ContextManager[None]:
    """While entered, what they have made runs as it was before."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else contextlib.nullcontext()


def original(module: torch.nn.Module) -> torch.nn.Module:
    """What torch.compile was given, whose names have no _orig_mod in them."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    while dynamo is not None and isinstance(module, dynamo.OptimizedModule):
        module = module._orig_mod
    return module
