"""Checks the prose of Markdown files: python check_prose.py ROOT [FILE...]; without files, those that prose.txt beside
this script lists. Prints what is wrong, or how many files were looked at. Code and headings are not prose."""
import re
import sys
from pathlib import Path

COLUMNS = 140
# What a sentence must not contain, and what to write.
HABITS = [(r"(?:^|[.:!?] |\| |^\s*[-*] )(Of which|Of \w+|Whose|What|That)\b", "name the subject of the sentence"),
          (r"(\bcures?:)", "write 'hint:'"),
          (r"\b((?:is|are|was|were) (?:told|asked))\b", "a program is not told or asked; write 'receives', 'reads', 'detects'"),
          (r"\b(nobody|whoever|whomever|no one)\b", "name the code or the person"),
          (r"\b(the same of (?:those|these|it))\b", "name the thing again"),
          (r"\b(is none without|has not[.;,]|so many (?:as|for))", "write a positive sentence"),
          (r"\b(that (?:is|are) no \w+ any more)\b", "write 'is no longer'")]


def prose(text):
    """Lines outside of code, with their numbers; code spans are replaced by 'code'."""
    fenced, after_blank, indented = False, True, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
            continue
        indented = line.startswith("    ") and (after_blank or indented) and not re.match(r"\s+([-*]|\d+\.) ", line)
        after_blank = not line.strip()
        if not fenced and not indented and not line.startswith("#"):
            yield number, line


def problems(name, text):
    # A code span may go on in the next line, and keeps its line's end.
    blanked = re.sub(r"(?<!`)`[^`]+`(?!`)", lambda span: "code" + "\n" * span[0].count("\n"), text)
    for number, line in prose(text):
        if len(line) > COLUMNS and not line.startswith("|"):
            yield f"{name}:{number}: {len(line)} columns, expected at most {COLUMNS}"
    for number, line in prose(blanked):
        for pattern, hint in HABITS:
            if match := re.search(pattern, line):
                yield f"{name}:{number}: '{match[1]}'\n  hint: {hint}"


def main(root, files):
    names = files or (Path(__file__).parent / "prose.txt").read_text().split()
    found = [problem for name in names for problem in problems(name, (root / name).read_text())]
    print("\n".join(found) if found else f"{len(names)} files")
    return bool(found) or not names


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
