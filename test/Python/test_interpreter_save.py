"""spmd-interpret --save: losses, outputs and final state under the names of a step package."""
import os
import subprocess
from pathlib import Path

import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parent.parent
BIN = Path(os.environ.get("SPMD_BIN", ""))


def test_saved_tensors_are_the_references(tmp_path):
    package = ROOT / "Inputs" / "mlp-sgd.step"
    program, saved = tmp_path / "step.mlir", tmp_path / "saved.safetensors"
    subprocess.run([BIN / "spmd-translate", "--import-step", package, "-o", program], check=True)
    reference = load_file(package / "reference.safetensors")
    steps = len(reference["loss"])
    subprocess.run([BIN / "spmd-interpret", program, f"--weights={package}", f"--steps={steps}", f"--save={saved}"],
                   check=True, capture_output=True)
    tensors = load_file(saved)
    losses = torch.stack([tensors[name] for name in sorted(tensors) if "/loss/" in name])
    assert torch.allclose(losses, reference["loss"].double(), rtol=1e-6)
    final = [name for name in reference if name.startswith("final/")]
    assert final
    for name in final:
        assert tensors[name].dtype == torch.float64
        assert torch.allclose(tensors[name], reference[name].double(), rtol=1e-5, atol=1e-7), name
