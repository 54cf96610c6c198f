"""Process groups, and hooks of DistributedDataParallel."""
from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist


def resolve_process_group(name: str) -> dist.ProcessGroup:
    """The process group with a name, which is the argument of functional collectives."""
    return dist.distributed_c10d._resolve_process_group(name)


def fake_work() -> torch.ScriptObject:
    """A handle of a finished collective; the public class Work has no constructor."""
    return dist.Work.boxed(torch._C._distributed_c10d.FakeWork())



def comm_hooks(module: torch.nn.parallel.DistributedDataParallel) -> list[tuple[Callable, Any]]:
    """The pairs (hook, state) that register_comm_hook() was given; there is no public query."""
    return module._comm_hooks
