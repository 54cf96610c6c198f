"""The user's frames of an operator, and who in PyTorch called it."""
from __future__ import annotations

import contextlib
import os
import sys
from typing import Iterator

import torch

from ..errors import Frame, is_user_file

_TORCH_ROOT = os.path.dirname(torch.__file__) + os.sep
_AUTOGRAD = os.path.join(_TORCH_ROOT, "autograd", "__init__.py")

_exported: list[tuple[Frame, ...]] = [()]


@contextlib.contextmanager
def at_lines(stack: tuple[Frame, ...]) -> Iterator[None]:
    """While entered, ops come from these lines, inside of the frames that run: those of code that was exported."""
    _exported.append(stack)
    try:
        yield
    finally:
        _exported.pop()


def user_stack() -> tuple[tuple[Frame, ...], str | None]:
    """The user's frames of this op, outermost first, down to the traced step; and who in PyTorch called it."""
    frame, frames, caller = sys._getframe(1), [], None
    while frame is not None:
        name = frame.f_code.co_filename
        if is_user_file(name):
            frames.append(Frame(name, frame.f_lineno, frame.f_code.co_name))
        elif name.startswith(_TORCH_ROOT) and not frames:
            if name.endswith("clip_grad.py") or frame.f_code.co_name == "zero_grad":
                caller = "optimizer"
            elif name == _AUTOGRAD:
                caller = "seed"
        elif frame.f_code.co_name == "traced_step":  # session.py: what called capture() is no part of the step
            break
        frame = frame.f_back
    return (*reversed(frames), *_exported[-1]), caller
