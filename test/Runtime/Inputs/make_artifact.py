#!/usr/bin/env python3
"""Writes a small artifact by hand, to test the runtime without the compiler.

The model is an embedding of two ids per row, a hidden layer and an output with
a frozen scale, trained by SGD with momentum and gradient clipping:

    e = emb[x[:, 0]] + emb[x[:, 1]];  h = relu(e W1^T + b1);  y = scale * (h W2^T + b2)
    loss = mean((y - t)^2)

Its plan uses every command there is: kernels, GEMMs, all three collectives on
three streams, waits, fills and a copy, bytes that two buffers share, a batch
that need not be divisible by the ranks, per-segment tables and a sharded output.
For GPUs norms are sums, GEMMs have workspaces, and kernels take operands before results.
The reference is computed here in Python floats (float64).
"""
import argparse
import json
import math
import os
import random
import struct
import subprocess

import gpu_kernels

VOCABULARY, WIDTH, HIDDEN, OUT = 11, 6, 5, 3
MOMENTUM, MAX_NORM = 0.9, 1.0
ALIGN = 16  # elements: segments and chunks start on cache lines


def round_up(value, multiple):
    return (value + multiple - 1) // multiple * multiple


# --- safetensors -------------------------------------------------------------

FORMATS = {"F32": "f", "F64": "d", "I64": "q"}


def write_safetensors(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, flat list)."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# --- units -------------------------------------------------------------------

PARAMETERS = {
    "emb.weight": [VOCABULARY, WIDTH],
    "fc1.weight": [HIDDEN, WIDTH],
    "fc1.bias": [HIDDEN],
    "scale": [OUT],
    "fc2.weight": [OUT, HIDDEN],
    "fc2.bias": [OUT],
}
UNITS = {"embed": ["emb.weight"], "fc": ["fc1.weight", "fc1.bias", "scale", "fc2.weight", "fc2.bias"]}
FROZEN = {"scale"}
ALIASES = {"emb.weight": ["tied.weight"]}


def make_units(ranks):
    units = []
    for name, parameters in UNITS.items():
        offset, segments = 0, []
        for parameter in parameters:
            numel = math.prod(PARAMETERS[parameter])
            segments.append({"name": parameter, "aliases": ALIASES.get(parameter, []), "shape": PARAMETERS[parameter],
                             "group": 0, "offset": offset, "numel": numel, "trainable": parameter not in FROZEN})
            offset = round_up(offset + numel, ALIGN)
        padded = round_up(offset, ranks * ALIGN)
        units.append({"name": name, "modules": [name], "dtype": "f32", "padded": padded, "chunk": padded // ranks,
                      "segments": segments})
    return units


# --- reference ---------------------------------------------------------------


def make_data(batch, steps, seed):
    rng = random.Random(seed)
    parameters = {name: [rng.uniform(-0.5, 0.5) for _ in range(math.prod(shape))] for name, shape in PARAMETERS.items()}
    parameters["scale"] = [rng.uniform(0.5, 1.5) for _ in range(OUT)]
    # What float32 storage holds is what both sides start from.
    parameters = {n: list(struct.unpack(f"{len(v)}f", struct.pack(f"{len(v)}f", *v))) for n, v in parameters.items()}
    batches = []
    for _ in range(steps):
        ids = [rng.randrange(VOCABULARY) for _ in range(batch * 2)]
        target = [struct.unpack("f", struct.pack("f", rng.uniform(-1, 1)))[0] for _ in range(batch * OUT)]
        batches.append((ids, target))
    rates = [0.2 / (1 + step / 10) for step in range(steps)]
    return parameters, batches, rates


def train(parameters, batches, rates, batch):
    """Losses, final parameters and momentum, in float64."""
    p = {name: list(values) for name, values in parameters.items()}
    momentum = {name: [0.0] * len(values) for name, values in p.items() if name not in FROZEN}
    losses, prediction = [], []
    for (ids, target), rate in zip(batches, rates):
        g = {name: [0.0] * len(values) for name, values in p.items()}
        loss, prediction = 0.0, []
        for row in range(batch):
            a, b = ids[2 * row], ids[2 * row + 1]
            e = [p["emb.weight"][a * WIDTH + i] + p["emb.weight"][b * WIDTH + i] for i in range(WIDTH)]
            h = [max(0.0, sum(p["fc1.weight"][j * WIDTH + i] * e[i] for i in range(WIDTH)) + p["fc1.bias"][j])
                 for j in range(HIDDEN)]
            z = [sum(p["fc2.weight"][o * HIDDEN + j] * h[j] for j in range(HIDDEN)) + p["fc2.bias"][o]
                 for o in range(OUT)]
            y = [p["scale"][o] * z[o] for o in range(OUT)]
            prediction += y
            delta = [y[o] - target[row * OUT + o] for o in range(OUT)]
            loss += sum(d * d for d in delta) / (batch * OUT)
            dz = [2 * delta[o] * p["scale"][o] / (batch * OUT) for o in range(OUT)]
            dh = [sum(dz[o] * p["fc2.weight"][o * HIDDEN + j] for o in range(OUT)) if h[j] > 0 else 0.0
                  for j in range(HIDDEN)]
            for o in range(OUT):
                g["fc2.bias"][o] += dz[o]
                for j in range(HIDDEN):
                    g["fc2.weight"][o * HIDDEN + j] += dz[o] * h[j]
            for j in range(HIDDEN):
                g["fc1.bias"][j] += dh[j]
                for i in range(WIDTH):
                    g["fc1.weight"][j * WIDTH + i] += dh[j] * e[i]
            for i in range(WIDTH):
                de = sum(dh[j] * p["fc1.weight"][j * WIDTH + i] for j in range(HIDDEN))
                g["emb.weight"][a * WIDTH + i] += de
                g["emb.weight"][b * WIDTH + i] += de
        losses.append(loss)
        norm = math.sqrt(sum(v * v for name in momentum for v in g[name]))
        clip = min(1.0, MAX_NORM / (norm + 1e-6))
        for name in momentum:
            for i, v in enumerate(g[name]):
                momentum[name][i] = MOMENTUM * momentum[name][i] + clip * v
                p[name][i] -= rate * momentum[name][i]
    return losses, p, momentum, prediction


def norm_stride(is_gpu):
    """Elements from one unit's norm to the next: kernels of GPUs take addresses that are multiples of 16."""
    return 4 if is_gpu else 1


# --- kernels -----------------------------------------------------------------

KERNELS = r"""
#include <stdint.h>
#define KERNEL(name) FUNCTION(name)(void *const *args, const int64_t *coords, int64_t begin, int64_t end)
#define VALID(row) (coords[0] * CHUNK_ROWS + (row) < BATCH)

KERNEL(embed) {
  const int64_t *ids = args[0]; const float *table = args[1]; float *e = args[2];
  for (int64_t r = begin; r < end; ++r)
    for (int i = 0; i < WIDTH; ++i)
      e[r * WIDTH + i] = VALID(r) ? table[ids[2 * r] * WIDTH + i] + table[ids[2 * r + 1] * WIDTH + i] : 0;
}
KERNEL(bias_relu) {
  float *h = args[0]; const float *bias = args[1];
  for (int64_t r = begin; r < end; ++r)
    for (int j = 0; j < HIDDEN; ++j) {
      float v = h[r * HIDDEN + j] + bias[j];
      h[r * HIDDEN + j] = v > 0 ? v : 0;
    }
}
KERNEL(output) { /* y, bias, scale, target -> y, dz */
  float *y = args[0]; const float *bias = args[1], *scale = args[2], *target = args[3]; float *dz = args[4];
  for (int64_t r = begin; r < end; ++r)
    for (int o = 0; o < OUT; ++o) {
      float v = scale[o] * (y[r * OUT + o] + bias[o]);
      y[r * OUT + o] = v;
      dz[r * OUT + o] = VALID(r) ? 2 * (v - target[r * OUT + o]) * scale[o] / (BATCH * OUT) : 0;
    }
}
KERNEL(loss) {
  const float *y = args[0], *target = args[1]; float *loss = args[2];
  float sum = 0;
  for (int64_t r = 0; r < CHUNK_ROWS; ++r)
    for (int o = 0; o < OUT; ++o) {
      float d = y[r * OUT + o] - target[r * OUT + o];
      sum += VALID(r) ? d * d : 0;
    }
  *loss = sum / (BATCH * OUT);
}
KERNEL(relu_backward) {
  float *dh = args[0]; const float *h = args[1];
  for (int64_t i = begin; i < end; ++i)
    dh[i] = h[i] > 0 ? dh[i] : 0;
}
static void columnSum(void *const *args, int64_t columns, int64_t begin, int64_t end) {
  const float *in = args[0]; float *out = args[1];
  for (int64_t c = begin; c < end; ++c) {
    float sum = 0;
    for (int64_t r = 0; r < CHUNK_ROWS; ++r)
      sum += in[r * columns + c];
    out[c] = sum;
  }
}
KERNEL(sum_out) { columnSum(args, OUT, begin, end); }
KERNEL(sum_hidden) { columnSum(args, HIDDEN, begin, end); }
KERNEL(embed_backward) {
  const int64_t *ids = args[0]; const float *de = args[1]; float *grad = args[2];
  for (int64_t r = 0; r < CHUNK_ROWS; ++r)
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < WIDTH; ++i)
        grad[ids[2 * r + k] * WIDTH + i] += VALID(r) ? de[r * WIDTH + i] : 0;
}
static void norm(void *const *args, int64_t count) {
  const float *grad = args[0]; float *norm = args[1], *largest = args[2];
  float sum = 0, most = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += grad[i] * grad[i];
    most = grad[i] > most ? grad[i] : -grad[i] > most ? -grad[i] : most;
  }
  *norm = SUMS_NORMS ? sum : __builtin_sqrtf(sum);
  *largest = most;
  for (int i = 1; i < NORM_STRIDE; ++i)
    norm[i] = largest[i] = 0;
}
/* param, momentum, gradient, norms, largest, rate */
static void sgd(void *const *args, int64_t first, int64_t begin, int64_t end, int64_t frozenBegin, int64_t frozenEnd) {
  float *param = args[0], *momentum = args[1]; const float *grad = args[2], *norms = args[3], *largest = args[4];
  double rate = *(const double *)args[5];
  float one = norms[0], two = norms[NORM_STRIDE];
  float total = __builtin_sqrtf(SUMS_NORMS ? one + two : one * one + two * two);
  float clip = MAX_NORM / (total + 1e-6f);
  if (clip > 1 || largest[0] + largest[NORM_STRIDE] == 0)
    clip = 1;
  for (int64_t i = begin; i < end; ++i) {
    if (first + i >= frozenBegin && first + i < frozenEnd)
      continue;
    momentum[i] = MOMENTUM * momentum[i] + clip * grad[i];
    param[i] -= (float)rate * momentum[i];
  }
}
static void countSteps(float *steps, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    steps[i] += 1;
}
"""


# What a library of emulated kernels exports beside them (include/spmd/Runtime/Emulation.h).
EMULATION = r"""
int32_t spmd_emulation_configure(int32_t checked, int32_t schedule, uint64_t seed) { return 0; }
const char *spmd_emulation_error(void) { return 0; }
void *const *spmd_emulation_failed_arguments(void) { return 0; }
void spmd_emulation_counts(int64_t *counts) { counts[0] = counts[1] = counts[2] = counts[3] = 0; }
"""


def kernel_table(plan):
    """What the kernels take, as the plan launches them; types are for people."""
    lines = {}
    for command in plan.commands:
        if command["op"] == "kernel":
            arguments = [f"{ref['access']}:f32:{ref['bytes']}" for ref in command["args"]]
            lines[command["kernel"]] = " ".join([command["kernel"], str(command["parallel"]), *arguments])
    return "".join(f"{line}\n" for line in lines.values())


def kernel_source(units, batch, chunk_rows, is_gpu):
    constants = {"VOCABULARY": VOCABULARY, "WIDTH": WIDTH, "HIDDEN": HIDDEN, "OUT": OUT, "BATCH": batch,
                 "CHUNK_ROWS": chunk_rows, "MOMENTUM": f"{MOMENTUM}f", "MAX_NORM": f"{MAX_NORM}f",
                 "SUMS_NORMS": int(is_gpu), "NORM_STRIDE": norm_stride(is_gpu),
                 "FUNCTION(name)": "static void c_##name" if is_gpu else "void name"}
    source = "".join(f"#define {name} {value}\n" for name, value in constants.items()) + KERNELS
    for unit in units:
        frozen = [s for s in unit["segments"] if not s["trainable"]]
        begin, end = (frozen[0]["offset"], frozen[0]["offset"] + frozen[0]["numel"]) if frozen else (-1, -1)
        source += f"KERNEL(count_steps_{unit['name']}) {{ countSteps(args[0], begin, end); }}\n"
        source += f"KERNEL(norm_{unit['name']}) {{ norm(args, {unit['chunk']}); }}\n"
        source += (f"KERNEL(sgd_{unit['name']}) {{ sgd(args, coords[0] * {unit['chunk']}, begin, end, "
                   f"{begin}, {end}); }}\n")
    return source


# --- plan --------------------------------------------------------------------


class PlanWriter:
    """Places buffers one after the other and appends commands; those of GPUs where `is_gpu`."""

    def __init__(self, is_gpu):
        self.buffers, self.commands, self.end, self.state_bytes = [], [], 0, 0
        self.is_gpu, self.places = is_gpu, {}

    def buffer(self, name, memory_class, size, state=False, at=None):
        offset = self.end if at is None else self.buffers[at]["offset"]
        self.buffers.append({"id": len(self.buffers), "name": name, "class": memory_class, "offset": offset,
                             "bytes": size, "state": state, "loc": f"{name} train.py:{10 + len(self.buffers)}"})
        if at is None:
            self.end = round_up(self.end + size, 64)
        if state:
            self.state_bytes = self.end
        return len(self.buffers) - 1

    def ref(self, buffer, access, offset=0, size=None, coord=None):
        ref = {"buffer": buffer, "offset": offset, "access": access,
               "bytes": self.buffers[buffer]["bytes"] if size is None else size}
        if coord:
            ref["coord"] = coord
        return ref

    def add(self, op, stream, **fields):
        self.commands.append({"op": op, "stream": stream, "loc": f"train.py:{100 + len(self.commands)}", **fields})
        return len(self.commands) - 1

    def wait(self, stream, command):
        return self.add("wait", stream, **{"for": command})

    def kernel(self, name, args, parallel=1, grain=1):
        if self.is_gpu:
            args, self.places[name] = gpu_kernels.split(args)
        return self.add("kernel", "compute", kernel=name, parallel=parallel, grain=grain, args=args)

    def gemm(self, m, n, k, a, b, c, trans_a=False, trans_b=False):
        more = {"workspace": self.ref(self.workspace, "w")} if self.is_gpu else {}
        return self.add("gemm", "compute", m=m, n=n, k=k, a=a, b=b, c=c, **more, lda=m if trans_a else k,
                        ldb=k if trans_b else n, ldc=n, trans_a=trans_a, trans_b=trans_b, beta=0.0, batch=1,
                        stride_a=0, stride_b=0, stride_c=0, dtype="f32")


def make_plan(units, ranks, rows, is_gpu):
    plan = PlanWriter(is_gpu)
    unit = {u["name"]: u for u in units}
    at = {}
    for u in units:
        for state in ["param", "momentum_buffer"]:
            at[u["name"], state] = plan.buffer(f"{u['name']} {state}", "parameters", 4 * u["chunk"], state=True)
        at[u["name"], "step"] = plan.buffer(f"{u['name']} step", "optimizer state", 4 * len(u["segments"]), state=True)
    x = plan.buffer("x", "io", 16 * rows)
    t = plan.buffer("t", "io", 4 * rows * OUT)
    lr = plan.buffer("lr", "io", 8)
    loss = plan.buffer("loss", "io", 4)
    y = plan.buffer("y", "io", 4 * rows * OUT)
    pred = plan.buffer("pred", "io", 4 * rows * OUT)
    e = plan.buffer("e", "activations", 4 * rows * WIDTH)
    h = plan.buffer("h", "activations", 4 * rows * HIDDEN)
    dz = plan.buffer("dz", "activations", 4 * rows * OUT)
    dh = plan.buffer("dh", "activations", 4 * rows * HIDDEN)
    de = plan.buffer("de", "activations", 4 * rows * WIDTH)
    stride = norm_stride(is_gpu)
    norms = plan.buffer("norms", "activations", 8 * stride)
    largest = plan.buffer("largest", "activations", 8 * stride)
    if is_gpu:
        plan.end = round_up(plan.end, 256)
        plan.workspace = plan.buffer("workspace", "workspace", 1 << 16)
    gathered, grads, chunks = {}, {}, {}
    for u in units:
        name = u["name"]
        if ranks == 1:
            gathered[name] = at[name, "param"]
            grads[name] = chunks[name] = plan.buffer(f"{name} gradient", "gradients", 4 * u["padded"])
        else:
            gathered[name] = plan.buffer(f"{name} gathered", "gathered", 4 * u["padded"])
            # The embedding is not needed any more when its gradient is made.
            grads[name] = plan.buffer(f"{name} gradient", "gradients", 4 * u["padded"],
                                      at=gathered[name] if name == "embed" else None)
            chunks[name] = plan.buffer(f"{name} gradient chunk", "gradients", 4 * u["chunk"])

    segment = {s["name"]: (u["name"], s) for u in units for s in u["segments"]}

    def param(name, where, access):
        owner, s = segment[name]
        return plan.ref(where[owner], access, 4 * s["offset"], 4 * s["numel"])

    ref = plan.ref
    ready = {}
    if ranks > 1:
        for u in units:
            ready[u["name"]] = plan.add(
                "all_gather", "gather", comm="gather", send=ref(at[u["name"], "param"], "r"),
                recv=ref(gathered[u["name"]], "w"), count=u["chunk"], dtype="f32", unit=u["name"])
        plan.wait("compute", ready["embed"])
    plan.kernel("embed", [ref(x, "r"), param("emb.weight", gathered, "r"), ref(e, "w")], rows, 1)
    if ranks > 1:
        plan.wait("compute", ready["fc"])
    plan.gemm(rows, HIDDEN, WIDTH, ref(e, "r"), param("fc1.weight", gathered, "r"), ref(h, "w"), trans_b=True)
    plan.kernel("bias_relu", [ref(h, "rw"), param("fc1.bias", gathered, "r")], rows, 1)
    plan.gemm(rows, OUT, HIDDEN, ref(h, "r"), param("fc2.weight", gathered, "r"), ref(y, "w"), trans_b=True)
    plan.kernel("output", [ref(y, "rw"), param("fc2.bias", gathered, "r"), param("scale", gathered, "r"), ref(t, "r"),
                           ref(dz, "w")], rows, 1)
    last = plan.kernel("loss", [ref(y, "r"), ref(t, "r"), ref(loss, "w")])
    if ranks > 1:
        plan.wait("scalar", last)
        plan.add("all_reduce", "scalar", comm="scalar", unit="", buffers=[ref(loss, "rw")], counts=[1], dtype="f32",
                 kinds=["sum"])
    plan.add("copy", "compute", src=ref(y, "r"), dst=ref(pred, "w"), bytes=4 * rows * OUT)
    for u in units:
        plan.add("fill", "compute", dst=ref(grads[u["name"]], "w"), bytes=4 * u["padded"], value=0)
    plan.gemm(OUT, HIDDEN, rows, ref(dz, "r"), ref(h, "r"), param("fc2.weight", grads, "w"), trans_a=True)
    plan.kernel("sum_out", [ref(dz, "r"), param("fc2.bias", grads, "w")], OUT, 1)
    plan.gemm(rows, HIDDEN, OUT, ref(dz, "r"), param("fc2.weight", gathered, "r"), ref(dh, "w"))
    plan.kernel("relu_backward", [ref(dh, "rw"), ref(h, "r")], rows * HIDDEN, 4)
    plan.gemm(HIDDEN, WIDTH, rows, ref(dh, "r"), ref(e, "r"), param("fc1.weight", grads, "w"), trans_a=True)
    last = plan.kernel("sum_hidden", [ref(dh, "r"), param("fc1.bias", grads, "w")], HIDDEN, 1)

    def scatter(name, after):
        plan.wait("reduce", after)
        ready[name] = plan.add("reduce_scatter", "reduce", comm="reduce", send=ref(grads[name], "r"),
                               recv=ref(chunks[name], "w"), count=unit[name]["chunk"], dtype="f32", kind="sum",
                               unit=name)

    if ranks > 1:
        scatter("fc", last)
    plan.gemm(rows, WIDTH, HIDDEN, ref(dh, "r"), param("fc1.weight", gathered, "r"), ref(de, "w"))
    last = plan.kernel("embed_backward", [ref(x, "r"), ref(de, "r"), param("emb.weight", grads, "rw")])
    if ranks > 1:
        scatter("embed", last)
    for i, u in enumerate(units):
        if ranks > 1:
            plan.wait("compute", ready[u["name"]])
        last = plan.kernel(f"norm_{u['name']}", [ref(chunks[u["name"]], "r"),
                                                 *(ref(to, "w", 4 * stride * i, 4 * stride) for to in (norms, largest))])
    if ranks > 1:
        plan.wait("scalar", last)
        reduced = plan.add("all_reduce", "scalar", comm="scalar", unit="",
                           buffers=[ref(norms, "rw"), ref(largest, "rw")], counts=[2 * stride] * 2, dtype="f32",
                           kinds=["sum" if is_gpu else "norm2", "max"])
        plan.wait("compute", reduced)
    for u in units:
        name = u["name"]
        plan.kernel(f"sgd_{name}", [ref(at[name, "param"], "rw"), ref(at[name, "momentum_buffer"], "rw"),
                                    ref(chunks[name], "r"), ref(norms, "r"), ref(largest, "r"), ref(lr, "r")],
                    u["chunk"], 16)
        plan.kernel(f"count_steps_{name}", [ref(at[name, "step"], "rw")], len(u["segments"]))
    return plan, at, {"x": x, "t": t, "lr": lr, "loss": loss, "pred": pred}


def trace_hash(commands):
    trace = ""
    for c in commands:
        if c["op"] not in ("all_gather", "reduce_scatter", "all_reduce"):
            continue
        counts = c.get("counts") or [c["count"]]
        kinds = c.get("kinds") or ([c["kind"]] if "kind" in c else [])
        trace += " ".join([c["comm"], c["op"], c["dtype"], ",".join(map(str, counts)) or "-", ",".join(kinds) or "-",
                           c.get("unit") or "-"]) + "\n"
    return hash_bytes(trace.encode())


def hash_bytes(data):
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) % 2**64
    return f"{value:016x}"


def make_manifest(arguments, units, plan, at, io, rows):
    """Without the hashes of files, which are there when they are."""
    def place(buffer):
        return {"offset": plan.buffers[buffer]["offset"], "buffer": buffer}

    state = []
    for u in units:
        for kind in ["param", "momentum_buffer"]:
            state.append({"kind": "shard", "unit": u["name"], "state": kind, "dtype": "f32",
                          **place(at[u["name"], kind]), "numel": u["chunk"],
                          "init": None if kind == "param" else 0.0})
        state.append({"kind": "table", "unit": u["name"], "state": "step", "dtype": "f32",
                      **place(at[u["name"], "step"]), "numel": len(u["segments"]),
                      "init": 0.0})
    classes = {}
    for buffer in plan.buffers:
        classes[buffer["class"]] = classes.get(buffer["class"], 0) + buffer["bytes"]
    split = {"dim": 0, "pre": 1, "chunk": rows}
    batch = arguments.batch
    return {
        "format": "spmd-artifact", "version": 6, "compiler": "0.1.0", "step": "tiny", "target": arguments.target,
        "mode": "fully_shard", "policy": "by hand", "view": "global",
        "mesh": [{"name": "data", "size": arguments.ranks}], "ranks": arguments.ranks,
        "arena": {"state_bytes": plan.state_bytes, "transient_bytes": plan.end - plan.state_bytes, "bytes": plan.end,
                  "classes": classes},
        "programs": [{"name": "train_step", "plan": "train_step.plan.json", "trace_hash": trace_hash(plan.commands)}],
        "kernels": [],
        "kernel_table": [], "units": units, "state": state,
        "batch": [{"name": "x", "dtype": "i64", "shape": [batch, 2], **split, **place(io["x"]),
                   "local_shape": [rows, 2], "index_bound": VOCABULARY},
                  {"name": "t", "dtype": "f32", "shape": [batch, OUT], **split, **place(io["t"]),
                   "local_shape": [rows, OUT]}],
        "hyper": [{"name": "lr", "group": 0, "dtype": "f64", **place(io["lr"]), "value": 0.2}],
        "outputs": [{"kind": "loss", "path": "0", "dtype": "f32", "shape": [], "local_shape": [],
                     **place(io["loss"]), "state": "replicated"},
                    {"kind": "output", "path": "1", "dtype": "f32", "shape": [batch, OUT], **split,
                     "local_shape": [rows, OUT], **place(io["pred"]), "state": "sharded"}],
        "result_tree": "", "outside_arena": [{"name": "workspace of f32 GEMMs, per thread", "bytes": 2179072}],
        "zero_gradient": arguments.zero_gradient,
    }


class ValuesWriter:
    """The table of values, read off the plan: each byte is (value, position in it), or None for zero."""

    def __init__(self, manifest, plan):
        self.lines, self.sizes, self.numbers = [], [], {}
        self.memory = [[None] * buffer["bytes"] for buffer in plan.buffers]
        sizes = {"i64": 8, "f64": 8, "f32": 4}
        bound = [(e["kind"], {key: e[key] for key in ("unit", "state", "dtype")}, e, 4 * e["numel"])
                 for e in manifest["state"]]
        given = [("batch", {key: e[key] for key in ("name", "dtype")}, e,
                  math.prod(e["local_shape"]) * sizes[e["dtype"]]) for e in manifest["batch"]]
        given += [("hyper", {key: e[key] for key in ("name", "group", "dtype")}, e, 8) for e in manifest["hyper"]]
        results = [(e["kind"], {key: e[key] for key in ("path", "dtype")}, e,
                    4 * math.prod(e.get("local_shape", e["shape"]))) for e in manifest["outputs"]]
        for kind, name, entry, size in bound + given:
            line = {"source": kind, **name, "bytes": size}
            self.write(self.place(plan, entry, size), self.define(line, [size])[0])
        for command in plan.commands:
            self.run(command)
        for kind, name, entry, size in bound + results:
            value = self.number(self.read(self.place(plan, entry, size)))
            self.lines.append({"target": kind, **name, "of": value})

    @staticmethod
    def place(plan, entry, size):
        buffer = next(b for b in plan.buffers if b["offset"] <= entry["offset"] < b["offset"] + b["bytes"]
                      and (b["state"] or b["class"] == "io"))
        return {"buffer": buffer["id"], "offset": entry["offset"] - buffer["offset"], "bytes": size}

    def define(self, line, sizes):
        """The contents of the values that a new line defines."""
        self.lines.append(line)
        contents = []
        for size in sizes:
            contents.append([(len(self.sizes), at) for at in range(size)])
            self.sizes.append(size)
        return contents

    def read(self, ref):
        return self.memory[ref["buffer"]][ref["offset"]:ref["offset"] + ref["bytes"]]

    def write(self, ref, content):
        self.memory[ref["buffer"]][ref["offset"]:ref["offset"] + ref["bytes"]] = content

    def number(self, content):
        """The number of a value with this content: one that there is, a part of one, or a join of parts."""
        key = tuple(content)
        if key not in self.numbers:
            pieces = []  # [value, position in it, bytes, position in the content]
            for at, byte in enumerate(content):
                last = pieces[-1] if pieces else None
                if last and byte and last[0] == byte[0] and last[1] + last[2] == byte[1] and last[3] + last[2] == at:
                    last[2] += 1
                elif byte:
                    pieces.append([*byte, 1, at])
            if len(pieces) == 1 and pieces[0][2] == len(content):
                value, start, size, _ = pieces[0]
                if size != self.sizes[value]:
                    self.define({"part": value, "at": start, "bytes": size}, [size])
                    value = len(self.sizes) - 1
                self.numbers[key] = value
            else:
                parts = [self.number(content[at:at + size]) for _, _, size, at in pieces]
                self.define({"join": parts, "at": [piece[3] for piece in pieces], "bytes": len(content),
                             "segments": [], "unit": ""}, [len(content)])
                self.numbers[key] = len(self.sizes) - 1
        return self.numbers[key]

    def run(self, command):
        op = command["op"]
        if op == "wait":
            return
        if op in ("copy", "fill"):
            source = self.read(command["src"]) if op == "copy" else [None] * command["bytes"]
            return self.write(command["dst"], source)
        refs = command.get("args") or command.get("buffers") or [command[k] for k in ("send", "recv", "a", "b", "c")
                                                                 if k in command]
        if op == "kernel":
            constants = {"kernel": command["kernel"], "args": [ref["access"] for ref in refs]}
        else:
            keys = ("m", "n", "k", "lda", "ldb", "ldc", "batch", "stride_a", "stride_b", "stride_c", "trans_a", "trans_b",
                    "unit", "kind", "kinds", "dtype", "count", "counts")
            constants = {key: command[key] for key in keys if key in command}
        operands = [self.number(self.read(ref)) for ref in refs if "r" in ref["access"]]
        written = [ref for ref in refs if "w" in ref["access"]]
        sizes = [ref["bytes"] for ref in written]
        for ref, content in zip(written, self.define({"compute": op, **constants, "of": operands, "bytes": sizes}, sizes)):
            self.write(ref, content)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10, help="recorded steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", nargs="*", default=["x86-64-v3"])
    parser.add_argument("--cc", default="clang-22")
    parser.add_argument("--ptxas", default="ptxas", help="for target cuda")
    parser.add_argument("--target", default="host", help="host, emulate, cuda, or one of a backend's for CPUs")
    parser.add_argument("--unhashed", action="store_true", help="of files that a test is about to change")
    parser.add_argument("--zero-gradient", nargs="*", default=[])
    arguments = parser.parse_args()

    rows = -(-arguments.batch // arguments.ranks)
    units = make_units(arguments.ranks)
    is_gpu = arguments.target == "cuda"
    plan, at, io = make_plan(units, arguments.ranks, rows, is_gpu)
    os.makedirs(arguments.folder, exist_ok=True)

    def path(name):
        return os.path.join(arguments.folder, name)

    manifest = make_manifest(arguments, units, plan, at, io, rows)
    manifest["values"] = ValuesWriter(manifest, plan).lines
    with open(path("train_step.plan.json"), "w") as file:
        json.dump({"format": "spmd-plan", "version": 2, "streams": ["compute", "gather", "reduce", "scalar"],
                   "communicators": ["gather", "reduce", "scalar"], "buffers": plan.buffers,
                   "commands": plan.commands}, file, indent=1)
    source, table = kernel_source(units, arguments.batch, rows, is_gpu), kernel_table(plan)
    if is_gpu:
        manifest["kernels"], manifest["launches"] = gpu_kernels.make_files(arguments.folder, source, plan, table,
                                                                           arguments.cc, arguments.ptxas)
    else:
        manifest["kernels"] = [{"cpu": cpu, "file": f"kernels.{cpu}.so"} for cpu in arguments.cpu]
        source += "const char spmd_kernel_table[] = " + json.dumps(table) + ";\n"
    if arguments.target == "emulate":
        source += EMULATION
    for cpu in [] if is_gpu else arguments.cpu:
        subprocess.run([arguments.cc, f"-march={cpu}", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fPIC",
                        "-shared", "-ffreestanding", "-nostdlib", "-x", "c", "-", "-o", path(f"kernels.{cpu}.so")],
                       input=source.encode(), check=True)
    if not arguments.unhashed:
        for entry, name in [*((p, p["plan"]) for p in manifest["programs"]),
                            *((k, k["file"]) for k in manifest["kernels"])]:
            with open(path(name), "rb") as file:
                entry["hash"] = hash_bytes(file.read())
    with open(path("manifest.json"), "w") as file:
        json.dump(manifest, file, indent=1)

    parameters, batches, rates = make_data(arguments.batch, arguments.steps, arguments.seed)
    losses, final, momentum, prediction = train(parameters, batches, rates, arguments.batch)
    write_safetensors(path("weights.safetensors"),
                      {name: ("F32", PARAMETERS[name], values) for name, values in parameters.items()})
    reference = {"loss": ("F64", [arguments.steps], losses), "hyper/lr/0": ("F64", [arguments.steps], rates)}
    for step, (ids, target) in enumerate(batches):
        reference[f"batch/{step}/x"] = ("I64", [arguments.batch, 2], ids)
        reference[f"batch/{step}/t"] = ("F32", [arguments.batch, OUT], target)
    for name, values in final.items():
        reference[f"final/{name}"] = ("F32", PARAMETERS[name], values)
    for name, values in momentum.items():
        reference[f"final/optimizer/momentum_buffer/{name}"] = ("F32", PARAMETERS[name], values)
    reference["prediction"] = ("F32", [arguments.batch, OUT], prediction)
    write_safetensors(path("reference.safetensors"), reference,
                      {"format": "spmd-reference", "steps": str(arguments.steps)})


if __name__ == "__main__":
    main()
