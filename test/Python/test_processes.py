"""spmd.compile and spmd.load where a launcher has started several processes: the bits of threads, own rows, state that each
process reads alone, and what they do differently refused on all alike."""
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from python_processes import PYTHON

SCRIPT = Path(__file__).parent / "process_cases.py"
TRAINS = ["trains", "global_batch", "evaluates", "local_view", "loaded", "checkpoints", "looks", "initializes"]
# Real processes of Python, which differ in the hashes of strings.
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
OPEN_MPI = ["mpirun.openmpi", "--oversubscribe", "-n", "2", sys.executable]
MPICH = ["mpiexec.hydra", "-n", "2", sys.executable]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def environment(folder, ranks, **variables):
    path = os.pathsep.join([str(Path(__file__).parent.parent.parent / "python-bindings"), os.environ.get("PYTHONPATH", "")])
    known = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    return {**known, "PYTHONPATH": path, "RANKS": str(ranks), "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONWARNINGS": "ignore", **variables}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def results(folder, world):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


def run_processes(folder, world, cases, codes=None, ranks=None):
    """Processes with variables set by hand; what each of them gives."""
    folder.mkdir()
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    started = [subprocess.Popen([PYTHON, SCRIPT, folder, *cases], stderr=subprocess.PIPE, text=True,
                                env=environment(folder.parent, ranks or world, RANK=str(rank), **common))
               for rank in range(world)]
    said = [process.communicate(timeout=600)[1] for process in started]
    assert [process.returncode for process in started] == (codes or [0] * world), said
    return results(folder, world) if codes is None else said


def run_alone(folder, ranks, cases):
    folder.mkdir()
    subprocess.run([PYTHON, SCRIPT, folder, *cases], env=environment(folder.parent, ranks), check=True, timeout=600)
    return results(folder, 1)[0]


@pytest.fixture(scope="module")
def threads(tmp_path_factory, whole):
    """What threads of one process give, by number of ranks."""
    counts = (2, 4) if whole else (2,)
    folder = tmp_path_factory.mktemp("threads")
    return folder, {ranks: run_alone(folder / str(ranks), ranks, TRAINS) for ranks in counts}


@pytest.mark.sample(2)
@pytest.mark.parametrize("world", [2, 4])
def test_bits_of_threads(threads, world):
    folder, expected = threads
    found = run_processes(folder / f"processes{world}", world, TRAINS)
    assert found == [expected[world]] * world


def test_gradients_that_are_sums_across(tmp_path):
    expected = run_alone(tmp_path / "threads", 4, ["scatters"])["scatters"]
    assert expected["bits"][0] == expected["bits"][1] and expected["losses"][4:6] == expected["losses"][6:]
    found = [result["scatters"] for result in run_processes(tmp_path / "processes", 4, ["scatters"])]
    assert found == [expected] + [expected | {"norms": []}] * 3


@pytest.mark.parametrize("launcher", [TORCHRUN, OPEN_MPI], ids=["torchrun", "openmpi"])
@pytest.mark.sample(2)
def test_launchers(threads, launcher):
    if not shutil.which(launcher[0]):
        pytest.skip(f"{launcher[0]} is not installed")
    folder, expected = threads
    own = folder / Path(launcher[0]).name
    own.mkdir()
    done = subprocess.run([*launcher, SCRIPT, own, "trains"], env=environment(folder, 2, **AS_ROOT), capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert results(own, 2) == [{"trains": expected[2]["trains"]}] * 2


@pytest.mark.parametrize("launcher", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])
@pytest.mark.sample(2)
def test_hosts(threads, launcher):
    """Two hosts without common memory, and without a common cache."""
    if not shutil.which(launcher[0]):
        pytest.skip(f"{launcher[0]} is not installed")
    folder, expected = threads
    own = folder / f"hosts.{Path(launcher[0]).name}"
    own.mkdir()
    case = "trains" if launcher is MPICH else "global_batch"
    shared = (case, "checkpoints", "looks", "initializes")
    done = subprocess.run([*launcher, SCRIPT, own, *shared, "alone"], capture_output=True, text=True,
                          env=environment(folder, 2, HOSTS="2", **AS_ROOT), timeout=600)
    assert done.returncode == 0, done.stderr
    first, second = results(own, 2)
    assert first | {"alone": None} == second == {name: expected[2][name] for name in shared} | {"alone": None}
    assert "the state of ranks on several hosts is read by all processes together, in Python by train_step.sync()" in first["alone"]


def test_processes_that_torch_distributed_has_started(threads):
    folder, expected = threads
    own = folder / "spawned"
    own.mkdir()
    script = own / "spawn.py"
    script.write_text(f"""
import os, sys
import torch.distributed as dist, torch.multiprocessing as mp
sys.path.insert(0, {str(SCRIPT.parent)!r})

def main(rank):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{free_port()}", rank=rank, world_size=2)
    import process_cases as cases
    cases.FOLDER, cases.RANK, cases.WORLD = cases.Path({str(own)!r}), rank, 2
    cases.run(["global_batch", "trains"])

if __name__ == "__main__":
    mp.spawn(main, nprocs=2)
""")
    subprocess.run([PYTHON, script], env=environment(folder, 2, GLOO_SOCKET_IFNAME="lo"), check=True, timeout=600)
    assert results(own, 2) == [{name: expected[2][name] for name in ("global_batch", "trains")}] * 2


def test_what_differs_is_refused_alike(tmp_path):
    first, second = (result["refused"] for result in run_processes(tmp_path / "two", 2, ["refused"]))
    assert first["losses"] == second["losses"]
    said = {name: [first["said"][name], second["said"][name]] for name in first["said"]}
    both = {
        "lr": "ValueError: lr of param group 0 is 0.5 on rank 1 and 0.25 on rank 0; every process must call the step with "
              "the same",
        "weight_decay": "ValueError: weight_decay of param group 0 is 0.5 on rank 1 and 0.25 on rank 0; every process must "
                        "call the step with the same",
        "value": "ValueError: argument 'smoothing' is 0.5 on rank 1 and 0.25 on rank 0; every process must call the step "
                 "with the same",
        "shape": "ValueError: batch input 'x' has the shape [4, 1] on rank 1 and [4] on rank 0; only rows may differ in number",
        "rank": "ValueError: expected ranks to be a multiple of the number of processes (2), got 5\n  hint: omit ranks "
                "to run one rank in each process",
    }
    for name, text in both.items():
        assert said[name] == [text, text]
    assert said["ids"][1].startswith("RunError: input 'x': value ") and said["ids"][0].startswith("RunError: rank 1: input 'x'")
    assert all("wrote param 'head.bias'" in text for text in said["write"])


def test_batches_of_several_sizes(tmp_path):
    expected = run_alone(tmp_path / "threads", 2, ["sizes"])["sizes"]
    found = [result["sizes"] for result in run_processes(tmp_path / "processes", 2, ["sizes"])]
    said = [result.pop("said") for result in found]
    assert not expected.pop("said") and found == [expected] * 2
    assert {result["compiles"] for name, result in expected.items() if name != "goes on"} == {1}
    assert said[0] == said[1] and said[0]["rows differ"].startswith(
        "ValueError: the processes pass batches of different numbers of rows, [[3], [3]], [[5], [5]], and with view='local'")
    assert 'hint: use batch="global", so that every process passes the whole batch; or view="local"' in said[0]["filled up"]


def test_batches_from_iterators(tmp_path):
    """The bits of threads; what the processes' iterators do not give alike is refused on both, and training goes on."""
    expected = run_alone(tmp_path / "threads", 2, ["takes"])["takes"]
    found = run_processes(tmp_path / "processes", 2, ["takes", "takes_apart"])
    assert [result["takes"] for result in found] == [expected] * 2
    assert all(result["ended"] == "StopIteration: " and result["left"] == 0 for result in expected.values())
    first, second = (result["takes_apart"] for result in found)
    assert first == second
    same = "; every process must call the step with the same"
    assert first["said"] == {
        "end": f"ValueError: what the step takes of its iterators is 1 value and the end on rank 1 and 2 values on rank 0{same}",
        "count": f"ValueError: what the step takes of its iterators is 0 values on rank 1 and 2 values on rank 0{same}",
        "form": f"ValueError: argument 'data.0.2' is 1 on rank 1 and None on rank 0{same}"}


def test_equal_rows_are_told(tmp_path):
    (told, refused, taken), (untold, *others) = (result["warned"] for result in run_processes(tmp_path / "two", 2, ["warned"]))
    text = "all 2 processes give the same rows of the first batch"
    assert told[0].startswith(text) and not untold
    assert refused.startswith(f"ValueError: {text}") and taken == "nothing" and others == [refused, taken]


def test_a_process_that_ends(tmp_path):
    run_processes(tmp_path / "two", 2, ["dies"], codes=[0, 7])
    said, = results(tmp_path / "two", 1)
    assert "rank 1 ended without a word: process " in said["dies"]
