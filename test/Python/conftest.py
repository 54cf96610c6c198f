"""Finds the package and the examples of this checkout; one thread, as the references were recorded."""
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "python-bindings"), str(ROOT / "examples"), str(Path(__file__).parent)]
torch.set_num_threads(1)
