"""The sentences by which a random step may be refused, each with a step that is."""
from __future__ import annotations

import re

LISTED: dict[str, str] = {
}


def is_listed(text: str) -> bool:
    return any(re.search(pattern, text) for pattern in LISTED)
