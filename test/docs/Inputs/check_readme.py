"""What README.md shows of a command stands in what the command prints: check_readme.py README COMMAND-PREFIX < OUTPUT."""
import sys

lines = iter(open(sys.argv[1], encoding="utf-8").read().splitlines())
shown = []
for line in lines:
    if line.startswith(f"$ {sys.argv[2]}"):
        for line in lines:
            if line.startswith(("$ ", "```")):
                break
            if line.strip() != "...":
                shown.append(line)
        break
printed = [line.rstrip() for line in sys.stdin]
for line in shown:
    print(("has: " if line in printed else "MISSING: ") + line)
