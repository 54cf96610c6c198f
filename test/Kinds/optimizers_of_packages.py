"""All optimizer classes of five packages: each trains a small network, eagerly and compiled for two ranks.

    python test/Kinds/optimizers_of_packages.py --packages=FOLDER          # every fourth class
    python test/Kinds/optimizers_of_packages.py --packages=FOLDER --all    # all classes
    python test/Kinds/optimizers_of_packages.py --packages=FOLDER pytorch_optimizer.Lion

FOLDER has the packages (pip install --no-deps --target FOLDER pytorch_optimizer torch_optimizer pytorch_ranger schedulefree
prodigyopt timm torchvision). A package that is not there is left out. optimizers_of_packages.json has the counts of all classes, and
why a class does not train. Each class has one of these outcomes:

  trains   losses and parameters are eager's, in f64, to the entry of TOLERANCES for the narrowest type that eager computes with
  refused  the compiled step is an error, whose first line and place are kept
  wrong    the compiled step gives other numbers than eager, or ends in an error that nobody wrote for users
  eager    eager itself does not train with it (it needs a closure, a second backward, or random numbers)
"""
from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from harness import REFUSALS, compare

import spmd

PACKAGES = ("pytorch_optimizer", "torch_optimizer", "schedulefree", "prodigyopt", "timm.optim")
STEPS = 7
# Of the largest entry; of halves one rounding, by which a step of an iteration that amplifies them differs.
TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-5, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}
EVERY = 4  # classes, of which one is in the sample
OPTIONS: dict[str, dict[str, Any]] = {
    "num_iterations": {"num_iterations": 10}, "total_steps": {"total_steps": 10}, "num_training_steps": {"num_training_steps": 10},
    "num_batches_per_epoch": {"num_batches_per_epoch": 5}, "num_epochs": {"num_epochs": 2}}


def classes(package: str) -> Iterator[tuple[str, type]]:
    """The optimizers of a package by name; empty where it is not installed."""
    try:
        module = importlib.import_module(package)
    except ImportError:
        return
    for name in sorted(vars(module)):
        found = getattr(module, name)
        if isinstance(found, type) and issubclass(found, torch.optim.Optimizer) and found is not torch.optim.Optimizer \
                and not found.__module__.startswith("torch.optim.") and not inspect.isabstract(found):
            yield f"{package}.{name}", found


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(6, 5), torch.randint(3, (6,))) for _ in range(STEPS)]


def make(kind: type, model: torch.nn.Module) -> torch.optim.Optimizer:
    """An optimizer of the model with defaults; a required argument has a value from OPTIONS, or is an SGD."""
    given: dict[str, Any] = {}
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    first = parameters[0].name if parameters else "params"
    for one in parameters:
        if one.name in OPTIONS and one.default is inspect.Parameter.empty:
            given |= OPTIONS[one.name]
    if first in ("optimizer", "base_optimizer"):
        return kind(torch.optim.SGD(model.parameters(), lr=0.1), **given)
    if any(one.name == "base_optimizer" and one.default is one.empty for one in parameters):
        given["base_optimizer"] = torch.optim.SGD
    if first == "model":
        return kind(model, **given)
    if any(one.name == "lr" and one.default in (one.empty, None) for one in parameters) and "timm" not in kind.__module__:
        given["lr"] = 0.01
    return kind(model.parameters(), **given)


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def train(kind: type, step: Callable) -> list[torch.Tensor]:
    """Losses, then parameters."""
    model = network()
    optimizer = make(kind, model)
    if hasattr(optimizer, "train"):
        optimizer.train()
    torch.manual_seed(7)
    losses = [torch.as_tensor(step(model, optimizer, x, y).item()) for x, y in batches()]
    return [torch.stack(losses), *(p.detach().clone() for p in model.parameters())]


class Narrowest(TorchDispatchMode):
    """The entry of TOLERANCES for what is computed while entered."""

    tolerance = TOLERANCES[torch.float64]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(found):
            if isinstance(leaf, torch.Tensor):
                self.tolerance = max(self.tolerance, TOLERANCES.get(leaf.dtype, 0.0))
        return found


def outcome(kind: type, ranks: int = 2) -> tuple[str, str]:
    """The outcome of a class, and why."""
    try:
        with Narrowest() as narrowest:
            expected = train(kind, train_step)
        model = network()
        if not any((p - q).abs().max() > 0 for p, q in zip(expected[1:], model.parameters())):
            return "eager", "moves no parameter"
    except Exception as error:
        return "eager", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    try:
        found = train(kind, spmd.compile(train_step, ranks=ranks, threads=2))
    except REFUSALS as error:
        return "refused", reason(error)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {reason(error)} [{place_of(error)}]"
    compared = compare(expected, found, narrowest.tolerance)
    if compared.kind == "right":
        return "trains", ""
    again = train_other_seed(kind)
    if max((a - b).abs().max().item() for a, b in zip(again, expected)) > 0:
        return "eager", "draws random numbers"
    return "wrong", compared.text


def train_other_seed(kind: type) -> list[torch.Tensor]:
    """Of other random numbers."""
    number = [0]

    def seeded(*given):
        torch.manual_seed(100 + number[0])
        number[0] += 1
        return train_step(*given)
    return train(kind, seeded)


def reason(error: Exception) -> str:
    """Its first line, and the user's line, without folders."""
    lines = str(error).splitlines() or [""]
    places = [line.strip() for line in lines if line.strip().startswith("File ")]
    code = [lines[i + 1].strip() for i, line in enumerate(lines[:-1]) if line.strip().startswith("File ")]
    return lines[0] + (f" | {places[-1].split('/')[-1].replace(chr(34), '')} | {code[-1]}" if places else "")


def place_of(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--packages", default="")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.packages:
        sys.path.append(options.packages)
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    table: dict[str, list[str]] = {}
    everything = [found for package in PACKAGES for found in classes(package)]
    for number, (name, kind) in enumerate(everything):
        if name in options.names if options.names else options.all or number % EVERY == 0:
            table[name] = list(outcome(kind))
            print(name, *table[name], flush=True)
            if options.out:
                Path(options.out).write_text(json.dumps(table, indent=0))
    counts = {what: sum(found[0] == what for found in table.values()) for what in ("trains", "refused", "wrong", "eager")}
    print(counts)


if __name__ == "__main__":
    main()
