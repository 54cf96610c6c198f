"""Artifacts for GPUs train on the stand-ins of NVIDIA's libraries: the bits of the emulated artifact in every launch, in
whatever order a GPU may choose, with no access that nothing orders, in the bytes that were planned."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch
from python_processes import PYTHON, torchrun

import spmd

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])
STANDINS = SOURCE / "scripts" / "with-standins"
NANO = SOURCE / "examples" / "gpt2-nano.step"
TINY = SOURCE / "test" / "Inputs" / "gpt-tiny.step"
BF16 = SOURCE / "test" / "Inputs" / "gpt-tiny-bf16-sgd.step"
#: As many as each has batches of.
STEPS = {NANO: 3, TINY: 3, BF16: 2}

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")


def call(*command, **environment) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, "SPMD_BUILD": str(BIN.parent), **environment}, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def compile_pair(folder: pathlib.Path, step: pathlib.Path, ranks: int, *options: str) -> tuple[pathlib.Path, pathlib.Path]:
    """The artifacts for a GPU and for its emulation, with the same commands."""
    made = []
    for target, extra in (("cuda", ["--emulation"]), ("emulate", [])):
        chosen = "".join(re.sub(r"\W+", "-", option) for option in options)
        path = folder / f"{step.stem}-{ranks}-{target}{chosen}.spmd"
        if not path.exists():
            call(BIN / "spmd-compile", step, "-o", path, f"--ranks={ranks}", f"--target={target}:sm_90", "--quiet",
                 *extra, *options)
        made.append(path)
    return made[0], made[1]


def train(artifact: pathlib.Path, saved: pathlib.Path, steps: int, *options: str, settings: tuple[str, ...] = (),
          launcher: tuple[str, ...] = ()) -> str:
    """Trains on the stand-ins; what is found fails the run."""
    text = call(STANDINS, *settings, *launcher, BIN / "spmd-run", artifact, f"--steps={steps}",
                f"--save={saved}", *options)
    return "\n".join(re.findall(r"^ +\d+ +[0-9.]+", text, re.MULTILINE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="module")
def llama(folder) -> pathlib.Path:
    """Rotary positions, grouped-query attention, SwiGLU, RMS norm; AdamW and clipping."""
    sys.path.insert(0, str(SOURCE / "test" / "Models"))
    import own

    torch.manual_seed(0)
    model = own.Llama(vocabulary=93, width=64, heads=4, kv_heads=2)
    batches = [tuple(torch.randint(0, 93, (2, 24)) for _ in range(2)) for _ in range(2)]
    step = folder / "llama-nano.step"
    spmd.capture(own.clipped_step, model, torch.optim.AdamW(model.parameters(), lr=1e-3), *batches[0], reference=batches).save(step)
    STEPS[step] = len(batches)
    return step


@pytest.fixture(scope="module")
def expected(folder):
    """The losses and the state of the emulated artifact."""
    known = {}

    def get(step: pathlib.Path, ranks: int, *options: str) -> tuple[pathlib.Path, str, bytes]:
        cuda, emulated = compile_pair(folder, step, ranks, *options)
        if emulated not in known:
            saved = folder / "emulated.safetensors"
            text = call(BIN / "spmd-run", emulated, f"--steps={STEPS[step]}", f"--save={saved}", "--emulation=plain")
            known[emulated] = "\n".join(re.findall(r"^ +\d+ +[0-9.]+", text, re.MULTILINE)), saved.read_bytes()
        return cuda, *known[emulated]
    return get


def check(expected, folder, step, ranks, *options, compiled=("--epilogues=bias,residual",), **how) -> None:
    artifact, losses, state = expected(step, ranks, *compiled)
    saved = folder / "trained.safetensors"
    assert train(artifact, saved, STEPS[step], *options, **how) == losses
    assert saved.read_bytes() == state


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.sample(2)
def test_has_the_bits_of_the_emulation(expected, folder, ranks) -> None:
    check(expected, folder, NANO, ranks, settings=("leaks=1",))


@pytest.mark.parametrize("launcher", [(), tuple(torchrun("--nproc-per-node=2", "--no-python"))], ids=["threads", "torchrun"])
@pytest.mark.sample(2)
def test_llama_has_the_bits_of_the_emulation(expected, folder, llama, launcher) -> None:
    check(expected, folder, llama, 2, settings=("leaks=1", "schedule=random:5"), launcher=launcher)


def test_communicators_along_axes(expected, folder) -> None:
    mesh = ("--epilogues=bias,residual", "--mesh=replicate:2,shard:2", "--policy=class:Block")
    check(expected, folder, TINY, 4, compiled=mesh, settings=("leaks=1",))


def test_parameters_kept_over_groups(expected, folder) -> None:
    groups = ("--epilogues=bias,residual", "--reshard-after-forward=2", "--policy=class:Block")
    check(expected, folder, TINY, 4, compiled=groups, settings=("leaks=1", "schedule=random:3"))


def test_trains_without_graphs(expected, folder) -> None:
    check(expected, folder, NANO, 2, "--graph=off", settings=("leaks=1",))


def test_every_access_checked(expected, folder) -> None:
    check(expected, folder, TINY, 2, settings=("kernels=checked",))


def test_bf16(expected, folder) -> None:
    check(expected, folder, BF16, 2, compiled=("--epilogues=none",))


@pytest.mark.parametrize("step", [TINY, BF16], ids=["f32", "bf16"])
@pytest.mark.sample(2)
def test_bias_gradients(expected, folder, step) -> None:
    """The library sums what the products of weights' gradients read; over ranks the sums are reduced as ever."""
    compiled = (f"--epilogues={'bias,residual,' if step == TINY else ''}bias_gradient",)
    plan = json.loads((expected(step, 2, *compiled)[0] / "train_step.plan.json").read_text())
    assert sum("bias_gradient" in command for command in plan["commands"]) == 8  # four linear layers in each block
    check(expected, folder, step, 2, compiled=compiled, settings=("schedule=random:2",))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("epilogues", ["bias,residual,gelu_tanh_backward", "bias,residual,gelu_tanh_backward,bias_gradient"])
@pytest.mark.sample(2)
def test_gradients_of_gelu(expected, folder, epilogues, ranks) -> None:
    """The library reads what gelu was applied to, and may sum what it makes of it."""
    compiled = (f"--epilogues={epilogues}",)
    plan = json.loads((expected(TINY, ranks, *compiled)[0] / "train_step.plan.json").read_text())
    gradients = [command for command in plan["commands"] if command.get("activation") == "gelu_tanh_backward"]
    assert [command.get("bias_gradient_of") for command in gradients] == 2 * ["c" if "bias_g" in epilogues else None]
    check(expected, folder, TINY, ranks, compiled=compiled, settings=("leaks=1", "schedule=random:4"))


@pytest.mark.parametrize("left_out", ["gelu_tanh_backward", "bias_gradient"])
@pytest.mark.sample(2)
def test_a_library_without_an_epilogue(folder, left_out) -> None:
    """The error says which product it is, and how to do without."""
    is_gelu = left_out == "gelu_tanh_backward"
    artifact = compile_pair(folder, TINY, 1, f"--epilogues={'bias,' if is_gelu else ''}{left_out}")[0]
    said = set()
    for number in range(1, 40):
        done = subprocess.run([str(STANDINS), f"fail=cublasLtMatmulAlgoGetHeuristic:{number}:15", str(BIN / "spmd-run"),
                               str(artifact), "--steps=1"], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "SPMD_BUILD": str(BIN.parent), "SPMD_CUBLASLT_CACHE": "none"})
        if done.returncode == 0:
            break
        said |= set(re.findall(r"has no algorithm for (gemm .*)", done.stderr))
    expected = ("gemm f32 128,128,32 ld 32,128,128 gelu_tanh_backward; " if is_gelu else
                "gemm f32 32,128,128 ld 32,128,128 trans_a bias_gradient a; ")
    expected += f"spmd-compile --epilogues=LIST without {left_out} compiles it without"
    assert any(line.startswith(expected) for line in said), said
    assert any(left_out not in line for line in said), said


@pytest.mark.parametrize("schedule", ["lifo", "avoid:0", "avoid:1", "avoid:2", "avoid:3",
                                      *(f"random:{seed}" for seed in range(1, 21))])
@pytest.mark.sample(4)
def test_any_order_gives_the_same(expected, folder, schedule) -> None:
    check(expected, folder, TINY, 4, settings=(f"schedule={schedule}",),
          compiled=("--epilogues=bias,residual", "--policy=class:Block"))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("launcher", ["torchrun", "mpirun.openmpi", "mpirun.mpich"])
@pytest.mark.sample(3)
def test_processes(expected, folder, launcher, ranks) -> None:
    if launcher != "torchrun" and not shutil.which(launcher):
        pytest.skip(f"no {launcher}")
    words = {"torchrun": torchrun(f"--nproc-per-node={ranks}", "--no-python"),
             "mpirun.openmpi": (launcher, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)),
             "mpirun.mpich": (launcher, "-n", str(ranks))}[launcher]
    check(expected, folder, TINY, ranks, launcher=words, settings=("leaks=1",),
          compiled=("--epilogues=bias,residual", "--policy=class:Block"))


def test_a_step_is_a_few_calls(expected, folder) -> None:
    """Of a process with one rank, from the third step on: copies of what goes in, one launch, an event."""
    artifact, _, _ = expected(NANO, 1, "--epilogues=bias,residual")
    log = folder / "calls"
    call(STANDINS, f"--log={log}", BIN / "spmd-run", artifact, "--steps=6", "--quiet")
    calls = log.read_text().split()
    last, before = [i for i, name in enumerate(calls) if name == "cuGraphLaunch"][-1:-3:-1]
    counts = collections.Counter(name for name in calls[before:last] if name not in ("cuEventQuery", "ncclCommGetAsyncError"))
    print("counts: calls of the driver in a step of gpt2-nano:", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
    assert sum(counts.values()) <= 10, counts
    assert counts["cuGraphLaunch"] == 1
    assert counts["cuMemcpyHtoDAsync"] == 1, "inputs and hyper-parameters are one block"
    assert counts["cuMemcpyDtoHAsync"] == 1, "outputs are another"


def test_what_older_steps_gave_can_be_read(folder, tmp_path) -> None:
    """Of the last eight, in any order, by ranks of one process and of two, also when later ones are not over; of the CPU
    only the last."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, sys
sys.path.insert(0, {str(SOURCE / "python-bindings")!r})
import numpy, spmd
world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
def batch(trainer, step):
    made = [numpy.random.default_rng(step).integers(0, 5, info.shape) for info in trainer.inputs]
    return [array[rank * len(array) // world:(rank + 1) * len(array) // world] for array in made]
with spmd.load(sys.argv[1]) as trainer:
    expected = [trainer.run(batch(trainer, step)) for step in range(12)]
with spmd.load(sys.argv[1]) as trainer:
    for step in range(12):
        trainer.issue(batch(trainer, step))
    kept = trainer.steps_kept()
    for ago in (*range(kept - 1, -1, -1), 1):
        if ago < kept:
            assert trainer.results(ago) == expected[11 - ago], ago
    try:
        trainer.results(kept)
    except spmd.RunError as error:
        os.write(1, f"{{kept}}: {{error}}\\n".encode())
""")
    cuda, emulated = compile_pair(folder, TINY, 2, "--policy=class:Block")
    said = "8: output 0 of the step 8 before the latest: that of the last 8 steps can be read\n"
    for settings in ((), ("schedule=lifo",)):
        assert call(STANDINS, *settings, PYTHON, script, cuda) == said
    assert call(STANDINS, *torchrun("--nproc-per-node=2"), script, cuda) == 2 * said
    assert call(PYTHON, script, emulated) == \
        "1: output 0 of the step 1 before the latest: it is read before the next step is issued\n"


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.sample(2)
def test_losses_are_read_behind_the_device(folder, tmp_path, ranks) -> None:
    """spmd-run issues steps whose losses it has not read, and prints and logs all of them in order; also those before a step
    that fails."""
    cuda, emulated = compile_pair(folder, TINY, ranks)
    plain = call(BIN / "spmd-run", emulated, "--steps=12")
    losses = re.findall(r"^ +\d+ +[0-9.]+", plain, re.MULTILINE)
    log = tmp_path / "calls"
    found = call(STANDINS, f"--log={log}", BIN / "spmd-run", cuda, "--steps=12", f"--log={tmp_path / 'log.jsonl'}")
    assert re.findall(r"^ +\d+ +[0-9.]+", found, re.MULTILINE) == losses and len(losses) == 12
    assert [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == list(range(12))
    done = subprocess.run([str(STANDINS), f"fail=cuGraphLaunch:{8 * ranks}:700", str(BIN / "spmd-run"), str(cuda), "--steps=12"], text=True,
                          capture_output=True, env={**os.environ, "SPMD_BUILD": str(BIN.parent)}, timeout=300)
    # The first step is no graph.
    assert done.returncode == 3 and "cuGraphLaunch" in done.stderr, done.stdout + done.stderr
    assert re.findall(r"^ +\d+ +[0-9.]+", done.stdout, re.MULTILINE) == losses[:8], done.stdout


def test_the_host_takes_little_time(folder) -> None:
    """What it does for a step beside a device that has always finished; the least of many, since the machine is shared."""
    artifact, seconds = compile_pair(folder, NANO, 1, "--epilogues=bias,residual")[0], folder / "seconds"
    program = f"""
import sys, time
sys.path.insert(0, {str(SOURCE / "python-bindings")!r})
import numpy, spmd
from spmd import native
trainer = spmd.load({str(artifact)!r})
arrays = [numpy.zeros(info.shape, "int64" if info.dtype == "i64" else "float32") for info in trainer.inputs]
times = []
call = trainer._library.spmd_step
class Timed:
    def __call__(self, *arguments):
        begin = time.perf_counter()
        result = call(*arguments)
        times.append(time.perf_counter() - begin)
        return result
object.__setattr__(trainer._library, "spmd_step", Timed())
for _ in range(500):
    trainer.run(arrays)
print(sorted(times[10:])[len(times) // 10], file=open({str(seconds)!r}, "w"))
"""
    call(STANDINS, "execute=0", "check=0", PYTHON, "-c", program)
    microseconds = float(seconds.read_text()) * 1e6
    print(f"counts: {microseconds:.0f} µs of the host for a step of gpt2-nano, execution switched off")
    assert microseconds <= 50


def test_the_driver_gives_what_the_manifest_says(folder, tmp_path) -> None:
    """To the byte, where a device gives memory in pieces of 2 MiB: the arena, which has the workspaces of products."""
    artifact = compile_pair(folder, NANO, 2, "--epilogues=bias,residual")[0]
    manifest = json.loads((artifact / "manifest.json").read_text())
    assert all(entry["bytes"] is None for entry in manifest["outside_arena"]), "nothing beside the arena that is known"
    assert manifest["arena"]["classes"]["workspace"] == 32 << 20
    piece = 2 << 20
    planned = manifest["ranks"] * (-(-manifest["arena"]["bytes"] // piece) * piece)
    done = subprocess.run([str(STANDINS), "peak=1", str(BIN / "spmd-run"), str(artifact), "--steps=4"], capture_output=True,
                          text=True, env={**os.environ, "SPMD_BUILD": str(BIN.parent)}, timeout=300)
    assert done.returncode == 0 and f"stand-in: {planned} bytes of device memory at most" in done.stderr, done.stderr


def test_algorithms_are_chosen_once(folder, tmp_path) -> None:
    """By library version, device and problem; a list of them that is broken is made again, and none is needed."""
    artifact, kept, log = compile_pair(folder, TINY, 2, "--policy=class:Block")[0], tmp_path / "kept" / "here", tmp_path / "calls"

    def run(*settings: str, cache: pathlib.Path = kept) -> tuple[int, str, str]:
        log.unlink(missing_ok=True)
        done = subprocess.run([str(STANDINS), f"--log={log}", *settings, str(BIN / "spmd-run"), str(artifact), "--steps=2"],
                              capture_output=True, text=True, timeout=300,
                              env={**os.environ, "SPMD_BUILD": str(BIN.parent), "SPMD_CUBLASLT_CACHE": str(cache)})
        assert done.returncode == 0, done.stderr
        losses = "\n".join(re.findall(r"^ +\d+ +[0-9.]+", done.stdout, re.MULTILINE))
        return log.read_text().split().count("cublasLtMatmulAlgoGetHeuristic"), done.stderr, losses

    chosen, _, losses = run()
    file, = kept.iterdir()
    whole = file.read_bytes()
    # Blocks have the same problems, and so has the second rank.
    assert 0 < chosen == len(whole.splitlines()) - 2
    assert file.name.startswith("cublaslt-130100-") and b"Stand-in, sm_90" in whole.splitlines()[0]
    assert run() == (0, "", losses)
    for broken in (whole[:-30], whole.replace(b"f32 ", b"f64 ", 1), b"", b"\n\n"):
        file.write_bytes(broken)
        count, said, found = run()
        assert (count, found) == (chosen, losses)
        assert said == f"spmd: '{file}' is no list of algorithms of cuBLASLt; they are chosen again\n"
        assert file.read_bytes() == whole
    assert run("cublaslt=130200")[0] == chosen and len(list(kept.iterdir())) == 2
    # What the library refuses now is chosen again.
    changed = re.sub(rb"(?m)^[0-9a-f]{16} (?=[0-9a-f]{16} 0)", b"0123456789abcdef ", whole).splitlines(keepends=True)[:-1]
    text = b"".join(changed)
    value = 14695981039346656037
    for byte in text:
        value = (value ^ byte) * 1099511628211 % 2**64
    file.write_bytes(text + f"{value:016x}\n".encode())
    assert run() == (chosen, "", losses) and file.read_bytes() == whole
    (tmp_path / "file").write_text("")
    assert run(cache=tmp_path / "file" / "below") == (2 * chosen, "", losses)  # by each rank


def test_streams_and_communicators_are_as_the_plan_says(folder, tmp_path) -> None:
    """Collectives go before what computes, and hold no more of the device than is left by others in flight."""
    artifact = tmp_path / "tiny.spmd"
    shutil.copytree(compile_pair(folder, TINY, 2, "--policy=class:Block")[0], artifact)
    plan = json.loads((artifact / "train_step.plan.json").read_text())
    assert plan["priorities"] == {"gather": 1, "reduce": 1, "scalar": 1}
    assert plan["max_blocks"] == {"gather": 32, "reduce": 32, "scalar": 32}
    plan["priorities"] = {"gather": 2, "reduce": 1}
    plan["max_blocks"] = {"gather": 5, "reduce": 1000}
    (artifact / "train_step.plan.json").write_text(json.dumps(plan))
    manifest = json.loads((artifact / "manifest.json").read_text())
    del manifest["programs"][0]["hash"]
    (artifact / "manifest.json").write_text(json.dumps(manifest))
    done = subprocess.run([str(STANDINS), "made=1", str(BIN / "spmd-run"), str(artifact), "--steps=1"], capture_output=True,
                          text=True, env={**os.environ, "SPMD_BUILD": str(BIN.parent)}, timeout=300)
    assert done.returncode == 0, done.stderr
    made = collections.Counter(re.findall("stand-in: a (.*)", done.stderr))
    # Of each of two ranks: compute and scalar last, reduce behind gather. The device of the stand-in has 132 multiprocessors.
    assert made == {"stream of priority 0": 4, "stream of priority -4": 2, "stream of priority -5": 2,
                    "communicator with at most 5 thread blocks": 2, "communicator with at most 33 thread blocks": 4}


def test_the_first_number_that_is_not_finite_is_named(folder, tmp_path) -> None:
    """The commands and ranks that --check-finite names on the emulated artifact, without a graph; and what is fine is."""
    said = []
    for artifact, prefix in zip(compile_pair(folder, TINY, 2), ((STANDINS,), ())):
        bad = tmp_path / artifact.name
        call(sys.executable, SOURCE / "test/Runtime/Inputs/tamper.py", artifact, bad, "tensor", "weights.safetensors",
             "h.0.mlp.c_fc.weight", "1", "3e38")
        done = subprocess.run([*map(str, prefix), BIN / "spmd-run", bad, "--steps=2", "--check-finite"],
                              capture_output=True, text=True, env={**os.environ, "SPMD_BUILD": str(BIN.parent)})
        assert done.returncode == 1, done.stdout + done.stderr
        said.append(done.stderr[done.stderr.index("after step 0"):])
    assert re.search(r"the first infinity is of command \d+ \(.*\) on rank \d at .*\.py", said[0]), said[0]
    assert said[0] == said[1]
    log = tmp_path / "log"
    call(STANDINS, f"--log={log}", BIN / "spmd-run", compile_pair(folder, TINY, 2)[0], "--steps=3", "--check-finite")
    assert "cuGraphLaunch" not in log.read_text()


def test_units_are_ranges_of_a_profiler(folder, tmp_path) -> None:
    """Where one is attached, and only then: a step, in it its units, and collectives by themselves."""
    artifact, log = compile_pair(folder, TINY, 2, "--policy=class:Block", "--epilogues=none")[0], tmp_path / "ranges"
    library = BIN.parent / "test" / "standin" / "libnvtx-injection.so"
    command = (STANDINS, BIN / "spmd-run", artifact, "--steps=3", "--quiet", "--ranks=2")
    call(*command, NVTX_LOG=str(log))
    assert not log.exists()
    call(*command, NVTX_LOG=str(log), NVTX_INJECTION64_PATH=str(library))
    lines = log.read_text().splitlines()
    steps = [line for line in lines if not line.startswith(" ")]
    # The first step and the captured one have units in them; all that are launched are one range.
    assert steps.count("spmd: step of gpt-tiny") == 2 * 3 and len(set(steps) - {"spmd: step of gpt-tiny"}) >= 1, steps
    inner = {line.strip().removeprefix("spmd: ") for line in lines if line.startswith(" ")}
    assert {"h.0", "h.1"} <= inner | {line.removeprefix("spmd: ") for line in steps}, inner
    assert {"all_gather of h.0", "reduce_scatter of h.0", "all_gather of h.1", "reduce_scatter of h.1"} <= inner, inner
    assert "left open" not in log.read_text() and "without" not in log.read_text() and "bad" not in log.read_text()
    call(*command, NVTX_INJECTION64_PATH=str(tmp_path / "none.so"))
