"""PyTorch's contenders: one case trained by eager, torch.compile, or torch.compile and FSDP2, as a line of JSON.

    torch_step.py KEY eager|compile --steps=20              # this process, one device
    torchrun --nproc-per-node=8 torch_step.py KEY fsdp2     # a rank each
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch

import cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key")
    parser.add_argument("how", choices=["eager", "compile", "fsdp2"])
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    known = {case.key(0): case for case in [*cases.FULL, *cases.SMALL, *cases.NANO]}
    case = known[options.key.rsplit("-", 1)[0] + "-0"]
    of_all = int(options.key.rsplit("-", 1)[1])  # whose batch it is
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if has_gpu else torch.device("cpu")
    if has_gpu:
        torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = case.model().to(device)
    if options.how == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (ranks,))
        for module in model.modules():
            if type(module).__name__ == case.block:
                fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = case.optimizer(model)
    forward = model if options.how == "eager" else torch.compile(model)
    x, y = (torch.from_numpy(array).view(options.steps, -1, case.length) for array in case.batches(of_all, options.steps))
    losses, seconds = [], []
    for number in range(options.steps):
        mine = [t[number].chunk(ranks)[rank].to(device) for t in (x, y)]
        begin = time.perf_counter()
        loss = cases.train_step(forward, optimizer, *mine)
        losses.append(float(loss.full_tensor() if hasattr(loss, "full_tensor") else loss.detach()))  # waits
        seconds.append(time.perf_counter() - begin)
    if ranks > 1:
        total = torch.tensor(losses, device=device)
        torch.distributed.all_reduce(total)
        losses = (total / ranks).tolist()
    if rank == 0:
        peak = torch.cuda.max_memory_allocated() if has_gpu else 0
        print(json.dumps({"losses": losses, "ms": 1e3 * statistics.median(seconds[len(seconds) // 2:]), "bytes": peak,
                          "device": torch.cuda.get_device_name() if has_gpu else "cpu"}))
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
