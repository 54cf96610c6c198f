"""`module.to(dtype)` in a forward: it does nothing where the module is in that type, as it mostly is; else the step would have
other parameters than those that its optimizer has."""
from __future__ import annotations

import contextlib
import itertools
from typing import Any, Iterator

import torch

from ...torch_api.modules import parse_to
from ...torch_api.tracing import FakeTensor
from ..errors import error_at
from ..observe import patches
from ..observe.stacks import user_stack


@contextlib.contextmanager
def followed_module_casts() -> Iterator[None]:
    """While a step is traced, where all tensors are on one device."""
    to = torch.nn.Module.to

    def noted_to(module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        tensors = [t for t in itertools.chain(module.parameters(), module.buffers()) if isinstance(t, FakeTensor)]
        if not tensors:
            return to(module, *args, **kwargs)
        _, dtype, _, memory_format = parse_to(*args, **kwargs)
        other = next((t.dtype for t in tensors if dtype not in (None, t.dtype) and t.is_floating_point()), None)
        if memory_format is not None or other is not None:
            raise error_at(user_stack()[0], f"the step changes a {type(module).__qualname__} of {other or tensors[0].dtype} "
                                            f"to {dtype or memory_format}, which includes parameters that it trains",
                           "cast the model before the step, or cast arguments and results of the module in the step")
        return module

    with patches.replaced({patches.MODULE_TO: noted_to}):
        yield
