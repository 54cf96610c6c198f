"""Runs of the user's code whose writes nobody shall see, such as an optimizer's step() that only shows which state it creates."""
from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator

from .observer import Observer
from .records import Records
from .writes import take_writes


@contextlib.contextmanager
def undone(roots: Iterable[Any]) -> Iterator[None]:
    """When this is left, numbers, texts and flags in objects that the roots lead to are what they were. The roots' own attributes
    stay as they are."""
    records, roots = Records(lambda value: False), list(roots)
    for root in roots:
        records.register(root, type(root).__name__)
    try:
        with Observer(records).watched():
            yield
    finally:
        take_writes(records, left_alone=roots)
