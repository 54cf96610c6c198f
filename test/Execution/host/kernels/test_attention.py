"""kernel.attention and its backward against a float64 softmax in numpy."""
import numpy as np
import pytest
from harness import DTYPES, check, compile_kernels, narrow, run, tensor, widen


def rand(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def oracle(q, k, v, dout, scale, mask, rounded=lambda out: out):
    """q [B,H,T,d], k [B,G,S,d], v [B,G,S,e], mask [T,S] to [B,H,T,S]; everything in float64. A query that sees nothing
    has output 0. The backward gets the output `rounded`."""
    q, k, v, dout = (a.astype(np.float64) for a in (q, k, v, dout))
    group = q.shape[1] // k.shape[1]
    keys, values = k.repeat(group, 1), v.repeat(group, 1)
    s = q @ keys.swapaxes(2, 3) * scale
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == np.bool_ else s + mask
    top = s.max(3, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(3, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    out = p @ values
    dp = dout @ values.swapaxes(2, 3)
    dmask = p * (dp - (dout * rounded(out)).sum(3, keepdims=True))
    ds = dmask * scale
    fold = lambda a: a.reshape(a.shape[0], k.shape[1], group, *a.shape[2:]).sum(2)
    dq, dk, dv = ds @ keys, fold(ds.swapaxes(2, 3) @ q), fold(p.swapaxes(2, 3) @ dout)
    with np.errstate(divide="ignore"):
        return out, (top + np.log(total))[..., 0], dq, dk, dv, dmask


def view(offset, batch, head, row):
    return f"<offset = {offset}, batch = {batch}, head = {head}, row = {row}>"


def dense(array):
    """View of a contiguous [B, H, T, d] array."""
    _, h, t, d = array.shape
    return view(0, h * t * d, t * d, d)


CAUSAL = """mask() {
    %qi = kernel.index 2
    %ki = kernel.index 3
    %sees = arith.cmpi sle, %ki, %qi : index
    kernel.yield %sees : i1
  }"""


def tril(t, s, offset=0):
    return np.tril(np.ones((t, s), bool), offset)


CASES = [  # batch, heads, kv_heads, q_len, kv_len, head_dim, v_dim, causal
    (2, 3, 3, 8, 8, 4, 4, True),
    (1, 2, 2, 33, 33, 16, 16, True),
    (1, 2, 1, 40, 70, 20, 24, False),
    (2, 2, 2, 128, 128, 64, 64, True),
    (1, 4, 2, 100, 300, 32, 32, False),
    (1, 1, 1, 300, 300, 64, 64, True),
    (1, 1, 1, 290, 520, 16, 80, True),
    (1, 2, 2, 1, 257, 48, 48, False),
]


def sizes(case):
    names = ["batch", "heads", "kvHeads", "qLen", "kvLen", "headDim", "vDim"]
    return "<" + ", ".join(f"{n} = {v}" for n, v in zip(names, case)) + ">"


def make(case):
    b, h, g, t, s, d, e, _ = case
    return rand(b, h, t, d), rand(b, g, s, d, seed=1), rand(b, g, s, e, seed=2), rand(b, h, t, e, seed=3)


def run_case(case, mask=None, use="", inputs=(), mask_grad=None, dtype="f32", dq_roundings=1, weight_roundings=0):
    """`mask` is what the text `use` computes from `inputs` (%m0, %m1, ...); `mask_grad` the shape of its gradient.
    Operands and results are rounded to `dtype`; between them are `weight_roundings`, of P and dS."""
    b, h, g, t, s, d, e, causal = case
    if causal:
        mask, use = tril(t, s), CAUSAL
    q, k, v, dout = make(case)
    scale, stored = 0.3, DTYPES[dtype]
    half = lambda a: a.astype(np.float32) if dtype == "f32" else narrow(a.astype(np.float32), dtype)
    if dtype != "f32":
        q, k, v, dout = half(q), half(k), half(v), half(dout)
    wide = [widen(a) for a in (q, k, v, dout)]
    out, lse, dq, dk, dv, dmask = oracle(*wide, scale, mask, lambda out: widen(half(out)))
    mask_args = "".join(f", %m{i}: {tensor(m)}" for i, m in enumerate(inputs))
    f32 = lambda a: a.astype(np.float32)
    common = f"""q(%q at {dense(q)} : {tensor(q)}) k(%k at {dense(k)} : {tensor(k)})
        v(%v at {dense(v)} : {tensor(v)}) {use}"""
    forward = f"""func.func @f(%q: {tensor(q)}, %k: {tensor(k)}, %v: {tensor(v)}{mask_args})
        -> ({tensor(dout)}, {tensor(f32(lse))}) {{
      %0, %1 = kernel.attention {sizes(case)} scale {scale} {common}
          out({dense(dout)} : {tensor(dout)}) lse({tensor(f32(lse))})
      return %0, %1 : {tensor(dout)}, {tensor(f32(lse))}
    }}"""
    rounding = {"f32": 0, "bf16": 2**-8, "f16": 2**-11}[dtype]
    check(forward, [q, k, v, *inputs], [(out, stored), (lse, np.float32)], b * h, tolerance=(1 + weight_roundings) * rounding + 2e-6)
    o, l = half(out), f32(lse)
    want, trips, extra, grads = [dq, dk, dv], b * g, "", f"{tensor(q)}, {tensor(k)}, {tensor(v)}"
    if mask_grad:
        sums = tuple(i for i in (0, 1) if mask_grad[i] == 1)
        want.append(dmask.sum(sums, keepdims=True))
        trips = mask_grad[0] * (1 if mask_grad[1] == 1 else g)
        extra = f"mask_grad({tensor(f32(want[3]))})"
    all_grads = grads + (f", {tensor(f32(want[3]))}" if mask_grad else "")
    names = ", ".join(f"%0#{i}" for i in range(len(want)))
    backward = f"""func.func @f(%g: {tensor(dout)}, %q: {tensor(q)}, %k: {tensor(k)}, %v: {tensor(v)}{mask_args},
        %o: {tensor(o)}, %l: {tensor(l)}) -> ({all_grads}) {{
      %0:{len(want)} = kernel.attention_backward {sizes(case)} scale {scale} dout(%g at {dense(dout)} : {tensor(dout)})
          {common} out(%o at {dense(o)} : {tensor(o)}) lse(%l : {tensor(l)})
          dq({dense(q)}) dk({dense(k)}) dv({dense(v)}) {extra} -> {grads}
      return {names} : {all_grads}
    }}"""
    check(backward, [dout, q, k, v, *inputs, o, l],
          [(w, np.float32 if i == 3 else stored) for i, w in enumerate(want)], trips,
          tolerance=(dq_roundings + weight_roundings) * rounding + 5e-6)


@pytest.mark.parametrize("case", CASES)
def test_attention(case):
    run_case(case)


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES)
def test_bf16(case):
    run_case(case, dtype="bf16")


@pytest.mark.parametrize("case", CASES[::3])
def test_f16(case):
    run_case(case, dtype="f16")


@pytest.mark.parametrize("case", [(1, 2, 1, 1700, 1100, 80, 80, True), (1, 1, 1, 70, 1800, 72, 40, False)])
def test_bf16_by_spans(case):
    """More rows than the stack has room for: dq is rounded once per span of keys."""
    run_case(case, dtype="bf16", dq_roundings=3)


def test_bf16_window_and_mask():
    low, high, t, s = -300, -40, 290, 520
    mask = tril(t, s, high) & ~tril(t, s, low - 1)
    run_case((1, 2, 1, t, s, 16, 24, False), mask, WINDOW.format(low=low, high=high), dtype="bf16")
    case = (2, 4, 2, 40, 70, 20, 24, False)
    mask = rand(4, 40, 70, seed=9)
    run_case(case, mask, tensor_mask(mask, head=40 * 70), [mask], mask_grad=(1, 4), dtype="bf16")


def tensor_mask(mask, batch=0, head=0):
    """A mask that lies in memory, the rest of its strides given."""
    t, s = mask.shape[-2:]
    kind = "i1" if mask.dtype == np.bool_ else "f32"
    return f"""mask(%m = %m0 at (b, h, t, s) -> (b * {batch} + h * {head} + t * {s} + s) : {tensor(mask)}) {{
      kernel.yield %m : {kind}
    }}"""


FREE = [CASES[2], CASES[4], CASES[7]]


@pytest.mark.parametrize("case", FREE)
def test_additive_mask(case):
    h, t, s = case[1], case[3], case[4]
    mask = rand(h, t, s, seed=9)
    mask[:, :, 1:3] = -np.inf
    run_case(case, mask, tensor_mask(mask, head=t * s), [mask])


@pytest.mark.parametrize("case", FREE)
def test_bool_mask(case):
    t, s = case[3], case[4]
    mask = np.random.default_rng(0).random((t, s)) > 0.3
    mask[:, 0] = True
    run_case(case, mask, tensor_mask(mask), [mask])


@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", [(1, 1), (1, "h"), ("b", 1), ("b", "h")])
@pytest.mark.parametrize("case", [(2, 4, 2, 40, 70, 20, 24, False), (2, 2, 2, 64, 64, 16, 16, False)])
def test_mask_gradient(case, shape):
    """Summed over what the mask is broadcast along, whichever of batch and heads that is."""
    b, h, _, t, s = case[:5]
    mb, mh = (b if shape[0] == "b" else 1), (h if shape[1] == "h" else 1)
    mask = rand(mb, mh, t, s, seed=5)
    mask[:, :, :, 3] = -np.inf
    use = tensor_mask(mask, batch=mh * t * s if mb > 1 else 0, head=t * s if mh > 1 else 0)
    run_case(case, mask, use, [mask], mask_grad=(mb, mh))


WINDOW = """mask() {{
    %qi = kernel.index 2
    %ki = kernel.index 3
    %low = arith.constant {low} : index
    %high = arith.constant {high} : index
    %first = arith.addi %qi, %low : index
    %last = arith.addi %qi, %high : index
    %a = arith.cmpi sge, %ki, %first : index
    %b = arith.cmpi sle, %ki, %last : index
    %sees = arith.andi %a, %b : i1
    kernel.yield %sees : i1
  }}"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("low, high", [(-3, 0), (-40, 0), (-300, -40), (5, 290), (-10, 10), (-1000, 7)])
@pytest.mark.parametrize("sizes", [(290, 520, 16, 24), (300, 70, 8, 8)])
def test_window(low, high, sizes):
    """Blocks outside of the window are skipped, and queries whose window holds no key see nothing."""
    t, s, d, e = sizes
    mask = tril(t, s, high) & ~tril(t, s, low - 1)
    run_case((1, 2, 1, t, s, d, e, False), mask, WINDOW.format(low=low, high=high))


def test_padding_and_documents():
    """Causal, padded and packed at once: vectors per key and per query, read as they lie."""
    b, t = 2, 300
    padding = np.random.default_rng(1).random((b, t)) > 0.2
    documents = (np.arange(t) // 70)[None].repeat(b, 0).astype(np.int64)
    mask = tril(t, t) & padding[:, None, None] & (documents[:, None, None] == documents[:, None, :, None])
    use = f"""mask(%p = %m0 at (b, h, t, s) -> (b * {t} + s) : {tensor(padding)},
         %dq = %m1 at (b, h, t, s) -> (b * {t} + t) : {tensor(documents)},
         %dk = %m2 at (b, h, t, s) -> (b * {t} + s) : {tensor(documents)}) {{
      %qi = kernel.index 2
      %ki = kernel.index 3
      %causal = arith.cmpi sle, %ki, %qi : index
      %same = arith.cmpi eq, %dq, %dk : i64
      %a = arith.andi %causal, %p : i1
      %sees = arith.andi %a, %same : i1
      kernel.yield %sees : i1
    }}"""
    run_case((b, 2, 2, t, t, 16, 16, False), mask, use, [padding, documents, documents])


def test_packed():
    """q, k and v as columns of one projection, gradients into one tensor, as GPT-2 has it."""
    b, h, t, d = 2, 3, 40, 16
    case = (b, h, h, t, t, d, d, True)
    qkv, dout = rand(b, t, 3 * h * d), rand(b, t, h * d, seed=1)
    split = lambda a: a.reshape(b, t, -1, d).swapaxes(1, 2)
    q, k, v = (split(a) for a in np.split(qkv, 3, 2))
    out, lse, dq, dk, dv, _ = oracle(q, k, v, split(dout), 0.25, tril(t, t))
    join = lambda a: a.swapaxes(1, 2).reshape(b, t, h * d)
    at = lambda i: view(i * h * d, t * 3 * h * d, d, 3 * h * d)
    flat = view(0, t * h * d, d, h * d)
    lse32 = lse.astype(np.float32)
    common = " ".join(f"{n}(%x at {at(i)} : {tensor(qkv)})" for i, n in enumerate("qkv"))
    ir = f"""func.func @f(%x: {tensor(qkv)}) -> ({tensor(dout)}, {tensor(lse32)}) {{
      %0, %1 = kernel.attention {sizes(case)} scale 0.25 {common} {CAUSAL}
          out({flat} : {tensor(dout)}) lse({tensor(lse32)})
      return %0, %1 : {tensor(dout)}, {tensor(lse32)}
    }}"""
    check(ir, [qkv] * 3, [(join(out), np.float32), (lse, np.float32)], b * h)
    ir = f"""func.func @f(%g: {tensor(dout)}, %x: {tensor(qkv)}, %o: {tensor(dout)}, %l: {tensor(lse32)})
        -> {tensor(qkv)} {{
      %0 = kernel.attention_backward {sizes(case)} scale 0.25 dout(%g at {flat} : {tensor(dout)}) {common} {CAUSAL}
          out(%o at {flat} : {tensor(dout)}) lse(%l : {tensor(lse32)}) dq({at(0)}) dk({at(1)}) dv({at(2)})
          -> {tensor(qkv)}
      return %0 : {tensor(qkv)}
    }}"""
    want = np.concatenate([join(dq), join(dk), join(dv)], 2)
    check(ir, [dout, qkv, qkv, qkv, join(out).astype(np.float32), lse32], [(want, np.float32)], b * h, tolerance=5e-6)


def test_row_that_sees_nothing():
    """A query with every key masked: zeros and lse -inf, no NaN."""
    case = (1, 1, 1, 4, 40, 16, 16, False)
    q, k, v, dout = make(case)
    mask = np.ones((4, 40), np.bool_)
    mask[2] = False
    keep = [0, 1, 3]
    out, lse, *_ = oracle(q[:, :, keep], k, v, dout[:, :, keep], 1.0, None)
    want, want_lse = np.zeros((1, 1, 4, 16)), np.full((1, 1, 4), -np.inf)
    want[:, :, keep], want_lse[:, :, keep] = out, lse
    l = tensor(want_lse.astype(np.float32))
    ir = f"""func.func @f(%q: {tensor(q)}, %k: {tensor(k)}, %v: {tensor(v)}, %m0: {tensor(mask)})
        -> ({tensor(dout)}, {l}) {{
      %0, %1 = kernel.attention {sizes(case)} scale 1.0 q(%q at {dense(q)} : {tensor(q)})
          k(%k at {dense(k)} : {tensor(k)}) v(%v at {dense(v)} : {tensor(v)})
          {tensor_mask(mask)} out({dense(dout)} : {tensor(dout)}) lse({l})
      return %0, %1 : {tensor(dout)}, {l}
    }}"""
    path = compile_kernels(ir, "x86-64-v3")
    got, got_lse = run(path, [q, k, v, mask], [(want.shape, np.float32), (want_lse.shape, np.float32)], 1)
    assert np.abs(got - want).max() < 1e-5
    assert got_lse[0, 0, 2] == -np.inf and np.abs(got_lse[0, 0, keep] - want_lse[0, 0, keep]).max() < 1e-5
