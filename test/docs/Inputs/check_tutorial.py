"""check_tutorial.py PAGE FOLDER: runs the tutorial in FOLDER and compares what it shows with what is printed.

A block of Python is saved under the name that the text before it gives (Save this as `NAME`). In a block of console,
lines after "$ COMMAND" must be printed by the command in this order; "..." stands for any lines. Numbers with a decimal
point are compared to 2 digits behind it, because the processor decides the last ones.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.S | re.M)


def comparable(line: str) -> str:
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.2f}", line.rstrip())


def missing(shown: list[str], printed: list[str]) -> str | None:
    """The first line of `shown` that does not follow the ones before it; without "..." between two lines they are
    neighbours."""
    at, gap = 0, False
    for line in shown:
        if line == "...":
            gap = True
            continue
        found = next((i for i in range(at, len(printed) if gap else at + 1) if printed[i:i + 1] == [line]), None)
        if found is None:
            return line
        at, gap = found + 1, False
    return None


def main(page: Path, folder: Path) -> int:
    text = page.read_text()
    count, problems = 0, []
    # The tutorial's `python` and `torchrun` are those of the interpreter that runs this.
    environment = {**os.environ, "SPMD": str(page.resolve().parent.parent),
                   "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    for block in BLOCK.finditer(text):
        kind, body = block.groups()
        if kind == "python":
            (folder / re.findall(r"Save this as `([^`]+)`", text[:block.start()])[-1]).write_text(body)
            continue
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            line = missing([*map(comparable, shown)], [*map(comparable, done.stdout.splitlines())])
            count += 1
            if line is not None:
                problems.append(f"{command}\n  does not print: {line}\n{done.stdout}")
    print(*problems, f"{count} commands, {len(problems)} differ", sep="\n")
    return bool(problems) or not count


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
