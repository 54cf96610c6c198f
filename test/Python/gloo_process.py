"""Processes that train beside ours with PyTorch's gloo."""
from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

import torch
import torch.distributed as dist


def run_processes(train: Callable[[int, int], Any]) -> None:
    """The program of a script that is called with a number of processes and a new file: in each of as many processes
    train(RANK, PROCESSES), of which the first one prints as JSON what it has got."""
    number, store = sys.argv[1:]
    torch.multiprocessing.start_processes(_run, (int(number), store, train), nprocs=int(number), start_method="fork")


def _run(rank: int, processes: int, store: str, train: Callable[[int, int], Any]) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=processes)
    torch.set_num_threads(1)
    seen = train(rank, processes)
    if rank == 0:
        print(json.dumps(seen))
    leave()


def leave() -> None:
    """Ends this process once all ranks are here. Without PyTorch's destructors: on a busy machine they now and then
    abort the process ("terminate called without an active exception") when everything is done."""
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)
