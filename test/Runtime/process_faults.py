"""Faults in jobs of several processes: process_faults.py [--count=N] [--seed=N] [--launchers=a,b] BIN

Each case trains GPT-2 nano for 4 ranks in 2 or 4 processes, under one of the launchers that are installed or on two pretended
hosts, and something happens: a rank ends, stalls or leaves out a collective, a process is killed or stopped. Every process
must end within the time-out, with one sentence that names a rank, and none is left. Prints what fails with its
number, which --only=N repeats, and at the end "cases: N, failed: N".
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "gpt2-nano.step"
TIMEOUT = 2  # of collectives
PATIENCE = 40  # until all processes have ended
BY_HOST = 'export SPMD_HOST=$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} * 2 / WORLD)); exec "$@"'
MPIS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.hydra"]}


def launchers():
    """The commands that start N processes, by name; None: variables are set by hand."""
    found = {"hand": None, "torchrun": lambda n: [sys.executable, "-m", "torch.distributed.run", "--standalone",
                                                  f"--nproc-per-node={n}", "--no-python"]}
    for name, command in MPIS.items():
        if shutil.which(command[0]):
            found[name] = lambda n, command=command: [*command, "-n", str(n)]
            found[f"{name}-hosts"] = lambda n, command=command: [*command, "-n", str(n), "bash", "-c", BY_HOST, "sh"]
    return found


def collectives(artifact):
    plan = json.loads((artifact / "train_step.plan.json").read_text())
    return [i for i, c in enumerate(plan["commands"]) if c["op"] in ("all_gather", "reduce_scatter", "all_reduce")], \
        len(plan["commands"])


def choose(rng, artifact, names):
    """What happens, and in which processes."""
    meetings, commands = collectives(artifact)
    case = {"launcher": rng.choice(names), "processes": rng.choice([2, 4]), "fault": None, "signal": None}
    kind = rng.choice(["exit", "stall", "skip", "SIGKILL", "SIGSTOP"])
    if kind.startswith("SIG"):
        return case | {"signal": (kind, rng.randrange(case["processes"]), rng.uniform(0.2, 3))}
    at = rng.choice(meetings) if kind == "skip" else rng.randrange(commands)
    return case | {"fault": f"{kind}:{rng.randrange(4)}:{at}"}


def children(pid):
    """The processes below one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(stat.parent.name)
            found += [child, *children(child)]
    return found


def of_runtime(pids):
    names = [(pid, Path(f"/proc/{pid}/cmdline")) for pid in pids]
    return [pid for pid, file in names if file.exists() and file.read_bytes().split(b"\0")[0].endswith(b"spmd-run")]


def start(case, command, output):
    """The processes, or the launcher's."""
    n = case["processes"]
    environment = {**os.environ, "WORLD": str(n), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launcher = launchers()[case["launcher"]]
    if launcher:
        return [subprocess.Popen([*launcher(n), *command], stdout=output, stderr=output, env=environment)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        environment |= {"WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
    return [subprocess.Popen(command, stdout=output, stderr=output, env={**environment, "RANK": str(rank)})
            for rank in range(n)]


def run(case, artifact, binaries):
    """Why the case fails; None: it ends as it must."""
    steps = "1000000" if case["signal"] else "30"
    command = [str(binaries / "spmd-run"), str(artifact), f"--steps={steps}", "--quiet", f"--timeout={TIMEOUT}"]
    if case["fault"]:
        command.append(f"--inject-fault={case['fault']}")
    with tempfile.TemporaryFile("w+") as output:
        started = start(case, command, output)
        below = lambda: [p.pid for p in started if p.poll() is None] + [c for p in started for c in children(p.pid)]
        if case["signal"]:
            name, which, after = case["signal"]
            for _ in range(200):  # launchers take their time
                time.sleep(0.05)
                if len(of_runtime(below())) == case["processes"]:
                    break
            time.sleep(after)
            victims = sorted(of_runtime(below()))
            if which < len(victims):
                os.kill(victims[which], getattr(signal, name))
        begin = time.monotonic()
        stopped, runners = None, set()
        while any(p.poll() is None for p in started):
            time.sleep(0.05)
            runners |= set(of_runtime(below()))
            if case["signal"] and case["signal"][0] == "SIGSTOP" and stopped is None \
                    and time.monotonic() - begin > PATIENCE / 4:
                stopped = True
                for pid in victims[which:which + 1]:  # the others have ended, as far as their launcher lets them
                    if os.path.exists(f"/proc/{pid}"):
                        os.kill(pid, signal.SIGKILL)
            if time.monotonic() - begin > PATIENCE:
                for pid in below():
                    os.kill(pid, signal.SIGKILL)
                return f"processes are still there after {PATIENCE} s"
        codes = [p.wait() for p in started]
        time.sleep(0.2)
        output.seek(0)
        said = output.read()
    errors = sorted(set(re.findall(r"spmd-run: error: (.*)", said)))
    if all(code == 0 for code in codes):
        return f"all ended well: {codes}"
    if left := of_runtime(runners):  # memory and sockets are gone with the processes
        return f"processes are left: {left}"
    # mpirun may end all processes before they have said why.
    is_killed = case["signal"] and case["launcher"] not in ("hand", "torchrun")
    if len(errors) != 1 and not (is_killed and not errors):
        return f"{len(errors)} different errors: {errors}\n{said[-2000:]}"
    if errors and not re.search(r"\b(ranks?|process) [0-9]", errors[0]):
        return f"neither rank nor process is named: {errors[0]}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--launchers", default=",".join(launchers()))
    parser.add_argument("binaries", type=Path)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / "nano.spmd"
        subprocess.run([arguments.binaries / "spmd-compile", EXAMPLE, "-o", artifact, "--ranks=4", "--policy=class:Block",
                        "--quiet"], check=True)
        numbers = range(arguments.count) if arguments.only is None else [arguments.only]
        for number in numbers:
            case = choose(random.Random(f"{arguments.seed}/{number}"), artifact, arguments.launchers.split(","))
            why = run(case, artifact, arguments.binaries)
            if why:
                failed += 1
                print(f"case {number}: {case}: {why}")
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {len(numbers)} ", end="", file=sys.stderr)
    print(f"cases: {len(numbers)}, failed: {failed}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
