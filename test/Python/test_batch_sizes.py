"""One program for batches of several sizes: exact for each, whatever stands behind the rows that there are."""
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import spmd
import torch
from batch_size_cases import CASES, DIMS, LARGEST, train_step_of
from safetensors.torch import load_file, save_file
from spmd.capture.write.batch_sizes import with_rows
from spmd.capture.call import StepCall
from step_check import run, tool


class Case:
    """A step for several sizes, saved, and its partition for each number of ranks."""

    def __init__(self, name: str, folder: Path):
        torch.manual_seed(0)
        self.name, self.folder, self.dims = name, folder, DIMS.get(name)
        self.model, self.batch, loss_of = CASES[name]()
        self.step = train_step_of(loss_of)
        self.package = self.capture(self.batch(4), dynamic_batch=LARGEST)
        self.programs: dict[int, Path] = {}

    def capture(self, batch: Any, **options: Any) -> spmd.StepPackage:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        return spmd.capture(self.step, self.model, optimizer, *batch, batch_dims=self.dims, **options)

    def partition(self, package: spmd.StepPackage, ranks: int, name: str) -> Path:
        package.save(self.folder / f"{name}.step")
        program = self.folder / f"{name}.{ranks}.mlir"
        run(tool("spmd-compile"), self.folder / f"{name}.step", f"--ranks={ranks}", "--compile-to=partition", "--quiet",
            "-o", program)
        return program

    def interpret(self, program: Path, package: spmd.StepPackage, batch: dict[str, torch.Tensor],
                  name: str) -> dict[str, torch.Tensor]:
        step, results = self.folder / f"{name}.run.step", self.folder / "results.safetensors"
        package.save(step)
        tensors = {f"batch/0/{key}": value.contiguous() for key, value in batch.items()}
        save_file(tensors | {"loss": torch.zeros(1, dtype=torch.float64)}, step / "reference.safetensors")
        run(tool("spmd-interpret"), program, f"--weights={step}", f"--save={results}")
        return load_file(results)

    def of_size(self, batch: Any) -> dict[str, torch.Tensor]:
        package = self.capture(batch)
        package.save(self.folder / "one.step")
        run(tool("spmd-translate"), "--import-step", self.folder / "one.step", "-o", self.folder / "one.mlir")
        return self.interpret(self.folder / "one.mlir", package, dict(zip("xy", batch)), "one")

    def of_all(self, batch: Any, ranks: int) -> dict[str, torch.Tensor]:
        if ranks not in self.programs:
            self.programs[ranks] = self.partition(self.package, ranks, "all")
        call = StepCall(self.step, (self.model, torch.optim.SGD(self.model.parameters()), *batch), {})
        rows = call.batch[0].shape[(self.dims or {}).get("x", 0)]
        padded = dict(zip("xy", with_rows(call, LARGEST, self.dims or {}).batch))
        for name, tensor in padded.items():
            dim = (self.dims or {}).get(name, 0)
            if tensor.is_floating_point() and rows < LARGEST:  # what must not count
                tensor.narrow(dim, rows, LARGEST - rows).fill_(math.nan)
        return self.interpret(self.programs[ranks], self.package, padded | {"rows": torch.tensor(rows)}, "all")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(2)
def test_every_size_is_what_its_own_program_computes(name: str, tmp_path) -> None:
    case = Case(name, tmp_path)
    ranks_of = {1: (1, 4), 2: (2,), 3: (3,), 4: (4, 1), 5: (2,), 6: (3,), 7: (4,), 8: (2,), 9: (1, 3)}
    for rows in range(1, LARGEST + 1):
        batch = case.batch(rows)
        expected = case.of_size(batch)
        for ranks in ranks_of[rows]:
            got = case.of_all(batch, ranks)
            assert got.keys() == expected.keys()
            for key, value in expected.items():
                mine = got[key]
                if mine.shape != value.shape:  # an output with rows
                    mine = mine[:rows]
                scale = max(1e-3, float(value.double().norm()))
                assert float((mine.double() - value.double()).norm()) <= 1e-12 * scale, f"{key} of {rows} rows, {ranks} ranks"


def test_a_package_without_the_other_capture_is_refused(tmp_path) -> None:
    package = Case("mlp", tmp_path).package
    package.other_batch = None
    package.save(tmp_path / "s.step")
    with pytest.raises(AssertionError, match="no capture of another size"):
        run(tool("spmd-compile"), tmp_path / "s.step", "--compile-to=import", "-o", tmp_path / "s.mlir")
