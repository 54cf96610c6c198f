"""How long a training step with many microbatches takes until it has run once: ours, and a model in torch.compile.

    python benchmark/first_step.py                                # nanoGPT's 12 layers, narrow, 40 microbatches against 1
    python benchmark/first_step.py --config 124m --layers 12 --length 64      # as wide as it is

Each time is of a process of its own with empty caches: from the first call of the step until it returns, less the
second call, which computes alone. One process runs after the other, in rounds, so that what else the machine does meets
all alike; printed are the medians, how many times the one of a single microbatch that of many is, and ours against
torch.compile's, which compiles one microbatch's forward and backward and has Python run them.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from contenders import ROOT, find_build

sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "python-bindings")]
CONTENDERS = ("ours", "torch.compile")


def measure(contender: str, microbatches: int, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds of the first and of the second call, in this process."""
    import dataclasses

    import gpt2
    import spmd
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    settings = dataclasses.replace(gpt2.CONFIGS[options.config], layers=options.layers)
    model = gpt2.GPT(settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = [torch.randint(settings.vocab, (options.batch, options.length + 1)) for _ in range(microbatches)]
    xs, ys = [rows[:, :-1].contiguous() for rows in batches], [rows[:, 1:].contiguous() for rows in batches]

    def train_step(model, optimizer, xs, ys):
        total = 0
        for x, y in zip(xs, ys):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / microbatches
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        return total

    step = spmd.compile(train_step, ranks=options.ranks) if contender == "ours" else train_step
    run = model if contender == "ours" else torch.compile(model)
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        float(step(run, optimizer, xs, ys))
        times.append(time.perf_counter() - begin)
    return times[0], times[1]


def in_process(contender: str, microbatches: int, options: argparse.Namespace) -> float:
    """Seconds that the first call takes more than the second."""
    with tempfile.TemporaryDirectory() as caches:
        build = find_build()
        environment = {**os.environ, "XDG_CACHE_HOME": caches, "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
                       "SPMD_COMPILE": str(build / "bin" / "spmd-compile"),
                       "SPMD_RUNTIME": str(build / "lib" / "libspmd_runtime.so")}
        said = subprocess.run([sys.executable, *sys.argv, "--child", contender, str(microbatches)], env=environment,
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    first, second = json.loads(said.splitlines()[-1])
    return first - second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="tiny", help="of examples/gpt2.py")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--microbatches", type=int, default=40)
    parser.add_argument("--batch", type=int, default=2, help="sequences in a microbatch")
    parser.add_argument("--length", type=int, default=16, help="tokens in a sequence")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child[0], int(options.child[1]), options)))
        return
    cases = [(contender, count) for contender in CONTENDERS for count in (1, options.microbatches)]
    times: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for case in cases:
            times[case].append(in_process(*case, options))
    medians = {case: statistics.median(found) for case, found in times.items()}
    for contender in CONTENDERS:
        one, many = medians[contender, 1], medians[contender, options.microbatches]
        print(f"{contender:>14}: 1 microbatch {one:.1f} s, {options.microbatches} microbatches {many:.1f} s, "
              f"{many / one:.2f} times")
    for count in (1, options.microbatches):
        print(f"ours against torch.compile, {count} microbatch{'es' if count > 1 else ''}: "
              f"{medians['ours', count] / medians['torch.compile', count]:.2f}")


if __name__ == "__main__":
    main()
