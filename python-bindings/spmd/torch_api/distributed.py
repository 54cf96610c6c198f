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



def next_rank(group: dist.ProcessGroup | None = None) -> int:
    """What torch.distributed.get_rank() would give in the next process; runs with the globals of that function's module."""
    if _rank_not_in_group(group):  # noqa: F821
        return -1
    whole = _get_default_group()  # noqa: F821
    if group is None or group is GroupMember.WORLD:  # noqa: F821
        return (whole.rank() + 1) % whole.size()
    return (get_group_rank(group, whole.rank()) + 1) % group.size()  # noqa: F821


def comm_hooks(module: torch.nn.parallel.DistributedDataParallel) -> list[tuple[Callable, Any]]:
    """The pairs (hook, state) that register_comm_hook() was given; there is no public query."""
    return module._comm_hooks
