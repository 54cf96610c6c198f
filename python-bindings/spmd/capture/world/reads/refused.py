"""What the Python of a step does that no call of a compiled step repeats."""
from __future__ import annotations

from ...errors import Frame, error_at
from .guards import line_of
from .records import Records


def refuse_changes(records: Records) -> None:
    """Raises for values that the step takes of an iterator, and for entries of containers that it changes."""
    for _, label, (code, offset) in records.taken[:1]:
        raise error_at([Frame(code.co_filename, line_of(code, offset), code.co_name)],
                       f"the step takes values from the iterator '{label}': Python code runs only once, during the capture",
                       "take them outside of the step, and pass tensors in")
    for label, (code, offset) in records.changed_containers():
        raise error_at([Frame(code.co_filename, line_of(code, offset), code.co_name)],
                       f"the step changes the entries of '{label}': Python code runs only once, during the capture",
                       "change them outside of the step, or keep numbers in attributes")
