"""Generates the reference like the build: every dialect and Passes.td has a page, every op, type and pass a summary."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

PAGE = re.compile(r"spmd_add_reference\((\w+\.td) (\w+) (.*)\)")
ENTRY = re.compile(r"^### (?:`-?([\w.-]+)`|(\w+(?:Attr|Type))).*\n\n(.*)", re.M)


def main():
    root = Path(sys.argv[1])
    mlir = Path(shutil.which("mlir-tblgen")).resolve().parent.parent / "include"
    documented = set()
    problems = []
    for folder in sorted({path.parent for top in ("dialects", "include/spmd") for path in (root / top).rglob("*.td")}):
        for source, name, options in PAGE.findall((folder / "CMakeLists.txt").read_text()):
            command = ["mlir-tblgen", *options.split(), str(folder / source), f"-I{folder}", f"-I{root}", f"-I{mlir}"]
            page = subprocess.run(command, capture_output=True, text=True)
            entries = ENTRY.findall(page.stdout)
            if page.returncode or not entries:
                problems.append(f"{name}: {page.stderr or 'empty'}")
            problems += [f"{name}: {op or attribute} has no summary"
                         for op, attribute, summary in entries if not summary.startswith("_")]
            documented.add(folder)
            print(f"{name}: {len(entries)} entries")
        if folder not in documented:
            problems.append(f"{folder.relative_to(root)}: its .td files have no page, see spmd_add_reference")
    print("\n".join(problems), file=sys.stderr)
    sys.exit(1 if problems or not documented else 0)


main()
