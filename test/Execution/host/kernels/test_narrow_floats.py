"""bf16 and f16 in memory, f32 in between: every op rounds once, to the nearest, ties to even."""
import numpy as np
import pytest
import test_math
from harness import DTYPES, check, compile_kernels, narrow, run, runnable_cpus, tensor, widen


def same(a, b):
    """The same numbers; NaN is NaN."""
    a, b = widen(a), widen(b)
    return (((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))).all()


def pointwise(inputs, types, results, body):
    n = inputs[0].size
    args = ", ".join(f"%x{i}: tensor<{n}x{t}>" for i, t in enumerate(types))
    ins = ", ".join(f"%a{i} = %x{i} at (d0) -> (d0) : tensor<{n}x{t}>" for i, t in enumerate(types))
    outs = ", ".join(f"at (d0) -> (d0) : tensor<{n}x{t}>" for t in results)
    tensors, count = ", ".join(f"tensor<{n}x{t}>" for t in results), len(results)
    return f"""func.func @f({args}) -> ({tensors}) {{
      %0:{count} = kernel.cluster dims [{n}] parallel 1 ins({ins}) outs({outs}) {{
        {body}
        kernel.yield {", ".join(f"%y{i}" for i in range(count))} : {", ".join(results)}
      }}
      return {", ".join(f"%0#{i}" for i in range(count))} : {tensors}
    }}"""


def evaluate_all(inputs, types, results, body):
    """What %y0, %y1, ... of the body are on every CPU, the same bits on all."""
    n = inputs[0].size
    runs = [run(compile_kernels(pointwise(inputs, types, results, body), cpu), inputs,
                [((n,), DTYPES[t]) for t in results], n) for cpu in runnable_cpus()]
    for other in runs:
        # which of two NaN comes out is the instruction's choice
        assert all(same(a, b) for a, b in zip(other, runs[0])), "other bits on another CPU"
    return runs[0]


def evaluate(inputs, types, result, body):
    return evaluate_all(inputs, types, [result], body)[0]


def samples(name, seed=0):
    """Numbers of all magnitudes, and the special ones."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, 5003).astype(np.uint16)
    special = [0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0]
    special = special if name == "bf16" else [0, 0x8000, 1, 0x3ff, 0x400, 0x7bff, 0x7c00, 0xfc00, 0x7e00]
    return np.concatenate([bits, np.array(special, np.uint16)]).view(DTYPES[name])


def test_every_bfloat16_extends_exactly():
    x = np.arange(1 << 16).astype(np.uint16)
    got = evaluate([x], ["bf16"], "f32", "%y0 = arith.extf %a0 : bf16 to f32")
    assert got.tobytes() == (x.astype(np.uint32) << 16).tobytes()


def test_truncation_to_bfloat16_at_every_border():
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    x = np.concatenate([upper | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)
    got = evaluate([x], ["f32"], "bf16", "%y0 = arith.truncf %a0 : f32 to bf16")
    assert (got == narrow(x, "bf16")).all()


@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_arithmetic_rounds_once(name):
    ops = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "maximumf": np.maximum,
           "minimumf": np.minimum}
    x, y = samples(name), samples(name, seed=1)
    body = "\n".join(f"%y{i} = arith.{op} %a0, %a1 : {name}" for i, op in enumerate(ops))
    for got, (op, ufunc) in zip(evaluate_all([x, y], [name, name], [name] * len(ops), body), ops.items()):
        with np.errstate(all="ignore"):
            assert same(got, narrow(ufunc(widen(x), widen(y)), name)), op


@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_functions_are_those_of_f32(name):
    ops = sorted(test_math.ORACLES)
    x = samples(name)
    x = np.where(np.abs(widen(x)) < 1e4, x, x.dtype.type(1))  # arguments of tan are bounded
    body = "\n".join(f"%y{i} = math.{op} %a0 : {{0}}" for i, op in enumerate(ops))
    wide = evaluate_all([widen(x)], ["f32"], ["f32"] * len(ops), body.format("f32"))
    for op, got, want in zip(ops, evaluate_all([x], [name], [name] * len(ops), body.format(name)), wide):
        assert same(got, narrow(want, name)), op


def test_rounding_stays_between_the_ops_of_a_kernel():
    x, y, z = (samples("bf16", seed) for seed in (2, 3, 4))
    x, y, z = (np.where((np.abs(widen(v)) < 1e9) & (np.abs(widen(v)) > 1e-9), v, np.uint16(0x3F80)) for v in (x, y, z))
    body = "%p = arith.mulf %a0, %a1 : bf16\n%y0 = arith.addf %p, %a2 : bf16"
    got = evaluate([x, y, z], ["bf16"] * 3, "bf16", body)
    product = narrow(widen(x) * widen(y), "bf16")
    assert same(got, narrow(widen(product) + widen(z), "bf16"))
    assert not same(got, narrow(widen(x) * widen(y) + widen(z), "bf16")), "the samples do not tell"


@pytest.mark.parametrize("name", ["bf16", "f16"])
def test_comparisons_selection_integers_and_f64(name):
    x, y = samples(name, 5), samples(name, 6)
    body = f"""%c = arith.cmpf olt, %a0, %a1 : {name}
        %s = arith.select %c, %a0, %a1 : {name}
        %y0 = arith.negf %s : {name}"""
    got = evaluate([x, y], [name, name], name, body)
    with np.errstate(invalid="ignore"):
        assert same(got, narrow(-np.where(widen(x) < widen(y), widen(x), widen(y)), name))

    i = np.arange(-40000, 40000, 7, dtype=np.int32)
    got = evaluate([i], ["i32"], name, f"%y0 = arith.sitofp %a0 : i32 to {name}")
    assert same(got, narrow(i.astype(np.float32), name))

    d = np.geomspace(1e-4, 1e4, 5001)
    got = evaluate([d], ["f64"], name, f"%y0 = arith.truncf %a0 : f64 to {name}")
    assert same(got, narrow(d.astype(np.float32), name))
    got = evaluate([x], [name], "f64", f"%y0 = arith.extf %a0 : {name} to f64")
    assert ((got == widen(x)) | np.isnan(got)).all()


@pytest.mark.parametrize("rows,cols", [(40, 72), (3, 1000), (17, 17)])
def test_row_sums_of_a_transposed_operand(rows, cols):
    """The skeletons' own vectors: tiles of a transposed operand, sums in f32 with one rounding, a broadcast."""
    rng = np.random.default_rng([rows, cols])
    x, y = (narrow(rng.standard_normal(s).astype(np.float32), "bf16") for s in ((rows, cols), (cols, rows)))
    xt, yt = f"tensor<{rows}x{cols}xbf16>", f"tensor<{cols}x{rows}xbf16>"
    ir = f"""func.func @f(%x: {xt}, %y: {yt}) -> {xt} {{
      %0 = kernel.cluster dims [{rows}, {cols}] parallel 1
        ins(%a = %x at (d0, d1) -> (d0 * {cols} + d1) : {xt}, %b = %y at (d0, d1) -> (d1 * {rows} + d0) : {yt})
        outs(at (d0, d1) -> (d0 * {cols} + d1) : {xt}) {{
          %p = arith.addf %a, %b : bf16
          %w = arith.extf %p : bf16 to f32
          %s = kernel.reduce <add> %w over [1] : f32
          %n = arith.truncf %s : f32 to bf16
          %r = arith.mulf %p, %n : bf16
          kernel.yield %r : bf16
        }}
      return %0 : {xt}
    }}"""
    p = narrow(widen(x) + widen(y.T), "bf16")
    total = widen(p).astype(np.float64).sum(1, keepdims=True)
    # one rounding of the sum and one of the product
    check(ir, [x, y], [(widen(p) * total, np.uint16)], rows, alias=[(0, 0)], tolerance=2**-7)


def test_copy_pads_with_zeros():
    x = samples("bf16")[:60].reshape(4, 15)
    ir = """func.func @f(%x: tensor<4x15xbf16>) -> tensor<15x5xbf16> {
      %0 = kernel.cluster dims [15, 5] parallel 1
        ins(%a = %x at (d0, d1) -> (d0 + d1 * 15) guarded : tensor<4x15xbf16>)
        outs(at (d0, d1) -> (d0 * 5 + d1) : tensor<15x5xbf16>) {
          kernel.yield %a : bf16
        }
      return %0 : tensor<15x5xbf16>
    }"""
    for cpu in runnable_cpus():
        got = run(compile_kernels(ir, cpu), [x], [((15, 5), np.uint16)], 15)[0]
        assert (got[:, :4] == x.T).all() and (got[:, 4] == 0).all()


@pytest.mark.parametrize("kind", ["add", "mul", "max", "set"])
@pytest.mark.parametrize("rows,size,ids", [(5, 3, 40), (65, 16, 600), (20, 2100, 60)])
@pytest.mark.parametrize("id_type", [np.int64, np.int32])
def test_scattered_rows_are_rounded_once(kind, rows, size, ids, id_type):
    rng = np.random.default_rng([rows, size])
    src, start = (narrow(rng.uniform(0.5, 1.5, s).astype(np.float32), "bf16") for s in ((ids, size), (rows, size)))
    index = rng.integers(0, rows, ids).astype(id_type)
    index[0], index[-1] = -100, rows
    want = widen(start)
    combine = {"set": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum}[kind]
    for i, row in enumerate(index):
        if 0 <= row < rows and row != 2:
            want[row] = combine(want[row], widen(src[i]))  # in f32, in order
    types = f"(tensor<{ids}x{size}xbf16>, {tensor(index)}, tensor<{rows}x{size}xbf16>) -> tensor<{rows}x{size}xbf16>"
    ir = f"""func.func @f(%g: tensor<{ids}x{size}xbf16>, %i: {tensor(index)}, %s: tensor<{rows}x{size}xbf16>)
        -> tensor<{rows}x{size}xbf16> {{
      %0 = kernel.scatter_rows <{kind}> %g, %i into %s rows {rows} padding_idx 2 : {types}
      return %0 : tensor<{rows}x{size}xbf16>
    }}"""
    check(ir, [src, index, start], [(narrow(want, "bf16"), np.uint16)], min(64, rows), alias=[(2, 0)])
