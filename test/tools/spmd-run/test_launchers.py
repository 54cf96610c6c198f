"""spmd-run under the launchers that are installed, to the bits of threads."""
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from python_processes import torchrun

EXAMPLE = Path(os.environ["SPMD_SOURCE"]) / "examples" / "gpt2-nano.step"
BIN = Path(os.environ["SPMD_BIN"])
MPI = ["mpirun.openmpi", "mpiexec.hydra"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(scope="module")
def threads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launchers")
    subprocess.run([BIN / "spmd-compile", EXAMPLE, "-o", folder / "nano.spmd", "--ranks=4", "--policy=class:Block",
                    "--quiet"], check=True)
    subprocess.run([BIN / "spmd-run", folder / "nano.spmd", "--steps=3", f"--save={folder}/threads.safetensors"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def run(folder, *launcher):
    whole_file(folder, *launcher)
    checkpoint(folder, *launcher)


def checkpoint(folder, *launcher):
    """A file for each rank, by the processes that hold them, waited for or beside the run; another run of them goes on from
    it, to the bits of threads."""
    place, mode = folder / "checkpoints", "beside" if any(word.endswith("4") for word in launcher) else "wait"
    shutil.rmtree(place, ignore_errors=True)
    for options in (["--steps=2", f"--save={place}", "--save-kind=sharded", "--save-every=1", f"--save-mode={mode}"],
                    ["--steps=3", f"--resume={place}", f"--save={folder}/resumed.safetensors"]):
        done = subprocess.run([*launcher, BIN / "spmd-run", folder / "nano.spmd", *options], env=ENVIRONMENT,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "2 steps done" in done.stdout
    assert sorted(p.name for p in place.iterdir()) == ["step-00000001", "step-00000002"]
    assert sorted(p.name for p in (place / "step-00000002").glob("rank-*")) == [f"rank-{r:05d}.safetensors" for r in range(4)]
    assert (folder / "resumed.safetensors").read_bytes() == (folder / "threads.safetensors").read_bytes()


def whole_file(folder, *launcher):
    done = subprocess.run([*launcher, BIN / "spmd-run", folder / "nano.spmd", "--steps=3", f"--save={folder}/launched.safetensors"],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "launched.safetensors").read_bytes() == (folder / "threads.safetensors").read_bytes()
    assert len(re.findall(r"^ +[0-2]  ", done.stdout, re.MULTILINE)) == 3, done.stdout  # rank 0 alone prints


@pytest.mark.parametrize("processes", [2, 4])
def test_torchrun(threads, processes):
    run(threads, *torchrun(f"--nproc-per-node={processes}", "--no-python"))


@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("launcher", MPI)
def test_mpi(threads, launcher, processes):
    if not shutil.which(launcher):
        pytest.skip(f"{launcher} is not installed")
    run(threads, launcher, *(["--oversubscribe"] if "openmpi" in launcher else []), "-n", str(processes))


@pytest.mark.parametrize("launcher", MPI)
def test_hosts(threads, launcher):
    """Two ranks on each of two hosts, which are one: the launcher's variables are set as for two, so that they meet through
    MPI, too."""
    if not shutil.which(launcher):
        pytest.skip(f"{launcher} is not installed")
    wrapper = ("export OMPI_COMM_WORLD_LOCAL_SIZE=2 MPI_LOCALNRANKS=2; "
               "export SPMD_HOST=$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)); exec \"$@\"")
    command = [launcher, *(["--oversubscribe"] if "openmpi" in launcher else []), "-n", "4", "bash", "-c", wrapper, "sh"]
    run(threads, *command)
    # As documents start it: by its name, which PATH finds, from a folder that has nothing of that name.
    done = subprocess.run([*command, "spmd-run", threads / "nano.spmd", "--steps=1"], capture_output=True, text=True, timeout=300,
                          env={**ENVIRONMENT, "PATH": f"{BIN}:{os.environ['PATH']}"}, cwd=threads)
    assert done.returncode == 0, done.stdout + done.stderr


def test_variables_of_slurm(threads):
    # As srun sets them for a step of two tasks on this host.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2",
              "SLURM_STEP_NODELIST": "localhost"}
    command = [BIN / "spmd-run", threads / "nano.spmd", "--steps=3", f"--save={threads}/slurm.safetensors"]
    tasks = [subprocess.Popen(command, env={**common, "SLURM_PROCID": str(rank)}, stdout=subprocess.DEVNULL)
             for rank in range(2)]
    assert [task.wait(timeout=300) for task in tasks] == [0, 0]
    assert (threads / "slurm.safetensors").read_bytes() == (threads / "threads.safetensors").read_bytes()
