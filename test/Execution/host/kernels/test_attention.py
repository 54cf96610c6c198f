"""kernel.attention and its backward against a float64 softmax in numpy."""
import numpy as np
import pytest
from harness import check, compile_kernels, run, tensor


def rand(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def oracle(q, k, v, dout, causal, scale, mask):
    """q [B,H,T,d], k [B,G,S,d], v [B,G,S,e]; everything in float64."""
    q, k, v, dout = (a.astype(np.float64) for a in (q, k, v, dout))
    group = q.shape[1] // k.shape[1]
    keys, values = k.repeat(group, 1), v.repeat(group, 1)
    s = q @ keys.swapaxes(2, 3) * scale
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == np.bool_ else s + mask
    if causal:
        s = np.where(np.tril(np.ones(s.shape[2:], bool)), s, -np.inf)
    top = s.max(3, keepdims=True)
    e = np.exp(s - top)
    total = e.sum(3, keepdims=True)
    p = e / total
    out = p @ values
    dp = dout @ values.swapaxes(2, 3)
    ds = p * (dp - (dout * out).sum(3, keepdims=True)) * scale
    fold = lambda a: a.reshape(a.shape[0], k.shape[1], group, *a.shape[2:]).sum(2)
    dq, dk, dv = ds @ keys, fold(ds.swapaxes(2, 3) @ q), fold(p.swapaxes(2, 3) @ dout)
    return out, (top + np.log(total))[..., 0], dq, dk, dv


def view(offset, batch, head, row):
    return f"<offset = {offset}, batch = {batch}, head = {head}, row = {row}>"


def dense(array):
    """View of a contiguous [B, H, T, d] array."""
    _, h, t, d = array.shape
    return view(0, h * t * d, t * d, d)


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


def run_case(case, mask=None, mask_view=None):
    b, h, g, t, s, d, e, causal = case
    q, k, v, dout = make(case)
    scale = 0.3
    out, lse, dq, dk, dv = oracle(q, k, v, dout, causal, scale, mask)
    causal = "causal" if causal else ""
    mask_arg = f", %m: {tensor(mask)}" if mask is not None else ""
    mask_use = f"mask(%m at {mask_view} : {tensor(mask)})" if mask is not None else ""
    masks = [mask] if mask is not None else []
    f32 = lambda a: a.astype(np.float32)
    common = f"""q(%q at {dense(q)} : {tensor(q)}) k(%k at {dense(k)} : {tensor(k)})
        v(%v at {dense(v)} : {tensor(v)}) {mask_use}"""
    forward = f"""func.func @f(%q: {tensor(q)}, %k: {tensor(k)}, %v: {tensor(v)}{mask_arg})
        -> ({tensor(dout)}, {tensor(f32(lse))}) {{
      %0, %1 = kernel.attention {sizes(case)} scale {scale} {causal} {common}
          out({dense(dout)} : {tensor(dout)}) lse({tensor(f32(lse))})
      return %0, %1 : {tensor(dout)}, {tensor(f32(lse))}
    }}"""
    check(forward, [q, k, v] + masks, [(out, np.float32), (lse, np.float32)], b * h)
    o, l = f32(out), f32(lse)
    backward = f"""func.func @f(%g: {tensor(dout)}, %q: {tensor(q)}, %k: {tensor(k)}, %v: {tensor(v)}{mask_arg},
        %o: {tensor(o)}, %l: {tensor(l)}) -> ({tensor(q)}, {tensor(k)}, {tensor(v)}) {{
      %0:3 = kernel.attention_backward {sizes(case)} scale {scale} {causal} dout(%g at {dense(dout)} : {tensor(dout)})
          {common} out(%o at {dense(o)} : {tensor(o)}) lse(%l : {tensor(l)})
          dq({dense(q)}) dk({dense(k)}) dv({dense(v)}) -> {tensor(q)}, {tensor(k)}, {tensor(v)}
      return %0#0, %0#1, %0#2 : {tensor(q)}, {tensor(k)}, {tensor(v)}
    }}"""
    check(backward, [dout, q, k, v] + masks + [o, l], [(dq, np.float32), (dk, np.float32), (dv, np.float32)], b * g,
          tolerance=5e-6)


@pytest.mark.parametrize("case", CASES)
def test_attention(case):
    run_case(case)


@pytest.mark.parametrize("case", [CASES[2], CASES[4], CASES[5]])
def test_additive_mask(case):
    b, h, _, t, s = case[:5]
    mask = rand(h, t, s, seed=9)
    mask[:, :, 1:3] = -np.inf
    run_case(case, mask, view(0, 0, t * s, s))


@pytest.mark.parametrize("case", [CASES[2], CASES[4]])
def test_bool_mask(case):
    b, _, _, t, s = case[:5]
    mask = np.random.default_rng(0).random((t, s)) > 0.3
    mask[:, 0] = True
    run_case(case, mask, view(0, 0, 0, s))


def test_packed():
    """q, k and v as columns of one projection, gradients into one tensor, as GPT-2 has it."""
    b, h, t, d = 2, 3, 40, 16
    case = (b, h, h, t, t, d, d, True)
    qkv, dout = rand(b, t, 3 * h * d), rand(b, t, h * d, seed=1)
    split = lambda a: a.reshape(b, t, -1, d).swapaxes(1, 2)
    q, k, v = (split(a) for a in np.split(qkv, 3, 2))
    out, lse, dq, dk, dv = oracle(q, k, v, split(dout), True, 0.25, None)
    join = lambda a: a.swapaxes(1, 2).reshape(b, t, h * d)
    at = lambda i: view(i * h * d, t * 3 * h * d, d, 3 * h * d)
    flat = view(0, t * h * d, d, h * d)
    lse32 = lse.astype(np.float32)
    common = " ".join(f"{n}(%x at {at(i)} : {tensor(qkv)})" for i, n in enumerate("qkv"))
    ir = f"""func.func @f(%x: {tensor(qkv)}) -> ({tensor(dout)}, {tensor(lse32)}) {{
      %0, %1 = kernel.attention {sizes(case)} scale 0.25 causal {common}
          out({flat} : {tensor(dout)}) lse({tensor(lse32)})
      return %0, %1 : {tensor(dout)}, {tensor(lse32)}
    }}"""
    check(ir, [qkv] * 3, [(join(out), np.float32), (lse, np.float32)], b * h)
    ir = f"""func.func @f(%g: {tensor(dout)}, %x: {tensor(qkv)}, %o: {tensor(dout)}, %l: {tensor(lse32)})
        -> {tensor(qkv)} {{
      %0 = kernel.attention_backward {sizes(case)} scale 0.25 causal dout(%g at {flat} : {tensor(dout)}) {common}
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
    out, lse, *_ = oracle(q[:, :, keep], k, v, dout[:, :, keep], False, 1.0, None)
    want, want_lse = np.zeros((1, 1, 4, 16)), np.full((1, 1, 4), -np.inf)
    want[:, :, keep], want_lse[:, :, keep] = out, lse
    l = tensor(want_lse.astype(np.float32))
    ir = f"""func.func @f(%q: {tensor(q)}, %k: {tensor(k)}, %v: {tensor(v)}, %m: {tensor(mask)})
        -> ({tensor(dout)}, {l}) {{
      %0, %1 = kernel.attention {sizes(case)} scale 1.0 q(%q at {dense(q)} : {tensor(q)})
          k(%k at {dense(k)} : {tensor(k)}) v(%v at {dense(v)} : {tensor(v)})
          mask(%m at {view(0, 0, 0, 40)} : {tensor(mask)}) out({dense(dout)} : {tensor(dout)}) lse({l})
      return %0, %1 : {tensor(dout)}, {l}
    }}"""
    path = compile_kernels(ir, "x86-64-v3")
    got, got_lse = run(path, [q, k, v, mask], [(want.shape, np.float32), (want_lse.shape, np.float32)], 1)
    assert np.abs(got - want).max() < 1e-5
    assert got_lse[0, 0, 2] == -np.inf and np.abs(got_lse[0, 0, keep] - want_lse[0, 0, keep]).max() < 1e-5
