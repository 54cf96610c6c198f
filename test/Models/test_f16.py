"""Steps in f16, under autocast and with f32 masters, on any number of ranks: in float64 what was captured, in f16 what
eager PyTorch computes, to epsilons of f16."""
from __future__ import annotations

from pathlib import Path

import own
import pytest
import torch
from pipeline import find_tool, run
from safetensors.torch import load_file
from test_bf16 import ROWS, TIME, VOCABULARY, compile_step
from torch.distributed.fsdp import MixedPrecisionPolicy

import spmd

KINDS = ["f16", "autocast", "masters"]


def autocast(model, optimizer, x, y):
    with torch.autocast(x.device.type, torch.float16):
        loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.fixture(scope="module", params=KINDS)
def step(request, tmp_path_factory) -> Path:
    """A Llama of two blocks, trained by eager for 20 steps. `f16` keeps everything in it, also the momenta of SGD; the
    parameters of the others are f32, and what multiplies them is f16."""
    kind, folder = request.param, tmp_path_factory.mktemp(request.param)
    torch.manual_seed(0)
    model = own.Llama(fused=kind == "f16", vocabulary=VOCABULARY, width=32)
    if kind == "f16":
        model = model.half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = [(torch.randint(0, VOCABULARY, (ROWS, TIME)), torch.randint(0, VOCABULARY, (ROWS, TIME)))
               for _ in range(20)]
    precision = {"precision": MixedPrecisionPolicy(torch.float16, torch.float32)} if kind == "masters" else {}
    package = spmd.capture(autocast if kind == "autocast" else own.step, model, optimizer, *batches[0],
                           reference=batches, **precision)
    package.save(folder / "s.step")
    return folder / "s.step"


@pytest.mark.sample(2)
@pytest.mark.parametrize("ranks", [3, 1])
def test_equal_on_any_number_of_ranks(step, ranks, tmp_path) -> None:
    base = tmp_path / "base.mlir"
    run("import", find_tool("spmd-translate"), "--import-step", step, "-o", base)
    for phase, tolerance in (("collectives", 1e-12), ("kernels", 1e-6)):
        program = compile_step(step, ranks, tmp_path / f"{phase}.mlir", f"--compile-to={phase}")
        run("interpret", find_tool("spmd-interpret"), program, f"--ranks={ranks}", f"--compare={base}", "--steps=1",
            f"--rtol={tolerance}")


@pytest.mark.sample(2)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_trains_like_eager(step, ranks, tmp_path) -> None:
    """--check allows losses 2, parameters 8 epsilons of f16, 2^-10."""
    artifact = compile_step(step, ranks, tmp_path / "s.spmd")
    said = run("train", find_tool("spmd-run"), artifact, "--check", "--quiet", "--threads=2")
    assert "tolerance 0.00195" in said and "tolerance 0.00781" in said, said


def test_the_interpreter_and_gpus_round_where_cpus_do(step, tmp_path) -> None:
    """And fusion moves no rounding: every light op alone gives the same bits."""
    program = compile_step(step, 2, tmp_path / "kernels.mlir", "--compile-to=kernels")
    run("interpret", find_tool("spmd-interpret"), program, "--ranks=2", f"--weights={step}", "--steps=2",
        "--dtype=program", f"--save={tmp_path / 'interpreted'}")
    for name, options in (("trained", []), ("alone", ["--fuse=false"]), ("emulated", ["--target=emulate:sm_90"])):
        artifact = compile_step(step, 2, tmp_path / f"{name}.spmd", *options)
        run("train", find_tool("spmd-run"), artifact, "--steps=2", "--quiet", f"--save={tmp_path / name}.safetensors")
    assert (tmp_path / "trained.safetensors").read_bytes() == (tmp_path / "alone.safetensors").read_bytes()
    interpreted, emulated = load_file(tmp_path / "interpreted"), load_file(tmp_path / "emulated.safetensors")
    trained = {name: value for name, value in load_file(tmp_path / "trained.safetensors").items()
               if not name.startswith("optimizer/")}
    assert len(trained) == 21
    for name, ours in trained.items():
        for other in (interpreted[f"final/{name}"], emulated[name].double()):
            assert (ours.double() - other).norm() <= 4 * 2.0**-10 * other.norm(), name


@pytest.mark.parametrize("step", ["masters"], indirect=True)
def test_products_are_f16_and_so_are_gathers_of_masters(step, tmp_path) -> None:
    plan = compile_step(step, 2, tmp_path / "plan.mlir", "--compile-to=plan").read_text()
    lines = plan.splitlines()
    products = [line for line in lines if "plan.gemm(" in line]
    assert len(products) > 20 and all(": f16 " in line for line in products)
    assert all(": f16 " in line for line in lines if "plan.all_gather(" in line)
    assert all(": f32 " in line for line in lines if "plan.reduce_scatter " in line)
