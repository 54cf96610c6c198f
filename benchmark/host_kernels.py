"""Our generated kernels beside PyTorch eager and torch.compile: same CPU, same threads, same tensors, paired in one
run.

    python benchmark/host_kernels.py                                  # every kernel, one and two threads
    python benchmark/host_kernels.py --cases GELU --threads 1         # those whose name has GELU in it
    python benchmark/host_kernels.py --json kernels.json              # a list of {name, threads, ours_ms, eager_ms, ...}

Each case is a small PyTorch program over buffers. Ours is that program captured with spmd.capture, compiled with
spmd-compile and run by the runtime; its time is that of the plan's commands. Eager and torch.compile call the same
program. Each round runs every contender once, one after the other, so that a busy machine disturbs all alike; a ratio
is taken within a round, and the table shows the median ratio with the lowest and highest. Results must agree first.
The floor is a copy that moves the same bytes (each operand once), or for attention the FLOPs at the speed of a large
GEMM.
"""
from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from contenders import compile_step, start

ROWS, WIDTH, HIDDEN, VOCAB = 512, 768, 3072, 50257


@dataclasses.dataclass
class Case:
    """`compute` takes the tensors of `inputs` and returns results; `bar` is what ours may take of torch.compile's
    time."""

    name: str
    inputs: Callable[[], dict[str, Any]]
    compute: Callable[..., tuple]
    bar: float | None = None
    flops: float = 0  # where products decide, not bytes
    overwrites: str = ""  # the input whose memory the last result takes, as it does in a training step
    optimizer: bool = False
    kernels: int = 0  # only so many count, the largest: the others copy between buffers, as no training step does
    products: Callable | None = None  # the part of `compute` that torch.compile takes, where it cannot take all
    bytes: int = 0  # that must move, where that is not every operand and result once


def cases() -> list[Case]:
    import torch
    import torch.nn.functional as F

    aten = torch.ops.aten

    def randn(*shape):
        return torch.randn(*shape)

    def norm_inputs(rows, bias):
        def make():
            inputs = {"x": randn(rows, WIDTH), "weight": randn(WIDTH)}
            return inputs | ({"bias": randn(WIDTH)} if bias else {})
        return make

    def norm_backward_inputs(rows, bias):
        def make():
            inputs = {"dy": randn(rows, WIDTH), **norm_inputs(rows, bias)()}
            if bias:
                _, inputs["mean"], inputs["rstd"] = aten.native_layer_norm(inputs["x"], [WIDTH], inputs["weight"],
                                                                           inputs["bias"], 1e-5)
            else:
                inputs["rstd"] = torch.rsqrt(inputs["x"].pow(2).mean(-1, keepdim=True) + 1e-5)
            return inputs
        return make

    def layer_norm(x, weight, bias):
        return aten.native_layer_norm(x, [WIDTH], weight, bias, 1e-5)

    def layer_norm_backward(dy, x, weight, bias, mean, rstd):
        return aten.native_layer_norm_backward(dy, x, [WIDTH], mean, rstd, weight, bias, [True, True, True])

    def rms_norm(x, weight):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return x * rstd * weight, rstd

    def rms_norm_backward(dy, x, weight, rstd):
        hat, scaled = x * rstd, dy * weight
        dx = (scaled - hat * (scaled * hat).mean(-1, keepdim=True)) * rstd
        return dx, (dy * hat).sum(0)

    def gelu_backward(x, bias, dy):
        dx = aten.gelu_backward(dy, x + bias, approximate="tanh")
        return dx, dx.sum(0)

    def cross_entropy(logits, target):
        logp = torch.log_softmax(logits, 1)
        loss, total = aten.nll_loss_forward(logp, target, None, 1, -100)
        grad = aten.nll_loss_backward(torch.ones(()), logp, target, None, 1, -100, total)
        return loss, aten._log_softmax_backward_data(grad, logp, 1, torch.float32)

    def causal(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def attention(q, k, v, dout, products=causal):
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        with torch.enable_grad():
            out = products(q, k, v)
        return (out.detach(), *torch.autograd.grad(out, (q, k, v), dout))

    def attention_case(batch, heads, length, depth):
        flops = 7 * batch * heads * length * (length + 1) * depth  # two products forward, five backward, half of each
        return Case(f"causal attention f+b B{batch} H{heads} T{length} d{depth}",
                    lambda: {n: randn(batch, heads, length, depth) for n in ("q", "k", "v", "dout")},
                    attention, 0.33, flops, kernels=2, products=causal)

    def head_permute(x):
        return (x.view(4, 128, 12, 64).permute(0, 2, 1, 3).contiguous(),)

    def gather(table, ids):
        return (F.embedding(ids, table),)

    def scatter(grad, ids):
        return (aten.embedding_dense_backward(grad, ids, VOCAB, -1, False),)

    ids = lambda bound, count: torch.randint(0, bound, (count,))  # noqa: E731
    result = [
        Case("GELU forward 512x3072", lambda: {"x": randn(ROWS, HIDDEN), "bias": randn(HIDDEN)},
             lambda x, bias: (F.gelu(x + bias, approximate="tanh"),), 0.22),
        Case("GELU backward 512x3072",
             lambda: {"x": randn(ROWS, HIDDEN), "bias": randn(HIDDEN), "dy": randn(ROWS, HIDDEN)},
             gelu_backward, 0.22)]
    for rows, bar in ((512, 0.5), (16384, 0.75)):
        result += [Case(f"layer norm forward {rows}x768", norm_inputs(rows, True), layer_norm, bar),
                   Case(f"layer norm backward {rows}x768", norm_backward_inputs(rows, True), layer_norm_backward, bar),
                   Case(f"RMS norm forward {rows}x768", norm_inputs(rows, False), rms_norm, bar),
                   Case(f"RMS norm backward {rows}x768", norm_backward_inputs(rows, False), rms_norm_backward, bar)]
    result += [
        Case("softmax + cross-entropy 512x50257", lambda: {"logits": randn(ROWS, VOCAB), "target": ids(VOCAB, ROWS)},
             cross_entropy, 0.25, overwrites="logits"),
        attention_case(4, 12, 128, 64), attention_case(1, 12, 1024, 64),
        Case("transpose 512x3072", lambda: {"x": randn(ROWS, HIDDEN)}, lambda x: (x.t().contiguous(),), 0.8),
        Case("head permute 4x128x12x64", lambda: {"x": randn(4, 128, 768)}, head_permute, 0.8),
        Case("bias gradient 16384x768", lambda: {"dy": randn(16384, WIDTH)}, lambda dy: (dy.sum(0),)),
        Case("concatenation 2 x 512x1536", lambda: {"a": randn(ROWS, HIDDEN // 2), "b": randn(ROWS, HIDDEN // 2)},
             lambda a, b: (torch.cat([a, b], 1),)),
        Case("sort 512x1024", lambda: {"x": randn(ROWS, 1024)}, lambda x: torch.sort(x, stable=True)),
        Case("embedding gather 512x768", lambda: {"table": randn(VOCAB, WIDTH), "ids": ids(VOCAB, ROWS)}, gather,
             bytes=ROWS * (8 * WIDTH + 8)),
        Case("embedding scatter-add 512x768", lambda: {"grad": randn(ROWS, WIDTH), "ids": ids(VOCAB, ROWS)}, scatter),
        Case("AdamW 10M", lambda: {"p": randn(10_000_000), "g": randn(10_000_000)}, None, None, optimizer=True,
             bytes=7 * 40_000_000, kernels=1),
    ]
    return result


class Program:
    """A case as a model with buffers, which spmd.capture takes: results are written to buffers of their own."""

    def __init__(self, case: Case, tensors: dict[str, Any]):
        import torch

        self.model = torch.nn.Module()
        for name, tensor in tensors.items():
            self.model.register_buffer(name, tensor.clone())
        if case.optimizer:
            del self.model.p
            self.model.p = torch.nn.Parameter(tensors["p"].clone())
            self.optimizer = torch.optim.AdamW([self.model.p], lr=1e-3, weight_decay=0.1, foreach=True)
            self.results = []
            self.step = adamw_step
            return
        self.model.unused = torch.nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([self.model.unused], lr=0.1)
        outputs = [torch.zeros_like(t) for t in case.compute(**tensors)]
        self.results = [f"result{i}" for i in range(len(outputs))]
        if case.overwrites:
            self.results[-1] = case.overwrites
        for name, output in zip(self.results, outputs):
            if name not in tensors:
                self.model.register_buffer(name, output)

        def step(model, optimizer):
            with torch.no_grad():
                values = case.compute(**{name: getattr(model, name) for name in tensors})
                for name, value in zip(self.results, values):
                    getattr(model, name).copy_(value)

        self.step = step


def adamw_step(model, optimizer):
    model.p.grad = model.g
    optimizer.step()


class Ours:
    def __init__(self, case: Case, tensors: dict[str, Any], folder: Path, threads: int):
        import spmd

        self.program, self.kernels = Program(case, tensors), case.kernels
        artifact = folder / f"{case.name.replace(' ', '-').replace('/', '-')}.spmd"
        if not artifact.exists():
            compile_step(self.program.step, self.program.model, self.program.optimizer, (), artifact)
        self.trainer = spmd.load(str(artifact), threads=threads, profile=True)

    def results(self):
        import torch

        self.trainer.run([])
        return [torch.from_numpy(self.trainer.read("buffer", name)) for name in self.program.results]

    def seconds(self, budget: float) -> float:
        """The median time of a step's commands over about `budget` seconds."""
        times, end = [], time.perf_counter() + budget
        while len(times) < 3 or time.perf_counter() < end:
            for _ in range(3):
                self.trainer.run([])
            commands = [command for command in self.trainer.commands() if command.op != "wait"]
            if self.kernels:
                commands = sorted(commands, key=lambda command: command.bytes)[-self.kernels:]
            times.append(sum(command.seconds for command in commands))
        return statistics.median(times)


class Torch:
    def __init__(self, case: Case, tensors: dict[str, Any], compiled: bool):
        import torch

        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        if case.optimizer:
            model = Program(case, tensors).model
            options = {"foreach": True} if compiled else {"fused": True}
            optimizer = torch.optim.AdamW([model.p], lr=1e-3, weight_decay=0.1, **options)
            model.p.grad = model.g
            step = torch.compile(optimizer.step) if compiled else optimizer.step
            self.call = lambda: step() or ()
        elif compiled and case.products:
            self.call = lambda inner=torch.compile(case.products): case.compute(**tensors, products=inner)
        else:
            self.call = lambda inner=torch.compile(case.compute) if compiled else case.compute: inner(**tensors)

    def results(self):
        import torch

        with torch.no_grad():
            return list(self.call())

    def seconds(self, budget: float) -> float:
        import torch

        times, end = [], time.perf_counter() + budget
        with torch.no_grad():
            while len(times) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                self.call()
                times.append(time.perf_counter() - start)
        return statistics.median(times)


def check(case: Case, expected: list, found: list, who: str) -> None:
    for i, (a, b) in enumerate(zip(expected, found)):
        error = float((a - b).abs().max() / a.abs().max())
        if not error <= 2e-5:
            sys.exit(f"{case.name}: result {i} of {who} differs from eager's by {error:.1e} of its largest value")


def copy_seconds(bytes_moved: int) -> float:
    """A copy that reads and writes this many bytes together, on torch's threads."""
    import torch

    source = torch.ones(max(1, bytes_moved // 8))
    target = torch.empty_like(source)
    times = []
    for _ in range(max(5, min(200, int(2e9 / bytes_moved)))):
        start = time.perf_counter()
        target.copy_(source)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def gemm_seconds(flops: float) -> float:
    import torch

    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    times = []
    for _ in range(8):
        start = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - start)
    return flops / (2 * 1024**3 / min(times))


def run_case(case: Case, threads: int, options, folder: Path) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    torch._dynamo.reset()
    tensors = case.inputs()
    contenders = {"eager": Torch(case, tensors, False), "compile": Torch(case, tensors, True),
                  "ours": Ours(case, tensors, folder, threads)}
    results = {name: contender.results() for name, contender in contenders.items()}
    for name in ("compile", "ours"):
        check(case, results["eager"], results[name], name)
    bytes_moved = sum(t.numel() * t.element_size() for t in [*tensors.values(), *results["eager"]])
    bytes_moved = case.bytes or bytes_moved
    times: dict[str, list[float]] = {name: [] for name in [*contenders, "floor"]}
    for contender in contenders.values():
        contender.seconds(0.05)
    for _ in range(options.rounds):
        for name, contender in contenders.items():
            times[name].append(contender.seconds(options.seconds))
        times["floor"].append(gemm_seconds(case.flops) if case.flops else copy_seconds(bytes_moved))
    contenders["ours"].trainer.close()
    ratios = {name: sorted(o / t for o, t in zip(times["ours"], times[name])) for name in ("compile", "eager", "floor")}
    row = {"name": case.name, "threads": threads}
    for name in ("ours", "eager", "compile", "floor"):
        row[f"{name}_ms"] = statistics.median(times[name]) * 1e3
    row |= {"of_compile": statistics.median(ratios["compile"]),
            "of_compile_range": [ratios["compile"][0], ratios["compile"][-1]],
            "of_floor": statistics.median(ratios["floor"]), "bar": case.bar, "bytes": bytes_moved}
    return row


def format_row(row: dict[str, Any]) -> str:
    low, high = row["of_compile_range"]
    met = "" if row["bar"] is None else f"{row['bar']:.2f} {'yes' if row['of_compile'] <= row['bar'] else 'NO'}"
    return (f"{row['name']:40s} {row['threads']:2d} {row['ours_ms']:9.3f} {row['eager_ms']:9.3f} "
            f"{row['compile_ms']:9.3f} {row['floor_ms']:9.3f}   {row['of_compile']:4.2f} ({low:.2f} - {high:.2f})  "
            f"{met:8s} {row['of_floor']:5.2f}")


def main() -> None:
    options, chosen = start(__doc__, cases, rounds=5, seconds=0.15)
    print(f"{'kernel, f32':40s} {'thr':2s} {'ours ms':>8s} {'eager':>9s} {'compile':>9s} {'floor':>9s}   ours/compile"
          f" (low - high)  bar      ours/floor")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            for case in chosen:
                rows.append(run_case(case, threads, options, Path(folder)))
                print(format_row(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
