"""How long a step of a plan takes on H100s, by a simulation: what schedules are compared with where there are no GPUs.

    spmd-compile NAME.step --ranks=64 --compile-to=plan --quiet -o plan.mlir && spmd-translate --plan-to-json plan.mlir -o plan.json
    python benchmark/plan_time.py plan.json plan.mlir --ranks=64

One rank runs one step. Streams run their commands in order, waits hold them, and what a command takes is a price: products and
attention by their FLOPs, other kernels by the bytes they touch, each with a launch; collectives by a latency and by bytes over the
link, which those that run at once share, and while one runs kernels are a little slower. The prices are rough and the same for all
schedules: differences of some per cent between two of them mean something, a time by itself does not.
"""
from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

# FLOP/s of a matrix product in bf16 (f32 has half), the share of it that large and small ones reach; bytes/s of memory.
PEAK, LARGE, SMALL, MEMORY = 989e12, 0.72, 0.62, 0.9 * 3.35e12
ATTENTION, ATTENTION_BACKWARD = 600e12, 500e12  # FLOP/s
LAUNCH = 1.5e-6  # seconds
SLOWED = 1.07  # kernels beside a collective
# By number of ranks: latency of a collective in seconds, bytes/s of a rank's link. 8 are a node; more are nodes of 8.
LINKS = {8: (25e-6, 350e9), 64: (150e-6, 345e9), 512: (1e-3, 280e9)}
BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i64": 8}
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


@dataclasses.dataclass
class Command:
    """`seconds` of a kernel, or the `bytes` that a collective moves in all; `waits_for` is the number of another one."""

    number: int
    stream: str
    seconds: float = 0.0
    bytes: float | None = None
    waits_for: int | None = None


@dataclasses.dataclass
class Times:
    """Of a step, in seconds: all of it, its kernels, and while compute had nothing to do."""

    step: float
    kernels: float
    idle: float


def attention_seconds(program: str) -> dict[str, float]:
    """By kernel: the plan has no shapes of attention, its IR has."""
    seconds, name = {}, ""
    for line in program.splitlines():
        if found := re.search(r"func\.func private @(k\d+)\(", line):
            name = found[1]
        if found := re.search(r"kernel\.(attention|attention_backward) <batch = (\d+), heads = (\d+), kvHeads = \d+, "
                              r"qLen = (\d+), kvLen = (\d+), headDim = (\d+)", line):
            batch, heads, queries, keys, width = map(int, found.groups()[1:])
            products, rate = (2, ATTENTION) if found[1] == "attention" else (5, ATTENTION_BACKWARD)
            seconds[name] = products * batch * heads * queries * keys * width / rate  # causal: half of all pairs
    return seconds


def read(plan: dict[str, Any], program: str) -> list[Command]:
    attention = attention_seconds(program)
    return [_command(number, entry, attention) for number, entry in enumerate(plan["commands"])]


def _command(number: int, entry: dict[str, Any], attention: dict[str, float]) -> Command:
    command, op = Command(number, entry["stream"]), entry["op"]
    if "kernel" in entry:
        seconds = attention.get(entry["kernel"])
        command.seconds = LAUNCH + (_moved(entry) / MEMORY if seconds is None else seconds)
    elif op == "gemm":
        m, n, k, count, size = entry["m"], entry["n"], entry["k"], entry.get("batch", 1), BYTES[entry["dtype"]]
        rate = PEAK * (LARGE if min(m, n) >= 2048 else SMALL) / (1 if size == 2 else 2)
        command.seconds = LAUNCH + max(2 * m * n * k * count / rate, (m * k + k * n + m * n) * count * size / MEMORY)
    elif op == "wait":
        command.waits_for = entry["for"]
    elif op in COLLECTIVES:
        whole = {"all_gather": "recv", "reduce_scatter": "send"}.get(op)
        command.bytes = entry[whole]["bytes"] if whole else 0  # all-reduces are of single numbers
    else:
        command.seconds = LAUNCH + 2 * entry.get("bytes", 0) / MEMORY
    return command


def _moved(entry: dict[str, Any]) -> int:
    """Bytes that a kernel reads, each once, and writes; of a table of which it needs some rows, what these have."""
    members = [value if isinstance(value, list) else [value] for value in entry.values()]
    references = [ref for values in members for ref in values if isinstance(ref, dict) and "buffer" in ref]
    read_from = {(ref["buffer"], ref["offset"], ref["bytes"]) for ref in references if "r" in ref["access"]}
    reads = sum(size for _, _, size in read_from)
    writes = sum(ref["bytes"] for ref in references if "w" in ref["access"])
    if "embed_tokens" in entry.get("loc", "") and reads > 4 * writes:
        reads = 2 * writes
    return reads + writes


def simulate(commands: list[Command], ranks: int) -> Times:
    """`ranks` is one of LINKS."""
    latency, link = LINKS[ranks]
    queues: dict[str, collections.deque[Command]] = {}
    for command in commands:
        queues.setdefault(command.stream, collections.deque()).append(command)
    running: dict[str, list[Any]] = {}  # by stream: the command, what is left of its latency or seconds, and of its bytes
    done: set[int] = set()
    now = kernels = idle = 0.0
    while any(queues.values()) or running:
        _start(queues, running, done, latency, ranks)
        if not running:
            assert not any(queues.values()), "commands wait for each other"
            break
        moving = sum(left <= 0 for _, left, _ in running.values())
        slow = any(command.bytes is not None for command, _, _ in running.values())

        def rate(entry: list[Any]) -> float:
            command, left, _ = entry
            return (1 / SLOWED if slow else 1.0) if command.bytes is None else 1.0 if left > 0 else link / moving

        passed = min((left if left > 0 else size) / rate(entry) for entry in running.values() for _, left, size in [entry])
        rates = {stream: rate(entry) for stream, entry in running.items()}
        idle += passed if "compute" not in running else 0
        now += passed
        for stream, entry in list(running.items()):
            part = 1 if entry[1] > 0 else 2
            entry[part] -= passed * rates[stream]
            if entry[part] <= 1e-13 * rates[stream]:
                entry[part] = 0
            if entry[1] <= 0 and entry[2] <= 0:
                done.add(entry[0].number)
                kernels += entry[0].seconds
                del running[stream]
    return Times(now, kernels, idle)


def _start(queues: dict, running: dict, done: set[int], latency: float, ranks: int) -> None:
    """Begins what can begin now; what takes no time is done at once."""
    progress = True
    while progress:
        progress = False
        for stream, queue in queues.items():
            if stream in running or not queue:
                continue
            if (awaited := queue[0].waits_for) is not None and awaited not in done:
                continue
            command, progress = queue.popleft(), True
            if command.bytes is not None:
                running[stream] = [command, latency, command.bytes * (ranks - 1) / ranks]
            elif command.seconds:
                running[stream] = [command, command.seconds, 0.0]
            else:
                done.add(command.number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="as spmd-translate --plan-to-json writes it")
    parser.add_argument("program", type=Path, help="the IR that it is of")
    parser.add_argument("--ranks", type=int, choices=LINKS, required=True)
    options = parser.parse_args()
    times = simulate(read(json.loads(options.plan.read_text()), options.program.read_text()), options.ranks)
    print(f"{options.ranks} ranks: {1e3 * times.step:.1f} ms, kernels {1e3 * times.kernels:.1f}, idle {1e3 * times.idle:.1f}")


if __name__ == "__main__":
    main()
