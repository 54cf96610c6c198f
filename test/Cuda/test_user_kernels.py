"""Kernels of the user's, in cubins, train on the stand-ins of NVIDIA's libraries as eager PyTorch; what does not fit is
refused where the step calls them. The kernels are those of docs/custom-kernels.md, compiled for a GPU, and for the host
to stand in for them."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import spmd
from spmd.tools import find_tool

SOURCE = Path(os.environ["SPMD_SOURCE"])
STANDINS = SOURCE / "scripts" / "with-standins"
PRELUDE = SOURCE / "test/Cuda/Inputs/cuda_prelude.h"

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")

_CPUS, _GPUS = (SOURCE / "docs/custom-kernels.md").read_text().split("## On GPUs")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


# A grid, a block and numbers of every type: y[i] = (wide ? b : a) * x[i] + first + second - third, and flag.
_MORE = r"""
extern "C" __global__ void typed(float *y, double a, const float *x, bool wide, int first, unsigned second, int64_t third,
                                 float b) {
  unsigned long i = (((unsigned long)blockIdx.z * 2 + blockIdx.y) * 3 + blockIdx.x) * 8 + threadIdx.y * 4 + threadIdx.x;
  y[i] = (wide ? b : (float)a) * x[i] + (float)(first + (int64_t)second - third);
}
"""
# Named otherwise on the host, where the stand-in has the name.
_STAND_INS = r"""
STAND_IN(host_gained, gained, 4 * INT(4) * INT(5), 4 * INT(5), 0, -4 * INT(4) * INT(5), 0, 0)
STAND_IN(host_gained_backward, gained_backward, 4 * INT(6) * INT(7), 4 * INT(6) * INT(7), 4 * INT(7), 0,
         -4 * INT(6) * INT(7), -4 * INT(7), 0, 0)
static void scaled(const float *x, const float *gain, float *y, int n, int columns, float power, int64_t, int64_t) {
  for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < (blockIdx.x + 1) * 256 && (int)i < n; i += blockDim.x)
    y[i] = x[i] * gain[i % columns] * power;
}
STAND_IN(scaled, scaled_kernel, 4 * INT(3), 4 * INT(4), -4 * INT(3), 0, 0, 0, 0, 0)
STAND_IN(host_typed, typed, -4 * 48, 0, 4 * 48, 0, 0, 0, 0, 0)
"""


def call(*command: object, cwd: Path | None = None) -> None:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def make_cubin(folder: Path, source: str, chip: str, name: str) -> Path:
    (folder / "kernels.cu.cpp").write_text(source)
    call("clang++-22", "--target=nvptx64-nvidia-cuda", f"-march={chip}", "-O2", "-S", "-std=c++17", "-ffreestanding", "-include",
         PRELUDE, "kernels.cu.cpp", "-o", "kernels.ptx", cwd=folder)
    call(os.environ["SPMD_PTXAS"], f"-arch={chip}", "kernels.ptx", "-o", name, cwd=folder)
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    (cuda,), (c,) = _blocks(_GPUS, "cuda"), _blocks(_CPUS, "c")
    source = cuda + _MORE
    make_cubin(folder, source, "sm_90", "gained.sm_90.cubin")
    make_cubin(folder, source, "sm_80", "gained.sm_80.cubin")
    names = {f"void {name}(": f"void host_{name}(" for name in ("gained", "gained_backward", "typed")}
    (folder / "stand_in.cpp").write_text(re.sub("|".join(map(re.escape, names)), lambda m: names[m[0]], source) + _STAND_INS)
    call("clang++-22", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-std=c++17", "-include", PRELUDE, "stand_in.cpp", "-o",
         "libstandin.so", cwd=folder)
    (folder / "gained.c").write_text(c)
    call("clang-22", "-O2", "-shared", "-fPIC", f"-I{torch.__path__[0]}/include", "gained.c", "-o", "libgained.so", cwd=folder)
    declared = _blocks(_CPUS, "python")[0] + "".join(_blocks(_GPUS, "python"))
    (folder / "gained.py").write_text(re.sub(r'"(\S+\.(so|cubin))"', rf'"{folder}/\1"', declared))
    exec(compile((folder / "gained.py").read_text(), str(folder / "gained.py"), "exec"), {"torch": torch, "spmd": spmd})
    return folder


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(6, 12), torch.nn.Linear(12, 3)
        self.gain = torch.nn.Parameter(torch.rand(12) + 0.5)

    def forward(self, x):
        return self.down(torch.ops.mylib.gained(self.up(x).relu(), self.gain, 2.0))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def saved(folder: Path, step=train_step, rows: int = 8) -> Path:
    torch.manual_seed(1)
    batches = [(torch.randn(rows, 6), torch.randint(0, 3, (rows,))) for _ in range(4)]
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    return spmd.capture(step, model, optimizer, *batches[0], reference=batches).save(folder / "gained.step")


def compiled(step: Path, artifact: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run([find_tool("spmd-compile"), step, "-o", artifact, "--target=cuda:sm_90", "--quiet", "--emulation", *options],
                          capture_output=True, text=True)


def run(folder: Path, artifact: Path, *words: object, settings: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    build = Path(os.environ["SPMD_BIN"]).parent
    command = [STANDINS, f"foreign={folder}/libstandin.so", *settings, find_tool("spmd-run"), artifact, *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, "SPMD_BUILD": str(build)})


@pytest.mark.parametrize("ranks, rows", [(1, 8), (2, 8), (4, 8), (3, 7)])
def test_trains_as_eager(folder, tmp_path, ranks: int, rows: int) -> None:
    step, artifact = saved(tmp_path, rows=rows), tmp_path / "gained.spmd"
    done = compiled(step, artifact, f"--ranks={ranks}")
    assert done.returncode == 0, done.stderr
    for file in (step / "libraries").iterdir():
        file.unlink()
    assert not (artifact / "libraries").exists()
    for settings in ((), ("schedule=lifo",), ("schedule=random:3",)):
        done = run(folder, artifact, "--check", settings=settings)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_manifest_says_how_it_is_launched(folder, tmp_path) -> None:
    artifact = tmp_path / "gained.spmd"
    assert compiled(saved(tmp_path), artifact, "--ranks=2").returncode == 0
    launches = {launch["function"]: launch for launch in json.loads((artifact / "manifest.json").read_text())["launches"]
                if "function" in launch}
    forward, backward = launches["gained"], launches["gained_backward"]
    assert (forward["grid"], forward["block"], forward["blocks"]) == ([1, 1, 1], [256, 1, 1], 1)
    numbers = [{"dtype": "i32", "bits": f"{4:016x}"}, {"dtype": "i32", "bits": f"{12:016x}"}]
    assert forward["parameters"] == [{"reference": 0}, {"reference": 1}, {"dtype": "f32", "bits": f"{0x40000000:016x}"},
                                     {"reference": 2}, *numbers]
    assert [p["reference"] for p in backward["parameters"] if "reference" in p] == [0, 1, 2, 3, 4] and forward["offset"] == backward["offset"]
    report = subprocess.run([find_tool("spmd-report"), "kernels", artifact], capture_output=True, text=True)
    assert report.returncode == 0 and report.stdout.count("custom_call") == 2, report.stdout + report.stderr
    # The certificate's rule 9: nothing else is launched than what was compiled.
    for change in ({"grid": [2, 1, 1]}, {"parameters": forward["parameters"][::-1]}, {"function": "gained_backward"}):
        text = json.loads((artifact / "manifest.json").read_text())
        next(launch for launch in text["launches"] if launch.get("function") == "gained").update(change)
        shutil.copytree(artifact, tmp_path / "changed.spmd", dirs_exist_ok=True)
        (tmp_path / "changed.spmd" / "manifest.json").write_text(json.dumps(text))
        done = run(folder, tmp_path / "changed.spmd")
        assert done.returncode == 2 and "rule 9" in done.stderr, done.stderr


_library = torch.library.Library("user_kernel_test", "DEF")


def define(schema: str, implementation) -> str:
    name = schema.split("(")[0]
    _library.define(schema)
    _library.impl(name, implementation, "CompositeExplicitAutograd")
    torch.library.register_fake(f"user_kernel_test::{name}", lambda x, *unused: torch.empty_like(x), lib=_library)
    return f"user_kernel_test::{name}"


def test_numbers_of_every_type(folder, tmp_path) -> None:
    """Of three dimensions each, and a declaration without a function for CPUs."""
    op = define("typed(Tensor x, float a, bool wide, int shift, float b) -> Tensor",
                lambda x, a, wide, shift, b: (b if wide else a) * x + (shift - 2 + 5 - (x.numel() - 40)))
    spmd.register_kernel(op, sharding="_ _ -> _ _", cubins={"sm_90": folder / "gained.sm_90.cubin"},
                         launch="typed<<<dim3(3, size(x, 1) / 6, max(1, 0) ), dim3(4, min(2, 9)), 16 * 2>>>(result, double a, x, bool wide, "
                                "int -(2 - shift), unsigned 10 / 2 % 6, int64_t numel(x) - 40, float b)")

    def step(model, optimizer, x, y):
        wide = torch.ops.user_kernel_test.typed(x[:4].repeat(1, 2).detach(), 0.5, True, -7, 0.1)
        return {"loss": train_step(model, optimizer, x, y), "wide": wide, "not": torch.ops.user_kernel_test.typed(wide, 0.3, False, 3, 0.1)}

    artifact = tmp_path / "typed.spmd"
    package = saved(tmp_path, step)
    done = compiled(package, artifact, "--ranks=2")
    assert done.returncode == 0, done.stderr
    done = run(folder, artifact, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([find_tool("spmd-compile"), package, "-o", artifact, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 2 and re.search(r"test_user_kernels.py:\d+: error: .*'typed' is for GPUs", done.stderr), done.stderr


def test_a_triton_kernel(folder, tmp_path, monkeypatch) -> None:
    triton = pytest.importorskip("triton")
    torch.library.define("mylib::scaled", "(Tensor x, Tensor gain, float power) -> Tensor")
    torch.library.impl("mylib::scaled", "cpu", lambda x, gain, power: x * gain * power)
    torch.library.register_fake("mylib::scaled", lambda x, gain, power: torch.empty_like(x))
    monkeypatch.chdir(folder)
    (block,) = _blocks(_GPUS, "py")
    (folder / "scaled.py").write_text(block)
    exec(compile(block, str(folder / "scaled.py"), "exec"),
         {"triton": triton, "tl": triton.language, "spmd": spmd, "Path": Path, "__name__": "scaled"})

    def step(model, optimizer, x, y):
        return {"loss": train_step(model, optimizer, x, y), "scaled": torch.ops.mylib.scaled(model.up(x).detach(), model.gain.detach(), 0.5)}

    assert compiled(saved(tmp_path, step), tmp_path / "scaled.spmd", "--ranks=2").returncode == 0
    done = run(folder, tmp_path / "scaled.spmd", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_gpu_cannot_run(folder, tmp_path) -> None:
    step = saved(tmp_path)
    emulated = subprocess.run([find_tool("spmd-compile"), step, "-o", tmp_path / "e.spmd", "--target=emulate:sm_90", "--quiet"],
                              capture_output=True, text=True)
    assert emulated.returncode == 2 and re.search(r"\.py:\d+: error: .*'gained'.*cannot be emulated", emulated.stderr), emulated.stderr
    done = subprocess.run([find_tool("spmd-compile"), step, "-o", tmp_path / "e.spmd", "--target=cuda:sm_100", "--quiet"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and re.search(r"\.py:\d+: error: .*'gained' has cubins for sm_90, of which none runs on sm_100",
                                              done.stderr), done.stderr
    (step / "libraries" / "gained.sm_90.cubin").write_bytes((folder / "gained.sm_80.cubin").read_bytes())
    done = compiled(step, tmp_path / "e.spmd")
    assert done.returncode == 2 and "it is declared to be for sm_90, and is for sm_80" in done.stderr, done.stderr
    (step / "libraries" / "gained.sm_90.cubin").write_bytes((folder / "libgained.so").read_bytes())
    done = compiled(step, tmp_path / "e.spmd")
    assert done.returncode == 2 and "it is no cubin" in done.stderr, done.stderr


_launches: list[str] = []


@pytest.mark.parametrize("launch, why", [
    ("gained<<<1, 256>>>(x, x, float 2, result, int 1)", "has 6 parameters, and the launch gives it 5"),
    ("gained<<<1, 256>>>(x, x, double 2, result, int 1, int 1)", "parameter 2 of 'gained' has 4 bytes, and the launch gives it 8"),
    ("nothing<<<1, 256>>>(x)", "it has no kernel 'nothing'; kernels are .*gained"),
    ("gained<<<row, 2048>>>(x)", r"dimension 0 of the block is 2048; allowed: 1 to 1024"),
    ("gained<<<1, dim3(512, 4)>>>(x)", r"a block has 2048 threads"), ("gained<<<0, 1>>>(x)", "dimension 0 of the grid is 0"),
    ("gained<<<1, 1, 300000>>>(x)", "300000 bytes of shared memory"), ("gained<<<1>>>(x)", "',' is expected before '>>>"),
    ("gained<<<1, 1>>>(y)", "a tensor is expected, or a type"), ("gained<<<1, 1>>>(n)", "'n' is a number, which has its type"),
    ("gained<<<1, 1>>>(int x)", "'x' is a tensor"), ("gained<<<1, 1>>>(int height)", "nothing is called 'height'; numbers are column, n, row,"),
    ("gained<<<1, 1>>>(int 1.5)", "1.5.*no whole number"), ("gained<<<1, 1>>>(int 1 / (row - row))", "divides 1 by 0"),
    ("gained<<<1, 1>>>(bool 2)", "cannot be 2"), ("gained<<<1, 1>>>(int 4294967296)", "cannot be 4294967296"),
    ("gained<<<1, 1>>>(x) ;", "it ends before ';'"), ("gained<<<1, 1>>>(x", "'\\)' is expected at its end"),
    ("gained<<<1, 1>>>(int size(x, 2))", "'x' has no dimension 2"), ("gained<<<1, 1>>>(int size(n, 0))", "size is of a tensor, and 'n'"),
    ("gained<<<1, 1>>>(int64_t 9223372036854775807 * row)", "more than 64 bits"), ("<<<1, 1>>>(x)", "name of a kernel"),
    ("gained<<<1, 1>>>(int abs(row))", "there is no function 'abs'")])
def test_a_launch_that_does_not_fit(folder, tmp_path, launch: str, why: str) -> None:
    number = len(_launches)
    _launches.append(launch)
    op = define(f"other{number}(Tensor x, int n) -> Tensor", lambda x, n: x.clone())
    spmd.register_kernel(op, sharding="row column -> row column", cubins={"sm_90": folder / "gained.sm_90.cubin"}, launch=launch)

    def step(model, optimizer, x, y):
        getattr(torch.ops.user_kernel_test, f"other{number}")(x, 5)
        return {"loss": train_step(model, optimizer, x, y), "other": getattr(torch.ops.user_kernel_test, f"other{number}")(x, 5)}

    done = compiled(saved(tmp_path, step), tmp_path / "other.spmd")
    assert done.returncode == 2 and re.search(rf"test_user_kernels.py:\d+: error: .*{why}", done.stderr), done.stderr


def test_what_cannot_be_declared(folder) -> None:
    op, cubin = define("plain(Tensor x) -> Tensor", lambda x: x.clone()), folder / "gained.sm_90.cubin"
    for how, why in [({}, "neither a function for CPUs"), ({"cubins": {"sm_90": cubin}}, "one half of a declaration"),
                     ({"launch": "gained<<<1, 1>>>()"}, "neither a function"), ({"library": folder / "libgained.so"}, "one half"),
                     ({"cubins": {"hopper": cubin}, "launch": "gained<<<1, 1>>>()"}, "chips are called sm_80"),
                     ({"cubins": {"sm_90": folder / "none"}, "launch": "gained<<<1, 1>>>()"}, "has no cubin for sm_90"),
                     ({"cubins": {"sm_90": folder / "libgained.so"}, "launch": "gained<<<1, 1>>>()"}, "is no cubin")]:
        with pytest.raises(ValueError, match=why):
            spmd.register_kernel(op, sharding="a -> a", **how)


def test_a_gpu_that_the_cubin_is_not_for(folder, tmp_path) -> None:
    artifact = tmp_path / "gained.spmd"
    assert compiled(saved(tmp_path), artifact).returncode == 0
    done = run(folder, artifact, settings=("chip=100",))
    assert done.returncode == 2 and "kernel 'gained' of an operator of yours is in a cubin for sm_90, which an sm_100 does not run" in done.stderr, done.stderr
