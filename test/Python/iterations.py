"""Packages with all iterations of a loop spelled out, and packages that have them once (`repeats` in step.json)."""
from __future__ import annotations

import copy
import json
from typing import Any, Callable, Iterator

from spmd.capture.loops.iterations import Traced

Step = dict[str, Any]


def trace_each(monkeypatch: Any) -> None:
    """From now on a capture traces each iteration."""
    monkeypatch.setattr(Traced, "looks_like", lambda self, last: False)


def unroll(step: Step) -> Step:
    """The step with all iterations spelled out."""
    if not step.get("repeats"):
        return step
    unrolled = {key: value for key, value in step.items() if key != "repeats"} | {"nodes": []}
    names: dict[int, int] = {}  # of the rolled step's numbers, in the unrolled one
    count = 0

    def define(number: int) -> int:
        nonlocal count
        names[number] = count
        count += 1
        return names[number]

    unrolled["inputs"] = [entry | {"id": define(entry["id"])} for entry in step["inputs"]]

    def run(nodes: list[Step], streams: int = 0) -> None:
        for node in nodes:
            node = renamed(node, names.__getitem__)
            node["args"] = [[name, {"int": value["int"] + streams} if name == "stream" else value] for name, value in node["args"]]
            for result in filter(None, node["results"]):
                result["id"] = define(result["id"])
            unrolled["nodes"].append(node)

    at = 0
    for repeat in step["repeats"]:
        run(step["nodes"][at:repeat["begin"]])
        at = repeat["end"]
        bound = [entry["value"] for entry in (*repeat["fed"], *repeat["carried"])]
        outside = {number: names[number] for number in bound}
        fed = [(entry["value"], [names[number] for number in entry["of"]]) for entry in repeat["fed"]]
        next_values: dict[int, int] = {}
        for iteration in range(repeat["count"]):
            names.update({value: of[iteration] for value, of in fed} | next_values)
            run(step["nodes"][repeat["begin"]:at], iteration * repeat.get("streams", 0))
            next_values = {entry["value"]: names[entry["next"]] for entry in repeat["carried"]}
            names.update({entry["of"][iteration]: names[entry["value"]] for entry in repeat.get("each", [])})
        names.update(outside)
    run(step["nodes"][at:])
    unrolled["outputs"] = [entry | {"value": names[entry["value"]]} for entry in step["outputs"]]
    return unrolled


def roll(step: Step, first: int = 0) -> Step | None:
    """The step with one range of nodes, not before the node `first`, once for all its iterations: the one that makes it
    shortest; None when no nodes repeat."""
    assert not step.get("repeats")
    kinds: dict[str, int] = {}
    nodes = [kinds.setdefault(_kind(node), len(kinds)) for node in step["nodes"]]
    runs = []
    for period in range(1, len(nodes) // 2 + 1):
        begin = None
        for i in range(first, len(nodes) - period + 1):
            if i + period < len(nodes) and nodes[i] == nodes[i + period]:
                begin = i if begin is None else begin
            elif begin is not None:
                runs.append((begin, i + period, period))
                begin = None
    candidates = [(count * period - period, start, period, count) for begin, end, period in runs
                  for start in range(begin, end - 2 * period + 1) for count in range(2, (end - start) // period + 1)]
    for _, begin, period, count in sorted(candidates, key=lambda one: (-one[0], one[2], one[1])):
        if rolled := roll_at(step, begin, period, count):
            return rolled
    return None


def roll_at(step: Step, begin: int, period: int, count: int) -> Step | None:
    """The step with the nodes of `count` iterations from `begin` on, `period` nodes each, once; None when they are not
    iterations of one loop."""
    end = begin + period * count
    iterations = [step["nodes"][begin + k * period:begin + (k + 1) * period] for k in range(count)]
    if any(_kind(a) != _kind(b) for one in iterations for a, b in zip(iterations[0], one)):
        return None
    made = {result["id"]: (k, j, r) for k, nodes in enumerate(iterations) for j, node in enumerate(nodes)
            for r, result in enumerate(node["results"]) if result}
    roles: dict[int, tuple] = {}
    last = iterations[-1]
    for operands in zip(*([list(_numbers(node)) for node in nodes] for nodes in iterations)):
        for numbers in zip(*operands):
            places = [made.get(number) for number in numbers]
            if places[0] is not None:
                if places != [(k, *places[0][1:]) for k in range(count)]:
                    return None
                continue
            if len(set(numbers)) == 1:
                role = ("same",)
            elif not any(places):
                role = ("fed", numbers)
            elif all(places[1:]) and places[1:] == [(k, *places[1][1:]) for k in range(count - 1)]:
                _, j, r = places[1]
                role = ("carried", last[j]["results"][r]["id"])
            else:
                return None
            if roles.setdefault(numbers[0], role) != role:
                return None
    # The numbers of the last iteration are those of the range.
    firsts = {number: first for one, other in zip(iterations[0], last)
              for first, number in zip(_numbers(one), _numbers(other)) if first not in made}
    body = [renamed(node, lambda number: firsts.get(number, number)) for node in last]
    free = 1 + max(entry["id"] for entries in (step["inputs"], *(node["results"] for node in step["nodes"]))
                   for entry in entries if entry)
    behind = [*(number for node in step["nodes"][end:] for number in _numbers(node)),
              *(output["value"] for output in step["outputs"])]
    each: dict[tuple[int, int], list[int]] = {}
    for number in behind:
        if number in made and made[number][0] < count - 1:
            _, j, r = made[number]
            if (j, r) not in each:
                each[j, r] = [iterations[k][j]["results"][r]["id"] for k in range(count - 1)] + [free]
                free += 1
    rolled = copy.deepcopy(step)
    rolled["version"] = 9
    rolled["nodes"] = step["nodes"][:begin] + body + step["nodes"][end:]
    rolled["repeats"] = [{
        "begin": begin, "end": begin + period, "count": count,
        "fed": [{"value": value, "of": list(role[1])} for value, role in roles.items() if role[0] == "fed"],
        "carried": [{"value": value, "next": role[1]} for value, role in roles.items() if role[0] == "carried"]}]
    if each:
        rolled["repeats"][0]["each"] = [{"value": last[j]["results"][r]["id"], "of": of} for (j, r), of in each.items()]
    return None if _writes_what_is_bound(rolled) else rolled


def _writes_what_is_bound(step: Step) -> bool:
    roots = {entry["id"]: entry["id"] for entry in step["inputs"]}
    places = {}
    for i, node in enumerate(step["nodes"]):
        for entry in (entry for repeat in step["repeats"] if repeat["end"] == i for entry in repeat.get("each", [])):
            roots |= {number: roots[entry["value"]] for number in entry["of"]}
        given = dict(node["args"])
        for result in filter(None, node["results"]):
            roots[result["id"]] = roots[given[node["view_of"]]["value"]] if "view_of" in node else result["id"]
            places[result["id"]] = i
    for repeat in step["repeats"]:
        bound = {roots.get(number, number) for entry in repeat["fed"] for number in entry["of"]}
        for entry in repeat["carried"]:
            first, later = roots[entry["value"]], roots[entry["next"]]
            if first != later:
                bound |= {first, *([later] if places.get(later, -1) < repeat["begin"] else [])}
        for node in step["nodes"][repeat["begin"]:repeat["end"]]:
            written = [argument for name, argument in node["args"] if name in node.get("mutates", [])]
            if any(number is not None and roots[number] in bound for argument in written
                   for number in argument.get("values", [argument.get("value")])):
                return True
    return False


def _kind(node: Step) -> str:
    """What nodes of two iterations have alike: all but the numbers."""
    node = renamed(node, lambda number: 0)
    for result in filter(None, node["results"]):
        result["id"] = 0
    return json.dumps(node)


def _numbers(node: Step) -> Iterator[int]:
    for _, argument in node["args"]:
        yield from (number for number in argument.get("values", [argument.get("value")]) if number is not None)


def renamed(node: Step, name: Callable[[int], int]) -> Step:
    """A copy with other numbers for the operands."""
    node = copy.deepcopy(node)
    for pair in node["args"]:
        if "value" in pair[1]:
            pair[1]["value"] = name(pair[1]["value"])
        elif "values" in pair[1]:
            pair[1]["values"] = [None if number is None else name(number) for number in pair[1]["values"]]
    return node
