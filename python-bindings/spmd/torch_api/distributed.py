"""Process groups."""
from __future__ import annotations

import torch
import torch.distributed as dist


def resolve_process_group(name: str) -> dist.ProcessGroup:
    """The process group with a name, which is the argument of functional collectives."""
    return dist.distributed_c10d._resolve_process_group(name)


def fake_work() -> torch.ScriptObject:
    """A handle of a finished collective; the public class Work has no constructor."""
    return dist.Work.boxed(torch._C._distributed_c10d.FakeWork())
