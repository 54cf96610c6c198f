"""Prints how far each model of the zoo comes, and writes docs/models.md. See scripts/coverage-models."""
from __future__ import annotations

import argparse
import concurrent.futures
import functools
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import sys
from pathlib import Path

import torch
import transformers

import pipeline
import zoo

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
#: Seconds for one case.
TIME_LIMIT = 600
HEAD = """# Models

Made by `scripts/coverage-models --write`; do not edit.

Each class of `transformers` {version} below was trained by an unmodified step (`loss = model(**batch).loss`, backward,
`clip_grad_norm_`, AdamW; and plain SGD without clipping) on a small random config, captured, and compiled for 2 ranks,
with its blocks as shard units. "Equal" compares the ranks' programs with the captured step in float64: loss, parameters
and optimizer state. "Trains" compares 3 steps of the compiled program with eager PyTorch. The counts are the collectives
of a step. Parameters whose gradient is zero but for rounding (biases of attention keys) are compared
[through their optimizer state](interpreter.md#what-it-checks-while-it-runs). What fails says in which stage, at which op
and line.

Mixtures of experts are as their configs come, with transformers' `grouped_mm`, which sorts tokens by expert; compiled
for ranks nothing is sorted, and each rank keeps its own tokens (`spmd-unsort-rows`; `test/Models/test_experts.py` trains
them in f32, some in bf16 and on the emulated GPU; `scripts/coverage-models --dtype=bfloat16 --target=emulate:sm_90` all of them). So are torchtitan's (`test/Python/test_grouped_products.py`).
Longformer is given no `attention_mask` here: which way its code goes depends on a mask's values, which `spmd.compile` looks
at in each call, and an artifact cannot. It, XLM, Flaubert and BigBird train with masks in `test/Models/test_asking_models.py`; FNet trains, too. Experts
that are gone through one by one train, too (`lazy_rows.py`): JetMoE's, which cuts rows up by counts, and those of LongcatFlash, DBRX,
OpenAI's privacy filter and `experts_implementation="eager"`, loops over masks; all rows are done at once, as grouped
products (`test/Python/test_rows_by_values.py`). Where scores are equal (ties), eager was asked to take the first of them, as a
compiled step does. PhiMoE draws its experts at random while it trains: it was compared in `eval()`.

{passed} of {total} pass, {failed} fail{missing}.

| class | |
| --- | --- |
"""
TAIL = """
## Trainers

Programs as their authors publish them, trained on two ranks beside eager with small data and sizes and without dropout:
the losses of the first steps differ by less than 1e-4 of themselves. Kept is none of them here; this is what changes.

| program | what changes |
| --- | --- |
| nanoGPT `train.py`, llama2.c `train.py` | the loop's body from `for micro_step` to `optimizer.zero_grad()` becomes a function with a decorator, which is given a list of the microbatches (the prefetch of the next one goes before its call) and returns `loss`; autocast, `GradScaler`, clipping and `raw_model.last_loss` stay |
| minGPT `Trainer.run` | from `logits, self.loss = model(x, y)` to `self.optimizer.step()` becomes a method with a decorator |
| PyTorch's examples: word language model (Transformer, LSTM, GRU, RNN, tied; with and without an optimizer), language translation, mnist, mnist_rnn, forward-forward, vae, dcgan, gat, super resolution, regression, fast neural style, time sequence prediction (with Adam; its closure may stay) | the loop's body becomes a function with a decorator that returns the losses; `.item()` and printing stay outside of it. The word language model's hidden state is an argument and a result, None for the Transformer |
| PyTorch's example gcn | the same, and features and adjacency are dense: `to_dense()` |
| torchtitan 0.2.2, Llama 3 and DeepSeek V3 | `Trainer.train_step` gets a decorator, and ends before `# log metrics` with `return loss, grad_norm`; `self.lr_schedulers.step()`, `lr = …` and what logs go behind its call in `train()`. `parallel_dims.build_mesh()` is called before the first step, which would make meshes in it. `OptimizersContainer`, `next(data_iterator)`, microbatches, autocast and the hook that balances experts stay. `indices_padding_wrapper`, a Triton kernel that pads groups for `torch._grouped_mm`, gives what it wraps; eager, to be compared with on a CPU, needs `torch.histc` of floats |
"""
PASS, FAIL = "equal, trains: ", "**fails** in "


def work(name: str, elsewhere: tuple, result: multiprocessing.connection.Connection) -> None:
    """In a process of its own, and a process group, which the time limit ends."""
    os.setsid()
    torch.set_num_threads(1)
    try:
        case = zoo.find(name)
        result.send((True, pipeline.check_elsewhere(case, *elsewhere) if elsewhere else pipeline.check(case)))
    except pipeline.StageError as error:
        result.send((False, f"{error.stage}: {error}"))
    except Exception as error:  # the model's own
        result.send((False, f"PyTorch itself: {type(error).__name__}: {error}".splitlines()[0]))


def check_one(name: str, elsewhere: tuple = ()) -> tuple[bool, str]:
    """Whether a case passes, and what its collectives are or which op stopped it."""
    # Forked: PyTorch and transformers are imported once.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(name, elsewhere, sender))
    process.start()
    sender.close()
    multiprocessing.connection.wait([receiver, process.sentinel], TIME_LIMIT)
    if receiver.poll():
        try:
            return receiver.recv()
        except EOFError:
            pass
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
        return False, f"took longer than {TIME_LIMIT} s"
    process.join()
    return False, f"the script itself ended with {process.exitcode}"


def written() -> dict[str, str]:
    """The rows of the document, by case."""
    if not DOCUMENT.exists():
        return {}
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE))


def write(rows: dict[str, str]) -> None:
    labels = [zoo.label(case) for case in zoo.CASES]
    known = {name: rows[name] for name in labels if name in rows}
    passed = sum(row.startswith(PASS) for row in known.values())
    missing = len(labels) - len(known)
    text = HEAD.format(version=transformers.__version__, passed=passed, total=len(labels), failed=len(known) - passed,
                       missing=f", {missing} have not been run" if missing else "")
    text += "".join(f"| `{name}` | {row} |\n" for name, row in known.items()) + TAIL
    DOCUMENT.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="coverage-models", description=__doc__)
    parser.add_argument("names", nargs="*", help="classes (default: all)")
    parser.add_argument("--write", action="store_true", help=f"write the rows of these classes in {DOCUMENT.name}")
    parser.add_argument("--target", help="trains for this target instead, beside eager, and writes no row")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="in this type")
    arguments = parser.parse_args()
    elsewhere = (arguments.target or "host", getattr(torch, arguments.dtype or "float32"))
    elsewhere = elsewhere if arguments.target or arguments.dtype else ()
    if elsewhere and arguments.write:
        parser.error("--write does not go with --target and --dtype")
    known = [zoo.label(case) for case in zoo.CASES]
    for name in arguments.names:
        if name not in known:
            parser.error(f"unknown class {name!r}; known are {', '.join(known)}")
    names = arguments.names or known
    rows, passed = written() if arguments.names else {}, 0
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        for name, (good, text) in zip(names, pool.map(functools.partial(check_one, elsewhere=elsewhere), names)):
            print(f"{'pass' if good else 'fail'}  {name}: {text}", flush=True)
            passed += good
            rows[name] = (PASS if good else FAIL) + text.replace("|", "\\|")
            if arguments.write:
                write(rows)
    print(f"{passed} of {len(names)} pass")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
