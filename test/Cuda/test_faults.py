"""What can go wrong on GPUs ends in one sentence that names the place and the hint, with an exit code, on all ranks; nothing
hangs, nothing is left behind."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from python_processes import PYTHON, torchrun

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])
STANDINS = SOURCE / "scripts" / "with-standins"
INPUTS = SOURCE / "test" / "Inputs"

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")

ENVIRONMENT = {**os.environ, "SPMD_BUILD": str(BIN.parent)}


def run(*command, **environment) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=100,
                          env={**ENVIRONMENT, **environment})
    return done.returncode, done.stdout + done.stderr


def compiled(path: pathlib.Path, step: str, *options: str) -> pathlib.Path:
    code, text = run(BIN / "spmd-compile", INPUTS / step, "-o", path, "--target=cuda:sm_90", "--emulation", "--quiet",
                     *options)
    assert code == 0, text
    return path


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> pathlib.Path:
    return compiled(tmp_path_factory.mktemp("faults") / "mlp.spmd", "mlp-sgd.step", "--ranks=2")


def functions() -> list[str]:
    """All that the runtime calls."""
    names = []
    for header in ("DriverApi.h", "NcclApi.h", "CublasLtApi.h"):
        text = (SOURCE / "lib" / "Runtime" / "Cuda" / header).read_text()
        names += re.findall(r"^  X\((\w+)", text, re.MULTILINE)
    return [name.replace("WithFlags", "") if name == "cuGraphInstantiateWithFlags" else name for name in names]


#: Whose failures change nothing: they give something back, or what they do is only to be faster or to say why.
HARMLESS = re.compile(r"Destroy|Release|Free|Unmap|Unload|Abort|Window|cuGetError|Deregister")


def test_every_call_that_fails_ends_the_run(artifact) -> None:
    tried = 0
    for function in functions():
        for number in (1, 3):
            code, text = run(STANDINS, f"fail={function}:{number}", BIN / "spmd-run", artifact, "--steps=4", "--timeout=5")
            if code == 0:
                continue
            tried += 1
            errors = re.findall(r"^spmd-run: error: (.*)", text, re.MULTILINE)
            assert code in (2, 3) and len(errors) == 1, f"{function}:{number}: {code}\n{text}"
            assert re.search("CUDA|NCCL|cuBLASLt", errors[0]), f"{function}:{number}: {errors[0]}"
            assert not HARMLESS.search(function), f"{function} may fail\n{text}"
    print(f"counts: {tried} calls of CUDA's libraries that fail, each an error")
    assert tried > 60


def test_nothing_is_left_after_a_failure(artifact) -> None:
    for function in ("cuMemMap:2", "cuModuleLoadData:3", "cublasLtCreate:2", "ncclCommInitRankConfig:2", "cuGraphLaunch:1",
                     "cuLaunchKernelEx:9", "cuEventCreate:20", "cuStreamEndCapture:2"):
        code, text = run(STANDINS, "leaks=1", f"fail={function}", BIN / "spmd-run", artifact, "--steps=4", "--timeout=5")
        assert code in (2, 3) and "leak" not in text, f"{function}: {code}\n{text}"


@pytest.mark.parametrize("library, found, hint", [
    ("driver", "the CUDA driver, of CUDA 13.0", "update NVIDIA's driver"),
    ("cublaslt", "cuBLASLt 13.1", "update nvidia-cublas-cu12 or nvidia-cublas"),
    ("nccl", "NCCL 2.28", "update nvidia-nccl-cu12 or nvidia-nccl-cu13")])
def test_libraries_older_than_the_artifact_needs(artifact, tmp_path, library, found, hint) -> None:
    copy = tmp_path / "newer.spmd"
    shutil.copytree(artifact, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    assert manifest["needs"] == {"driver": "12.4", "cublaslt": "12.0", "nccl": "2.27"}
    manifest["needs"][library] = "99.1"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    code, text = run(STANDINS, BIN / "spmd-run", copy, "--steps=1")
    assert code == 2 and f"{found} is too old: '{copy}' needs 99.1; {hint}" in text, text


@pytest.mark.parametrize("settings, sentence", [
    (("devices=0",), r"no CUDA-capable device is detected \(.*\); there is no GPU here, or CUDA_VISIBLE_DEVICES hides it"),
    (("fail=cuInit:1",), r"CUDA: cuInit: .*; nvidia-smi says whether driver and GPU work"),
    (("devices=1",), r"this process sees 1 GPU, and 2 ranks of this host need one each \(1 process with 2 ranks\)"),
    (("driver=11080",), "the CUDA driver is too old: it is of CUDA 11.8, and 12.4 is needed; update NVIDIA's driver"),
    (("without=cuFuncLoad",), "the CUDA driver of version 13.0 has no cuFuncLoad; update NVIDIA's driver"),
    (("nccl=21805",), "NCCL is too old: it is 2.18.5, and 2.27.0 is needed; update nvidia-nccl-cu12 or nvidia-nccl-cu13"),
    (("cublaslt=110901",), r"cuBLASLt 11.9 is too old: '.*mlp.spmd' needs 12.0; update nvidia-cublas-cu12 or nvidia-cublas"),
    (("chip=80",), "has kernels for sm_90, which an sm_80 does not run; compile with --target=cuda:sm_80"),
    (("memory=1000000",), r"GPU 0 \(Stand-in\) has 1,000,000 bytes free of 1,000,000, and the step takes 35,651,584"),
], ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_machines_that_do_not_fit(artifact, settings, sentence) -> None:
    code, text = run(STANDINS, *settings, BIN / "spmd-run", artifact, "--steps=1")
    assert code == 2 and re.search(sentence, text), text


def test_libraries_that_are_missing(artifact, tmp_path) -> None:
    code, text = run(BIN / "spmd-run", artifact, "--steps=1", SPMD_CUDA_LIBRARIES=str(tmp_path))
    assert code == 2 and re.search(r"cannot load the CUDA driver \(.*\); name the folder that has it in SPMD_CUDA_LIBRARIES",
                                   text), text
    for library, name in (("libnccl.so.2", "NCCL"), ("libcublasLt.so.13", "cuBLASLt")):
        folder = tmp_path / name
        shutil.copytree(BIN.parent / "test" / "standin", folder)
        (folder / library).write_text("")
        code, text = run(BIN / "spmd-run", artifact, "--steps=1", SPMD_CUDA_LIBRARIES=str(folder))
        assert code == 2 and f"cannot load {name} (" in text, text
        # The option comes before the variable.
        code, text = run(STANDINS, BIN / "spmd-run", artifact, "--steps=1", f"--cuda-libraries={folder}")
        assert code == 2 and f"cannot load {name} (" in text, text


@pytest.mark.parametrize("library, other, sentence", [
    ("libnccl.so.2", "libcublasLt.so.13", "NCCL does not say its version; update nvidia-nccl-cu12 or nvidia-nccl-cu13"),
    ("libcublasLt.so.13", "libnccl.so.2", "cuBLASLt has no function cublasLtGetVersion; update nvidia-cublas-cu12 or nvidia-cublas")])
def test_libraries_that_lack_a_function(artifact, tmp_path, library, other, sentence) -> None:
    folder = shutil.copytree(BIN.parent / "test" / "standin", tmp_path / "libraries")
    shutil.copy(folder / other, folder / library)
    code, text = run(BIN / "spmd-run", artifact, "--steps=1", SPMD_CUDA_LIBRARIES=str(folder))
    assert code == 2 and sentence in text, text


def test_code_that_was_changed(artifact, tmp_path) -> None:
    copy = shutil.copytree(artifact, tmp_path / "copy.spmd")
    code = bytearray((copy / "kernels.sm_90.a").read_bytes())
    code[len(code) // 2] ^= 1
    (copy / "kernels.sm_90.a").write_bytes(code)
    result, text = run(STANDINS, BIN / "spmd-run", copy, "--steps=1")
    assert result == 2 and "kernels.sm_90.a" in text, text


def test_options_for_cpus_are_refused(artifact) -> None:
    code, text = run(STANDINS, BIN / "spmd-run", artifact, "--emulation=plain")
    assert code == 2 and "was compiled for target 'cuda': emulation 'plain' is for targets that run on CPUs" in text, text


@pytest.mark.parametrize("fault, sentence", [
    ("exit:1:5", r"rank 1 exited at command 5 \(gemm\)"),
    ("stall:1:5", r"no rank made progress within the time-out of 2 s: rank 1 is in command 5 \(gemm\)"),
    ("skip:1:2", r"time-out after 2 s on communicator 'gather': rank 0 waits in all_gather of unit0 \(command \d+, .*\)"),
])
def test_faults_of_a_rank(artifact, fault, sentence, tmp_path) -> None:
    code, text = run(STANDINS, BIN / "spmd-run", artifact, "--steps=3", "--timeout=2", f"--inject-fault={fault}",
                     f"--flight-record={tmp_path}")
    assert code == 3 and re.search(sentence, text) and "at fc1, mlp.py:24" in text or "fc2, mlp.py:24" in text, text
    places = places_of(tmp_path, artifact)
    kind = fault.split(":")[0]
    # Where the host of rank 1 is, or how far its device has come.
    assert kind == "skip" or "compute: somewhere; gather: somewhere; reduce: " in places[1], places
    assert re.match(r"rank 0: step 0; .*gather: all_gather of unit0; .*running: all_gather 9", places[0]), places
    assert re.search(r"^  rank 0, step 0: compute: at least \d+ of 24 done; gather: 2 of 3 done, in all_gather of unit0 "
                     r"\(command 9, at fc2, mlp.py:24\); ", text, re.MULTILINE), text


def places_of(folder: pathlib.Path, artifact: pathlib.Path, *options: str) -> list[str]:
    """What the flight records of a run say, held against its plan."""
    code, text = run(PYTHON, SOURCE / "test/tools/spmd-run/Inputs/check_flight.py", folder, artifact, *options)
    assert code == 0, text
    return text.splitlines()


def start(folder: pathlib.Path, artifact: pathlib.Path, settings: list[tuple[str, ...]], *options: str,
          **environment: str) -> list[subprocess.Popen]:
    """A process for each of `settings`, which are those of its stand-ins; the log of rank R is R.log in `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes = []
    for rank, own in enumerate(settings):
        place = {"RANK": str(rank), "WORLD_SIZE": str(len(settings)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(len(settings))}
        with open(folder / f"{rank}.log", "w") as log:
            processes.append(subprocess.Popen([str(STANDINS), *own, str(BIN / "spmd-run"), str(artifact), *options], stdout=log, stderr=log,
                                              env={**ENVIRONMENT, **environment, **place}))
    return processes


def said(folder: pathlib.Path, rank: int) -> list[str]:
    """The errors of a process that `start` has started."""
    return re.findall(r"^spmd-run: error: (.*)", (folder / f"{rank}.log").read_text(), re.MULTILINE)


#: What one process alone may lack or fail in, before a step: the exit code of all, and what they say.
ONLY_THERE = [
    ("driver=11080", 2, "the CUDA driver is too old: it is of CUDA 11.8, and 12.4 is needed; update NVIDIA's driver"),
    ("devices=0", 2, "CUDA: cuInit: no CUDA-capable device is detected (CUDA_ERROR_100, 100); there is no GPU here, or "
                     "CUDA_VISIBLE_DEVICES hides it"),
    ("nccl=21805", 2, "NCCL is too old: it is 2.18.5, and 2.27.0 is needed; update nvidia-nccl-cu12 or nvidia-nccl-cu13"),
    ("cublaslt=110901", 2, "cuBLASLt 11.9 is too old: "),
    ("chip=80", 2, "has kernels for sm_90, which an sm_80 does not run; "),
    ("fail=cublasLtCreate:1", 3, "rank 1: cuBLASLt: cublasLtCreate: "),
    ("fail=cublasLtMatmulAlgoGetHeuristic:1", 3, "rank 1: cuBLASLt: cublasLtMatmulAlgoGetHeuristic: "),
    ("fail=cuEventCreate:15", 3, "rank 1: CUDA: cuEventCreate: ")]


@pytest.mark.parametrize("setting, code, sentence", ONLY_THERE, ids=[setting for setting, *_ in ONLY_THERE])
@pytest.mark.sample(2)
def test_what_one_process_lacks_is_an_error_of_all(artifact, tmp_path, setting, code, sentence) -> None:
    processes = start(tmp_path, artifact, [(), (setting,)], "--steps=1", "--timeout=20")
    began = time.monotonic()
    assert [process.wait(timeout=60) for process in processes] == [code, code]
    assert time.monotonic() - began < 10, "others were waited for"
    ours, = said(tmp_path, 0)
    assert sentence in ours and ours.startswith("rank 1: ") and said(tmp_path, 1) in ([ours], [ours.removeprefix("rank 1: ")], [])


@pytest.mark.parametrize("settings, environment, code", [
    ([("devices=1",)] * 2, {}, 2),
    ([("devices=2", "env", "CUDA_VISIBLE_DEVICES=1")] * 2, {}, 2),
    ([("devices=2", "env", f"CUDA_VISIBLE_DEVICES={gpu}") for gpu in (1, 0)], {}, 0),
    ([("devices=1",)] * 2, {"SPMD_SHARE_GPUS": "1"}, 0)], ids=["one", "same", "own", "shared"])
def test_processes_that_see_one_gpu_each(artifact, tmp_path, settings, environment, code) -> None:
    """The same one is an error of all, unless that is meant."""
    processes = start(tmp_path, artifact, settings, "--steps=1", "--timeout=20", "--log-ranks=all", **environment)
    assert [process.wait(timeout=60) for process in processes] == [code, code], (tmp_path / "0.log").read_text()
    assert len(said(tmp_path, 0) + said(tmp_path, 1)) == code
    for sentence in said(tmp_path, 0) + said(tmp_path, 1):
        assert re.fullmatch(r"rank 1 has the same GPU as rank 0: GPU 0 \(Stand-in, GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\); "
                            r"let each process see others \(CUDA_VISIBLE_DEVICES\), or start no more ranks on a host than it "
                            r"has GPUs \(--nproc-per-node\); SPMD_SHARE_GPUS=1 lets ranks share one", sentence), sentence


def launch(ranks: int) -> list[str]:
    return torchrun(f"--nproc-per-node={ranks}", "--no-python")


@pytest.mark.parametrize("fault, sentence", [
    (("--inject-fault=exit:1:5",), r"rank 1 exited at command 5 \(gemm\)"),
    (("--inject-fault=stall:1:5",), r"no rank of this process made progress within the time-out of 2 s: rank 1 is in "
                                    r"command 5 \(gemm\)"),
    (("--inject-fault=skip:1:2",), r"time-out after 2 s on communicator '\w+': rank \d waits in \w+ of unit0"),
], ids=["exit", "stall", "skip"])
@pytest.mark.sample(2)
def test_faults_of_a_process(artifact, fault, sentence) -> None:
    code, text = run(STANDINS, *launch(2), BIN / "spmd-run", artifact, "--steps=3", "--timeout=2", *fault, "--log-ranks=all")
    assert code != 0, text
    said = set(re.findall(r"spmd-run: error: (.*)", text))
    assert len(said) == 1 and re.search(sentence, said.pop()), text


def test_many_issued_steps_are_no_hang(tmp_path) -> None:
    """Steps that nobody waits for, each shorter than the time-out, all of them together longer; the loss is read when it is
    asked for, and is that of steps that are waited for one by one."""
    artifact = compiled(tmp_path / "one.spmd", "mlp-sgd.step", "--ranks=1")
    program = f"""
import sys, time
sys.path.insert(0, {str(SOURCE / "python-bindings")!r})
import numpy, spmd
trainer = spmd.load({str(artifact)!r}, timeout=1.0)
arrays = [numpy.arange(numpy.prod(info.shape)).reshape(info.shape).astype("int64" if info.dtype == "i64" else "float32") % 5
          for info in trainer.inputs]
trainer.run(arrays), trainer.run(arrays)
begin, issued = time.monotonic(), 0
for _ in range(8):
    if sys.argv[1] == "issue":
        trainer.issue(arrays)
    else:
        trainer.run(arrays)
issued = time.monotonic() - begin
loss, = trainer.results()
print(float(loss).hex(), issued < 1, time.monotonic() - begin > 2)
"""
    code, text = run(STANDINS, "slow=15000", PYTHON, "-c", program, "issue")
    assert code == 0 and text.split()[1:] == ["True", "True"], text
    assert run(STANDINS, PYTHON, "-c", program, "run")[1].split()[0] == text.split()[0]


def test_who_prints_the_error_of_another_process(artifact, tmp_path) -> None:
    """Who finds it, rank 0, and those that print."""
    for options, printed in (((), [1, 0]), (("--log-ranks=1",), [1, 1])):
        processes = start(tmp_path, artifact, [(), ("skip=ncclReduceScatter:1",)], "--steps=3", "--timeout=1", *options)
        assert [process.wait(timeout=60) for process in processes] == [3, 3]
        found = [said(tmp_path, rank) for rank in range(2)]
        assert [len(errors) for errors in found] == printed, found
        assert all("waits in reduce_scatter of unit0" in error for errors in found for error in errors), found


def test_a_call_that_fails_in_one_process(artifact) -> None:
    code, text = run(STANDINS, "fail=cuGraphLaunch:2", "rank=1", *launch(2), BIN / "spmd-run", artifact, "--steps=6",
                     "--timeout=5")
    assert code != 0 and "cuGraphLaunch" in text, text


@pytest.mark.parametrize("where, steps", [("ncclAllGather:1", 3), ("cuGraphLaunch:6", 1000), ("cuGraphLaunch:6", 7)],
                         ids=["first", "graph", "last"])
def test_a_process_that_is_killed(artifact, tmp_path, where, steps) -> None:
    """In the first step, or in one that is a graph: the other one says which rank and the collective that it waits in, also
    where NCCL has found an error first, and leaves no shared memory. One that is at its next step already, where all meet,
    says of the collective in the line about its rank."""
    before = set(os.listdir("/dev/shm"))
    processes = start(tmp_path, artifact, [(), (f"stop={where}",)], f"--steps={steps}", "--timeout=20")
    while pathlib.Path(f"/proc/{processes[1].pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.02)
    time.sleep(0.5)  # rank 0 comes to its collective
    processes[1].send_signal(signal.SIGKILL)
    processes[1].wait(timeout=30)  # from now on NCCL finds it missing
    began = time.monotonic()
    assert processes[0].wait(timeout=30) == 3
    assert time.monotonic() - began < 10
    sentence, = said(tmp_path, 0)
    place = r"; on communicator '\w+' rank 0 waits in \w+(?: of unit0)? \(command \d+, .*at fc[12], mlp\.py:\d+\)"
    assert re.fullmatch(r"rank 1 ended without a word: process \d+ is gone" + (f"(?:{place})?" if steps == 1000 else place), sentence), sentence
    assert re.search(r"^  rank 0, step \d: .*gather: \d of 3 done, in all_gather of unit0 \(command \d+, at fc[12], mlp\.py:\d+\)",
                     (tmp_path / "0.log").read_text(), re.MULTILINE)
    assert set(os.listdir("/dev/shm")) <= before


def test_a_process_that_is_stopped(artifact, tmp_path) -> None:
    """In the middle of a run whose steps are graphs: a collective is timed by itself, from when it began."""
    processes = start(tmp_path, artifact, [(), ("stop=cuGraphLaunch:6",)], "--steps=1000000", "--timeout=2", "--log-ranks=all",
                      f"--flight-record={tmp_path / 'flight'}")
    try:
        assert processes[0].wait(timeout=60) == 3, (tmp_path / "0.log").read_text()
        text = (tmp_path / "0.log").read_text()
    finally:
        processes[1].send_signal(signal.SIGCONT)
        processes[1].wait(timeout=30)
    found = re.search(r"time-out after 2 s on communicator '\w+': rank 0 waits in (\w+)(?: of unit0)? \(command (\d+), ", text)
    assert found, text
    place = places_of(tmp_path / "flight", artifact)[0]
    assert f"{found[1]} {found[2]}" in place.split("running: ")[1], place
    assert int(re.match(r"rank 0: step (\d+);", place)[1]) >= 5, place


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("options", [(), ("--graph=off",)], ids=["graph", "commands"])
@pytest.mark.sample(2)
def test_a_hang_with_a_later_step_issued(artifact, tmp_path, processes, options) -> None:
    """A device that does not come to a collective, when the hosts have issued the step after that, too: step and collective
    are named, and the losses of the steps before are printed."""
    plan = json.loads((artifact / "train_step.plan.json").read_text())
    first, last = (i for i, command in enumerate(plan["commands"]) if command.get("comm") == "gather")
    losses = re.findall(r"^ +\d+ +[0-9.]+", run(STANDINS, BIN / "spmd-run", artifact, "--steps=12")[1], re.MULTILINE)
    launcher = launch(2) if processes == 2 else []
    for command, steps in ((last, 9), (first, 4)):
        meeting, flight, log = 2 * steps + 1 + (command == last), tmp_path / str(steps), tmp_path / f"{steps}.log"
        code, text = run(STANDINS, f"stuck=1:{meeting}", f"--log={log}", *launcher, BIN / "spmd-run", artifact, "--steps=12", "--timeout=2",
                         f"--flight-record={flight}", "--log-ranks=0", *options)
        sentence = rf"time-out after 2 s on communicator 'gather': rank \d waits in all_gather of unit0 \(command {command}, .*at fc"
        assert code != 0 and re.search(sentence, text), text
        assert re.findall(r"^ +\d+ +[0-9.]+", text, re.MULTILINE) == losses[:steps], text
        for rank, place in enumerate(places_of(flight, artifact)[:2]):
            assert re.match(rf"rank {rank}: step {steps}; .*running: all_gather {command}\b", place), place
        if not options and processes == 1:  # the first step is no graph, and one is issued behind the one that hangs
            assert log.read_text().split().count("cuGraphLaunch") == 2 * (steps + 1)


@pytest.mark.parametrize("edit, sentence", [
    (("blocks", lambda n: n + 1), r"certificate rule 9: kernel '\w+' was not compiled for the launch that the manifest has"),
    (("threads", lambda n: 2 * n), r"certificate rule 9: kernel '\w+' was not compiled for the launch"),
    (("iterations", lambda n: n), r"certificate rule 9.*the kernel was compiled for"),
    (("table", lambda n: n), r"kernels\.sm_90\.a' does not say what its kernels take; compile the step again"),
])
def test_kernels_are_launched_as_they_were_compiled(artifact, edit, sentence: str, tmp_path) -> None:
    """Of an artifact without hashes: behind the hash of a file nobody looks at its content."""
    what, change = edit
    folder = tmp_path / "edited.spmd"
    shutil.copytree(artifact, folder)
    manifest = json.loads((folder / "manifest.json").read_text())

    def without_hashes(value):
        if isinstance(value, dict):
            return {k: without_hashes(v) for k, v in value.items() if k not in ("hash", "ptx_hash")}
        return [without_hashes(v) for v in value] if isinstance(value, list) else value

    def first(value, name: str):
        """The first object that has `name`."""
        if isinstance(value, dict) and name in value:
            return value
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return next((found for child in children if (found := first(child, name)) is not None), None)

    manifest = without_hashes(manifest)
    if what == "table":
        archive = folder / "kernels.sm_90.a"
        archive.write_bytes(archive.read_bytes().replace(b"kernel_table/   ", b"another_name/   "))
    elif what == "iterations":
        plan, = folder.glob("*.plan.json")
        text = plan.read_text()
        edited = re.sub(r'"parallel":4\b', '"parallel":5', text, count=1)
        assert edited != text
        plan.write_text(edited)
    else:
        launch = first(manifest, what)
        launch[what] = change(launch[what])
    (folder / "manifest.json").write_text(json.dumps(manifest))
    code, text = run(STANDINS, BIN / "spmd-run", folder, "--steps=1", "--timeout=5")
    assert code == 2 and re.search(sentence, text), text


def test_settings_that_are_none() -> None:
    for setting, message in (("schedule=fofo", "schedule=fofo: expected fifo|lifo|random:N|avoid:N"),
                             ("fail=cuMemCrate:2", "no library has a function cuMemCrate"),
                             ("schedul=fifo", "unknown setting schedul; allowed: ")):
        code, text = run(STANDINS, setting, "true")
        assert code == 2 and f"with-standins: {message}" in text
