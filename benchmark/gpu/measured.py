"""One case of a pack: our run and PyTorch's, on the same weights and batches."""
from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

PACK = Path(__file__).resolve().parent

#: Relative differences of a loss. Both sum in other orders; over 20 steps roundings grow.
TOLERANCE = {"f32": 2e-4, "bf16": 2e-2}
CONTENDERS = ("eager", "compile", "fsdp2")


def call(*command: Any, limit: float, **environment: str) -> str:
    """What it prints. Longer than `limit` seconds is an error, too."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment}, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{' '.join(words)}: takes longer than {limit:.0f} s") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Watch:
    """The most that this machine's GPUs have in use at a time, beyond what they had before; 0 without nvidia-smi."""

    def __enter__(self) -> Watch:
        self.most, self._end = 0, threading.Event()
        self._before = self._used()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while shutil.which("nvidia-smi") and not self._end.wait(0.3):
            self.most = max(self.most, self._used() - self._before)

    @staticmethod
    def _used() -> int:
        if not shutil.which("nvidia-smi"):
            return 0
        return sum(int(n) for n in call("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits",
                                        limit=60).split()) << 20


class Measured:
    """Files of weights and batches lie in `scratch`. `limit`: seconds for each program."""

    def __init__(self, entry: dict[str, Any], steps: int, scratch: Path, limit: float):
        import cases
        import numpy as np
        from safetensors.torch import save_file

        self.entry, self.steps, self.scratch, self.limit = entry, steps, scratch, limit
        self.ranks, self.key = entry["ranks"], entry["artifact"].removesuffix(".spmd")
        fields = {name: entry[name] for name in ("name", "dtype", "rows", "length", "vocab", "block")}
        self.case = cases.Case(**fields)
        self.weights = scratch / "weights.safetensors"
        model = self.case.model()
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, self.weights)
        for name, array in zip("xy", self.case.batches(self.ranks, steps)):
            np.save(scratch / f"{name}.npy", array)

    def command(self, *options: str) -> list[str]:
        return [str(PACK / "spmd-run"), str(PACK / self.entry["artifact"]), f"--weights={self.weights}",
                f"--data=x={self.scratch / 'x.npy'},y={self.scratch / 'y.npy'}", "--order=sequential",
                f"--steps={self.steps}", *options]

    def ours(self, *options: str) -> dict[str, Any]:
        log = self.scratch / "log.jsonl"
        log.unlink(missing_ok=True)
        with Watch() as watch:
            text = call(*self.command(f"--log={log}", *options), limit=self.limit)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        seconds = [line["seconds"] for line in lines]
        return {"losses": [line["loss"] for line in lines], "ms": 1e3 * statistics.median(seconds[len(seconds) // 2:]),
                "text": text, "bytes": watch.most // self.ranks}

    def theirs(self, how: str) -> dict[str, Any]:
        script = [PACK / "torch_step.py", self.key, how, f"--steps={self.steps}"]
        if how == "fsdp2":
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.ranks}",
                       *script]
        else:
            command = [sys.executable, *script]
        return json.loads(call(*command, limit=self.limit).splitlines()[-1])

    def planned(self) -> int:
        manifest = json.loads((PACK / self.entry["artifact"] / "manifest.json").read_text())
        return manifest["arena"]["bytes"]

    def measure(self, contenders: list[str], profile_rows: int) -> dict[str, Any]:
        """Prints as it goes; a row of the report. Whether losses agree is its "good"."""
        print(f"\n== {self.key}: {self.case.rows} x {self.case.length} tokens a rank", flush=True)
        tolerance = TOLERANCE[self.case.dtype]
        graph, plain = self.ours(), self.ours("--graph=off")
        eager = self.theirs("eager")
        row: dict[str, Any] = {"case": self.key, "good": True, "planned_bytes": self.planned(), "graph_ms": graph["ms"],
                               "taken_bytes": graph["bytes"], "plain_ms": plain["ms"], "eager_ms": eager["ms"],
                               "eager_bytes": eager["bytes"], "device": eager["device"], "losses": graph["losses"],
                               "eager_losses": eager["losses"]}
        for name, run in (("one CUDA graph", graph), ("command by command", plain)):
            far = difference(run["losses"], eager["losses"])
            row["good"] &= far <= tolerance
            print(f"{'PASS' if far <= tolerance else 'FAIL'}: {name}: losses are within {far:.1e} of eager's (allowed "
                  f"{tolerance:.0e}); last {run['losses'][-1]:.5f}, eager {eager['losses'][-1]:.5f}", flush=True)
        for how in ("compile",) if self.ranks == 1 else ("fsdp2",):
            if how not in contenders:
                continue
            try:
                other = self.theirs(how)
                row |= {f"{how}_ms": other["ms"], f"{how}_bytes": other["bytes"]}
            except RuntimeError as error:
                print(f"{how}: no result: {str(error).splitlines()[-1]}")
        found = re.search(r"^profile of.*(?:\n  .*)*", self.ours("--profile")["text"], re.MULTILINE)
        row["profile"] = found[0] if found else "no profile"
        print("\n".join(row["profile"].splitlines()[:profile_rows]))
        print(f"{describe_times(row)}\n{describe_ratios(row)}", flush=True)
        return row


def difference(ours: list[float], theirs: list[float]) -> float:
    if len(ours) != len(theirs):
        return float("inf")
    return max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(ours, theirs))


def describe_times(row: dict[str, Any]) -> str:
    times = ", ".join(f"{how} {row[f'{how}_ms']:.2f}" for how in ("graph", "plain", *CONTENDERS) if f"{how}_ms" in row)
    taken = ", ".join(f"{how} {row[f'{how}_bytes']:,}" for how in CONTENDERS if f"{how}_bytes" in row)
    return f"{row['case']:22s} {times}\n{'':22s} ours {row['planned_bytes']:,} (seen {row['taken_bytes']:,}), {taken}"


def describe_ratios(row: dict[str, Any]) -> str:
    ratios = ", ".join(f"{how} {row[f'{how}_ms'] / row['graph_ms']:.2f}x" for how in CONTENDERS if f"{how}_ms" in row)
    return f"{row['case']:22s} {ratios}"
