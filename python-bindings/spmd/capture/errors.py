"""What a step that cannot be captured is answered with: the user's line, the op and the hint."""
from __future__ import annotations

import functools
import linecache
import os
import sys
from types import TracebackType
from typing import Iterable, NamedTuple

import torch

_TORCH_ROOT = os.path.dirname(torch.__file__) + os.sep
_SPMD_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Frame(NamedTuple):
    """One line of the user's Python: outermost frames come first in a stack."""

    file: str
    line: int
    function: str


class CaptureError(RuntimeError):
    """A training step that has no graph. The message says where, which op, and what to write instead."""


@functools.lru_cache(maxsize=None)
def is_user_file(path: str) -> bool:
    """True for code that is neither PyTorch's nor ours nor made up at run time. Code of a package that was imported through a relative
    entry of sys.path has a path that is not normalized."""
    return not path.startswith("<") and not os.path.abspath(path).startswith((_TORCH_ROOT, _SPMD_ROOT))


def where(stack: Iterable[Frame]) -> str:
    """The innermost frames of `stack`, as Python itself prints them."""
    lines = [
        f'  File "{f.file}", line {f.line}, in {f.function}\n    {linecache.getline(f.file, f.line).strip()}'
        for f in list(stack)[-4:]
    ]
    return "\n".join(lines) if lines else "  (no line of your own code is involved)"


def error_at(stack: Iterable[Frame], message: str, hint: str) -> CaptureError:
    """A CaptureError with its place and its hint."""
    return CaptureError(f"{message}\n{where(stack)}\n  hint: {hint}")


# What to write instead of an op that has as many results as the values say, by its name.
_SAME_SHAPE = ("keep the shape and let a mask choose: torch.where(mask, x, 0).sum() for a sum, and that divided by "
               "mask.sum() for a mean; F.cross_entropy(x, y.masked_fill(~mask, -100)) for a loss")
_SELECTIONS = {
    "nonzero": "use the mask that its argument is: torch.where(mask, x, 0), multiplication by it, mask.sum() to count",
    **dict.fromkeys(("_unique", "_unique2", "unique_dim", "unique_consecutive"),
                    "find them outside of the step and pass them in, or use a mask over all that can be: "
                    "one_hot(x, n).any(0)"),
    **dict.fromkeys(("split", "split_with_sizes"), "pass sizes that are Python numbers or come from the batch; for products "
                                                   "of groups of rows (experts) use torch._grouped_mm"),
    "repeat_interleave": "pass output_size, repeat by a number, or use a mask over the longest result",
    "bincount": "use one_hot(x, n).sum(0), which has an entry for every number, or use a mask",
}


def depends_on_values(stack: Iterable[Frame], op: str, module: str | None) -> CaptureError:
    """`op` ("aten.nonzero.default") gives a tensor of any number of elements, for which no plan can have a place."""
    name = op.split(".")[1] if op.startswith("aten.") else op
    place = f" in module '{module}'" if module else ""
    return error_at(stack, f"{op}{place} returns a tensor whose shape depends on data",
                    _SELECTIONS.get(name, _SAME_SHAPE))


def writes_constant(stack: Iterable[Frame], op: str) -> CaptureError:
    """A tensor that the step only reaches is a constant of its graph."""
    return error_at(stack, f"{op} writes into a tensor that is neither model, optimizer nor argument",
                    "register it as a buffer of the model (register_buffer)")


HINT_OF_F16_GRADIENTS = ("keep parameters and their gradients in f32 and compute in f16: torch.autocast, or "
                         "spmd.compile(precision=…) without grad=f16")

# (text found in the exception or its class name, what it means, what to write instead)
_HINTS = (
    ("DataDependent", "Python control flow or arithmetic depends on a tensor's value",
     "compute it with tensors (torch.where, masks), or move it out of the step and use the value the step returns"),
    ("data-dependent", "Python control flow or arithmetic depends on a tensor's value",
     "compute it with tensors (torch.where, masks), or move it out of the step and use the value the step returns"),
    ("PendingUnbackedSymbolNotFound", "a tensor's value becomes a shape or a Python number",
     "keep it a tensor, or move it out of the step"),
    ("in a captured step", "a step is traced on the CPU, whatever it is meant for, and this would do nothing there",
     "write torch.autocast(x.device.type, ...)"),
    ("has no form independent of ranks",
     "an op draws random numbers in an order of its own, which ranks could not share",
     "draw with rand, randn, bernoulli, randint or dropout, or draw outside the step and pass the tensor in"),
    (".numpy() is not supported", "a tensor is converted to numpy inside the step",
     "return the tensor from the step and convert what the call gives back"),
    ("__format__", "a tensor's value is formatted as text inside the step",
     "return the tensor from the step and print what the call gives back"),
    ("no fake impl", "a custom operator has neither a decomposition nor a shape function",
     "declare what it computes with spmd.register_decomposition(\"namespace::op\", function); what a dialect plugin of the "
     "compiler knows needs torch.library.register_fake"),
    ("fake impl", "an operator has no shape function that tracing can use",
     "register one with torch.library.register_fake(\"namespace::op\")"),
    ("NVIDIA driver", "the step moves a tensor to the GPU by name", "write x.to(y.device), or move it before the step"),
    ("not compiled with CUDA", "the step moves a tensor to the GPU by name",
     "write x.to(y.device), or move it before the step"),
    ("unscale FP16 gradients", "a GradScaler unscales gradients in f16", HINT_OF_F16_GRADIENTS),
    ("SparseTensorImpl", "the gradient of an embedding is a sparse tensor, which is not supported",
     "make nn.Embedding, nn.EmbeddingBag and F.embedding with sparse=False: SGD and Adagrad give the same numbers with dense "
     "gradients, and Adam is the optimizer in place of SparseAdam"),
    ("Cannot access data pointer", "code outside PyTorch reads a tensor's memory inside the step",
     "wrap it as a torch.library.custom_op with a register_fake"),
)


def users_frames() -> list[Frame]:
    """The innermost line of the user's that is running."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return [Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)]
        frame = frame.f_back
    return []


def user_frames(traceback: TracebackType | None) -> list[Frame]:
    """The user's lines that an exception came through, outermost first."""
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_user_file(code.co_filename):
            frames.append(Frame(code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return frames


# (an option that is true in a function that the exception came through, what it means, what to write instead)
_OPTIONS = (
    ("error_if_nonfinite", "error_if_nonfinite=True decides in Python, from a tensor's value, whether to go on",
     "omit error_if_nonfinite, return the norm from the step, and check it there"),
)


def _options(traceback: TracebackType | None) -> set[str]:
    """The names that are true in any function of PyTorch's."""
    names: set[str] = set()
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_TORCH_ROOT):
            names |= {name for name, value in traceback.tb_frame.f_locals.items() if value is True}
        traceback = traceback.tb_next
    return names


def explain(error: Exception, step_file: str, last_op: str | None, last_stack: Iterable[Frame]) -> CaptureError:
    """Turns whatever the tracer raised into a CaptureError.

    The exception's own traceback names the line; it begins in the caller of capture(), so frames before the step's
    file are left out. `last_op` is the op that was being traced, and `last_stack` its place, in case the exception
    came out of PyTorch's C++ engine without a user frame.
    """
    frames = user_frames(error.__traceback__)
    first = next((i for i, f in enumerate(frames) if f.file == step_file), 0)
    frames = frames[first:] or list(last_stack)
    text = f"{type(error).__name__}: {error}"
    meaning, hint = next(((m, c) for key, m, c in _HINTS if key in text),
                         ("PyTorch cannot trace this with fake tensors",
                          "keep the step to tensor operations; see the message above"))
    if "data-dependent" in text or "DataDependent" in text:
        options = _options(error.__traceback__)
        meaning, hint = next(((m, c) for option, m, c in _OPTIONS if option in options), (meaning, hint))
    op = f" (last operator: {last_op})" if last_op else ""
    detail = str(error).strip().split("\n\n")[0][:600]
    return error_at(frames, f"the step cannot be captured: {meaning}{op}\n  {type(error).__name__}: {detail}", hint)
