"""What the runtime answers when it fails."""
from __future__ import annotations

from . import native


class RunError(RuntimeError):
    """What the runtime answered: `code` 2 is bad input, 3 a failure while running, 4 that two programs cannot
    share a state.

    `rank` and `command` (position in the plan) are -1 when no particular one failed; `location` is the command's module
    and user line. `flight`, of a step that failed: what each rank of this process was doing, in a line for each.
    """

    def __init__(self, status: native.Status, flight: str = ""):
        self.code, self.rank, self.command = status.code, status.rank, status.command
        self.location = status.location.decode(errors="replace")
        message = status.message.decode(errors="replace")
        super().__init__(f"{message} [{self.location}]" if self.location else message)
        self.flight = flight
        if flight and hasattr(self, "add_note"):  # Python 3.11
            self.add_note(flight)
