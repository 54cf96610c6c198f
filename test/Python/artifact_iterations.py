"""Artifacts with all iterations of a loop spelled out (`repeats` in plan.json and manifest.json): what the runtime makes of
the files, written down a second time."""
from __future__ import annotations

import copy
from typing import Any, Callable, Iterator

Entry = dict[str, Any]


def repeated(items: list[Entry], repeats: Entry | None, move: Callable[[Entry, int], Entry]) -> list[Entry]:
    """All items; `move` gives an item so many iterations later."""
    if repeats is None:
        return items
    begin, end, more = repeats["begin"], repeats["end"], repeats["more"]
    added = [move(item, by) for by in range(1, more + 1) for item in items[begin:end]]
    return items[:end] + added + [move(item, more) for item in items[end:]]


def references(command: Entry) -> Iterator[Entry]:
    for value in command.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and "buffer" in each:
                yield each


def unroll_commands(plan: Entry) -> list[Entry]:
    """The commands; a buffer has the number of those that were used before it, and lies anywhere."""
    repeats, commands = plan.get("repeats"), plan["commands"]
    next_of: dict[Any, Any] = {}  # a buffer of one iteration, and that of the next
    shared: set[Any] = set()
    first = 0
    if repeats is not None:
        begin, end = repeats["begin"], repeats["end"]
        first = begin - (end - begin)
        next_of = {a: b for numbers in repeats["fed"] for a, b in zip(numbers, numbers[1:])}
        fed = {number for numbers in repeats["fed"] for number in numbers}
        for before, command in zip(commands[first:begin], commands[begin:end], strict=True):
            for a, b in zip(references(before), references(command), strict=True):
                if a["buffer"] == b["buffer"]:
                    shared.add(a["buffer"])
                else:
                    assert a["buffer"] in fed or next_of.setdefault(a["buffer"], b["buffer"]) == b["buffer"]
                    next_of[a["buffer"]] = b["buffer"]
        own = (set(next_of) | set(next_of.values())) - fed

    def later(buffer: Any, by: int) -> Any:
        for _ in range(0 if buffer in shared else by):
            if buffer in next_of:
                buffer = next_of[buffer]
            elif buffer in own or isinstance(buffer, tuple):  # a new one, of the last that the file has
                buffer = (buffer[0], buffer[1] + 1) if isinstance(buffer, tuple) else (buffer, 1)
            else:
                assert buffer not in fed
        return buffer

    def move(command: Entry, by: int) -> Entry:
        command = copy.deepcopy(command)
        for ref in references(command):
            ref["buffer"] = later(ref["buffer"], by)
        if command.get("for", -1) >= first:
            command["for"] += by * (repeats["end"] - repeats["begin"])
        return command

    whole = copy.deepcopy(repeated(commands, repeats, move))
    numbers: dict[Any, int] = {}
    for command in whole:
        for ref in references(command):
            buffer = plan["buffers"][ref["buffer"][0] if isinstance(ref["buffer"], tuple) else ref["buffer"]]
            ref["of"] = {key: buffer[key] for key in ("name", "class", "bytes", "state")}
            ref["buffer"] = numbers.setdefault(ref["buffer"], len(numbers))
    return whole


def unroll_values(manifest: Entry) -> list[Entry]:
    """The lines of the table of values."""
    repeats, lines = manifest.get("repeats"), manifest["values"]
    if repeats is None:
        return lines
    begin, end = repeats["begin"], repeats["end"]
    count = lambda some: sum(0 if "target" in line else len(line["bytes"]) if "compute" in line else 1 for line in some)
    first, own = count(lines[:begin - (end - begin)]), count(lines[begin:end])
    place = {number: (numbers, at) for numbers in repeats["fed"] for at, number in enumerate(numbers)}
    operands = lambda line: line["of"] if "compute" in line else line["join"] if "join" in line else [line["part"]]
    shared = {a for before, line in zip(lines[begin - (end - begin):begin], lines[begin:end], strict=True)
              for a, b in zip(operands(before), operands(line), strict=True) if a == b}

    def later(number: int, by: int) -> int:
        if number >= first:
            return number + by * own
        if number in place and number not in shared:
            numbers, at = place[number]
            return numbers[at + by]
        return number

    def move(line: Entry, by: int) -> Entry:
        key = next(key for key in ("of", "join", "part") if key in line)
        old = line[key]
        return line | {key: [later(number, by) for number in old] if isinstance(old, list) else later(old, by)}

    return repeated(lines, repeats, move)
