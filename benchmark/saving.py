"""What saving costs a run: GPT-2 124M on 2 ranks, with checkpoints that it waits for, and beside it.

    python benchmark/saving.py                    # 124M, 3 rounds
    python benchmark/saving.py --config tiny      # seconds, to see that it runs

Each round trains the same steps four times, one run after the other: without saving; waiting for a checkpoint after
every eighth step; writing it beside the run; and without saving, while another program copies the same bytes once in
memory and writes them to the same disk, which is what saving beside costs at least. Printed are, of each, the memory at
its highest, the time of the step after which a checkpoint begins, and the median of the others; then the ratios:

    extra memory of `wait`, against the largest shard unit
    extra memory of `beside`, against a copy of the ranks' state
    the others' median of `beside`, against that of the run beside which the same bytes are written (paired by round)
"""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from contenders import ROOT

sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "python-bindings")]
EVERY, STEPS = 8, 32


def tool(name: str) -> Path:
    from spmd.tools import find_tool

    return Path(os.environ["SPMD_BIN"]) / name if "SPMD_BIN" in os.environ else find_tool(name)


def compile_step(config: str, folder: Path) -> Path:
    import gpt2
    import spmd

    example = gpt2.setup(config, "fused", 2, 8 if config == "tiny" else 32, 1)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                           reference=[example["args"]])
    package.save(folder / "gpt2.step")
    subprocess.run([tool("spmd-compile"), folder / "gpt2.step", "--ranks=2", "--policy=class:Block", "--quiet",
                    "-o", folder / "gpt2.spmd"], check=True)
    return folder / "gpt2.spmd"


def write_beside(begins: threading.Event, ends: threading.Event, path: Path, size: int) -> None:
    """Copies so many bytes and writes them, whenever it is told to."""
    source = bytearray(size)
    while True:
        begins.wait()
        begins.clear()
        if ends.is_set():
            return
        with open(path, "wb") as file:
            file.write(bytes(source))
            file.flush()
            os.fsync(file.fileno())


class Run:
    """One run: seconds of each step, and the most memory that it had."""

    def __init__(self, artifact: Path, work: Path, how: str, bytes_of_state: int):
        place = work / "saved"
        shutil.rmtree(place, ignore_errors=True)
        saves = [f"--save={place}", f"--save-every={EVERY}", "--save-kind=sharded", f"--save-mode={how}", "--keep=1"]
        command = ["stdbuf", "-oL", tool("spmd-run"), artifact, f"--steps={STEPS}",
                   *(saves if how in ("wait", "beside") else [])]
        begins, ends = threading.Event(), threading.Event()
        helper = threading.Thread(target=write_beside, args=(begins, ends, work / "other", bytes_of_state))
        if how == "other":
            helper.start()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watch = threading.Thread(target=self._watch, args=(process,))
        watch.start()
        self.ends: dict[int, float] = {}  # when the line of a step was printed
        for line in process.stdout:
            if number := re.match(r" *(\d+)  ", line):
                self.ends[int(number[1])] = time.monotonic()
                if how == "other" and (int(number[1]) + 1) % EVERY == 0:
                    begins.set()
        watch.join()
        if process.returncode:
            raise SystemExit(f"saving: spmd-run ended with exit code {process.returncode}")
        if how == "other":
            ends.set()
            begins.set()
            helper.join()
        # A step takes until its line, which is printed before a checkpoint of it begins: that is in the next one's.
        took = {n: self.ends[n] - self.ends[n - 1] for n in self.ends if n - 1 in self.ends}
        self.delayed = statistics.median([s for n, s in took.items() if n % EVERY == 0 and n])
        self.others = statistics.median([s for n, s in took.items() if n % EVERY and n > 1])


    def _watch(self, process: subprocess.Popen) -> None:
        """The most memory that it has; of files only what cannot be dropped."""
        self.memory = 0
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            kinds = re.findall(r"(?:RssAnon|RssShmem):\s+(\d+)", status)
            self.memory = max(self.memory, sum(map(int, kinds)) * 1024)
            time.sleep(0.01)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="124m", choices=["tiny", "124m"])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPMD_BENCHMARK_DISK")) as work:
        artifact = compile_step(given.config, Path(work))
        manifest = json.loads((artifact / "manifest.json").read_text())
        state = 2 * manifest["arena"]["state_bytes"]
        unit = max(unit["padded"] for unit in manifest["units"]) * 4
        print(f"GPT-2 {given.config}, 2 ranks: state {state:,} bytes, largest unit {unit:,} bytes")
        print(f"{'':8} {'peak memory':>16} {'step with a checkpoint':>24} {'other steps':>14}")
        rounds: list[dict[str, Run]] = []
        for _ in range(given.rounds):
            rounds.append({how: Run(artifact, Path(work), how, state) for how in ("none", "wait", "beside", "other")})
            for how, run in rounds[-1].items():
                print(f"{how:8} {run.memory:16,} {run.delayed * 1e3:21.0f} ms {run.others * 1e3:11.0f} ms", flush=True)

        def median(value) -> float:
            return statistics.median(value(one) for one in rounds)
        print(f"wait: memory beside the run's {median(lambda r: r['wait'].memory - r['none'].memory) / unit:.2f} of the "
              "largest unit (at most 1)")
        print(f"beside: memory beside the run's {median(lambda r: r['beside'].memory - r['none'].memory) / state:.2f} of "
              "the state (at most 1)")
        ratios = sorted(r["beside"].others / r["other"].others for r in rounds)
        print(f"beside: other steps {statistics.median(ratios):.3f} times those of a run beside which the same bytes are "
              f"written ({ratios[0]:.3f} to {ratios[-1]:.3f}; at most 1.05)")
        delays = [r["beside"].delayed - r["none"].others for r in rounds]
        print(f"beside: a checkpoint delays one step by {statistics.median(delays) * 1e3:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
