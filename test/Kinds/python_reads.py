"""Random Python around a training step, compiled against eager over 6 calls: does a number stay at an earlier value?

    python test/Kinds/python_reads.py --seeds 0-149                 # these programs
    python test/Kinds/python_reads.py --seeds 0-20 --kinds slot     # programs that have a piece of that name
    python test/Kinds/python_reads.py --each place                  # each place once, the rest as simple as it can be
    python test/Kinds/python_reads.py --spec '{"style": …}'         # one program, as a failure prints it

A program has one to three numbers. Its step reads a number that changes between calls, or writes it. A number is made of
pieces: the place where it lives, the way and the wrap by which it is read, its role in the step, its use, its encoding,
and the change between calls (programs/). Losses, parameters and what the step has written are compared with eager. A
program that fails is made as simple as it can be: the pieces that are left name its kind.
"""
from __future__ import annotations

import argparse
import collections
import json
from pathlib import Path
from typing import Any, Iterator

import torch
from programs import choose, run
from programs.source import IMPORTS, source


def _show(spec: choose.Spec) -> str:
    text, libraries = source(spec)
    texts = [f"# site-packages/lib_{k}.py\n{library}" for k, library in libraries.items()] + [text]
    return "\n".join(one.replace(IMPORTS, "") for one in texts)


def _seeds(text: str) -> Iterator[int]:
    """The numbers of "3,7,20-29"."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _report(kinds: dict[str, dict[str, list[int]]]) -> str:
    lines = []
    for kind, named in kinds.items():
        lines.append(f"{len(named)} kinds {kind}:")
        lines += [f"  {len(seeds)} {name}  {seeds}" for name, seeds in sorted(named.items(), key=lambda i: -len(i[1]))]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0-19", help="A-B, or several: 3,7,20-29")
    parser.add_argument("--kinds", default="", help="a part of the name of a piece that each program has")
    parser.add_argument("--each", default="", choices=choose.KINDS, help="instead of seeds: each of these pieces")
    parser.add_argument("--spec", default="", help="a program, as JSON")
    parser.add_argument("--show", action="store_true", help="print the source of each program that fails")
    parser.add_argument("--quick", action="store_true", help="do not look for the simplest program")
    parser.add_argument("--write", metavar="WHEN", help="keep counts and kinds in python_reads.json as those of WHEN")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.spec:
        spec = json.loads(options.spec)
        print(_show(spec), run.outcome(spec))
        return
    counts: collections.Counter[str] = collections.Counter()
    kinds: collections.defaultdict[str, dict[str, list[Any]]] = collections.defaultdict(dict)
    others: dict[int, str] = {}
    drawn = enumerate(choose.each(options.each)) if options.each else \
        ((seed, choose.draw(seed, options.kinds)) for seed in _seeds(options.seeds))
    for seed, spec in drawn:
        found = run.outcome(spec)
        counts[found.kind] += 1
        if found.kind == "right":
            continue
        others[seed] = f"{found.kind}: {found.text}"
        print(f"{seed}  {others[seed]}\n    {json.dumps(spec)}", flush=True)
        for small in run.shrink(spec, found.kind) if found.kind != "refused" and not options.quick else ():
            name = run.name_of_kind(small)
            kinds[found.kind].setdefault(name, []).append(seed)
            print(f"    {found.kind}: {name}\n    {run.outcome(small).text}\n    --spec '{json.dumps(small)}'",
                  flush=True)
            if options.show:
                print(_show(small), flush=True)
    print(dict(sorted(counts.items())), _report(kinds), sep="\n")
    if options.write:
        file = Path(__file__).resolve().parent / "python_reads.json"
        kept = json.loads(file.read_text()) if file.exists() else {}
        kept[options.write] = {"programs": f"each {options.each}" if options.each else f"seeds {options.seeds}",
                               "counts": dict(sorted(counts.items())), "kinds": kinds, "others": others}
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
