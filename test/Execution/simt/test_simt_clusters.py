"""Clusters and random numbers on GPUs, as ../host/kernels tests them on CPUs: every check, every schedule, in place.

Where no threads share a sum the bits are the CPU's; how often they are is printed (pytest -s).
"""
import os

import pytest
from cases import collect, grids, lower, outline, random_clusters
from simt import compile_emulated, emulate, host


def run(cases):
    """How many of `cases` have the CPU's bits; all agree with what is expected, within tolerance."""
    module = outline(cases)
    kernels = lower(module)
    blocks, library, path = grids(kernels), compile_emulated(kernels), host.compile_kernels(module, "x86-64-v3", False)
    same = 0
    for case in cases:
        options = {"symbol": case.symbol, "coords": case.coords}
        results = emulate(library, case.inputs, case.outputs, blocks[case.symbol], **options)
        host.compare(results, case.expected, case.tolerance)
        for pair in case.alias:
            in_place = library.run(case.inputs, case.outputs, blocks[case.symbol], "random", alias=[pair], **options)
            assert [a.tobytes() for a in results] == [a.tobytes() for a in in_place], f"{case.name} in place"
        cpu = host.run(path, case.inputs, case.outputs, case.trips, **options)
        same += all(a.tobytes() == b.tobytes() for a, b in zip(results, cpu))
    os.unlink(path)
    print(f"{len(cases)} kernels emulated, {same} with the bits of the CPU's")
    return same


def test_clusters():
    assert run(collect(["test_cluster"])) >= 50


def test_random_numbers():
    cases = collect(["test_random"])
    assert run(cases) == len(cases)


def test_random_clusters():
    assert run(random_clusters(40)) >= 35
