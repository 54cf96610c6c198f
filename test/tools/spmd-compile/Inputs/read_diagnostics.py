"""read_diagnostics.py [--rendered] FILE: the lines of --diagnostics=json, part by part, or the text in them alone."""
import json
import sys


def show(entry: dict, indent: str) -> None:
    code = f"[{entry['code']}] " if "code" in entry else ""
    print(f"{indent}{entry['severity']}: {code}{entry['message']}")
    if entry["location"]:
        print(f"{indent}location:", *(f"{f['file']}:{f['line']}:{f['column']}" for f in entry["location"]))
    for key in ("module", "hint", "rendered"):
        if key in entry:
            print(f"{indent}{key}: {entry[key].rstrip()}")
    for note in entry["notes"]:
        show(note, indent + "  ")


for line in open(sys.argv[-1]):
    entry = json.loads(line)
    if sys.argv[1] == "--rendered":
        sys.stdout.write(entry["rendered"])
    else:
        show(entry, "")
