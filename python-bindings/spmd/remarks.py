"""What spmd says without being asked: categories of Python warnings, so that users can silence or raise them."""
from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parent)


class Remark(UserWarning):
    """A compiled step did something that takes time: it was compiled again, or its state was copied."""


class CompilerWarning(UserWarning):
    """spmd-compile's own warning about a step: work that runs on every rank, an activation that is gathered."""


def remark(text: str, category: type[UserWarning] = Remark) -> None:
    """Warns at the line of the user's code that called into this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
