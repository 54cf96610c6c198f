"""Ctrl-C while the state moves between Python and the ranks."""
from __future__ import annotations

import contextlib
import signal
import threading
from typing import Iterator


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """While entered, Ctrl-C waits: it is KeyboardInterrupt, or what the user's own handler does, when this is left.

    Between the ranks' step and the note that it happened, or between taking a tensor back and reading its value, an
    exception would leave model and ranks with different values, and nobody would know. A step that hangs ends by its
    time-out.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # Python runs handlers in the main thread only
        return
    waiting: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *arguments: waiting.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            handler(*waiting[0])
