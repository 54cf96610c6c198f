"""What exists only while a step is traced, beside PyTorch's fake tensors and symbols."""
from __future__ import annotations


class TracedValue:
    """The base of our own classes of such values: rows whose number depends on data (values/lazy_rows.py)."""
