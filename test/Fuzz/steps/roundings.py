"""Whether roundings alone explain what a compiled step is off by.

A gradient that is zero but for rounding has no sign, and values that are equal but for rounding have no largest: where a
step goes on with such a sign (Rprop, an L1 term) or choice (amax), eager PyTorch itself jumps when one sum is rounded
another way. Tolerance.py moves parameters once, before the first step, and sees little of that. Here every op that
rounds gives a neighbour of what it would have given, up or down by a coin of its own: eager as another library of the
same accuracy would have it.
"""
from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

RUNS = 6
# A jump that one of the runs makes is as large as that of the compiled step, unless the step jumps at other rows, too.
SHARE = 4

# Ops that round in the dtype they give. Selections, copies and comparisons give what they read, and are left alone.
_ROUNDING = """add sub rsub mul div addmm addmv bmm mm mv baddbmm dot sum mean var var_mean std std_mean linalg_vector_norm
norm prod cumsum exp expm1 log log1p log2 sqrt rsqrt reciprocal tanh sigmoid sin cos erf pow lerp addcmul addcdiv
_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data tanh_backward sigmoid_backward gelu silu
native_layer_norm native_layer_norm_backward native_batch_norm native_batch_norm_backward native_group_norm
native_group_norm_backward convolution convolution_backward softplus logsumexp index_add scatter_add index_put
embedding_dense_backward nll_loss_forward nll_loss_backward avg_pool2d avg_pool2d_backward _cdist_forward
_cdist_backward _trilinear mse_loss mse_loss_backward""".split()


class Roundings(TorchDispatchMode):
    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name.removesuffix("_").removeprefix("_foreach_") not in _ROUNDING:
            return result
        written = args[0] if func._schema.is_mutable else result
        for tensor in written if isinstance(written, (tuple, list)) else (written,):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                up = torch.randint(0, 2, tensor.shape, generator=self.generator).to(tensor.dtype) * 2 - 1
                tensor.mul_(1 + up * torch.finfo(tensor.dtype).eps)
        return result


def explain(expected: torch.Tensor, others: list[torch.Tensor], got: torch.Tensor) -> bool:
    """Whether one of `others` is as far from what is expected as `got` is, about."""
    def apart(one: torch.Tensor) -> float:
        return float((one.double() - expected.double()).norm())
    return got.shape == expected.shape and SHARE * max(map(apart, others)) >= apart(got)
