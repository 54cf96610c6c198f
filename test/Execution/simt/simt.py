"""Builds GPU kernels for the CPU and runs them on numpy arrays, with every check and in every schedule.

`emulate` is the heart: it runs a kernel in all schedules, demands that no check fails and that all give the same bits,
those of unchecked code included, and returns the results. The library of kernels for CPUs is
../host/kernels/harness.py.
"""
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "host", "kernels"))
import harness as host

SCHEDULES = ["forward", "reverse", "random", "warp-greedy"]
INPUTS = os.path.join(os.path.dirname(__file__), "Inputs")


class Counts(ctypes.Structure):
    """include/spmd/Runtime/Emulation.h"""
    _fields_ = [(name, ctypes.c_int64) for name in ("kernels", "launches", "blocks", "threads")]


class CheckFailed(Exception):
    """A check of the emulator failed; the message says which."""


class Library:
    """A shared object of emulated kernels."""

    def __init__(self, path):
        self.path, self.library = path, ctypes.CDLL(path)
        self.library.spmd_emulation_error.restype = ctypes.c_char_p
        self.library.spmd_emulation_configure.argtypes = [ctypes.c_int32, ctypes.c_int32, ctypes.c_uint64]

    def run(self, inputs, outputs, blocks, schedule="forward", seed=0, checked=True, **options):
        """As host.run, with all blocks in one launch; raises CheckFailed."""
        self.library.spmd_emulation_reset()
        assert self.library.spmd_emulation_configure(checked, SCHEDULES.index(schedule), seed) == 0
        results = host.run(self.path, inputs, outputs, blocks, **options)
        if message := self.library.spmd_emulation_error():
            raise CheckFailed(message.decode())
        return results

    def counts(self):
        counts = Counts()
        self.library.spmd_emulation_counts(ctypes.byref(counts))
        return counts


def read(name):
    with open(os.path.join(INPUTS, name)) as file:
        return file.read()


def compile_emulated(ir, passes="", cpu="x86-64-v3", checked_only=False):
    """Library made from gpu.func kernels, after `passes`."""
    path = tempfile.mkstemp(suffix=".so")[1]
    passes = f"{passes}," if passes else ""
    options = f"cpu={cpu} path={path} checked-only={str(checked_only).lower()}"
    pipeline = f"builtin.module({passes}spmd-emulate-kernels{{{options}}})"
    result = subprocess.run([host.SPMD_OPT, "--pass-pipeline=" + pipeline, "-o", os.devnull], input=ir, text=True,
                            capture_output=True)
    assert result.returncode == 0, result.stderr
    undefined = subprocess.run(["nm", "-D", "-u", path], text=True, capture_output=True).stdout
    assert not undefined.strip(), f"emulated kernels need symbols from outside: {undefined}"
    library = Library(path)
    os.unlink(path)
    return library


def emulate(library, inputs, outputs, blocks, **options):
    """Results of a kernel, the same bits in every schedule, checked or not."""
    first = library.run(inputs, outputs, blocks, **options)
    for checked in (True, False):
        for schedule in SCHEDULES:
            results = library.run(inputs, outputs, blocks, schedule, seed=7, checked=checked, **options)
            for i, (a, b) in enumerate(zip(first, results)):
                assert a.tobytes() == b.tobytes(), f"result {i} has other bits {schedule}, checked={checked}"
    return first
