"""torch.compile, looked through: a step is compiled as a whole, with what a compiled module or function was made from."""
from __future__ import annotations

from typing import ContextManager

import torch

from ...torch_api.modules import is_compiled_module, original_of
from ..observe import patches


def traced_through() -> ContextManager[None]:
    """While entered, a trace goes through what torch.compile and Module.compile() have made."""
    return patches.replaced({patches.NESTED_TRACE_ERRORS: False})


def run_eagerly() -> ContextManager[None]:
    """While entered, what they have made runs as it was before."""
    return patches.replaced({patches.COMPILER_STANCE: "force_eager"})


def original(module: torch.nn.Module) -> torch.nn.Module:
    """What torch.compile was given, whose names have no _orig_mod in them."""
    while is_compiled_module(module):
        module = original_of(module)
    return module
