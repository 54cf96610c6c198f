"""Compiles kernel IR to shared objects and runs the kernels on numpy arrays.

`check` is the heart: it compares with an oracle, then demands the same bits from every CPU the machine can run and from
any cut of the parallel loop.
"""
import ctypes
import os
import random
import subprocess
import tempfile

import numpy as np

SPMD_OPT = os.path.join(os.environ.get("SPMD_BIN", ""), "spmd-opt")
# bf16 has no numpy type: its bits are carried in uint16
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "i32": np.int32,
          "i1": np.bool_}
MLIR_NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


def runnable_cpus():
    """CPU names that kernels can be generated for and that this machine runs."""
    with open("/proc/cpuinfo") as f:
        flags = f.read()
    return ["x86-64-v3"] + (["x86-64-v4"] if "avx512vl" in flags and "avx512dq" in flags else [])


def widen(x):
    """A 16-bit type as f32."""
    if x.dtype == np.uint16:
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.promote_types(x.dtype, np.float32))


def narrow(x, name):
    """f32 rounded to the nearest, ties to even, by comparing distances: not by the kernels' trick."""
    if name == "f16":
        with np.errstate(over="ignore"):
            return x.astype(np.float16)
    bits = x.view(np.uint32)
    with np.errstate(over="ignore", invalid="ignore"):
        low = (bits & 0xFFFF0000).view(np.float32).astype(np.float64)
        # past the largest number the next step would be 2^128
        high = (bits & 0xFFFF0000).astype(np.uint64) + 0x10000
        high = np.where((high & 0x7FFFFFFF) == 0x7F800000, np.copysign(2.0**128, x.astype(np.float64)),
                        high.astype(np.uint32).view(np.float32).astype(np.float64))
        to_low, to_high = np.abs(x.astype(np.float64) - low), np.abs(high - x.astype(np.float64))
        up = (to_high < to_low) | ((to_high == to_low) & (((bits >> 16) & 1) == 1))
    up &= np.isfinite(x)
    return np.where(np.isnan(x), (bits >> 16) | 0x40, (bits >> 16) + up).astype(np.uint16)


def tensor(array):
    """MLIR type of an array."""
    return "tensor<" + "".join(f"{n}x" for n in array.shape) + MLIR_NAMES[array.dtype] + ">"


def compile_kernels(ir, cpu, outline=True):
    """Path of a shared object made from `ir`; without `outline` kernels have symbols already."""
    path = tempfile.mkstemp(suffix=".so")[1]
    first = "spmd-outline-kernels," if outline else ""
    pipeline = f"builtin.module({first}spmd-emit-kernels{{cpu={cpu} path={path}}})"
    result = subprocess.run([SPMD_OPT, "--pass-pipeline=" + pipeline, "-o", os.devnull], input=ir, text=True,
                            capture_output=True)
    assert result.returncode == 0, result.stderr
    undefined = subprocess.run(["nm", "-D", "-u", path], text=True, capture_output=True).stdout
    assert not undefined.strip(), f"kernels need symbols from outside: {undefined}"
    return path


def _call(function, arrays, coords, begin, end):
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    coordinates = (ctypes.c_int64 * max(1, len(coords)))(*coords)
    function(pointers, coordinates, ctypes.c_int64(begin), ctypes.c_int64(end))


def run(path, inputs, outputs, trips, symbol="k0", coords=(0,), cuts=(), alias=(), shift=0):
    """Results of a kernel: `outputs` is (shape, dtype) each, at 64 bytes as in an arena, or `shift` bytes
    after. `cuts` are places to cut the trips at; pieces run backwards.

    `alias` holds (input, output) pairs that share memory. Results are filled with garbage first, floats with NaN, with
    guard bands around.
    """
    function = getattr(ctypes.CDLL(path), symbol)
    guard = 64
    held, arrays = [], []
    inputs = [np.ascontiguousarray(a) for a in inputs]
    for shape, dtype in outputs:
        count = int(np.prod(shape, dtype=np.int64))
        memory = np.full(guard * 3 + shift + count * np.dtype(dtype).itemsize, 0xA5, np.uint8)
        first = -memory.ctypes.data % guard + shift
        band = memory[first:first + len(memory) - guard - shift]
        held.append(band)
        if np.dtype(dtype).kind == "f" or dtype == np.uint16:
            band[guard:len(band) - guard] = 0xFF
        arrays.append(band[guard:len(band) - guard].view(dtype).reshape(shape))
    for i, o in alias:
        arrays[o][...] = inputs[i].reshape(arrays[o].shape)
        inputs[i] = arrays[o]
    bounds = [0, *sorted(cuts), trips]
    for begin, end in reversed(list(zip(bounds, bounds[1:]))):
        _call(function, inputs + arrays, coords, begin, end)
    for band in held:
        assert (band[:guard] == 0xA5).all() and (band[len(band) - guard:] == 0xA5).all(), "wrote outside of a result"
    return [a.copy() for a in arrays]


def compare(results, expected, tolerance):
    """Compares results with f64 oracles, relative to the largest expected value of each; integers exactly."""
    for i, (got, (want, dtype)) in enumerate(zip(results, expected)):
        if np.issubdtype(want.dtype, np.floating):
            got = widen(got)
            scale = np.max(np.abs(want), initial=1e-30, where=np.isfinite(want))
            assert (np.isnan(got) == np.isnan(want)).all(), f"result {i} has NaN elsewhere"
            assert (got[np.isinf(want)] == want[np.isinf(want)]).all(), f"result {i} has another infinity"
            error = np.max(np.abs(got[np.isfinite(want)] - want[np.isfinite(want)]), initial=0) / scale
            assert error <= tolerance, f"result {i}: error {error}"
        else:
            assert (got == want).all(), f"result {i} differs"


def check(ir, inputs, expected, trips, coords=(0,), tolerance=2e-6, alias=(), cpus=None, shifts=()):
    """Compares a kernel with `expected` (f64 oracles), as `compare` does. `shifts`: as `shift` of `run`."""
    outputs = [(e.shape, d) for e, d in expected]
    first = None
    for cpu in cpus or runnable_cpus():
        path = compile_kernels(ir, cpu)
        whole = run(path, inputs, outputs, trips, coords=coords)
        if first is None:
            first = whole
            compare(whole, expected, tolerance)
        runs = [whole]
        rng = random.Random(1)
        for _ in range(3):
            cuts = [rng.randrange(trips + 1) for _ in range(rng.randrange(1, 6))]
            runs.append(run(path, inputs, outputs, trips, coords=coords, cuts=cuts))
        for pair in alias:
            runs.append(run(path, inputs, outputs, trips, coords=coords, alias=[pair]))
        for shift in shifts:
            runs.append(run(path, inputs, outputs, trips, coords=coords, shift=shift))
        for other in runs:
            for i, (a, b) in enumerate(zip(first, other)):
                assert a.tobytes() == b.tobytes(), f"result {i} has other bits on {cpu}, cut, in place or elsewhere"
        os.unlink(path)
    return first
