"""Settings of the process, and the position of data loaders."""
from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch

set_mkldnn_enabled = torch._C._set_mkldnn_enabled  # torch.backends.mkldnn.flags() sets more, and warns

num_yielded_of = attrgetter("_num_yielded")  # the number of batches that a DataLoader's iterator has returned


def is_loader_iterator(value: Any) -> bool:
    """Whether a value has num_yielded_of(). Runs no code of its class."""
    return "_num_yielded" in getattr(value, "__dict__", {})
