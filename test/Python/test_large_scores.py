"""Attention whose scores are large: the largest one takes all, and nothing is infinite on the way."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from step_check import compute

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")


def attend(q, k, v, g, attention=F.scaled_dot_product_attention):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out = attention(q, k, v)
    return out, *torch.autograd.grad((out * g).sum(), (q, k, v))


def softmax(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def test_large_scores(tmp_path) -> None:
    """Up to 1e17; 300 keys are two blocks, which are merged. The reference keeps its softmax: PyTorch's own kernels compute it
    again from a logarithm that is rounded."""
    torch.manual_seed(0)
    sizes = [3e2, 3e4, 3e8]
    inputs = [torch.randn(1, 2, rows, 8) * size for size in sizes for rows, size in ((5, size), (300, size), (300, 1), (5, 1))]
    groups = [inputs[i:i + 4] for i in range(0, len(inputs), 4)]

    def each(*inputs):
        return tuple(result for i in range(0, len(inputs), 4) for result in attend(*inputs[i:i + 4]))
    results = compute(each, inputs, tmp_path)
    eps = torch.finfo(torch.float32).eps
    for number, (q, k, v, g) in enumerate(groups):
        out, *gradients = results[4 * number:4 * number + 4]
        expected, *slopes = attend(*(x.double() for x in (q, k, v, g)), softmax)
        torch.testing.assert_close(out, expected.float(), msg=str(sizes[number]))
        # A probability is off by the rounding of a logarithm that is as large as the scores, and never above 1. The slope of
        # a softmax that is 1 and 0 is 0: what is left is rounding of dO v^T, times the other factor.
        off = min(1, 4 * eps * (q.double() @ k.double().mT).abs().max().item())
        assert (gradients[2] - slopes[2]).abs().max() <= off * g.abs().sum(-2).max(), sizes[number]
        for ours, slope, factor in zip(gradients, slopes, (k, q)):
            bound = 300 * eps * factor.abs().max() * g.abs().max() * v.abs().max()
            assert (ours - slope).abs().max() <= bound, sizes[number]
