"""Checks that every file of this project that its texts name is there: links in Markdown, and anywhere words like
`scripts/test`, that start with a folder of the project. Prints how many names it checked."""
import re
import sys
from pathlib import Path

TEXTS = ("*.md", "*.h", "*.cpp", "*.mlir", "*.json", "*.td", "*.test", "*.py", "*.txt", "*.in", "scripts/*", ".ci/run")
# Folders that are not ours.
IGNORED = ("build", ".venv")
FOLDERS = ("cmake", "dialects", "docs", "examples", "include", "lib", "python-bindings", "scripts", "test",
           "tools", "benchmark")
NAME = re.compile(r"(?<![\w/.%$}{>*-])(?:" + "|".join(FOLDERS) + r")(?:/[\w.*-]+)+")
# What a build makes from these sources.
GENERATED = re.compile(r".*\.inc$|docs/reference\b.*")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def texts(root):
    for pattern in TEXTS:
        for path in root.glob(pattern) if "/" in pattern else root.rglob(pattern):
            parts = path.relative_to(root).parts
            if path.is_file() and not any(part in IGNORED or part.startswith(".git") or part.endswith(".step")
                                          for part in parts):
                yield path


def main():
    root = Path(sys.argv[1]).resolve()
    checked, missing = set(), []
    for path in sorted(set(texts(root))):
        if "Mistakes" in path.parts:
            continue  # made-up names, and a table that has a test of its own
        if path.name == ".lit_test_times.txt":
            continue  # names tests as lit does, from the folder of tests on
        if path.parent == root / "examples" and path.suffix == ".txt":
            continue  # what a model was trained on, and no document
        text = path.read_text()
        names = [(match, root) for match in NAME.findall(text)]
        if path.suffix == ".md":
            names += [(match, path.parent) for match in LINK.findall(text)]
        for name, base in names:
            name = name.rstrip(".-")
            if GENERATED.match(name):
                continue
            checked.add((name, base))
            if not any(base.glob(name)) and not any(base.glob(f"{name}.in")):
                missing.append(f"{path.relative_to(root)}: '{name}' is not there")
    print("\n".join(missing) or f"{len(checked)} names of files")
    return 1 if missing else 0


sys.exit(main())
