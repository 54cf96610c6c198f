"""Our compiled step beside PyTorch eager and torch.compile: same CPU, same threads, same batch, paired in one run.

    python benchmark/host_step.py                                       # every row of the README's table
    python benchmark/host_step.py --cases "nano 8x128" --rounds 7       # those whose name has "nano 8x128" in it
    python benchmark/host_step.py --dtype bf16                          # parameters in bf16; or autocast over f32 ones
    python benchmark/host_step.py --dtype masters                       # f32 masters, bf16 between; PyTorch's by autocast
    python benchmark/host_step.py --json steps.json                     # a list of {name, dtype, threads, ours_ms, ...}

PyTorch's contenders: eager and torch.compile of the model, each with the foreach and the fused optimizer, and
torch.compile of the whole step (model and optimizer). Each round times every contender once, one after the other, so
that a busy machine disturbs all alike; a ratio is taken within a round, against the fastest of PyTorch's in that round,
and the table shows the median ratio with the lowest and the highest. Losses must agree first. `floor` is matrix-product
FLOPs over the measured peak of a large GEMM on the same threads.
"""
from __future__ import annotations

import copy
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

from contenders import ROOT, compile_step, start


@dataclasses.dataclass
class Case:
    """`make` gives {train_step, model, args}; `bar` is how many times faster than the fastest of PyTorch's ours must
    be."""

    name: str
    make: Callable[[], dict[str, Any]]
    bar: float
    policy: str


def gpt2_case(config: str, batch: int, length: int, name: str, bar: float) -> Case:
    def make():
        import gpt2

        return gpt2.setup(config, "fused", batch, length, 1,
                          ROOT / "examples" / "gpt2-nano.txt" if config == "nano" else None)

    return Case(f"GPT-2 {name} {batch}x{length}", make, bar, "class:Block")


def transformers_case(name: str, bar: float, policy: str, build: Callable[[], tuple]) -> Case:
    """A model of `transformers` that gives its loss itself, trained on random tokens."""
    def make():
        import torch

        torch.manual_seed(0)
        model, batch, length = build()
        tokens = torch.randint(0, model.config.vocab_size, (batch, length))

        def train_step(model, optimizer, tokens):
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return {"train_step": train_step, "model": model, "args": (tokens,)}

    return Case(name, make, bar, policy)


def llama() -> tuple:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=4096, hidden_size=512, intermediate_size=1408, num_hidden_layers=6,
                         num_attention_heads=8, num_key_value_heads=8, max_position_embeddings=256, use_cache=False,
                         attn_implementation="sdpa")
    return LlamaForCausalLM(config), 4, 128


def bert() -> tuple:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="sdpa")
    return BertForMaskedLM(config), 4, 128


CASES = [gpt2_case("124m", 4, 128, "124M", 1.2), gpt2_case("nano", 8, 128, "nano", 1.45),
         gpt2_case("nano", 1, 32, "nano", 2.5),
         transformers_case("Llama 6x512", 1.25, "class:LlamaDecoderLayer", llama),
         transformers_case("BERT base", 1.25, "class:BertLayer", bert)]


def in_dtype(example: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The example with parameters in bf16, or with its model called under autocast."""
    import torch

    class Autocast:
        def __init__(self, model):
            self.model = model

        def __call__(self, *args, **options):
            with torch.autocast("cpu", torch.bfloat16):
                return self.model(*args, **options)

        def __getattr__(self, name):
            return getattr(self.model, name)

    step = example["train_step"]
    if dtype in ("autocast", "masters"):
        return example | {"train_step": lambda model, optimizer, *args: step(Autocast(model), optimizer, *args)}
    return example | {"model": example["model"].to(torch.bfloat16 if dtype == "bf16" else torch.float32)}


def adamw(model, optimizer: str):
    """AdamW with weight decay on matrices only."""
    import torch

    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), **{optimizer: True})


def pytorch(example, compiled: bool) -> dict[str, Callable]:
    """Functions that run one PyTorch step, by name. They train one copy of the model, each with an optimizer of its
    own: with a copy each, five of them would not fit small machines."""
    import torch

    model = copy.deepcopy(example["model"])
    optimizers = {"foreach": adamw(model, "foreach"), "fused": adamw(model, "fused")}
    if compiled:
        whole = adamw(model, "foreach")
        compiled_step = torch.compile(whole.step)
        whole.step = lambda: compiled_step()
        optimizers["step"] = whole
        model = torch.compile(model)

    def contender(optimizer):
        return lambda: example["train_step"](model, optimizer, *example["args"])

    def name(kind):
        return "eager " + kind if not compiled else "compile step" if kind == "step" else "compile model " + kind

    return {name(kind): contender(optimizer) for kind, optimizer in optimizers.items()}


def ours(case: Case, example, threads: int, folder: Path, precision: str | None) -> Callable:
    import numpy as np
    import spmd
    from spmd.arrays import to_torch

    artifact = folder / f"{case.name.replace(' ', '-')}.spmd"
    if not artifact.exists():
        model = copy.deepcopy(example["model"])
        compile_step(example["train_step"], model, adamw(model, "fused"), example["args"], artifact,
                     f"--policy={case.policy}", precision=precision)
    trainer = spmd.load(str(artifact), threads=threads)
    batch = [a.numpy() for a in example["args"]]

    def run():
        loss = trainer.run(batch)[0]
        return to_torch(loss, "bf16") if loss.dtype == np.uint16 else loss  # bf16 has no numpy type

    return run


def seconds(run: Callable, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


def gemm_peak(dtype) -> float:
    """FLOP/s of a large matrix product on torch's threads."""
    import torch

    a, b = torch.randn(1024, 1024).to(dtype), torch.randn(1024, 1024).to(dtype)
    return 2 * 1024**3 / min(seconds(lambda: a @ b, 3) for _ in range(5))


def product_flops(example) -> float:
    """FLOPs of matrix products and attention in forward and backward, counted by PyTorch; attention counts in full."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        model = copy.deepcopy(example["model"])
        example["train_step"](model, adamw(model, "foreach"), *example["args"])
    return counter.get_total_flops()


def run_case(case: Case, threads: int, options, folder: Path) -> dict[str, Any]:
    import torch

    torch.set_num_threads(threads)
    torch._dynamo.reset()
    is_masters = options.dtype == "masters"
    own = case.make()
    example = in_dtype(own, options.dtype)
    eager, compiled = pytorch(example, False), pytorch(example, True)
    compiled_step = ours(case, own, threads, folder, "param=bf16,reduce=f32") if is_masters else \
        ours(case, example, threads, folder, None)
    contenders = {"ours": compiled_step, **eager, **compiled}
    # Those that train the same copy come after its first step.
    firsts = ["eager foreach", "ours", "compile model foreach"]
    losses = {name: float(contenders[name]()) for name in firsts}
    tolerance = 1e-4 if options.dtype == "f32" else 2 * 2**-7  # as spmd-run --check has it
    for name, loss in losses.items():
        if not abs(loss - losses["eager foreach"]) <= tolerance * abs(losses["eager foreach"]):
            sys.exit(f"{case.name}: first loss of {name} is {loss}, of eager {losses['eager foreach']}")
    counts = {}
    for name, run in contenders.items():
        if name not in firsts:
            run()
        once = seconds(run, 1)
        if once < 1:  # short ones warm up a second time
            once = seconds(run, 1)
        counts[name] = max(1, min(1000, int(options.seconds / once)))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, run in contenders.items():
            times[name].append(seconds(run, counts[name]))
    middle = {name: statistics.median(values) for name, values in times.items()}
    fastest = [min(times[name][r] for name in contenders if name != "ours") for r in range(options.rounds)]
    ratios = sorted(f / o for f, o in zip(fastest, times["ours"]))
    floor = product_flops(example) / gemm_peak(torch.float32 if options.dtype == "f32" else torch.bfloat16)
    print(f"\n{case.name}, {threads} thread(s)")
    for name, value in middle.items():
        each = sorted(v / o for v, o in zip(times[name], times["ours"]))
        spread = "" if name == "ours" else f"{statistics.median(each):5.2f}x ({each[0]:.2f} - {each[-1]:.2f})"
        print(f"  {name:22s} {value * 1e3:10.2f} ms  {spread}", flush=True)
    print(f"  {'floor':22s} {floor * 1e3:10.2f} ms", flush=True)
    return {"name": case.name, "dtype": options.dtype, "threads": threads, "ours_ms": middle["ours"] * 1e3,
            "eager_ms": min(middle[name] for name in eager) * 1e3,
            "compile_ms": min(middle[name] for name in compiled) * 1e3, "floor_ms": floor * 1e3,
            "times_fastest": statistics.median(ratios), "times_fastest_range": [ratios[0], ratios[-1]], "bar": case.bar,
            "contenders_ms": {name: value * 1e3 for name, value in middle.items()}}


def main() -> None:
    options, chosen = start(__doc__, lambda: CASES, rounds=3, seconds=0.3, dtypes=["f32", "bf16", "autocast", "masters"])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            for threads in options.threads:
                rows.append(run_case(case, threads, options, Path(folder)))
                if options.json:  # what is there is kept when the rest is interrupted
                    options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\n{'step, ' + options.dtype:22s} thr   ours ms  eager ms  compile ms  floor ms   times the fastest (low - high)   bar")
    for row in rows:
        low, high = row["times_fastest_range"]
        print(f"{row['name']:22s} {row['threads']:3d} {row['ours_ms']:9.2f} {row['eager_ms']:9.2f} "
              f"{row['compile_ms']:11.2f} {row['floor_ms']:9.2f}   {row['times_fastest']:5.2f} ({low:.2f} - "
              f"{high:.2f})   {row['bar']:.2f} {'yes' if row['times_fastest'] >= row['bar'] else 'NO'}")


if __name__ == "__main__":
    main()
