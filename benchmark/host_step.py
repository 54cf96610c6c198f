"""Our compiled step beside PyTorch eager and torch.compile: same CPU, same threads, same batch, paired in one run.

    python benchmark/host_step.py                                   # every row of the README's table
    python benchmark/host_step.py --cases nano:8x128 --rounds 7     # one case

Each round times every contender once, one after the other, so that a busy machine disturbs all of them alike; a ratio is
taken within a round, and the table shows the median ratio with the lowest and the highest. Losses must agree first.
The floor is printed with each case: matrix-product FLOPs over the measured peak of a large GEMM on the same threads.
"""
from __future__ import annotations

import argparse
import copy
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# glibc gives large tensors back to the system after every step by default, and eager PyTorch then pays a page fault per
# 4 KiB: without these settings we would be measuring that, in our favour.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "268435456"}
CASES = ["nano:8x128", "nano:1x32", "124m:4x128"]
LAYOUTS = [(1, 2), (2, 1)]  # (ranks, threads per rank)


def eager(example, compiled: str, optimizer: str):
    """A function that runs one PyTorch step on a copy of the model. `compiled`: "", "model" or "step"."""
    import torch

    model = copy.deepcopy(example["model"])
    options = {"fused": True} if optimizer == "fused" else {"foreach": True}
    groups = [{**{k: v for k, v in group.items() if k in ("lr", "betas", "eps", "weight_decay")},
               "params": [dict(model.named_parameters())[name_of(example["model"], p)] for p in group["params"]]}
              for group in example["optimizer"].param_groups]
    adam = torch.optim.AdamW(groups, **options)
    step = example["train_step"]
    if compiled == "model":
        model = torch.compile(model)
    elif compiled == "step":
        inner, adam_step = step, torch.compile(adam.step)
        adam.step = lambda: adam_step()
        model = torch.compile(model)
        step = inner
    return lambda batch: step(model, adam, *batch)


def name_of(model, parameter) -> str:
    return next(name for name, p in model.named_parameters() if p is parameter)


def compile_ours(example, ranks: int, threads: int, folder: Path, name: str):
    """Captures, compiles with spmd-compile and loads; returns one step as a function."""
    import spmd

    step, artifact = folder / f"{name}.step", folder / f"{name}-{ranks}.spmd"
    if not step.exists():
        spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                     name=name).save(str(step))
    program = ROOT / "build" / "bin" / "spmd-compile"
    subprocess.run([str(program), str(step), "-o", str(artifact), f"--ranks={ranks}", "--policy=class:Block", "--quiet"],
                   check=True)
    trainer = spmd.load(str(artifact), threads=ranks * threads)
    return lambda batch: trainer.step(*batch)


def seconds(run, batch, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run(batch)
    return (time.perf_counter() - start) / count


def gemm_peak() -> float:
    """GFLOP/s of a large f32 matrix product on torch's threads."""
    import torch

    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = min(seconds(lambda _: a @ b, None, 3) for _ in range(5))
    return 2 * 1024**3 / best / 1e9


def step_flops(config, batch: int, length: int) -> float:
    """Matrix-product FLOPs of forward and backward (causal attention counted exactly)."""
    per_token = 2 * (12 * config.width**2 * config.layers + config.vocab * config.width)
    attention = 2 * 2 * config.layers * config.width * (length + 1) / 2
    return 3 * batch * length * (per_token + attention)


def run_case(case: str, ranks: int, threads: int, options, folder: Path) -> None:
    import torch
    import gpt2

    config, shape = case.split(":")
    batch, length = map(int, shape.split("x"))
    torch.set_num_threads(ranks * threads)
    example = gpt2.setup(config, "fused", batch, length, 1, ROOT / "examples" / "gpt2-nano.txt" if config == "nano" else None)
    args = example["args"]
    contenders = {"spmd": compile_ours(example, ranks, threads, folder, f"{config}-{shape}"),
                  "eager foreach": eager(example, "", "foreach"), "eager fused": eager(example, "", "fused")}
    if not options.no_compile:
        contenders["compile model"] = eager(example, "model", "fused")
        contenders["compile step"] = eager(example, "step", "foreach")
    losses = {name: float(run(args)) for name, run in contenders.items()}
    for name, loss in losses.items():
        if abs(loss - losses["eager fused"]) > 1e-4 * abs(losses["eager fused"]):
            sys.exit(f"{case}: first loss of {name} is {loss}, of eager {losses['eager fused']}")
    for run in contenders.values():
        seconds(run, args, 2)
    counts = {name: max(1, int(options.seconds / seconds(run, args, 1))) for name, run in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, run in contenders.items():
            times[name].append(seconds(run, args, counts[name]))
    settings = example["model"].wte.weight.shape
    gflop = step_flops(gpt2.dataclasses.replace(gpt2.CONFIGS[config], vocab=settings[0]), batch, length) / 1e9
    floor = gflop / gemm_peak()
    ours = times["spmd"]
    print(f"\n{case}, {ranks} rank(s) x {threads} thread(s); {gflop:.1f} GFLOP of matrix products, floor {floor * 1e3:.2f} ms")
    print(f"  {'':14s} {'ms/step':>9s}  {'tokens/s':>9s}  spmd is faster by (lowest – highest)")
    for name, values in times.items():
        middle = statistics.median(values)
        ratios = sorted(v / o for v, o in zip(values, ours))
        spread = "" if name == "spmd" else f"{statistics.median(ratios):5.2f}x ({ratios[0]:.2f} – {ratios[-1]:.2f})"
        print(f"  {name:14s} {middle * 1e3:9.2f}  {batch * length / middle:9.0f}  {spread}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES, help="CONFIG:BATCHxLENGTH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each contender in a round")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (it takes minutes to warm up)")
    options = parser.parse_args()
    if any(os.environ.get(key) != value for key, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    sys.path.insert(0, str(ROOT / "examples"))
    sys.path.insert(0, str(ROOT / "python-bindings"))
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases:
            for ranks, threads in LAYOUTS:
                run_case(case, ranks, threads, options, Path(folder))


if __name__ == "__main__":
    main()
