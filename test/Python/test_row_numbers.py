"""Row numbers that a step computes itself: right ones work, wrong ones end the step with an error that names the
place."""
import subprocess

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd
from spmd.tools import find_tool


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, ids):
        return self.table(ids - 1)  # padding of an uneven batch would be row -1


class Labels(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 5)

    def forward(self, ids):
        scores = self.head(F.one_hot(ids % 4, 4).float())
        return F.cross_entropy(scores, torch.where(ids > 8, -100, ids - 1))


class Picked(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(7, 3))

    def forward(self, ids):
        return self.rows[ids - 8]  # counts from the end


def compile_for_two(folder, model, ids):
    def train_step(model, optimizer, ids):
        loss = model(ids).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    package = spmd.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), ids)
    package.save(folder / "rows.step")
    subprocess.run([find_tool("spmd-compile"), folder / "rows.step", "-o", folder / "rows.spmd", "--ranks=2",
                    "--quiet"], check=True)
    return spmd.load(folder / "rows.spmd")


@pytest.mark.parametrize("make, wrong, use, number, bounds", [
    (Words, 8, "embedding", 7, "[0, 7)"),
    (Labels, 8, "nll_loss", 7, "[0, 5) nor the ignored -100"),
    (Picked, 99, "index", 91, "[-7, 7)"),
], ids=["embedding", "labels", "index"])
def test_computed_row_numbers(tmp_path, make, wrong, use, number, bounds):
    torch.manual_seed(3)
    model, ids = make(), torch.tensor([5, 1, 3, 2, 4])  # five rows on two ranks
    expected = model(ids).square().sum().item()
    with compile_for_two(tmp_path, model, ids) as trainer:
        assert trainer.step(ids) == pytest.approx(expected, rel=1e-5)
        name = next(iter(model.state_dict()))
        before = trainer.read("param", name)
        ids[3] = wrong
        with pytest.raises(spmd.RunError) as error:
            trainer.step(ids)
        assert f"'{use}': row number {number} at position 0 of rank 1 is not in {bounds}" in str(error.value)
        assert "test_row_numbers.py" in str(error.value)  # the user's line
        assert np.array_equal(trainer.read("param", name), before)  # nothing was updated


def train_step(model, optimizer, ids):
    loss = model(ids).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("make, view", [(Words, "global"), (Labels, "global"), (Picked, "global"), (Words, "local")])
def test_updates_for_gpus_are_guarded(tmp_path, make, view) -> None:
    """On any number of ranks the guarded step is the step, where all numbers are good."""
    torch.manual_seed(0)
    model, ids = make(), torch.tensor([5, 1, 3, 2, 4, 9 if make is Labels else 7])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    ranks = (1, 2, 3, 4) if view == "global" else (1, 2)
    for number in ranks:
        reference = [(torch.cat([ids] * number),)] * 2 if view == "local" else [(ids,)] * 2
        spmd.capture(train_step, model, optimizer, ids, reference=reference,
                     reference_ranks=number if view == "local" else None).save(tmp_path / "rows.step")
        program = tmp_path / "program.mlir"
        subprocess.run([find_tool("spmd-compile"), tmp_path / "rows.step", "-o", program, f"--ranks={number}", f"--view={view}", "--quiet",
                        "--target=emulate:sm_90", "--compile-to=collectives"], check=True)
        text = program.read_text()
        assert text.count("aten.where.self") >= sum(1 for _ in model.parameters()) and "aten.amax" in text
        done = subprocess.run([find_tool("spmd-interpret"), program, f"--weights={tmp_path / 'rows.step'}", "--reference"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
