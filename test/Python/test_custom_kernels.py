"""Operators of torch.library that are functions in a shared library train as eager, on ranks; what cannot be is refused."""
from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import spmd
from conftest import ROOT
from spmd.tools import find_tool

# The document's operators and functions, and one that is a maximum over rows and has numbers of all kinds.
_PAGE = (ROOT / "docs/custom-kernels.md").read_text()
_C, _PYTHON = (re.findall(rf"```{language}\n(.*?)```", _PAGE.partition("## On GPUs")[0], re.DOTALL) for language in ("c", "python"))
_MORE = r"""
void largest(const DLTensor *arguments, const DLTensor *results) {
  const DLTensor *x = &arguments[0], *shift = &arguments[1], *flag = &arguments[2], *sizes = &arguments[3];
  int64_t columns = x->shape[x->ndim - 1], rows = x->ndim == 3 ? x->shape[0] * x->shape[1] : x->shape[0];
  int64_t add = *(const int64_t *)shift->data;
  for (int64_t i = 0; i < sizes->shape[0]; ++i)
    add += ((const int64_t *)sizes->data)[i];
  for (int64_t column = 0; column < columns; ++column) {
    float most = -1e30f;
    for (int64_t row = 0; row < rows; ++row) {
      float value = ((const float *)x->data)[row * x->strides[x->ndim - 2] + column];
      most = value > most ? value : most;
    }
    ((float *)results[0].data)[column] = *(const unsigned char *)flag->data ? most + add : most;
  }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "gained.c").write_text("\n".join(_C) + _MORE)
    subprocess.run(["clang-22", "-O2", "-shared", "-fPIC", f"-I{torch.__path__[0]}/include", "gained.c", "-o", "libgained.so"],
                   cwd=folder, check=True)
    source = folder / "gained.py"
    source.write_text("\n\n".join(_PYTHON).replace('"libgained.so"', repr(str(folder / "libgained.so"))))
    exec(compile(source.read_text(), str(source), "exec"), {"torch": torch, "spmd": spmd})
    _define("largest(Tensor x, int shift, bool flag, int[] sizes) -> Tensor",
            lambda x, shift, flag, sizes: x.flatten(0, -2).amax(0) + (shift + sum(sizes) if flag else 0),
            lambda x, *unused: x.new_empty(x.shape[-1]))
    spmd.register_kernel("kernel_test::largest", folder / "libgained.so", "largest", "... column -> column", reduce="max")
    return folder / "libgained.so"


_library = torch.library.Library("kernel_test", "DEF")


def _define(schema: str, cpu, fake) -> None:
    name = schema.split("(")[0]
    _library.define(schema)
    _library.impl(name, cpu, "CPU")
    torch.library.register_fake(f"kernel_test::{name}", fake, lib=_library)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(6, 12), torch.nn.Linear(12, 3)
        self.gain = torch.nn.Parameter(torch.rand(12) + 0.5)

    def forward(self, x):
        return self.down(torch.ops.mylib.gained(self.up(x).relu(), self.gain, 2.0))


def train_step(model, optimizer, x, y):
    out = model(x)
    loss = F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return {"loss": loss, "largest": torch.ops.kernel_test.largest(out.detach(), 1, True, [2, 3])}


def batches(rows: int, steps: int = 4):
    torch.manual_seed(1)
    return [(torch.randn(rows, 6), torch.randint(0, 3, (rows,))) for _ in range(steps)]


@pytest.fixture(autouse=True)
def cache(library, tmp_path, monkeypatch):
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path / "cache"))


def made():
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=0.05)


@pytest.mark.parametrize("ranks, rows", [(1, 8), (2, 8), (4, 8), (3, 7)])
def test_trains_as_eager(ranks: int, rows: int) -> None:
    model, optimizer = made()
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(train_step, ranks=ranks)
    for x, y in batches(rows):
        torch.testing.assert_close(step(model, optimizer, x, y), train_step(twin, twin_optimizer, x, y))
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


def saved(folder: Path, rows: int = 8) -> Path:
    model, optimizer = made()
    return spmd.capture(train_step, model, optimizer, *batches(rows)[0], reference=batches(rows)).save(folder / "gained.step")


def run(tool: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([find_tool(tool), *map(str, arguments)], capture_output=True, text=True)


def test_an_artifact_has_the_library(library, tmp_path) -> None:
    step, artifact = saved(tmp_path), tmp_path / "gained.spmd"
    assert run("spmd-compile", step, "-o", artifact, "--ranks=2", "--quiet").returncode == 0
    assert (artifact / "libraries" / "libgained.so").read_bytes() == library.read_bytes()
    for file in (step / "libraries").iterdir():
        file.unlink()
    done = run("spmd-run", artifact, "--check", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(artifact / "libraries" / "libgained.so", "ab") as file:
        file.write(b"\0")
    done = run("spmd-run", artifact, "--quiet")
    assert done.returncode == 2 and "libgained.so" in done.stderr, done.stderr
    (artifact / "libraries" / "libgained.so").unlink()
    done = run("spmd-run", artifact, "--quiet")
    assert done.returncode == 2 and "libgained.so" in done.stderr, done.stderr
    done = run("spmd-compile", step, "-o", artifact, "--ranks=2", "--quiet")
    assert done.returncode == 2 and "/operators/0/library" in done.stderr, done.stderr


def test_a_library_that_changed_is_refused(tmp_path) -> None:
    step, ir, artifact = saved(tmp_path), tmp_path / "kernels.mlir", tmp_path / "gained.spmd"
    assert run("spmd-compile", step, "-o", ir, "--compile-to=kernels", "--ranks=2", "--quiet").returncode == 0
    resumed = ["spmd-compile", ir, "-o", artifact, "--compile-from=kernels", f"--libraries={step / 'libraries'}", "--quiet"]
    assert run(*resumed).returncode == 0
    shutil.rmtree(artifact)
    file = step / "libraries" / "libgained.so"
    file.write_bytes(file.read_bytes() + b"\0")
    done = run(*resumed)
    assert done.returncode == 2 and "'gained' of 'libgained.so' is called here" in done.stderr, done.stderr
    assert not artifact.exists()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_in_the_interpreter(ranks: int, tmp_path) -> None:
    """Partitioned, and as kernels, it is what PyTorch recorded; its declaration is right."""
    step, program = saved(tmp_path), tmp_path / "program.mlir"
    for phase in ("import", "partition", "collectives", "kernels"):
        assert run("spmd-compile", step, f"--compile-to={phase}", f"--ranks={ranks}", "--quiet", "-o", program).returncode == 0
        done = run("spmd-interpret", program, f"--weights={step}", "--reference")
        assert done.returncode == 0, phase + done.stdout + done.stderr
        if phase == "import":
            done = run("spmd-interpret", program, "--check-rules", f"--libraries={step / 'libraries'}")
            assert done.returncode == 0 and "aten.custom_call: 6 factors" in done.stdout, done.stdout + done.stderr


def test_partitioned_along_what_is_declared(tmp_path) -> None:
    step = saved(tmp_path)
    text = run("spmd-compile", step, "--compile-to=partition", "--ranks=2", "--quiet").stdout
    forward, backward, largest = (line for line in text.splitlines() if "aten.custom_call" in line)
    assert "-> tensor<4x12xf32, #spmd.sharding<global = [8, 12], [shard<0, 1, 4>]>>" in forward
    assert "tensor<12xf32, #spmd.sharding<global = [12], [partial<sum>]>>)" in backward
    assert "-> tensor<3xf32, #spmd.sharding<global = [3], [partial<max>]>>" in largest
    # Nobody knows which rows add nothing: seven are not cut in three for a sum.
    text = run("spmd-compile", saved(tmp_path, rows=7), "--compile-to=partition", "--ranks=3", "--quiet").stdout
    forward, backward, largest = (line for line in text.splitlines() if "aten.custom_call" in line)
    assert "shard<0, 1, 3>" in forward and "partial" not in backward + largest


def test_a_wrong_declaration_is_found(library, tmp_path) -> None:
    step = saved(tmp_path)
    program = run("spmd-translate", "--import-step", step).stdout
    wrong = program.replace('reduce = ["", "sum"]', 'reduce = ["", "max"]')
    assert wrong != program
    (tmp_path / "wrong.mlir").write_text(wrong)
    done = run("spmd-interpret", tmp_path / "wrong.mlir", "--check-rules", f"--libraries={step / 'libraries'}")
    assert done.returncode == 1 and "wrong sharding rule" in done.stderr, done.stderr


@pytest.mark.parametrize("target, why", [("emulate:sm_90", "cannot be emulated"), ("cuda:sm_90", "runs on CPUs")])
def test_gpus_have_no_such_function(target: str, why: str, tmp_path) -> None:
    done = run("spmd-compile", saved(tmp_path), "-o", tmp_path / "a.spmd", f"--target={target}", "--quiet")
    assert done.returncode == 2, done.stderr
    assert re.search(rf"test_custom_kernels.py:\d+: error: .*'gained'.*{why}.*register_decomposition", done.stderr), done.stderr


def test_a_pass_leaves_it(tmp_path) -> None:
    """What callbacks have been through finds the library, too."""
    seen = []
    model, optimizer = made()
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(train_step, ranks=2, passes=[lambda program: seen.extend(program.find("aten.custom_call"))])
    for x, y in batches(8, 2):
        torch.testing.assert_close(step(model, optimizer, x, y), train_step(twin, twin_optimizer, x, y))
    assert len(seen) == 3


@pytest.mark.parametrize("sharding, why", [
    ("a b, c -> a b", r"dimension .* 12 .*|tensor argument"), ("a b, b -> a c", "'c', which no argument has"),
    ("a a, b -> a b", "a.* twice|dimension 'a' is 12"), ("a b c, b -> a b", "'a b c' names 3"), ("a b -> a b", "1 tensor arguments"),
    ("a b, b -> b", "1 dimensions|names 1"), ("a-b c, c -> a-b c", "no name of a dimension")])
def test_a_sharding_that_does_not_fit(library, sharding: str, why: str) -> None:
    number = len(_shardings)
    _shardings.append(sharding)
    _define(f"other{number}(Tensor x, Tensor gain) -> Tensor", lambda x, gain: x * gain, lambda x, gain: torch.empty_like(x))
    spmd.register_kernel(f"kernel_test::other{number}", library, "gained", sharding)

    def step(model, optimizer, x, y):
        loss = getattr(torch.ops.kernel_test, f"other{number}")(model.up(x).detach(), model.gain.detach()).sum()
        return loss

    model, optimizer = made()
    if sharding == "a b, c -> a b":  # the gain's loop is of its own, over which the result combines
        why = "reduce does not say"
    with pytest.raises(spmd.CompileError, match=rf"test_custom_kernels.py:\d+: error: the sharding (.|\n)*({why})"):
        spmd.compile(step, ranks=2)(model, optimizer, *batches(8)[0])


_shardings: list[str] = []


def test_types_that_the_function_does_not_take(library) -> None:
    def step(model, optimizer, x, y):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.ops.mylib.gained(model.up(x), model.gain, 2.0).sum()

    model, optimizer = made()
    with pytest.raises(spmd.CaptureError, match=r"gained is called with a tensor of torch.bfloat16, and its function takes torch.float32"):
        spmd.compile(step, ranks=2)(model, optimizer, *batches(8)[0])
    _define("typed(Tensor x) -> Tensor", lambda x: x.clone(), lambda x: torch.empty_like(x))
    with pytest.raises(ValueError, match="dtypes of kernel_test::typed are"):
        spmd.register_kernel("kernel_test::typed", library, "gained", "a -> a", dtypes=[torch.int64])


def test_what_cannot_be_declared(library) -> None:
    _define("written(Tensor(a!) x) -> ()", lambda x: None, lambda x: None)
    _define("named(Tensor x, str name) -> Tensor", lambda x, name: x, lambda x, name: x)
    _define("plain(Tensor x) -> Tensor", lambda x: x.clone(), lambda x: torch.empty_like(x))
    for op, symbol, sharding, reduce, why in [
            ("written", "gained", "a -> a", None, "written to"), ("named", "gained", "a -> a", None, "argument 'name'"),
            ("plain", "nothing", "a -> a", None, "cannot be the function 'nothing'"), ("plain", "gained", "a, a", None, "an arrow"),
            ("plain", "gained", "a ->", "mean", "reduce of kernel_test::plain is 'mean'")]:
        with pytest.raises(ValueError, match=why):
            spmd.register_kernel(f"kernel_test::{op}", library, symbol, sharding, reduce)
    with pytest.raises(ValueError, match="cannot be the function"):
        spmd.register_kernel("kernel_test::plain", library.parent / "none.so", "gained", "a -> a")
    with pytest.raises(ValueError, match="has a declaration already"):
        spmd.register_kernel("mylib::gained", library, "gained", "a b, b -> a b")
    with pytest.raises(ValueError, match="is a function in"):
        spmd.register_decomposition("mylib::gained", lambda x, gain, power: x)
