"""Math without a library: errors in units of the last place against a wider type, and the special values."""
import math

import numpy as np
import pytest
from harness import compile_kernels, run, runnable_cpus, tensor

INF, NAN = np.inf, np.nan
WIDE = {"f32": np.float64, "f64": np.longdouble}
erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])
RANGES = {"exp": (-87, 88), "log": (1e-30, 1e30), "tanh": (-9, 9), "erf": (-4, 4), "rsqrt": (1e-6, 1e6),
          "exp2": (-125, 127),
          "log2": (1e-3, 1e3), "expm1": (-3, 3), "log1p": (-0.9, 9), "sqrt": (0, 1e9), "log10": (1e-30, 1e30),
          "erfc": (-5, 9), "tan": (-1.5, 1.5), "asin": (-1, 1), "acos": (-1, 1), "atan": (-50, 50), "sinh": (-80, 80),
          "cosh": (-80, 80), "asinh": (-1e6, 1e6), "acosh": (1.001, 1e6), "atanh": (-0.999, 0.999)}
ORACLES = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": erf, "rsqrt": lambda x: 1 / np.sqrt(x),
           "exp2": np.exp2,
           "log2": np.log2, "expm1": np.expm1, "log1p": np.log1p, "sqrt": np.sqrt, "log10": np.log10, "erfc": erfc,
           "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
           "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}
SPECIAL = {"exp": [(-INF, 0), (INF, INF), (NAN, NAN), (0, 1), (-1e30, 0), (1e30, INF)],
           "log": [(0, -INF), (INF, INF), (NAN, NAN), (-1, NAN), (1, 0)],
           "tanh": [(-INF, -1), (INF, 1), (NAN, NAN), (0, 0)],
           "erf": [(-INF, -1), (INF, 1), (0, 0)],
           "rsqrt": [(0, INF), (INF, 0), (-1, NAN)], "sqrt": [(-1, NAN), (0, 0)],
           "expm1": [(0, 0), (-INF, -1), (INF, INF)], "log1p": [(0, 0), (INF, INF), (-1, -INF)],
           "log10": [(0, -INF), (INF, INF), (-1, NAN)], "erfc": [(-INF, 2), (INF, 0), (NAN, NAN), (40, 0)],
           "tan": [(0, 0), (NAN, NAN), (INF, NAN)], "asin": [(2, NAN), (0, 0), (NAN, NAN)],
           "acos": [(1, 0), (-2, NAN), (NAN, NAN)], "atan": [(0, 0), (NAN, NAN), (INF, np.pi / 2), (-INF, -np.pi / 2)],
           "sinh": [(0, 0), (INF, INF), (-INF, -INF), (NAN, NAN)],
           "cosh": [(0, 1), (INF, INF), (-INF, INF), (NAN, NAN)],
           "asinh": [(0, 0), (INF, INF), (-INF, -INF), (NAN, NAN)],
           "acosh": [(1, 0), (0.5, NAN), (-3, NAN), (INF, INF)],
           "atanh": [(0, 0), (1, INF), (-1, -INF), (2, NAN), (NAN, NAN)]}


def evaluate(op, arrays, name, cpu, dialect="math"):
    n = arrays[0].size
    args = ", ".join(f"%x{i}: {tensor(a)}" for i, a in enumerate(arrays))
    ins = ", ".join(f"%a{i} = %x{i} at (d0) -> (d0) : {tensor(a)}" for i, a in enumerate(arrays))
    values = ", ".join(f"%a{i}" for i in range(len(arrays)))
    ir = f"""func.func @f({args}) -> {tensor(arrays[0])} {{
      %0 = kernel.cluster dims [{n}] parallel 1 ins({ins}) outs(at (d0) -> (d0) : {tensor(arrays[0])}) {{
        %y = {dialect}.{op} {values} : {name}
        kernel.yield %y : {name}
      }}
      return %0 : {tensor(arrays[0])}
    }}"""
    return run(compile_kernels(ir, cpu), arrays, [(arrays[0].shape, arrays[0].dtype)], n)[0]


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("op", sorted(ORACLES))
def test_unary(op, name):
    dtype = np.float32 if name == "f32" else np.float64
    low, high = RANGES[op]
    x = np.linspace(low, high, 20003).astype(dtype)
    if low > 0:
        x = np.geomspace(low, high, 20003).astype(dtype)
    special = np.array([v for v, _ in SPECIAL.get(op, [])], dtype)
    first = None
    for cpu in runnable_cpus():
        got = evaluate(op, [np.concatenate([x, special])], name, cpu)
        first = got if first is None else first
        assert got.tobytes() == first.tobytes(), f"other bits on {cpu}"
    want = ORACLES[op](x.astype(WIDE[name]))
    got, at_special = first[:x.size], first[x.size:]
    ulps = np.abs(got - want) / np.spacing(np.abs(want).astype(dtype))
    # An erf or tanh near 0 is as good as eps relative to 1 asks.
    limit = {"expm1": 8, "log1p": 8, "erf": 8, "tanh": 8, "erfc": 64 if name == "f64" else 4}.get(op, 4)
    if name == "f64" and op in ("asin", "asinh", "acosh", "atanh", "sinh", "cosh", "log10", "tan"):
        limit = 16  # one function made of several
    if name == "f32" and op not in ("exp", "exp2", "log", "log2", "log1p", "expm1", "tanh", "erf", "rsqrt", "sqrt"):
        limit = 1  # computed in f64
    assert ulps.max() <= limit, f"{op} is off by {ulps.max()} ulp at {x[ulps.argmax()]}"
    for value, (_, expected) in zip(at_special, SPECIAL.get(op, [])):
        assert np.array_equal(value, dtype(expected), equal_nan=True), f"{op}: {value}, expected {expected}"


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_pow(name):
    dtype = np.float32 if name == "f32" else np.float64
    base = np.array([2, 0.9, 0.999, 10, -3, -3, -2, 0, 0, 5, 1, 1e-3, 7.5], dtype)
    power = np.array([0.5, 10, 1000, -2, 2, 3, 0.5, 3, 0, 0, 1e9, 1.5, -0.25], dtype)
    with np.errstate(invalid="ignore"):
        want = np.power(base.astype(np.float64), power.astype(np.float64))
    for cpu in runnable_cpus():
        got = evaluate("powf", [base, power], name, cpu)
        assert np.array_equal(np.isnan(got), np.isnan(want))
        ok = ~np.isnan(want)
        assert (np.abs(got - want)[ok] <= np.abs(want)[ok] * (2e-7 if name == "f32" else 1e-13)).all(), (got, want)


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_circular(op, name):
    """Absolute: near their zeros, what matters is the argument's own rounding."""
    dtype = np.float32 if name == "f32" else np.float64
    high = 2.0**50 if name == "f32" else 1e8
    x = np.concatenate([np.linspace(-n, n, 20003) for n in (4, 1e3, high)]).astype(dtype)
    want = {"sin": np.sin, "cos": np.cos}[op](x.astype(WIDE[name]))
    for cpu in runnable_cpus():
        got = evaluate(op, [x], name, cpu)
        assert np.abs(got - want).max() <= (6e-8 if name == "f32" else 2e-16)
        beyond = evaluate(op, [np.array([1e18, -1e30, 3e38, INF, -INF, NAN], dtype)], name, cpu)
        assert (np.abs(beyond[:3]) <= 1).all() and np.isnan(beyond[3:]).all()


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_atan2(name):
    dtype = np.float32 if name == "f32" else np.float64
    edge = [0.0, -0.0, 1.0, -1.0, 3.5, -3.5, INF, -INF, 1e-30, NAN]
    y, x = (a.ravel().astype(dtype) for a in np.meshgrid(edge, edge))
    want = np.arctan2(y, x)
    for cpu in runnable_cpus():
        got = evaluate("atan2", [y, x], name, cpu)
        assert np.array_equal(np.isnan(got), np.isnan(want))
        ok = ~np.isnan(want)
        assert (np.abs(got - want)[ok] <= np.abs(want)[ok] * np.finfo(dtype).eps * 2).all()
        assert np.array_equal(np.signbit(got)[ok], np.signbit(want)[ok])


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_remainder(name):
    dtype = np.float32 if name == "f32" else np.float64
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal(500) * 1000, [6, -6, 0.3, 5, 1e6, 7, -0.0]]).astype(dtype)
    y = np.concatenate([rng.standard_normal(500), [3, 3, 0.1, INF, 0.001, -7, 2]]).astype(dtype)
    for cpu in runnable_cpus():
        got = evaluate("remf", [x, y], name, cpu, dialect="arith")
        assert np.array_equal(got, np.fmod(x, y)) and np.array_equal(np.signbit(got), np.signbit(np.fmod(x, y)))
