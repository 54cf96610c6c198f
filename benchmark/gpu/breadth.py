"""Trains a pack's small models, several at a time, to what eager PyTorch recorded of them."""
from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

PACK = Path(__file__).resolve().parent
TOO_LONG = "takes longer than"
MODES = {"one CUDA graph": [], "command by command": ["--graph=off"]}

# NCCL refuses two ranks of a host on one GPU. Each process says here that it is a host of its own: NCCL then reaches the
# others as it reaches hosts without InfiniBand, over sockets, here of the loopback interface. All else is as on GPUs of
# their own, but slow: the processes take turns on the GPU.
def sharing(rank: int) -> dict[str, str]:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return {"CUDA_VISIBLE_DEVICES": first, "SPMD_SHARE_GPUS": "1", "NCCL_HOSTID": f"rank-{rank}", "NCCL_NET": "Socket",
            "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}


@dataclasses.dataclass(frozen=True)
class Run:
    entry: dict[str, Any]
    mode: str
    gpus: int

    @property
    def name(self) -> str:
        return f"{self.entry['name']} ({self.mode})"

    @property
    def shares(self) -> bool:
        return self.entry["ranks"] > self.gpus

    def commands(self) -> list[tuple[list[str], dict[str, str]]]:
        """Each process with its environment: one for a rank, if there are several."""
        words = [str(PACK / "spmd-run"), str(PACK / self.entry["artifact"]), "--check", "--quiet", *MODES[self.mode]]
        if self.entry["tolerance"]:
            words.append(f"--rtol={self.entry['tolerance']}")
        ranks = self.entry["ranks"]
        if ranks == 1:
            return [(words, {})]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        return [([*words, f"--rank={rank}", f"--world-size={ranks}", f"--address={address}"],
                 sharing(rank) if self.shares else {}) for rank in range(ranks)]


def run(what: Run, limit: float) -> dict[str, Any]:
    """Its line of the report; "failure" is empty where it passed."""
    begin, said = time.perf_counter(), ""
    with tempfile.TemporaryFile("w+") as output:
        children = [subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **more})
                    for words, more in what.commands()]
        for child in children:
            try:
                child.wait(max(0.0, limit - (time.perf_counter() - begin)))
            except subprocess.TimeoutExpired:
                said = f"{TOO_LONG} {limit:.0f} s; "
                break
        for child in children:
            child.kill()
        for child in children:
            child.wait()
        output.seek(0)
        text = output.read()
    codes = [child.returncode for child in children]
    if any(codes) or said:
        said += f"exit code {', '.join(map(str, codes))}: {shorten(text)}"
    return {"name": what.name, "artifact": what.entry["artifact"], "seconds": round(time.perf_counter() - begin, 2),
            "failure": said, "output": text if said else ""}


def shorten(text: str) -> str:
    """What matters of what a failing run printed, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|largest|NCCL|CUDA|warn", line, re.IGNORECASE)] or lines[-3:]
    return " | ".join(telling[:6])[:1500]


def check(entries: list[dict[str, Any]], gpus: int, jobs: int, limit: float) -> list[dict[str, Any]]:
    """All of them as one graph and command by command; a line for each failure, and a count. Those of several ranks
    come last, one at a time: where they share a GPU, kernels that wait for each other take turns on it. Once one of them
    comes to no end none of the others is tried."""
    done: list[dict[str, Any]] = []
    print(f"\n== {len(entries)} small models, {jobs} at a time, each to the losses and parameters of eager PyTorch",
          flush=True)
    for several in (False, True):
        runs = [Run(entry, mode, gpus) for mode in MODES for entry in entries if (entry["ranks"] > 1) == several]
        if runs:
            done += check_together(runs, 1 if several else jobs, limit, several)
    return done


def check_together(runs: list[Run], jobs: int, limit: float, several: bool) -> list[dict[str, Any]]:
    begin, done, hangs = time.perf_counter(), [], threading.Event()

    def try_one(what: Run) -> None:
        if hangs.is_set():
            return
        done.append(row := run(what, limit))
        if row["failure"]:
            print(f"FAIL: {row['name']}: {row['failure']}", flush=True)
        if several and row["failure"].startswith(TOO_LONG):
            hangs.set()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(try_one, runs))
    good = sum(not row["failure"] for row in done)
    what = "runs of several ranks" + (" that share a GPU" if runs[0].shares else "") if several else "runs"
    left = f", {len(runs) - len(done)} were not tried after one that came to no end" if len(done) < len(runs) else ""
    print(f"{'PASS' if good == len(runs) else 'FAIL'}: {good} of {len(runs)} {what} agree with eager{left} "
          f"({time.perf_counter() - begin:.0f} s)", flush=True)
    return done
