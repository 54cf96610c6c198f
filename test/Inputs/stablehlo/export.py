"""Makes the folders beside it anew: training steps as JAX lowers them to StableHLO, their arguments' roles, and what
JAX makes of them. The tests need what it writes, not JAX:

    python -m venv v && v/bin/pip install 'jax[cpu]' && v/bin/python export.py
"""

import json
import math
import os
import struct
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def export(step, debug, *args):
    """The text that spmd-translate reads: op by op in MLIR's generic form, with the names of arguments and places."""
    module = jax.jit(step).lower(*args).compiler_ir("stablehlo")
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=debug)
    return text.replace(HERE + os.sep, "")


def write_safetensors(path, tensors, metadata=None):
    names = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64"}
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, value in tensors.items():
        value = np.ascontiguousarray(value)
        header[name] = {"dtype": names[value.dtype.name], "shape": list(np.shape(tensors[name])),
                        "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def named(tree):
    """Arrays of nested dicts by the names that the importer gives them: blocks_0.attn.w."""
    return {".".join(str(getattr(key, "key", getattr(key, "idx", None))) for key in path): np.asarray(leaf)
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def write_case(name, step, roles, params, opt, states, batches, lr, debug=True):
    """`states`: of opt, {name of a state: tree like params}, and {None: {buffer: value}}."""
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "step.mlir"), "w") as file:
        file.write(export(step, debug, params, opt, *batches[0].values(), jnp.float32(lr)))
    with open(os.path.join(folder, "roles.json"), "w") as file:
        file.write(json.dumps(roles, indent=2) + "\n")

    def flat(params, opt, prefix=""):
        tensors = {prefix + key: value for key, value in named(params).items()}
        for state, tree in states(opt).items():
            for key, value in (tree if state is None else named(tree)).items():
                tensors[prefix + (key if state is None else f"optimizer/{state}/{key}")] = np.asarray(value)
        return tensors

    write_safetensors(os.path.join(folder, "weights.safetensors"), flat(params, opt))
    reference, losses = {}, []
    run = jax.jit(step)
    for index, batch in enumerate(batches):
        reference.update({f"batch/{index}/{key}": value for key, value in batch.items()})
        params, opt, loss = run(params, opt, *batch.values(), jnp.float32(lr))
        losses.append(float(loss))
    reference["loss"] = np.array(losses)
    reference["hyper/lr/0"] = np.full(len(batches), float(np.float32(lr)))
    reference.update(flat(params, opt, "final/"))
    write_safetensors(os.path.join(folder, "reference.safetensors"), reference,
                      {"format": "spmd-reference", "steps": str(len(batches))})
    print(name, losses[0], "...", losses[-1])


# A perceptron, SGD with momentum.


def mlp_loss(params, x, y):
    h = jax.nn.relu(x @ params["fc1"]["weight"] + params["fc1"]["bias"])
    return jnp.mean((h @ params["fc2"]["weight"] + params["fc2"]["bias"] - y) ** 2)


def mlp_step(params, momentum, x, y, lr):
    loss, grads = jax.value_and_grad(mlp_loss)(params, x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - lr * m, params, momentum), momentum, loss


def draw(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def write_mlp():
    rng = np.random.default_rng(0)
    params = {"fc1": {"weight": draw(rng, 12, 20, scale=0.3), "bias": np.zeros(20, np.float32)},
              "fc2": {"weight": draw(rng, 20, 6, scale=0.2), "bias": np.zeros(6, np.float32)}}
    roles = {"arguments": {"params": "param", "momentum": {"kind": "state", "state": "momentum_buffer", "init": 0},
                           "x": "batch", "y": "batch", "lr": {"kind": "hyper", "value": 0.1}},
             "results": {"[0]": {"updates": "params"}, "[1]": {"updates": "momentum"}, "[2]": "loss"}}
    batches = [{"x": draw(rng, 8, 12), "y": draw(rng, 8, 6)} for _ in range(10)]
    write_case("mlp-sgd", mlp_step, roles, params, jax.tree.map(jnp.zeros_like, params),
               lambda opt: {"momentum_buffer": opt}, batches, 0.1)


# A transformer of one block, AdamW with clipped gradients, its state as optax arranges it.

VOCAB, LENGTH, WIDTH, HEADS = 23, 8, 16, 2


class AdamState(NamedTuple):
    count: jax.Array
    mu: dict
    nu: dict


def layer_norm(params, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * params["scale"] + params["bias"]


def block(params, x):
    batch, length, width = x.shape
    h = layer_norm(params["ln1"], x)
    q, k, v = (jnp.reshape(h @ params["attn"][name], (batch, length, HEADS, width // HEADS)) for name in "qkv")
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(width // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v).reshape(batch, length, width)
    x = x + mixed @ params["attn"]["o"]
    h = jax.nn.gelu(layer_norm(params["ln2"], x) @ params["mlp"]["up"], approximate=False)
    return x + h @ params["mlp"]["down"]


def gpt_loss(params, ids, labels):
    x = params["wte"][ids] + params["wpe"]
    for name in sorted(name for name in params if name.startswith("blocks")):
        x = block(params[name], x)
    logits = layer_norm(params["ln_f"], x) @ params["head"]
    log_probabilities = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[..., None], axis=-1))


def gpt_step(params, opt, ids, labels, lr):
    loss, grads = jax.value_and_grad(gpt_loss)(params, ids, labels)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
    count = opt.count + 1
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt.mu, grads)
    nu = jax.tree.map(lambda n, g: 0.99 * n + 0.01 * g * g, opt.nu, grads)
    correct1, correct2 = 1 - 0.9 ** count.astype(jnp.float32), 1 - 0.99 ** count.astype(jnp.float32)
    params = jax.tree.map(
        lambda p, m, n: p - lr * ((m / correct1) / (jnp.sqrt(n / correct2) + 1e-6) + 0.01 * p), params, mu, nu)
    return params, AdamState(count, mu, nu), loss


def write_gpt():
    rng = np.random.default_rng(1)

    def norm():
        return {"scale": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}

    def make_block():
        return {"ln1": norm(), "attn": {name: draw(rng, WIDTH, WIDTH, scale=0.2) for name in "qkvo"}, "ln2": norm(),
                "mlp": {"up": draw(rng, WIDTH, 2 * WIDTH, scale=0.2),
                        "down": draw(rng, 2 * WIDTH, WIDTH, scale=0.2)}}

    params = {"wte": draw(rng, VOCAB, WIDTH), "wpe": draw(rng, LENGTH, WIDTH, scale=0.1), "blocks_0": make_block(),
              "ln_f": norm(), "head": draw(rng, WIDTH, VOCAB, scale=0.2)}
    zeros = jax.tree.map(jnp.zeros_like, params)
    roles = {"name": "gpt",
             "arguments": {"params": "param", "opt.mu": {"kind": "state", "state": "exp_avg", "init": 0},
                           "opt.nu": {"kind": "state", "state": "exp_avg_sq", "init": 0}, "opt.count": "buffer",
                           "ids": "batch", "labels": "batch", "lr": {"kind": "hyper", "value": 0.01}},
             "results": {"[0]": {"updates": "params"}, "[1]": {"updates": "opt"}, "[2]": "loss"}}
    batches = [{"ids": rng.integers(0, VOCAB, (4, LENGTH)).astype(np.int32),
                "labels": rng.integers(0, VOCAB, (4, LENGTH)).astype(np.int32)} for _ in range(10)]
    write_case("gpt-adamw", gpt_step, roles, params, AdamState(jnp.int32(0), zeros, zeros),
               lambda opt: {"exp_avg": opt.mu, "exp_avg_sq": opt.nu, None: {"opt.count": opt.count}}, batches, 0.01)


# Every other op that the importer knows, with its gradient.


def ops_of_numbers(w, x, ids):
    positive = jnp.abs(w) + 0.5
    small = jnp.tanh(w) * 0.8
    terms = [jnp.power(positive, 1.7), 2.0 ** small, jnp.power(positive, small), x[:, :1] % 0.7 + w[:1, 0],
             jnp.floor(w) * w, jnp.sign(w) * w, jnp.abs(w), jnp.log1p(positive), jnp.expm1(small), jax.nn.sigmoid(w),
             jax.nn.softplus(w), jax.lax.erf_inv(small), jax.lax.erf(w), jax.lax.erfc(w), jnp.arctan2(positive, small),
             jnp.sinh(small), jnp.cosh(small), jnp.sin(w), jnp.cos(w), jnp.tan(small), jnp.ceil(w) * w,
             jnp.round(w * 3) * w, jnp.log(positive), jax.lax.clamp(-0.6, w, 0.7), jnp.clip(w, jnp.min(x), 0.9),
             1.0 / positive, 3.0 - w, w / 3.0, jnp.sqrt(positive), jnp.where(jnp.sum(ids) > 0, w, 2 * w),
             jnp.where(jnp.isfinite(w) & ~(w > 0.4) | (w < -1), w, 0.25), jnp.where((w > 0) ^ (w < 1), w, w * w),
             jnp.minimum(w, 0.3), jnp.maximum(w, small), w * jnp.float32(jnp.e)]
    whole = (ids // 2) * 3 + ids % 3 + (ids & 5) + (ids | 2) + (ids ^ 3) + jnp.abs(-ids) + jnp.sign(ids) + ~ids
    masks = jnp.any(w > 0.5, 0) | jnp.all(w > -2, 0)
    return sum(jnp.mean(term) for term in terms) + jnp.mean(whole.astype(jnp.float32) * x[:, :3]) + jnp.mean(masks * w)


def ops_of_shapes(w, x):
    lines = jnp.array([0.5, 0.5, 0.25, 2.0, 2.0, 2.0, 1.0, 0.75])
    terms = [jax.lax.pad(w, 0.5, [(1, 2, 1), (-1, 0, 0)]), jax.lax.pad(w, 0.0, [(0, 0, 2), (2, -3, 1)]),
             jax.lax.dynamic_slice(w, (1, 2), (2, 3)), jax.lax.dynamic_update_slice(w, x[:2, :3], (3, 4)), w[::-1],
             w[:, 1::3], w[1:5:2, 2:7], jnp.concatenate([w, w[:2] * 2, jnp.ones((1, 8))]), w * lines, w.T @ w,
             jnp.flip(w, (0, 1)), w * jnp.arange(8.0), w.reshape(3, 2, 8).transpose(2, 0, 1).reshape(4, 12),
             jnp.roll(w, 3, 1), jnp.tile(w, (2, 1)), jnp.einsum("ij,kj->ikj", w, w),
             jnp.einsum("bi,ij,bj->b", x, w, x[:, :1] + lines), jnp.outer(w[0], w[1]), jnp.vdot(w, w) * 0.02,
             jnp.einsum("abc,abd->acd", w.reshape(3, 2, 8), w.reshape(3, 2, 8) + 1), w[2] @ w.T,
             jnp.einsum("abc,cab->ab", w.reshape(3, 2, 8), w.reshape(8, 3, 2)), jnp.prod(w, 1), jnp.max(w, 0),
             jnp.min(w), jax.lax.reduce(w, jnp.float32(0.5), jax.lax.add, (1,)), jax.nn.logsumexp(w, 0), jnp.var(w, 1),
             jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(w), jax.nn.one_hot(jnp.array([1, 5]), 6) @ w]
    return sum(jnp.mean(jnp.sin(term)) for term in terms)


def ops_of_rows(table, x, ids):
    # Some rows lie outside: 12 and more, and below 0 they count from the end.
    low, steep = ids - 4, jnp.arange(4)
    terms = [table[ids], table[low], table[ids, steep[:3]], table[:, ids], jnp.take(table, ids, axis=1, mode="clip"),
             jnp.take(table, low, axis=0, mode="wrap"), table.at[ids[:, 0]].get(mode="fill", fill_value=0.5), table[3],
             jnp.take_along_axis(table, ids.T[:, :4] % 12, axis=0), jnp.take_along_axis(table[:4], ids % 4, axis=1),
             table.at[ids[:, 1]].add(x[:, :4]), table.at[ids[:, 1] - 3, steep].add(x[0, :4]),
             jnp.take_along_axis(table.reshape(2, 6, 4), (ids[:2, :, None] % 6), axis=1),
             jnp.zeros((12, 4)).at[:, 1].add(table[:, 0])]
    return sum(jnp.mean(jnp.sin(term)) for term in terms)


def write_ops():
    """Without debug information, so that arguments have numbers, not names, and nothing says what is forward."""
    rng = np.random.default_rng(2)
    w, table = draw(rng, 6, 8), draw(rng, 12, 4)
    batches = [{"x": draw(rng, 4, 6), "ids": rng.integers(0, 15, (4, 3)).astype(np.int32)} for _ in range(3)]
    for name, loss, value, inputs in [("numbers", ops_of_numbers, w, ["x", "ids"]), ("shapes", ops_of_shapes, w, ["x"]),
                                      ("rows", ops_of_rows, table, ["x", "ids"])]:

        def step(params, calls, *values_and_rate, loss=loss):
            *values, lr = values_and_rate
            value, grad = jax.value_and_grad(loss)(params["arg0"], *values)
            return {"arg0": params["arg0"] - lr * grad}, calls + 1, value

        arguments = [f"arg{index}" for index in range(len(inputs) + 3)]
        roles = {"arguments": dict(zip(arguments, ["param", "buffer", *(["batch"] * len(inputs)),
                                                   {"kind": "hyper", "name": "lr", "value": 0.1}])),
                 "results": {"[0].arg0": {"updates": "arg0"}, "[1]": {"updates": "arg1"}, "[2]": "loss"}}
        write_case("ops-" + name, step, roles, {"arg0": value}, jnp.int32(0), lambda opt: {None: {"arg1": opt}},
                   [{argument: batch[key] for argument, key in zip(arguments[2:], inputs)} for batch in batches], 0.1,
                   debug=False)


if __name__ == "__main__":
    write_mlp()
    write_gpt()
    write_ops()
