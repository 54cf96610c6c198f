"""check_excerpts.py DOC DUMP: each block that begins with ```mlir PHASE must be found in DUMP/NN-PHASE.mlir.

Lines of a block appear there in this order, each within one line; `…` stands for anything.
"""
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```mlir (\w+)\n(.*?)^```", re.S | re.M)


def main():
    text, dump = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
    blocks = BLOCK.findall(text)
    missing = 0
    for phase, block in blocks:
        (path,) = dump.glob(f"*-{phase}.mlir")
        lines = iter(path.read_text().splitlines())
        for wanted in filter(None, map(str.strip, block.splitlines())):
            pattern = re.compile(".*?".join(re.escape(part.strip()) for part in wanted.split("…")))
            if not any(pattern.search(line) for line in lines):
                print(f"{path.name} has no such line (after the lines before it):\n  {wanted}", file=sys.stderr)
                missing += 1
                break
    print(f"{len(blocks)} excerpts, {missing} not found")
    sys.exit(1 if missing or not blocks else 0)


main()
