"""What makes a trace quick: the step's graph has many objects that live, and its Python text is never run."""
from __future__ import annotations

import contextlib
import gc
from typing import Iterator

from ...torch_api.tracing import use_lazy_graph_module



@contextlib.contextmanager
def quickly() -> Iterator[None]:
    """While entered, Python does not look for garbage again and again among the nodes and tensors of a trace, which all
    live, and torch.fx writes no Python for the graph."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with use_lazy_graph_module(True):
            yield
    finally:
        if collects:
            gc.enable()
