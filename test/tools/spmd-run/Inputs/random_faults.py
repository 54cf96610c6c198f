#!/usr/bin/env python3
"""Runs an artifact again and again, each time with a fault in a random collective of a random rank.

    random_faults.py ARTIFACT FOLDER [--count=100] [--seed=1]

Every run must end within the time-out (and a few seconds) with exit code 3 and an error that names the rank, or, when
it skipped its last collective on a communicator, perhaps the collective where it then waits for the others; and leave
nothing in FOLDER. On a loaded machine a healthy rank may get no CPU for longer than a short time-out, and is then the
one that is missed: such a fault is tried again with a time-out ten and a hundred times as long. Prints a line per
failure and the counts of each fault; exits with 1 when one failed.
"""
import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

TIMEOUTS = (0.3, 3, 30)
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def problem_of(artifact, folder, fault, rank, timeout):
    """Why the run is not what it should be, None when it is; and whether too little CPU may be why."""
    begin = time.monotonic()
    try:
        run = subprocess.run(["spmd-run", artifact, "--quiet", f"--timeout={timeout}", f"--inject-fault={fault}",
                              f"--save={os.path.join(folder, 'saved.safetensors')}"],
                             capture_output=True, text=True, timeout=timeout + 60)
    except subprocess.TimeoutExpired:
        return "hangs", False
    seconds = time.monotonic() - begin
    if run.returncode != 3:
        return f"exit code {run.returncode}: {run.stderr.strip()}", False
    named = re.search(rf"error: .*\brank {rank}\b", run.stderr)
    waits = fault.startswith("skip") and re.search(r"error: time-out .* did not come to \w+.*\(command \d+", run.stderr)
    if not named and not waits:
        return f"the error does not name rank {rank}: {run.stderr.strip()}", "time-out" in run.stderr
    if os.listdir(folder):
        return f"left {os.listdir(folder)}", False
    if seconds > timeout + 20:
        return f"took {seconds:.1f} s", True
    return None, False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("artifact")
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    with open(os.path.join(arguments.artifact, "manifest.json")) as file:
        ranks = json.load(file)["ranks"]
    with open(os.path.join(arguments.artifact, "train_step.plan.json")) as file:
        commands = json.load(file)["commands"]
    collectives = [i for i, command in enumerate(commands) if command["op"] in COLLECTIVES]

    generator = random.Random(arguments.seed)
    counts, failures = collections.Counter(), 0
    for _ in range(arguments.count):
        kind, rank = generator.choice(["exit", "stall", "skip"]), generator.randrange(ranks)
        fault = f"{kind}:{rank}:{generator.choice(collectives)}"
        for timeout in TIMEOUTS:
            problem, is_starved = problem_of(arguments.artifact, arguments.folder, fault, rank, timeout)
            if not is_starved:
                break
        counts[kind] += 1
        if problem:
            failures += 1
            print(f"{fault}: {problem}")
    print(f"{arguments.count} faults ({', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}): "
          f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
