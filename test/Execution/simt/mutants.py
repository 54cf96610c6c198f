#!/usr/bin/env python3
"""Mutation tests: every mistake in every kind of GPU kernel is found, or harmless for a reason.

    mutants.py [--sample=N] [--kind=NAME] [--verbose]      # without --sample: all of them, 11 minutes of CPU time

Takes kernels of every kind (mutated.py), makes all mutants of each with spmd-mutate-gpu-kernels, and runs each with
the emulator's checks, on the numbers of its test and on large ones. A mutant is caught by a check, by a result that is
not the oracle's or, of the large numbers, not the CPU's, or because it does not end. One that is not is equivalent when
its probe shows that no thread decides otherwise or comes to its place in this shape, or when mutated.EQUIVALENT has the
reason.
Exit code 1 when a mutant escapes, or when a reason of EQUIVALENT is nobody's any more (without --sample).
"""
import argparse
import collections
import dataclasses
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
from cases import Case, call, grids, lower, outline
from mutated import EQUIVALENT, KINDS
from simt import CheckFailed, compile_emulated, host

PROBED = "no thread of this shape decides otherwise, or comes there (probed)"
# Of processor time; a kernel takes milliseconds.
SECONDS_TO_END = 5


@dataclasses.dataclass(eq=False)  # each is one of its own
class Mutant:
    """A kernel with a mistake. `what` is the mistake and the op it is at; `probe` the kernel that tells whether it
    matters, if there is one, and `globals` what both use. `cases` are numbers to run it on, the tests' first."""
    kind: str
    cases: list[Case]
    name: str
    blocks: int
    what: str
    text: str
    probe: str
    globals: str

    def __str__(self):
        return f"{self.kind}: {self.cases[0].name}: {self.name}: {self.what}"


def mutate(kernels, probes, mistakes=()):
    """{name: (what it is, text of its gpu.func)} of all mutants, or those with some mistakes, and the globals that they
    use."""
    options = f"probes={str(probes).lower()}" + (f" only={','.join(mistakes)}" if mistakes else "")
    result = subprocess.run([host.SPMD_OPT, f"--spmd-mutate-gpu-kernels={options}"], input=kernels, text=True,
                            capture_output=True)
    assert result.returncode == 0, result.stderr
    functions = re.findall(r"^    gpu\.func @.*?^    }\n", result.stdout, re.M | re.S)
    mutants = {}
    for text in functions:
        name = re.match(r"    gpu\.func @(\w+)", text).group(1)
        mutants[name] = re.search(r'spmd\.mutant = "((?:[^"\\]|\\.)*)"', text).group(1), text
    return mutants, "".join(re.findall(r"^    llvm\.mlir\.global .*\n", result.stdout, re.M))


def make_mutants(only):
    """All mutants of the kernels of KINDS, or of one kind."""
    assert only in (None, *KINDS), f"kinds are {', '.join(KINDS)}"
    shapes = [(kind, *shape) for kind, of_kind in KINDS.items() if only in (None, kind) for shape in of_kind]
    found = call([test for _, test, *_ in shapes])
    devices = collections.defaultdict(list)
    for (kind, _, device, *mistakes), cases in zip(shapes, found):
        devices[device, *mistakes] += [(kind, case) for case in cases]
    mutants = []
    for number, ((device, *mistakes), of_device) in enumerate(devices.items()):
        module = outline([case for _, case in of_device])
        cases = {case.symbol: [case, enlarge(case, False), enlarge(case, True)] for _, case in of_device}
        find_expected([large for case in cases.values() for large in case[1:]], module)
        # Kernels of all devices go into one library.
        kernels = re.sub(r"@k(\d+)", rf"@d{number}k\1", lower(module, device))
        blocks = grids(kernels)
        (texts, others), (probes, _) = mutate(kernels, False, *mistakes), mutate(kernels, True, *mistakes)
        owners = {f"d{number}{case.symbol}": (kind, cases[case.symbol]) for kind, case in of_device}
        for name, (what, text) in texts.items():
            owner = name.split("_")[0]
            probe = probes[name][1] if name in probes else ""
            mutants.append(Mutant(*owners[owner], name, blocks[owner], what, text, probe, others))
    return mutants


def choose(mutants, count):
    """`count` mutants of each kind, drawn by a fixed seed, of every shape and with every sort of mistake first."""
    chosen = []
    for kind in KINDS:
        rest = [mutant for mutant in mutants if mutant.kind == kind]
        random.Random(1).shuffle(rest)
        for key in (lambda m: m.what.split()[0], lambda m: m.cases[0].name, lambda m: m.name):
            first = {key(mutant): mutant for mutant in reversed(rest)}
            chosen += list(first.values())[:count - sum(mutant.kind == kind for mutant in chosen)]
            rest = [mutant for mutant in rest if mutant not in chosen]
    return [mutant for mutant in mutants if mutant in chosen]


def compile_all(mutants, attribute):
    """A library of their `text` or `probe`."""
    others = dict.fromkeys(line for mutant in mutants for line in mutant.globals.splitlines(keepends=True))
    functions = [getattr(mutant, attribute) for mutant in mutants]
    return compile_emulated("module {\n  gpu.module @kernels {\n" + "".join([*others, *functions]) + "  }\n}\n",
                            checked_only=True)


def enlarge(case, has_ends):
    """The case's kernel on large numbers, of which a maximum that is not one lets exp overflow; what it gives is the
    CPU's kernel's to say. With `has_ends` the last of a row is the largest, of the next the first, of the third one of
    the second warp."""
    inputs = [a * a.dtype.type(4096) if np.issubdtype(a.dtype, np.floating) else a for a in case.inputs]
    for a in inputs:
        if has_ends and np.issubdtype(a.dtype, np.floating) and a.ndim > 1 and a.size:
            largest = 2 * np.max(np.abs(a), where=np.isfinite(a), initial=0)
            for row, place in enumerate((-1, 0, 37 % a.shape[-1])):
                a[..., row::3, place] = largest
    large = Case(case.name, case.ir, inputs, case.expected, case.trips, case.coords, max(case.tolerance, 1e-5))
    large.symbol = case.symbol
    return large


def find_expected(cases, module):
    path = host.compile_kernels(module, "x86-64-v3", outline=False)
    for case in cases:
        results = host.run(path, case.inputs, case.outputs, case.trips, symbol=case.symbol, coords=case.coords)
        case.expected = [(host.widen(a).astype(np.float64) if np.issubdtype(want.dtype, np.floating) else a, dtype)
                         for a, (want, dtype) in zip(results, case.expected)]
    os.unlink(path)


def outcome(library, mutant):
    """What happens to a mutant: it runs in a process of its own, which may not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, SECONDS_TO_END)
        try:
            text = ""
            for case in mutant.cases:
                results = library.run(case.inputs, case.outputs, mutant.blocks, "warp-greedy", symbol=mutant.name,
                                      coords=case.coords)
                text = text or (f"result: {wrong}" if (wrong := case.differs(results)) else "")
        except CheckFailed as failed:
            text = f"check: {failed}"
        except AssertionError as failed:
            text = f"result: {failed}"
        os.write(write, text.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "does not end" if os.WTERMSIG(status) == signal.SIGPROF else f"crash: signal {os.WTERMSIG(status)}"
    assert os.WEXITSTATUS(status) == 0
    return text


def category(text):
    """The check, or how else a mutant was caught."""
    for name in ("out of bounds", "misaligned", "data race", "nobody wrote", "divergent barrier", "divergent shuffle",
                 "may only read", "does not end", "crash"):
        if name in text:
            return {"nobody wrote": "unwritten memory", "may only read": "write to an operand"}.get(name, name)
    return "shuffle operand" if text.startswith("check") else "wrong result"


def run_all(mutants, is_verbose):
    """[(mutant, how it was caught or None, reason why it is equivalent or None)]"""
    outcomes = []
    for start in range(0, len(mutants), 200):
        part = mutants[start:start + 200]
        library = compile_all(part, "text")
        survivors = []
        for mutant in part:
            text = outcome(library, mutant)
            if text:
                outcomes.append((mutant, category(text), None))
            else:
                survivors.append(mutant)
            if is_verbose:
                print(f"{mutant}: {text or 'SURVIVES'}", flush=True)
        probed = [mutant for mutant in survivors if mutant.probe]
        library = compile_all(probed, "probe") if probed else None
        for mutant in survivors:
            reason = next((why for pattern, why in EQUIVALENT if re.search(pattern, str(mutant))), None)
            if mutant.probe and not outcome(library, mutant):
                reason = PROBED
            outcomes.append((mutant, None, reason))
            if is_verbose:
                print(f"{mutant}: {reason or 'ESCAPED'}", flush=True)
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="mutants of each kind to run, chosen by a fixed seed (default: all)")
    parser.add_argument("--kind", help="only kernels of this kind")
    parser.add_argument("--verbose", action="store_true", help="a line per mutant")
    arguments = parser.parse_args()
    begin = time.time()
    mutants = make_mutants(arguments.kind)
    generated = collections.Counter(mutant.kind for mutant in mutants)
    outcomes = run_all(choose(mutants, arguments.sample) if arguments.sample else mutants, arguments.verbose)
    total = collections.Counter()
    for kind in (kind for kind in KINDS if kind in generated):
        counts = collections.Counter("caught" if caught else "equivalent" if reason else "escaped"
                                     for mutant, caught, reason in outcomes if mutant.kind == kind)
        total += counts
        print(f"{kind}: {generated[kind]} mutants generated, {counts.total()} run, {counts['caught']} caught, "
              f"{counts['equivalent']} equivalent, {counts['escaped']} escaped")
    print(f"all kinds: {len(mutants)} mutants generated, {total.total()} run, {total['caught']} caught, "
          f"{total['equivalent']} equivalent, {total['escaped']} escaped; {time.time() - begin:.0f} s")
    for title, counts in (("caught by", collections.Counter(caught for _, caught, _ in outcomes if caught)),
                          ("equivalent:", collections.Counter(reason for _, _, reason in outcomes if reason))):
        for name, count in counts.most_common():
            print(f"  {title} {name}: {count}")
    for mutant, caught, reason in outcomes:
        if not caught and not reason:
            print(f"  ESCAPED {mutant}")
    given = {reason for _, _, reason in outcomes}
    unused = [] if arguments.sample or arguments.kind else [why for _, why in EQUIVALENT if why not in given]
    for reason in unused:
        print(f"  nobody's reason: {reason}")
    return 1 if total["escaped"] or unused else 0


if __name__ == "__main__":
    sys.exit(main())
