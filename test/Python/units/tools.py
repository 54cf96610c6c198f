"""Models of the tests, and spmd-report units on a model that nobody captured."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import torch
from torch import nn

from spmd.annotations import annotations_of
from spmd.units.describe import ModelDescription


class Block(nn.Module):
    def __init__(self, size: int = 8):
        super().__init__()
        self.attn = nn.MultiheadAttention(size, 2)
        self.ffn = nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size))


class WideBlock(Block):
    pass


class Model(nn.Module):
    """An embedding, blocks of two classes, a norm and a head: nothing is shared."""

    def __init__(self, tied: bool = False):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.h = nn.ModuleList([Block(), WideBlock(), Block()])
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 50, bias=False)
        if tied:
            self.head.weight = self.embed.weight


def write_step(model: nn.Module, folder: Path) -> Path:
    """A step package without a graph: all that spmd-report units reads."""
    folder.mkdir(exist_ok=True)
    description = ModelDescription(model)
    step = {"format": "spmd-step", "version": 2, "module_tree": description.tree, "parameters": description.parameters,
            "units": annotations_of(model, description.paths, description.parameter_names)}
    (folder / "step.json").write_text(json.dumps(step))
    return folder


def report(step: Path, *arguments: str) -> subprocess.CompletedProcess:
    program = Path(os.environ.get("SPMD_BIN", "")) / "spmd-report"
    return subprocess.run([str(program), "units", str(step), *arguments], capture_output=True, text=True)


def report_json(step: Path, *arguments: str) -> dict:
    done = report(step, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def comparable(units) -> list[tuple]:
    """What both faces say of units, ours from Python or from the report's JSON."""
    if isinstance(units, dict):
        return [(u["name"], tuple(u["modules"]), json.dumps(u["options"], sort_keys=True),
                 [(p["name"], p["offset"], p["slices"] if p["slices"] == "all" else [tuple(s) for s in p["slices"]])
                  for p in u["parameters"]]) for u in units["units"]]
    return [(u.name, u.modules, json.dumps(u.options, sort_keys=True),
             [(p.name, p.offset, "all" if p.slices is None else list(p.slices)) for p in u.parameters]) for u in units]
