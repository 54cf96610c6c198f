"""repeat.py COUNT ARTIFACT OPTIONS...: runs spmd-run COUNT times; exits 1 unless every run saves the same bytes."""
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    count, arguments = int(sys.argv[1]), sys.argv[2:]
    first = None
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "final.safetensors"
        for i in range(count):
            subprocess.run(["spmd-run", *arguments, f"--save={saved}"], check=True, capture_output=True)
            data = saved.read_bytes()
            first = first or data
            if data != first:
                sys.exit(f"run {i} of {count} differs from run 0")


main()
