"""exp, exp2, log, log2, tanh and erf in f32 over the whole range of f32, numbers below the normal ones included: the
errors that docs/kernels.md states."""
import math

import numpy as np
import pytest
from harness import compile_kernels, run, runnable_cpus

STRIDE = 4093  # a prime, so that every exponent meets all kinds of low bits: a million numbers
erf = np.vectorize(math.erf, otypes=[np.float64])

# Largest error in units in the last place of the exact result.
STATED = {"exp": (np.exp, 0.9), "exp2": (np.exp2, 0.9), "log": (np.log, 1.0), "log2": (np.log2, 1.5),
          "tanh": (np.tanh, 4.5), "erf": (erf, 4.0)}


def all_floats():
    """Every STRIDE-th of the 2^32 bit patterns, and the special ones."""
    bits = np.arange(0, 2**32, STRIDE, dtype=np.int64).astype(np.uint32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0**-126, 2.0**-149, 3e38, -3e38], np.float32)
    return np.concatenate([bits.view(np.float32), special])


@pytest.mark.parametrize("name", STATED)
def test_error(name):
    reference, stated = STATED[name]
    x = all_floats()
    ir = f"""func.func @f(%x: tensor<{len(x)}xf32>) -> tensor<{len(x)}xf32> {{
      %r = kernel.cluster dims [{len(x)}] parallel 1
        ins(%a = %x at (d0) -> (d0) : tensor<{len(x)}xf32>) outs(at (d0) -> (d0) : tensor<{len(x)}xf32>) {{
          %y = math.{name} %a : f32
          kernel.yield %y : f32
        }}
      return %r : tensor<{len(x)}xf32>
    }}"""
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64))
        rounded = want.astype(np.float32)
    first = None
    for cpu in runnable_cpus():
        got, = run(compile_kernels(ir, cpu), [x], [(x.shape, np.float32)], len(x))
        first = got if first is None else first
        assert got.tobytes() == first.tobytes(), f"other bits on {cpu}"
    assert (np.isnan(first) == np.isnan(rounded)).all()
    infinite = np.isinf(rounded)
    assert (first[infinite] == rounded[infinite]).all()
    finite = np.isfinite(rounded)
    error = np.abs(first[finite] - want[finite]) / np.spacing(np.abs(rounded[finite])).astype(np.float64)
    worst = np.argmax(error)
    print(f"{name}: {error[worst]:.3f} ulp at {x[finite][worst]}, of {len(x)} numbers")
    assert error[worst] <= stated


def edges(element):
    """Numbers around which exponentials become infinite, smaller than any normal number, or zero."""
    places = [-151, -150, -126, -115, -104, -103.28, -87.33654, -80, 88.72283, 89, 128, -1076, -1074, -1022, -746,
              -745.13, -708.4, -700, 709.782712893384, 710, 1024, 0]
    steps = np.arange(-400, 401)
    bits = np.int32 if element == np.float32 else np.int64
    near = [(np.array(place, element).view(bits) + steps).astype(bits).view(element) for place in places]
    return np.concatenate([*near, np.array([np.inf, -np.inf, np.nan], element)])


@pytest.mark.parametrize("element", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_exponential_in_a_sum(name, element):
    """1 + exp(x) takes another way than exp(x), and has the bits of the sum of 1 and exp(x)."""
    x = edges(element)
    mlir = {np.float32: "f32", np.float64: "f64"}[element]
    tensor = f"tensor<{len(x)}x{mlir}>"

    def f(body):
        return f"""func.func @f(%x: {tensor}) -> {tensor} {{
          %r = kernel.cluster dims [{len(x)}] parallel 1
            ins(%a = %x at (d0) -> (d0) : {tensor}) outs(at (d0) -> (d0) : {tensor}) {{
              %y = math.{name} %a : {mlir}
              {body}
            }}
          return %r : {tensor}
        }}"""
    for cpu in runnable_cpus():
        power, = run(compile_kernels(f(f"kernel.yield %y : {mlir}"), cpu), [x], [(x.shape, element)], len(x))
        for constant in (1.0, -0.5, 2.0**-60):
            body = f"""%c = arith.constant {constant!r} : {mlir}
              %s = arith.addf %c, %y : {mlir}
              kernel.yield %s : {mlir}"""
            got, = run(compile_kernels(f(body), cpu), [x], [(x.shape, element)], len(x))
            with np.errstate(over="ignore"):
                want = element(constant) + power
            np.testing.assert_array_equal(got, want, err_msg=f"{cpu}, {constant}")
