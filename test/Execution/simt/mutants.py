#!/usr/bin/env python3
"""Mutation tests: every mistake in every kind of GPU kernel is found, or harmless for a reason.

    mutants.py [--sample=N] [--kind=NAME] [--verbose]      # without --sample: all of them, some minutes

Takes kernels of every kind (../host/kernels), makes all mutants of each with spmd-mutate-gpu-kernels, and runs each with
the emulator's checks, on the numbers of its test and on numbers 4,096 times as large (for which a maximum that is not one
lets exp overflow). A mutant is caught by a check, by a result that is not the oracle's or, of the large numbers, not the
CPU's, or because it does not end. One that is not is equivalent when its probe shows that no thread decides otherwise
or comes to its place in this shape, or when EQUIVALENT has the reason.
Exit code 1 when a mutant escapes.
"""
import argparse
import collections
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
from cases import Case, collect, grids, lower, outline
from simt import CheckFailed, compile_emulated, host

# One or more shapes of every kind of kernel; for each, `test_name[first parameters` of its case.
KINDS = {
    "elementwise": ["test_cluster.test_elementwise[65", "test_cluster.test_bias_and_comparison[7, 16"],
    "row reduction": ["test_cluster.test_softmax[5, 64", "test_cluster.test_softmax[9, 100",
                      "test_cluster.test_softmax[2, 5000", "test_cluster.test_layer_norm[5, 100",
                      "test_cluster.test_layer_norm[6, 768", "test_cluster.test_cross_entropy"],
    "row and column reduction": ["test_cluster.test_layer_norm_backward[4, 8, 48",
                                 "test_cluster.test_column_centre_then_rows[7"],
    "reduction of outer dims": ["test_cluster.test_batch_norm["],
    "transpose": ["test_cluster.test_transposed_operand[", "test_cluster.test_batched_transpose["],
    "random numbers": ["test_random.test_uniform[5, 1, 0, 2, 3, 16"],
    "gather": ["test_movement.test_gather_rows[<class 'numpy.int64'>, 65"],
    "scatter": ["test_movement.test_scatter_rows[True, 65", "test_movement.test_scatter_rows_kinds[3, 5, 20, 'max'"],
    "sort": ["test_movement.test_sort[<class 'numpy.float32'>, 5, 33, False"],
    "copy": ["test_movement.test_copy[6"],
    "flat shard": ["test_movement.test_segmented[1", "test_movement.test_segment_norms[1, 2"],
    "attention": ["test_attention.test_attention[(1, 2, 2, 33"],
}

# Mutants that no run can tell from the kernel: (pattern of kind and mutant, reason).
EQUIVALENT = [
    # Checks are by what a barrier orders, not by what a schedule happened to do: no race is none in any schedule.
    (r": drop-barrier", "the barrier orders no two accesses of a launch of this shape"),
]


def choose(only):
    """(kind, case) of the kernels to mutate; of a backward pass, both."""
    kinds = {kind: names for kind, names in KINDS.items() if only in (None, kind)}
    assert kinds, f"kinds are {', '.join(KINDS)}"
    cases = collect(sorted({name.split(".")[0] for names in kinds.values() for name in names}))
    chosen = []
    for kind, names in kinds.items():
        for name in names:
            found = [case for case in cases if case.name.startswith(name)]
            assert found, f"no case is named {name}..."
            chosen += [(kind, case) for case in found if case.name == found[0].name]
    return chosen


def mutate(kernels, probes=False):
    """{name: (what it is, text of its gpu.func)} of all mutants, and the globals that they use."""
    option = "{probes=true}" if probes else ""
    result = subprocess.run([host.SPMD_OPT, f"--pass-pipeline=builtin.module(spmd-mutate-gpu-kernels{option})"],
                            input=kernels, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    functions = re.findall(r"^    gpu\.func @.*?^    }\n", result.stdout, re.M | re.S)
    others = re.findall(r"^    llvm\.mlir\.global .*\n", result.stdout, re.M)
    mutants = {}
    for text in functions:
        name = re.match(r"    gpu\.func @(\w+)", text).group(1)
        mutants[name] = re.search(r'spmd\.mutant = "((?:[^"\\]|\\.)*)"', text).group(1), text
    return mutants, "".join(others)


def join(functions, others):
    return "module {\n  gpu.module @kernels {\n" + others + "".join(functions) + "  }\n}\n"


def enlarge(case):
    """The case's kernel on large numbers; what it gives is the CPU's kernel's to say."""
    inputs = [a * a.dtype.type(4096) if np.issubdtype(a.dtype, np.floating) else a for a in case.inputs]
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


def outcome(library, cases, blocks, symbol):
    """What happens to a mutant: it runs in a process of its own, which may not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            text = ""
            for case in cases:
                results = library.run(case.inputs, case.outputs, blocks, "warp-greedy", symbol=symbol, coords=case.coords)
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
        return "does not end" if os.WTERMSIG(status) == signal.SIGALRM else f"crash: signal {os.WTERMSIG(status)}"
    return text


def category(text):
    """The check, or how else a mutant was caught."""
    for name in ("out of bounds", "misaligned", "data race", "nobody wrote", "divergent barrier", "divergent shuffle",
                 "may only read", "does not end", "crash"):
        if name in text:
            return {"nobody wrote": "unwritten memory", "may only read": "write to an operand"}.get(name, name)
    return "shuffle operand" if text.startswith("check") else "wrong result"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="mutants to run, chosen by a fixed seed (default: all)")
    parser.add_argument("--kind", help="only kernels of this kind")
    parser.add_argument("--verbose", action="store_true", help="a line per mutant")
    arguments = parser.parse_args()
    begin = time.time()
    chosen = choose(arguments.kind)
    module = outline([case for _, case in chosen])
    kernels = lower(module)
    large = {case.symbol: enlarge(case) for _, case in chosen}
    find_expected(large.values(), module)
    owner = {case.symbol: (kind, case) for kind, case in chosen}
    blocks = grids(kernels)
    mutants, others = mutate(kernels)
    names = list(mutants)
    if arguments.sample and arguments.sample < len(names):
        # A mistake of every sort in every kind first.
        random.Random(1).shuffle(names)
        first = {}
        for name in names:
            first.setdefault((owner[name.split("_")[0]][0], mutants[name][0].split()[0]), name)
        rest = [name for name in names if name not in set(first.values())]
        names = (list(first.values()) + rest)[:arguments.sample]
    probes, _ = mutate(kernels, probes=True)
    caught, equivalent, escaped = collections.Counter(), collections.Counter(), []
    table = collections.defaultdict(collections.Counter)
    for start in range(0, len(names), 200):
        part = names[start:start + 200]
        library = compile_emulated(join([mutants[name][1] for name in part], others))
        survivors = []
        for name in part:
            kind, case = owner[name.split("_")[0]]
            text = outcome(library, [case, large[case.symbol]], blocks[case.symbol], name)
            what = mutants[name][0]
            table[kind]["mutants"] += 1
            if arguments.verbose:
                print(f"{name} ({case.name}): {what}: {text or 'SURVIVES'}", flush=True)
            if text:
                caught[category(text)] += 1
                table[kind]["caught"] += 1
            else:
                survivors.append(name)
        probed = [name for name in survivors if name in probes]
        library = compile_emulated(join([probes[name][1] for name in probed], others)) if probed else None
        for name in survivors:
            kind, case = owner[name.split("_")[0]]
            what = mutants[name][0]
            reason = next((why for pattern, why in EQUIVALENT if re.search(pattern, f"{kind}: {what}")), None)
            if name in probed and not outcome(library, [case], blocks[case.symbol], name):
                reason = "no thread of this shape decides otherwise, or comes there (probed)"
            if reason:
                equivalent[reason] += 1
                table[kind]["equivalent"] += 1
            else:
                escaped.append(f"{kind}, {case.name}, {name}: {what}")
    print(f"{len(names)} mutants of {len(mutants)} in {time.time() - begin:.0f} s: {sum(caught.values())} caught, "
          f"{sum(equivalent.values())} equivalent, {len(escaped)} escaped")
    for kind, counts in table.items():
        print(f"  {kind}: {counts['mutants']} mutants, {counts['caught']} caught, {counts['equivalent']} equivalent")
    for title, counts in (("caught by", caught), ("equivalent because", equivalent)):
        for name, count in counts.most_common():
            print(f"  {title} {name}: {count}")
    for line in escaped:
        print(f"  ESCAPED {line}")
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
