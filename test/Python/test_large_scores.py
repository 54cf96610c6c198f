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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.sample(2)
def test_large_scores_on_tensor_cores(dtype: torch.dtype, tmp_path) -> None:
    """Scores up to 1e17 in bf16, and rows that see nothing but the least number. One key takes all of a row: outputs are
    its value, gradients of values those of the rows that it takes, and slopes are 0 but for rounding."""
    torch.manual_seed(0)
    sizes = [1e4, 1e8] if dtype == torch.bfloat16 else [1e2]
    # Integers: products are exact, and scores are equal or far apart.
    inputs = [(torch.randint(-9, 10, (1, 2, 70, 16)) * factor).to(dtype) for size in sizes for factor in (size, size, 1, 1)]
    groups = [inputs[i:i + 4] for i in range(0, len(inputs), 4)]
    mask = torch.zeros(70, 70).masked_fill(torch.arange(70) < 40, torch.finfo(torch.float32).min)
    mask[:7] = torch.finfo(torch.float32).min
    mask = mask.clamp(min=torch.finfo(dtype).min).to(dtype)

    def masked(*inputs):
        return attend(*inputs, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask))

    def each(*inputs):
        return tuple(result for i in range(0, len(inputs), 4) for result in attend(*inputs[i:i + 4])) + masked(
            *(x.sign() for x in inputs[:4]))
    results = compute(each, inputs, tmp_path, "--target=emulate:sm_90")
    assert all(result.isfinite().all() for result in results)
    eps = torch.finfo(dtype).eps
    for number, (q, k, v, g) in enumerate(groups):
        out, *gradients = results[4 * number:4 * number + 4]
        expected, *slopes = attend(*(x.double() for x in (q, k, v, g)), softmax)
        # One rounding of the probabilities, and one of the result.
        torch.testing.assert_close(out.double(), expected, rtol=0, atol=2 * eps * v.abs().max().item())
        # A row of equal largest scores has their number in a logarithm that is as large as they are.
        scores = q.double() @ k.double().mT
        ties = (scores == scores.amax(-1, keepdim=True)).sum(-1, keepdim=True) > 1
        alone = (g.double().abs() * ties).sum(-2, keepdim=True)
        off = 2 * eps * g.double().abs().sum(-2, keepdim=True) + alone
        assert ((gradients[2].double() - slopes[2]).abs() <= off).all(), sizes[number]
    expected = softmax_of(mask, *inputs[:3])
    torch.testing.assert_close(results[-4].double(), expected, rtol=0, atol=2 * eps)


def softmax_of(mask, q, k, v):
    q, k, v = (x.sign().double() for x in (q, k, v))
    scores = (q @ k.mT / q.shape[-1] ** 0.5).float() + mask.float()  # the least number absorbs a score
    return scores.double().softmax(-1) @ v
