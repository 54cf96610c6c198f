"""Prints how far each model of the zoo comes, and writes docs/models.md. See scripts/coverage-models."""
from __future__ import annotations

import argparse
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

import pipeline
import zoo

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
HEAD = """# Models

Made by `scripts/coverage-models --write`; do not edit.

Each class of `transformers` {version} below was trained by an unmodified step (`loss = model(**batch).loss`, backward,
`clip_grad_norm_`, AdamW; and plain SGD without clipping) on a small random config, captured, and compiled for 2 ranks,
with its blocks as shard units. "Equal" compares the ranks' programs with the captured step in float64: loss, parameters
and optimizer state. "Trains" compares 3 steps of the compiled program with eager PyTorch.

{passed} of {total} pass.

| class | |
| --- | --- |
"""


def check_one(name: str) -> tuple[str, str]:
    """In a process of its own: the result of one case, and what its collectives are or which op stopped it."""
    done = subprocess.run([sys.executable, __file__, "--one", name], text=True, capture_output=True)
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return "pass", lines[-1]
    return "fail", lines[-1] if lines else (done.stderr.splitlines() or ["no output"])[-1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="coverage-models", description=__doc__)
    parser.add_argument("names", nargs="*", help="classes (default: all)")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--one", metavar="CLASS", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        try:
            print(pipeline.check(zoo.find(arguments.one)))
        except pipeline.StageError as error:
            print(f"{error.stage}: {error}")
            return 1
        return 0
    known = [zoo.label(case) for case in zoo.CASES]
    for name in arguments.names:
        if name not in known:
            parser.error(f"unknown class {name!r}; known are {', '.join(known)}")
    if arguments.write and arguments.names:
        parser.error("--write needs all classes")
    names = arguments.names or known
    rows = []
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        for name, (result, text) in zip(names, pool.map(check_one, names)):
            print(f"{result}  {name}: {text}", flush=True)
            rows.append((name, result, text))
    passed = sum(result == "pass" for _, result, _ in rows)
    print(f"{passed} of {len(rows)} pass")
    if arguments.write:
        import transformers
        text = HEAD.format(version=transformers.__version__, passed=passed, total=len(rows))
        for name, result, detail in rows:
            detail = detail.replace("|", "\\|")
            text += f"| `{name}` | {'equal, trains: ' if result == 'pass' else '**fails** in '}{detail} |\n"
        DOCUMENT.write_text(text)
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
