"""Artifacts for GPUs on several hosts that torchrun starts, without MPI: the bits of one host, one sentence everywhere for what
goes wrong, and an end. One host is taken for two (SPMD_HOST), GPUs and NCCL are stand-ins."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from python_processes import PYTHON

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])
STANDINS = SOURCE / "scripts" / "with-standins"
INPUTS = SOURCE / "test" / "Inputs"
SCRIPT = SOURCE / "test" / "Cuda" / "Inputs" / "train.py"

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")


def call(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Hosts:
    """Two of them: what each started, and where it writes."""

    def __init__(self, folder: pathlib.Path, command, environments) -> None:
        self.logs = [folder / f"host{host}.log" for host in range(2)]
        self.started = []
        for host, environment in enumerate(environments):
            words = command(host) if callable(command) else command
            with open(self.logs[host], "w") as log:
                self.started.append(subprocess.Popen(
                    [str(word) for word in words], stdout=log, stderr=log, start_new_session=True,
                    env={**os.environ, "SPMD_BUILD": str(BIN.parent), "SPMD_HOST": str(host),
                         "XDG_CACHE_HOME": str(folder / f"cache{host}"), **environment}))

    def wait(self, seconds: float = 120) -> tuple[list[int], list[str]]:
        """Exit codes and output of both; none is left."""
        deadline = time.monotonic() + seconds
        try:
            codes = [each.wait(max(0.1, deadline - time.monotonic())) for each in self.started]
        finally:
            for each in self.started:
                try:
                    os.killpg(each.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                each.wait()
        return codes, [log.read_text() for log in self.logs]

    def text(self, host: int) -> str:
        return self.logs[host].read_text()


def torchrun(folder: pathlib.Path, of_host: int, *command, settings=()) -> list[str]:
    """What the two hosts write, each of which torchrun starts some processes on."""
    port = free_port()

    def words(host: int) -> list:
        return [STANDINS, *settings, PYTHON, "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={of_host}",
                f"--node-rank={host}", "--master-addr=127.0.0.1", f"--master-port={port}", *command]
    codes, texts = Hosts(folder, words, [{}, {}]).wait(280)
    assert codes == [0, 0], "\n".join(texts)
    return texts


def by_hand(folder: pathlib.Path, artifact: pathlib.Path, *options, settings=()) -> Hosts:
    """spmd-run on each of two hosts, with the variables that torchrun sets."""
    port = free_port()
    return Hosts(folder, [STANDINS, *settings, BIN / "spmd-run", artifact, "--log-ranks=all", *options],
                 [{"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": str(rank),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "none"} for rank in range(2)])


def compiled(folder: pathlib.Path, step: pathlib.Path, ranks: int, target: str = "cuda:sm_90") -> pathlib.Path:
    path = folder / f"{step.stem}-{ranks}-{target.split(':')[0]}.spmd"
    if not path.exists():
        emulation = ["--emulation"] if target.startswith("cuda") else []
        call(BIN / "spmd-compile", step, "-o", path, f"--ranks={ranks}", f"--target={target}", "--quiet", *emulation)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("hosts")


def losses(text: str) -> list[str]:
    return re.findall(r"^ +\d+ +[0-9.]+", text, re.MULTILINE)


def error(texts: list[str]) -> str:
    """The one sentence: rank 0 says it, and another process what it has found itself."""
    said = [re.findall(r"spmd-run: error: (.*)", text) for text in texts]
    assert len(said[0]) == 1 and all(each in (said[0], []) for each in said), "\n".join(texts)
    return said[0][0]


@pytest.mark.parametrize("of_host", [1, 2])
def test_the_bits_are_those_of_one_host(folder, tmp_path, of_host) -> None:
    artifact = compiled(folder, INPUTS / "gpt-tiny.step", 2 * of_host)
    whole, saved = tmp_path / "whole.safetensors", tmp_path / "saved.safetensors"
    expected = losses(call(STANDINS, BIN / "spmd-run", artifact, "--steps=3", f"--save={whole}"))
    first, second = torchrun(tmp_path, of_host, "--no-python", BIN / "spmd-run", artifact, "--steps=3", f"--save={saved}",
                             settings=("leaks=1", "schedule=random:5"))
    assert losses(first) == expected and len(expected) == 3 and not losses(second), first + second
    assert saved.read_bytes() == whole.read_bytes()


def test_a_script_trains(tmp_path) -> None:
    """Each host has a compile cache of its own."""
    def results(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith(("loss", "sum"))]
    options = (SCRIPT, "cuda:sm_90", 2, "--emulation", "--epilogues=none")
    expected = results(call(STANDINS, PYTHON, *options))
    first, second = torchrun(tmp_path, 1, *options)
    assert results(first) == expected and len(expected) == 5, first + second


@pytest.mark.parametrize("mpirun", [("mpirun.openmpi", "--oversubscribe"), ("mpiexec.hydra",)], ids=lambda words: words[0])
def test_mpi_starts_them_too(folder, mpirun) -> None:
    if not shutil.which(mpirun[0]):
        pytest.skip(f"{mpirun[0]} is not installed")
    artifact = compiled(folder, INPUTS / "gpt-tiny.step", 4)
    expected = losses(call(STANDINS, BIN / "spmd-run", artifact, "--steps=3"))
    # As on two hosts; UCX leaves the signals alone by which stand-ins watch memory.
    wrapper = ("export OMPI_COMM_WORLD_LOCAL_SIZE=2 MPI_LOCALNRANKS=2 UCX_ERROR_SIGNALS=; "
               "export SPMD_HOST=$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)); exec \"$@\"")
    found = call("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", STANDINS, *mpirun, "-n", 4, "bash", "-c",
                 wrapper, "sh", BIN / "spmd-run", artifact, "--steps=3")
    assert losses(found) == expected and len(expected) == 3, found


@pytest.mark.parametrize("fault, sentence", [
    ("exit:1:5", r"rank 1 exited at command 5 \(gemm\)"),
    ("stall:1:5", r"no rank of this process made progress within the time-out of 2 s: rank 1 is in command 5 \(gemm\)"),
    ("skip:1:2", r"time-out after 2 s on communicator '\w+': rank \d waits in \w+ of unit0"),
], ids=["exit", "stall", "skip"])
def test_faults_are_one_sentence(folder, tmp_path, fault, sentence) -> None:
    artifact = compiled(folder, INPUTS / "mlp-sgd.step", 2)
    codes, texts = by_hand(tmp_path, artifact, "--steps=3", "--timeout=2", f"--inject-fault={fault}").wait(30)
    assert codes == [3, 3] and re.search(sentence, error(texts)), texts


def test_a_host_without_a_gpu(folder, tmp_path) -> None:
    """Before anything runs."""
    artifact = compiled(folder, INPUTS / "mlp-sgd.step", 2)
    codes, texts = by_hand(tmp_path, artifact, "--steps=1", "--timeout=5", settings=("devices=0", "rank=1")).wait(60)
    assert 0 not in codes and "no CUDA-capable device" in texts[1], texts


def test_a_process_that_is_killed(folder, tmp_path) -> None:
    artifact = compiled(folder, INPUTS / "mlp-sgd.step", 2)
    hosts = by_hand(tmp_path, artifact, "--steps=1000000", "--timeout=5")
    deadline = time.monotonic() + 60
    while len(losses(hosts.text(0))) < 5 and time.monotonic() < deadline and hosts.started[0].poll() is None:
        time.sleep(0.02)
    killed = hosts.started[1].pid
    os.kill(killed, signal.SIGKILL)
    begin = time.monotonic()
    codes, texts = hosts.wait(30)
    assert codes[0] == 3 and time.monotonic() - begin < 10, texts  # rank 0 serves the store for 5 s more
    assert error(texts) == f"rank 1 ended without a word: process {killed} is gone", texts


def test_a_process_that_is_stopped(folder, tmp_path) -> None:
    artifact = compiled(folder, INPUTS / "mlp-sgd.step", 2)
    hosts = by_hand(tmp_path, artifact, "--steps=1000000", "--timeout=2", settings=("stop=cuGraphLaunch:6", "rank=1"))
    hosts.started[0].wait(30)
    os.kill(hosts.started[1].pid, signal.SIGCONT)
    codes, texts = hosts.wait(30)
    assert codes == [3, 3] and error(texts).startswith("time-out after 2 s on communicator"), texts


@pytest.mark.parametrize("target", ["host", "emulate:sm_90"])
def test_collectives_of_cpus_need_mpi(folder, tmp_path, target) -> None:
    artifact = compiled(folder, INPUTS / "mlp-sgd.step", 2, target)
    codes, texts = by_hand(tmp_path, artifact, "--steps=1").wait(60)
    assert codes == [2, 2] and error(texts) == (
        "rank 1 is on another host than rank 0 (or in another container), and collectives of CPUs travel between hosts through "
        "MPI: start the processes by mpirun or srun, or all of them on one host; those of GPUs (target cuda) need no MPI"), texts
