"""python -m spmd.capture model.pt2: a file of torch.export.save, a loss and an optimizer make a training step."""
from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import logging
import re
from pathlib import Path
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.export import ExportedProgram

from ...torch_api.tracing import pytree
from ..errors import CaptureError
from ..observe import patches
from .exported import ExportedModule, exported_module, fits, size_of

# A loss by its name: from (output, target), the target's name, and its dtype and shape from the output's.
_LOSSES: dict[str, tuple[Callable, str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "cross_entropy": (lambda out, labels: F.cross_entropy(out.flatten(0, -2), labels.flatten()), "labels",
                      lambda out: torch.zeros(out.shape[:-1], dtype=torch.int64)),
    "mse_loss": (F.mse_loss, "targets", lambda out: torch.zeros(out.shape, dtype=out.dtype)),
}

EPILOG = f"""
A file of torch.export.save, in place of FILE.py:function:
    python -m spmd.capture model.pt2 --loss=logits:cross_entropy --optimizer=AdamW,lr=1e-3 -o NAME.step
The file's inputs are the batch, in the sizes of the export, and what the loss adds: labels (i64, of the output's shape
without the last dim, not shifted) for cross_entropy, targets (of the output's shape) for mse_loss.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that belong to a .pt2 alone."""
    group = parser.add_argument_group("for a file of torch.export")
    group.add_argument("--loss", metavar="OUTPUT[:KIND]", help="the output that the loss is computed from, by its name or "
                       f"number, and {' or '.join(_LOSSES)}; without a kind the output is the loss")
    group.add_argument("--optimizer", metavar="CLASS,OPTION=VALUE,...", help="a class of torch.optim and its options")
    group.add_argument("--batch-size", type=int, metavar="N", help="the size of the first dim of the inputs, where the "
                       "export has left it open; default the export's")
    group.add_argument("--reference", metavar="FILE.safetensors", help="batches, as tensors batch/0/NAME, batch/1/NAME, "
                       "…: what eager makes of them is recorded")


def load_program(path: str) -> ExportedProgram:
    """Reads a file of torch.export.save; classes of its inputs and outputs are imported.

    Raises:
      CaptureError: for a file that PyTorch does not read.
    """
    if not Path(path).is_file():
        raise CaptureError(f"{path!r} is no file")
    tried: set[str] = set()
    while True:
        errors: list[BaseException] = []
        try:
            with _told(errors):
                return torch.export.load(path)
        except Exception as error:
            errors.append(error)
            cls = next((match[1] for e in errors if (match := _UNREGISTERED.search(str(e)))), None)
            if cls is None or cls in tried:
                raise CaptureError(_why_unread(path, errors[0], cls)) from error
            tried.add(cls)
            try:
                importlib.import_module(cls.rpartition(".")[0])
            except (ImportError, ValueError):
                raise CaptureError(_why_unread(path, errors[0], cls)) from error


_UNREGISTERED = re.compile(r"Deserializing ([\w.]+) in pytree is not registered")


@contextlib.contextmanager
def _told(errors: list[BaseException]) -> Iterator[None]:
    """While entered, errors that torch.export.load logs, and raises another one for, are collected in silence."""
    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                errors.append(record.exc_info[1])

    with patches.replaced({patches.EXPORT_LOG_HANDLERS: [Collect()], patches.EXPORT_LOG_PROPAGATE: False}):
        yield


def _why_unread(path: str, error: BaseException, cls: str | None) -> str:
    if cls is not None:
        return (f"{path!r} has inputs or outputs of the class {cls}, which is not registered with PyTorch's pytree here\n"
                f"  hint: install {cls.split('.')[0]}, or export a module that takes and gives tensors, tuples and dicts")
    detail = (str(error) or type(error).__name__).split("\n")[0][:300]
    return f"{path!r} is no exported program that PyTorch {torch.__version__} reads: {detail}\n" \
           "  hint: write it with torch.export.save of the same or an older release"


def example_of(options: argparse.Namespace) -> dict[str, Any]:
    """What a factory of FILE.py:function would return: the step, model, optimizer, batch and references."""
    for option in ("loss", "optimizer"):
        if getattr(options, option) is None:
            raise CaptureError(f"{options.target!r} is a model, and a step needs a loss and an optimizer: --{option} is "
                               "missing\n  hint: python -m spmd.capture model.pt2 --loss=logits:cross_entropy "
                               "--optimizer=AdamW,lr=1e-3 -o NAME.step")
    model = exported_module(load_program(options.target))
    if model.examples is None:
        raise CaptureError(f"{options.target!r} has no example inputs\n  hint: save the result of torch.export.export, which "
                           "includes them")
    values = _sized(model, options.batch_size)
    output, separator, kind = options.loss.partition(":")
    if separator and kind not in _LOSSES:
        raise CaptureError(f"--loss={options.loss}: the kind is {' or '.join(_LOSSES)}, not {kind!r}")
    step, batch = _make_step(model, values, output, kind)
    example = {"train_step": step, "model": model, "optimizer": _make_optimizer(options.optimizer, model), "kwargs": batch}
    if options.reference is not None:
        example["reference"] = [{"batch": entry} for entry in _read_batches(options.reference, list(batch))]
    return example


def _sized(model: ExportedModule, batch_size: int | None) -> list[Any]:
    """The example inputs, with another size of the dim that the export has left open."""
    if batch_size is None:
        return model.examples
    nodes = model.program.placeholders
    tensors = [(n, n.meta["val"]) for n in nodes if isinstance(n.meta.get("val"), torch.Tensor) and n.meta["val"].dim()]
    first = next((val.shape[0] for _, val in tensors if not isinstance(val.shape[0], int)), None)
    if first is None:
        raise CaptureError(f"--batch-size={batch_size}: the first dim of no input is open in the file\n  hint: export with "
                           "dynamic_shapes={\"NAME\": {0: torch.export.Dim.AUTO}}, or leave the option out")
    sizes: dict[Any, int] = {}
    if not fits(batch_size, first, sizes):
        allowed = first.node.shape_env.var_to_range.get(first.node.expr)
        raise CaptureError(f"--batch-size={batch_size}: the export allows {allowed.lower} to {allowed.upper}")
    made = []
    for node, value in zip(nodes, model.examples):
        if isinstance(value, torch.Tensor):
            shape = [size_of(wanted, sizes, own) for wanted, own in zip(node.meta["val"].shape, value.shape)]
            value = value if list(value.shape) == shape else value.new_zeros(shape)
        made.append(value)
    return made


def _make_step(model: ExportedModule, values: list[Any], output: str, kind: str) -> tuple[Callable, dict[str, Any]]:
    """The training step, and its batch: the file's tensors by name, and what the loss needs."""
    names = model.inputs
    batch = {name: value for name, value in zip(names, values) if isinstance(value, torch.Tensor)}

    def outputs(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        returned = model.call_flat([batch.get(name, value) for name, value in zip(names, values)])
        return _output(returned, output)

    if not kind:
        def loss_of(model, batch):
            loss = outputs(model, batch)
            if loss.dim():
                raise CaptureError(f"--loss={output}: this output has shape {list(loss.shape)}, and a loss has no dims\n"
                                   f"  hint: name how it is computed: --loss={output}:cross_entropy")
            return loss
    else:
        function, target, like = _LOSSES[kind]
        if target in batch:
            raise CaptureError(f"--loss={output}:{kind} adds the batch input {target!r}, which the file has already\n"
                               "  hint: name an output that is the loss, or export without that input")
        found = _like_output(model, output, batch)
        if not found.dim() and kind == "cross_entropy":
            raise CaptureError(f"--loss={output}:{kind}: this output has no dims\n  hint: --loss={output}, if it is the loss")
        batch = {**batch, target: like(found)}

        def loss_of(model, batch):
            return function(outputs(model, batch), batch[target])

    def train_step(model, optimizer, **batch):
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return train_step, batch


def _like_output(model: ExportedModule, output: str, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """A tensor of an output's shape and dtype, without memory: what the file says, for the sizes of the batch."""
    sizes: dict[Any, int] = {}
    for node in model.program.placeholders:
        for size, wanted in zip(batch[node.name].shape, node.meta["val"].shape) if node.name in batch else ():
            fits(size, wanted, sizes)
    nodes = next(n for n in model.program.graph.nodes if n.op == "output").args[0]
    found = _output(pytree.tree_unflatten(list(nodes), model.program.out_spec), output, torch.fx.Node).meta["val"]
    return torch.empty([size_of(wanted, sizes) for wanted in found.shape], dtype=found.dtype, device="meta")


def _output(returned: Any, wanted: str, kind: type = torch.Tensor) -> Any:
    """The output of a name, or of a number, which is a path in the pytree of outputs."""
    leaves, _ = pytree.tree_flatten_with_path(returned)
    found = {".".join(str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path) or "0": leaf
             for path, leaf in leaves if isinstance(leaf, kind)}
    if wanted not in found:
        raise CaptureError(f"--loss: the exported program has no output {wanted!r}; it has {', '.join(found) or 'none'}")
    return found[wanted]


def _make_optimizer(text: str, model: ExportedModule) -> torch.optim.Optimizer:
    """From "AdamW,lr=1e-3,betas=(0.9,0.95)"."""
    name, _, rest = text.partition(",")
    cls = getattr(torch.optim, name, None)
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer) and cls is not torch.optim.Optimizer):
        known = [n for n in dir(torch.optim) if isinstance(getattr(torch.optim, n), type) and n != "Optimizer"]
        raise CaptureError(f"--optimizer={text}: torch.optim has no {name!r}; it has {', '.join(known)}")
    try:
        call = ast.parse(f"f({rest})", mode="eval").body
        assert isinstance(call, ast.Call) and not call.args and all(k.arg for k in call.keywords)
        options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise CaptureError(f"--optimizer={text}: write CLASS,OPTION=VALUE,... with values of Python, as in "
                           "AdamW,lr=1e-3,betas=(0.9,0.95)") from None
    try:
        return cls([p for p in model.parameters() if p.requires_grad], **options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CaptureError(f"--optimizer={text}: {error}") from None


def _read_batches(path: str, names: list[str]) -> list[dict[str, torch.Tensor]]:
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CaptureError(f"--reference={path}: {error}") from None
    batches: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        if match := re.fullmatch(r"batch/(\d+)/(.+)", key):
            batches.setdefault(int(match[1]), {})[match[2]] = tensor
    if sorted(batches) != list(range(len(batches))) or not batches:
        raise CaptureError(f"--reference={path}: it has no batches 0, 1, … as tensors batch/0/NAME, batch/1/NAME, …")
    for number, entry in sorted(batches.items()):
        if set(entry) != set(names):
            raise CaptureError(f"--reference={path}: batch {number} has {', '.join(sorted(entry))}; the step takes "
                               f"{', '.join(names)}")
    return [{name: batches[number][name] for name in names} for number in sorted(batches)]
