"""Compiles a file with the flags of one of our own: python compile_as_ours.py compile_commands.json FILE."""
import json
import shlex
import subprocess
import sys

commands, file = sys.argv[1:]
entry = next(one for one in json.load(open(commands)) if one["file"].endswith("/DedupCollectives.cpp"))
words = shlex.split(entry["command"])
# Without the precompiled header, which is of another file, and the output.
flags = words[1:words.index("-Winvalid-pch")] + ["-fsyntax-only", "-fno-color-diagnostics", "-ferror-limit=0", file]
sys.exit(subprocess.run([words[0], *flags], cwd=entry["directory"]).returncode)
