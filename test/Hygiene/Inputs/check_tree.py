"""Checks the files of a checkout: python check_tree.py ROOT; prints what is wrong, or how many files were looked at."""
import re
import subprocess
import sys
from pathlib import Path

LARGEST = 1_000_000  # bytes; examples/ has a step with its weights


def tracked_files(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        return [root / name for name in listed.stdout.decode().split("\0") if name]
    skipped = {root / name for name in (".git", "build", ".venv")}
    return [path for path in sorted(root.rglob("*")) if path.is_file() and not skipped & set(path.parents)]


def ranges_of_loops(code):
    """Each range of a range-based for, with the number of its line."""
    for loop in re.finditer(r"\bfor \(", code):
        depth, colon, at = 1, None, loop.end()
        while depth and at < len(code):
            char = code[at]
            depth += (char in "([{") - (char in ")]}")
            if depth == 1 and char == ";":
                break
            if depth == 1 and char == ":" and ":" not in (code[at - 1], code[at + 1]) and colon is None:
                colon = at
            at += 1
        if not depth and colon:
            yield code.count("\n", 0, loop.start()) + 1, code[colon + 1:at - 1].strip()


def dangling_ranges(code):
    """The elements of ArrayRef<T>{…} are gone when the body of `for (… : zip(ArrayRef<T>{…}, …))` first runs, and clang
    warns of it only where the function says that it keeps its argument."""
    for line, loop_range in ranges_of_loops(code):
        if re.search(r"\w\(.*ArrayRef(<[^{]*>)?\(?\{", loop_range, re.DOTALL):
            yield line


def problems(root, path):
    name = path.relative_to(root)
    content = path.read_bytes()
    if content.startswith(b"\x7fELF"):
        yield f"{name}: an executable"
    if len(content) > LARGEST and name.parts[0] != "examples":
        yield f"{name}: {len(content):,} bytes"
    if path.suffix in (".cpp", ".h"):
        for line in dangling_ranges(content.decode()):
            yield f"{name}:{line}: a range over a braced list that ends before the loop begins; give the list a name"


def main():
    root = Path(sys.argv[1]).resolve()
    files = [path for path in tracked_files(root) if path.is_file()]
    found = [problem for path in files for problem in problems(root, path)]
    print("\n".join(found) if found else f"{len(files)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
