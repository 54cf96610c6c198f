"""Checks random programs; see README.md.

    python test/Fuzz/steps/run.py 0:3000 -j2              # programs of seeds 0 to 2999
    python test/Fuzz/steps/run.py 17 --keep=/tmp/steps    # one, and its script

Prints each failure as a script that was made as small as it gets, one of each kind. The exit code is 1 if there is one.
"""
from __future__ import annotations

import argparse
import collections
import json
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent.parent / "python-bindings")]

import torch

from check import Finding, check
from generate import generate
from minimize import minimize
from program import Program

LIMIT = 300  # seconds for one program


class Child:
    """A program that is checked in a process of its own: it may crash, hang, and leave anything behind."""

    def __init__(self, program: Program, path: Path, ranks: tuple[int, ...], sample: bool):
        self.program, self.path = program, path
        path.write_text(program.source())
        self.read, write = os.pipe()
        sys.stdout.flush()
        self.started = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.read)
            os.setpgid(0, 0)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                found = [(one.kind, one.where, one.text) for one in check(path, ranks, sample)]
            except BaseException as error:
                found = [("internal", "check", repr(error))]
            with os.fdopen(write, "w") as file:
                json.dump(found, file)
            os._exit(0)
        os.close(write)
        self.text = b""

    def poll(self) -> bool:
        """Reads what is there; whether it has ended."""
        if select.select([self.read], [], [], 0.02)[0]:
            data = os.read(self.read, 1 << 20)
            self.text += data
            return not data
        return time.monotonic() - self.started > LIMIT

    def findings(self) -> list[Finding]:
        is_late = time.monotonic() - self.started > LIMIT
        if is_late:
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self.read)
        _, status = os.waitpid(self.pid, 0)
        if is_late:
            return [Finding("crash", "all", f"no end after {LIMIT} s")]
        if not self.text:
            return [Finding("crash", "host", f"signal {os.WTERMSIG(status)} in the training process")]
        return [Finding(*one) for one in json.loads(self.text)]


def run_all(programs: Iterator[Program], folder: Path, ranks: tuple[int, ...], sample: bool, jobs: int,
            seen: Callable[[Program, list[Finding]], None]) -> None:
    running: list[Child] = []
    remaining = iter(programs)
    program = next(remaining, None)
    while program is not None or running:
        while program is not None and len(running) < jobs:
            running.append(Child(program, folder / f"step{program.seed}.py", ranks, sample))
            program = next(remaining, None)
        for child in list(running):
            if child.poll():
                running.remove(child)
                seen(child.program, child.findings())


def check_one(program: Program, folder: Path, ranks: tuple[int, ...], sample: bool) -> list[Finding]:
    found: list[Finding] = []
    run_all(iter([program]), folder, ranks, sample, 1, lambda _, findings: found.extend(findings))
    return found


def warm_up() -> None:
    """What a capture imports, the children then have. No backward: autograd refuses to go on in a forked process."""
    import spmd
    model = torch.nn.Linear(2, 2)

    def step(model, optimizer, x):
        for p in model.parameters():
            p.grad = p.detach() * model(x).sum().detach()
        optimizer.step()
        optimizer.zero_grad()
    spmd.capture(step, model, torch.optim.AdamW(model.parameters(), lr=0.1), torch.ones(2, 2))


def ranks_of(finding: Finding, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Those that show a failure."""
    where = finding.where.split()
    return () if where[0] == "interpreter" else ranks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", help="FIRST:END, or one")
    parser.add_argument("-j", dest="jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--ranks", default="1,2,3,5", help="on the host")
    parser.add_argument("--sample", action="store_true", help="of each program one number of ranks, drawn by its seed")
    parser.add_argument("--keep", type=Path, help="folder for scripts, all failures and what was found")
    parser.add_argument("--show-invalid", action="store_true", help="what eager says of scripts that are no test")
    parser.add_argument("--no-minimize", action="store_true")
    parser.add_argument("--expect", nargs="*", default=[], help="beginnings of signatures that are known")
    given = parser.parse_args()
    first, _, end = given.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    ranks = tuple(int(r) for r in given.ranks.split(",") if r)
    torch.set_num_threads(1)
    warm_up()
    counts: collections.Counter[str] = collections.Counter()
    failures: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory(prefix="spmd-steps.") as work:
        folder = given.keep or Path(work)
        folder.mkdir(parents=True, exist_ok=True)

        def seen(program: Program, findings: list[Finding]) -> None:
            counts.update({one.kind for one in findings})
            counts["programs"] += 1
            if findings[0].kind == "invalid" and given.show_invalid:
                print(f"seed {program.seed}: {findings[0].text.splitlines()[0]}", flush=True)
            bad = {one.signature(): one for one in reversed(findings) if one.is_failure}
            for signature, finding in bad.items():
                known = failures.setdefault(signature, [])
                known.append(program.seed)
                if len(known) > 1:
                    continue
                print(f"seed {program.seed}, {finding.where}: {finding.kind}\n{finding.text}\n", flush=True)
                if given.no_minimize or any(signature.startswith(text) for text in given.expect):
                    continue

                def fails(candidate: Program) -> bool:
                    found = check_one(candidate, Path(work), ranks_of(finding, ranks), given.sample)
                    return any(one.signature() == signature for one in found)
                small = minimize(program, fails)
                path = folder / f"small{program.seed}-{finding.kind}.py"
                symptom = "\n".join(f"# {line}" for line in [finding.where, *finding.text.splitlines()[:8]])
                path.write_text(f"{symptom}\n{small.source()}")
                print(small.source(), flush=True)
        run_all(map(generate, seeds), folder, ranks, given.sample, given.jobs, seen)
    print(", ".join(f"{kind}: {counts[kind]}" for kind in ("programs", "ok", "refused", "invalid", "not finite",
                                                             "unstable", "unlisted", "crash", "internal", "wrong")))
    for signature, numbers in sorted(failures.items(), key=lambda one: -len(one[1])):
        print(f"{len(numbers):5} {signature}  seeds {numbers[:6]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
