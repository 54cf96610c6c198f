"""python -m spmd.capture FILE.py:function -o NAME.step, or a model of torch.export with a loss and an optimizer

The function takes no arguments and returns a dict:
    train_step, model, optimizer    the step and what it trains (required)
    args, kwargs                    the other arguments of one call, in the step's order without model and optimizer
                                    (args: a tuple; kwargs: a dict; either may be absent)
    reference                       batches to record eager losses on (optional)
and any further option of spmd.capture (batch_dims, reference_state, reference_schedule, reference_ranks,
reference_movement, zero_gradient, scheduled_options, precision, name).
"""
from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any, Callable

import torch

from . import CaptureError, capture
from .model import exported_file

_REQUIRED = ("train_step", "model", "optimizer")
_OPTIONS = ("batch_dims", "reference", "reference_state", "reference_schedule", "reference_ranks", "reference_gradient_divide_factor",
            "reference_movement",
            "zero_gradient", "scheduled_options", "precision", "name")


def load_factory(target: str) -> Callable[[], dict[str, Any]]:
    """The function named FILE.py:function; the file runs as a module of its own name, its folder importable."""
    file, separator, function = target.rpartition(":")
    path = Path(file)
    if not separator or not path.is_file():
        raise CaptureError(f"{target!r} names no file; write FILE.py:function")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise CaptureError(f"{file} has no function {function!r}")
    return getattr(module, function)


def arrange(example: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The full call: model and optimizer put at the parameters of their names, or else first, before args."""
    parameters = list(inspect.signature(example["train_step"]).parameters)
    rest = list(example.get("args", ()))
    kwargs = dict(example.get("kwargs") or {})
    named = {n: example[n] for n in ("model", "optimizer") if n in parameters}
    if len(named) < 2:
        return [example["model"], example["optimizer"], *rest], kwargs
    args = []
    for name in parameters:
        if name in named:
            args.append(named.pop(name))
        elif rest and name not in kwargs:
            args.append(rest.pop(0))
        else:
            break  # what is left goes by name
    return [*args, *rest], {**named, **kwargs}


def _example(options: argparse.Namespace) -> Any:
    if options.target.endswith(".pt2"):
        return exported_file.example_of(options)
    given = [name for name in ("loss", "optimizer", "batch_size", "reference") if getattr(options, name) is not None]
    if given:
        raise CaptureError(f"--{given[0].replace('_', '-')} is for a file of torch.export, MODEL.pt2; the dict that "
                           f"{options.target} returns says it here")
    return load_factory(options.target)()


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 done, 2 bad input or a step that cannot be captured."""
    parser = argparse.ArgumentParser(prog="python -m spmd.capture", description=__doc__, epilog=exported_file.EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", metavar="FILE.py:function|MODEL.pt2")
    parser.add_argument("-o", "--output", required=True, metavar="NAME.step", help="the package to write")
    parser.add_argument("--batch-dim", action="append", default=[], metavar="NAME=DIM",
                        help="the dim of a batch input that counts samples; none for an input that all ranks share")
    parser.add_argument("--zero-gradient", action="append", default=[], metavar="NAME",
                        help="a parameter whose gradient is zero except for rounding; spmd-run --check compares its first "
                             "moment")
    parser.add_argument("--no-weights", action="store_true", help="write only graph and shapes, no weights")
    exported_file.add_options(parser)
    options = parser.parse_args(arguments)
    try:
        example = _example(options)
        if not isinstance(example, dict):
            raise CaptureError(f"{options.target} returns a {type(example).__name__}, not a dict; see --help")
        missing = [key for key in _REQUIRED if key not in example]
        unknown = [key for key in example if key not in (*_REQUIRED, *_OPTIONS, "args", "kwargs")]
        if missing or unknown:
            raise CaptureError(f"{options.target} returns a dict "
                               + (f"without {', '.join(missing)}" if missing else f"with unknown {', '.join(unknown)}"))
        args, kwargs = arrange(example)
        extra = {key: example[key] for key in _OPTIONS if example.get(key) is not None}
        extra.setdefault("name", Path(options.output).name.removesuffix(".step"))
        dims = dict(extra.pop("batch_dims", {}))
        for item in options.batch_dim:
            name, separator, dim = item.partition("=")
            if not separator or not (dim == "none" or dim.lstrip("-").isdigit()):
                raise CaptureError(f"--batch-dim={item}: write NAME=DIM, DIM a number or none")
            dims[name] = None if dim == "none" else int(dim)
        if options.zero_gradient:
            extra["zero_gradient"] = [*extra.get("zero_gradient", ()), *options.zero_gradient]
        package = capture(example["train_step"], *args, batch_dims=dims, **extra, **kwargs)
        try:
            package.save(options.output, weights=not options.no_weights)
        except (OSError, ValueError) as error:
            raise CaptureError(f"cannot write {options.output!r}: {error}") from None
    except CaptureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    nodes, parameters = len(package.step["nodes"]), package.step["parameters"]
    numbers = sum(torch.Size(p["shape"]).numel() for p in parameters)
    print(f"{options.output}: {nodes} nodes, {len(parameters)} parameters of {numbers:,} numbers, "
          f"{len(package.reference.get('loss', []))} reference steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
