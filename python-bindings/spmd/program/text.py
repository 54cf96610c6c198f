"""The generic form of MLIR as spmd-opt prints it: what is needed to take it apart and to put it together again.

Attributes and types stay text but for those that a pass asks for; what is in them is the compiler's to check.
"""
from __future__ import annotations

import json
import re
from typing import Any

_OPEN, _CLOSE = "([{<", ")]}>"


class Attribute(str):
    """An attribute in MLIR's words: Attribute("#spmd<reduce_kind sum>")."""


def end_of(text: str, at: int, stops: str) -> int:
    """Where the first of `stops` is that is in no string and in no bracket opened from `at` on; the end without one."""
    depth = 0
    while at < len(text):
        letter = text[at]
        if depth == 0 and letter in stops:
            return at
        if letter == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif text.startswith("->", at):
            at += 1
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return at


def split(text: str) -> list[str]:
    """What the commas of a list part."""
    parts, at = [], 0
    while at < len(text):
        end = end_of(text, at, ",")
        if part := text[at:end].strip():
            parts.append(part)
        at = end + 1
    return parts


def read_dictionary(text: str) -> dict[str, Any]:
    """Attributes by name, from what is between the braces."""
    found: dict[str, Any] = {}
    for entry in split(text):
        end = end_of(entry, 0, "=")
        name, value = entry[:end].strip(), entry[end + 1:].strip()
        found[json.loads(name) if name.startswith('"') else name] = read_attribute(value) if value else Attribute("unit")
    return found


def read_attribute(text: str) -> Any:
    """A number, a string, a truth value or a list of them as Python has it; else an Attribute."""
    if match := re.fullmatch(r"(-?\d+) : i64", text):
        return int(match[1])
    if match := re.fullmatch(r"(-?\d[\d.]*(?:e[+-]?\d+)?) : f64", text, re.IGNORECASE):
        return float(match[1])
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r'"(?:[^"\\]|\\["\\])*"', text):
        return json.loads(text)
    if match := re.fullmatch(r"array<i64(?:: (.*))?>", text):
        return [int(number) for number in split(match[1] or "")]
    if text.startswith("[") and text.endswith("]") and text != "[]":
        items = [read_attribute(item) for item in split(text[1:-1])]
        if all(isinstance(item, str) and not isinstance(item, Attribute) for item in items):
            return items
    return Attribute(text)


def write_attribute(value: Any) -> str:
    """Raises TypeError for what has no form in MLIR."""
    if isinstance(value, Attribute):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{value:.17e} : f64"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, str) for item in value):
            return f"[{', '.join(map(write_attribute, value))}]"
        if all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
        if all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value):
            return f"array<f64: {', '.join(f'{float(item):.17e}' for item in value)}>"
    raise TypeError(f"expected an attribute to be a number, a string, a list of one of these, or an Attribute; got {value!r}")


def write_dictionary(attributes: dict[str, Any]) -> str:
    entries = []
    for name, value in attributes.items():
        key = name if re.fullmatch(r"[A-Za-z_][\w.$]*", name) else json.dumps(name)
        entries.append(key if value == "unit" and isinstance(value, Attribute) else f"{key} = {write_attribute(value)}")
    return "{" + ", ".join(entries) + "}"
