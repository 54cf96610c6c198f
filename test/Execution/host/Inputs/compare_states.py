"""compare_states.py A B: the tensors of two safetensors files have the same names and, to 1e-5, values."""
import sys

import torch
from safetensors.torch import load_file

ours, theirs = map(load_file, sys.argv[1:])
torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
