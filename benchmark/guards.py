"""What observing Python costs: a capture with and without the observer, and the check of all guards before each call.

    .venv/bin/python benchmark/guards.py             # GPT-2 of transformers, 12 layers; 2,000 modules with a number each

Printed are processor times of this process: the median of several captures, and of a thousand checks.
"""
from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import warnings
from typing import Any, Callable

import torch
from torch import nn

import spmd
from spmd.capture.world.reads.observer import Observer


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def gpt2() -> tuple[nn.Module, torch.Tensor]:
    """12 narrow layers: the Python is that of the wide model."""
    import transformers
    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(n_layer=12, n_embd=48, n_head=4, vocab_size=100, n_positions=64, bos_token_id=0, eos_token_id=0)
    return transformers.GPT2LMHeadModel(config), torch.randint(0, 100, (2, 32))


def many_modules() -> tuple[nn.Module, torch.Tensor]:
    return nn.Sequential(nn.Linear(8, 8), *(Scaled() for _ in range(2_000))), torch.ones(2, 8)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    loss = model(input_ids=x, labels=x).loss if x.dtype is torch.int64 else model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def seconds(run: Callable[[], Any], times: int) -> float:
    """The median processor time of a run."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=int, default=3, help="how many captures of each kind (default 3)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for make in (gpt2, many_modules):
        torch.manual_seed(0)
        model, x = make()
        optimizer = torch.optim.AdamW(model.parameters())
        capture = lambda: spmd.capture(step, model, optimizer, x)  # noqa: E731
        reads = capture().reads
        observed = seconds(capture, options.captures)
        watched, Observer.watched = Observer.watched, lambda self: contextlib.nullcontext()
        alone = seconds(capture, options.captures)
        Observer.watched = watched
        assert reads.difference() is None
        check = seconds(reads.difference, 1_000)
        print(f"{make.__name__}: a capture takes {observed:.2f} s, {alone:.2f} s without the observer: {observed / alone:.2f} times; "
              f"{len(reads)} guards take {1e3 * check:.3f} ms")


if __name__ == "__main__":
    main()
