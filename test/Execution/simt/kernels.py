"""The tests of kernels for CPUs (../host/kernels), run on the kernels for GPUs.

`on_gpu` is the heart: it lets the tests of a module check GPU kernels in place of those for CPUs. Each kernel runs with
every check in one schedule and unchecked in all, in place where that may be, and all runs give the same bits; with
`same_bits` also those of the CPU's kernel.
"""
import os
import re
import subprocess

import simt
from simt import host

CHIP = "sm_90"


def lower(ir):
    """The GPU kernels of `ir`."""
    pipeline = f"builtin.module(spmd-outline-kernels,spmd-lower-gpu-kernels{{chip={CHIP}}})"
    result = subprocess.run([host.SPMD_OPT, "--pass-pipeline=" + pipeline], input=ir, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


class Kernel:
    """The only kernel of some IR, emulated."""

    def __init__(self, ir):
        text = lower(ir)
        self.blocks = int(re.search(r"known_grid_size = array<i32: (\d+)", text).group(1))
        self.library = simt.compile_emulated(text)

    def run(self, inputs, outputs, **options):
        return self.library.run(inputs, outputs, self.blocks, **options)


def run_everywhere(kernel, inputs, outputs, alias=(), **options):
    """Results of the kernel, the same in all schedules and in place."""
    first = kernel.run(inputs, outputs, schedule="warp-greedy", **options)
    others = [kernel.run(inputs, outputs, schedule=schedule, seed=5, checked=False, **options)
              for schedule in simt.SCHEDULES]
    others += [kernel.run(inputs, outputs, schedule="random", seed=3, alias=[pair], **options) for pair in alias]
    for other in others:
        for i, (a, b) in enumerate(zip(first, other)):
            assert a.tobytes() == b.tobytes(), f"result {i} has other bits in another schedule, or in place"
    return first


def on_gpu(monkeypatch, module, same_bits=False):
    """Tests of `module` check GPU kernels."""

    def check(ir, inputs, expected, trips, coords=(0,), tolerance=2e-6, alias=(), cpus=None):
        outputs = [(want.shape, dtype) for want, dtype in expected]
        results = run_everywhere(Kernel(ir), inputs, outputs, alias, coords=coords)
        host.compare(results, expected, tolerance)
        if same_bits:
            path = host.compile_kernels(ir, "x86-64-v3")
            for i, (a, b) in enumerate(zip(results, host.run(path, inputs, outputs, trips, coords=coords))):
                assert a.tobytes() == b.tobytes(), f"result {i} has other bits than on the CPU"
            os.unlink(path)
        return results

    def run(kernel, inputs, outputs, trips, **options):
        return run_everywhere(kernel, inputs, outputs, **options)

    monkeypatch.setattr(module, "check", check)
    monkeypatch.setattr(module, "compile_kernels", lambda ir, cpu: Kernel(ir))
    monkeypatch.setattr(module, "run", run)
