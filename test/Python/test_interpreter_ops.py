"""Every op with an evaluator of its own, and the common ones that their scalar bodies define, against PyTorch in float64:
the check that the oracle itself is right.

A sample is an op's PyTorch name and its arguments by schema name. From these come both the call of PyTorch and, because
operands and attributes of an aten op are the schema's arguments, one function of MLIR. All samples run in one call of
spmd-interpret.
"""
import os
import subprocess
from pathlib import Path

import pytest
import spmd.capture.ops.composites  # registers spmd::rms_norm  # noqa: F401
import spmd.capture.ops.draws  # registers spmd::philox_uniform  # noqa: F401
import torch
from safetensors.torch import load_file, save_file

INTERPRET = str(Path(os.environ["SPMD_BIN"]) / "spmd-interpret") if "SPMD_BIN" in os.environ else "spmd-interpret"
MLIR_TYPES = {torch.float64: "f64", torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.bool: "i1",
              torch.bfloat16: "bf16", torch.float16: "f16", torch.uint8: "ui8"}
# Ops with more than one list or optional argument carry segment sizes.
SEGMENTED = {"clamp.Tensor", "native_layer_norm", "native_layer_norm_backward"}
# Arguments that the dialect leaves out: they follow from the result type or do not matter.
DROPPED = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit",
           "scale_grad_by_freq", "sparse"}
KEPT_DTYPE = {"_to_copy", "sum.dim_IntList", "mean.dim", "linalg_vector_norm"}

generator = torch.Generator().manual_seed(7)


def real(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def positive(*shape):
    return real(*shape).abs() + 0.5


def ints(high, *shape):
    return torch.randint(0, high, shape, generator=generator)


def mask(*shape):
    return torch.rand(shape, generator=generator) < 0.5


def special(x):
    """`x` with an infinity, a NaN and a zero at its front."""
    x = x.clone()
    x.view(-1)[:3] = torch.tensor([float("inf"), float("nan"), 0.0], dtype=x.dtype)
    return x


SAMPLES = []


def sample(name, **arguments):
    SAMPLES.append((name, arguments))


# Pointwise.
for name in ("add", "sub"):
    sample(f"{name}.Tensor", self=real(3, 4), other=real(4), alpha=0.5)
    sample(f"{name}.Tensor", self=ints(9, 3, 4) + 2**60, other=ints(9, 1), alpha=3)
    sample(f"{name}.Scalar", self=real(3, 4), other=1.5, alpha=2)
    sample(f"{name}.Scalar", self=ints(9, 3), other=4, alpha=1)
sample("rsub.Scalar", self=real(3), other=2, alpha=0.5)
for name in ("mul", "div", "maximum", "minimum"):
    suffix = ".Tensor" if name in ("mul", "div") else ""
    sample(name + suffix, self=real(2, 3, 4), other=special(real(3, 1)))
    sample(name + suffix, self=ints(9, 4), other=ints(9, 4) + 1 if name != "div" else positive(4))
sample("mul.Tensor", self=real(3), other=mask(3))
sample("mul.Scalar", self=real(3), other=3)
sample("div.Scalar", self=real(3), other=7.0)
for name in ("neg", "exp", "abs", "erf", "cos", "sin", "tanh", "sigmoid", "silu", "relu"):
    sample(name, self=special(real(5, 3)))
for name in ("log", "sqrt", "rsqrt", "reciprocal"):
    sample(name, self=special(real(5, 3)))
sample("neg", self=ints(9, 3))
sample("abs", self=-ints(9, 3))
sample("relu", self=ints(9, 4) - 4)
for kind in ("none", "tanh"):
    sample("gelu", self=real(9), approximate=kind)
    sample("gelu_backward", grad_output=real(9), self=real(9), approximate=kind)
sample("tanh_backward", grad_output=real(5), output=real(5))
sample("sigmoid_backward", grad_output=real(5), output=real(5))
sample("silu_backward", grad_output=real(5), self=real(5))
sample("threshold_backward", grad_output=special(real(9)), self=real(9), threshold=0)
sample("pow.Tensor_Scalar", self=positive(5), exponent=2.5)
sample("pow.Tensor_Scalar", self=real(5), exponent=3)
sample("pow.Scalar", self=0.9, exponent=real(4))
sample("pow.Tensor_Tensor", self=positive(4), exponent=real(4))
sample("clamp", self=special(real(9)), min=-0.5, max=0.5)
sample("clamp", self=special(real(9)), max=0.5)
sample("clamp.Tensor", self=real(9), min=real(9) - 1, max=None)
sample("clamp.Tensor", self=real(9), min=None, max=real(1))
sample("addcmul", self=real(3, 4), tensor1=real(4), tensor2=real(3, 1), value=0.5)
sample("addcdiv", self=real(3, 4), tensor1=real(4), tensor2=positive(3, 1), value=0.5)
sample("lerp.Scalar", self=real(5), end=real(5), weight=0.1)
sample("lerp.Scalar", self=real(5), end=real(5), weight=0.9)

# Comparison, logic, selection.
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    sample(f"{name}.Scalar", self=ints(3, 8), other=1)
    sample(f"{name}.Scalar", self=special(real(8)), other=0.0)
    sample(f"{name}.Tensor", self=ints(3, 4, 1), other=ints(3, 4))
sample("logical_not", self=special(real(5)))
sample("logical_and", self=mask(4), other=mask(4))
sample("bitwise_not", self=mask(4))
sample("bitwise_not", self=ints(9, 4))
sample("bitwise_and.Tensor", self=ints(9, 4), other=ints(9, 4))
sample("bitwise_and.Tensor", self=mask(4), other=mask(4))
sample("where.self", condition=mask(3, 4), self=special(real(3, 4)), other=real(1))
sample("where.self", condition=mask(3, 4), self=ints(5, 3, 4) + 2**60, other=ints(5, 1))
sample("masked_fill.Scalar", self=real(3, 4), mask=mask(4), value=float("-inf"))

# Casts.
sample("_to_copy", self=real(7), dtype=torch.int64)
sample("_to_copy", self=special(real(7)), dtype=torch.bool)
sample("_to_copy", self=ints(9, 7), dtype=torch.float64)
sample("_to_copy", self=ints(9, 7) + 2**33, dtype=torch.int32)
sample("clone", self=real(3, 2))

# Views and pieces.
sample("view", self=real(4, 6), size=[2, 2, 6])
sample("view", self=real(4, 6), size=[24])
sample("view", self=real(4, 6), size=[3, 8])
sample("unsqueeze", self=real(4, 6), dim=1)
sample("unsqueeze", self=real(4, 6), dim=2)
sample("squeeze.dim", self=real(4, 1, 6), dim=1)
sample("squeeze.dim", self=real(4, 1, 6), dim=0)
sample("permute", self=real(2, 3, 4), dims=[2, 0, 1])
sample("permute", self=real(2, 3, 4), dims=[0, 2, 1])
sample("expand", self=real(3, 1), size=[2, 3, 4])
sample("slice.Tensor", self=real(5, 7), dim=1, start=1, end=6, step=2)
sample("slice.Tensor", self=real(5, 7), dim=0, start=2, end=5, step=1)
sample("select.int", self=real(3, 4), dim=1, index=2)
sample("split.Tensor", self=real(3, 7), split_size=3, dim=1)
sample("split_with_sizes", self=real(3, 7), split_sizes=[1, 4, 2], dim=1)
sample("cat", tensors=[real(2, 3), real(4, 3), real(1, 3)], dim=0)
sample("cat", tensors=[real(2, 3), real(2, 1)], dim=1)
sample("stack", tensors=[real(2, 3), real(2, 3)], dim=1)
sample("stack", tensors=[real(), real()], dim=0)
sample("slice_backward", grad_output=real(5, 3), input_sizes=[5, 7], dim=1, start=1, end=6, step=2)
sample("select_backward", grad_output=real(5), input_sizes=[5, 7], dim=1, index=3)
sample("slice_scatter", self=real(5, 7), src=real(5, 3), dim=1, start=1, end=6, step=2)
sample("select_scatter", self=real(5, 7), src=real(5), dim=1, index=3)
sample("flip", self=real(3, 4, 5), dims=[0, 2])
sample("flip", self=ints(9, 4), dims=[0])

# Order.
sample("sort.stable", self=special(real(3, 7)), stable=True, dim=1, descending=False)
sample("sort.stable", self=special(real(7, 3)), stable=True, dim=0, descending=True)
sample("sort.stable", self=ints(3, 2, 9, 2), stable=True, dim=1, descending=True)

# Factories.
sample("full", size=[2, 3], fill_value=1.5, dtype=torch.float64)
sample("full", size=[2], fill_value=3, dtype=torch.int64)
sample("full", size=[], fill_value=True, dtype=torch.bool)
sample("arange.start_step", start=2, end=11, step=3, dtype=torch.int64)
sample("arange.start_step", start=0.5, end=2.0, step=0.25, dtype=torch.float64)
sample("scalar_tensor", s=2.5, dtype=torch.float64)

# Reductions.
sample("sum.dim_IntList", self=real(2, 3, 4), dim=[0, 2], keepdim=False)
sample("sum.dim_IntList", self=real(2, 3, 4), dim=[1], keepdim=True)
sample("sum.dim_IntList", self=ints(9, 3, 4) + 2**50, dim=[0], keepdim=False)
sample("sum.dim_IntList", self=mask(3, 4), dim=[1], keepdim=False)
sample("sum.dim_IntList", self=ints(9, 3, 4), dim=[0, 1], keepdim=False, dtype=torch.float64)
sample("mean.dim", self=real(2, 3, 4), dim=[0, 1], keepdim=True)
sample("amax", self=special(real(3, 4)), dim=[1], keepdim=False)
sample("amax", self=ints(9, 3, 4), dim=[0], keepdim=True)
sample("amin", self=special(real(3, 4)), dim=[1], keepdim=False)
sample("amin", self=ints(9, 3, 4), dim=[0], keepdim=True)
for name in ("max.dim", "min.dim"):
    sample(name, self=special(real(3, 4)), dim=1, keepdim=False)
    sample(name, self=ints(3, 3, 4, 2) + 2**60, dim=1, keepdim=True)
    sample(name, self=mask(3, 4), dim=0, keepdim=False)
for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
    sample(name, self=real(3, 4, 2), dim=1)
    sample(name, self=special(real(5)), dim=0)
for name in ("cumsum", "cumprod", "cummax", "cummin"):
    sample(name, self=ints(5, 3, 4), dim=1)
sample("logcumsumexp", self=torch.tensor([-torch.inf, -torch.inf, 1.0, torch.inf, 2.0], dtype=torch.float64), dim=0)
sample("prod.dim_int", self=real(3, 4, 2), dim=1, keepdim=False)
sample("prod.dim_int", self=ints(9, 3, 4) + 1, dim=0, keepdim=True)
sample("linalg_vector_norm", self=real(3, 4), ord=0, dim=[0], keepdim=False)
sample("linalg_vector_norm", self=real(3, 4), ord=float("-inf"), dim=[0], keepdim=False)
sample("linalg_vector_norm", self=real(3, 4), ord=2, dim=[0, 1], keepdim=False)
sample("linalg_vector_norm", self=real(3, 4), ord=float("inf"), dim=[1], keepdim=True)
sample("linalg_vector_norm", self=real(3, 4), ord=1, dim=[0], keepdim=False)
sample("linalg_vector_norm", self=real(3, 4), ord=3.0, dim=[0], keepdim=False)
sample("var_mean.correction", self=real(3, 4), dim=[1], correction=1, keepdim=False)
sample("var_mean.correction", self=real(3, 4), dim=[0, 1], correction=0, keepdim=True)

# Products.
sample("mm", self=real(5, 7), mat2=real(7, 37))
sample("bmm", self=real(2, 5, 3), mat2=real(2, 3, 4))
sample("addmm", self=real(4), mat1=real(5, 3), mat2=real(3, 4), beta=1, alpha=1)
sample("addmm", self=special(real(5, 4)), mat1=real(5, 3), mat2=real(3, 4), beta=0, alpha=0.5)
sample("baddbmm", self=real(2, 1, 4), batch1=real(2, 5, 3), batch2=real(2, 3, 4), beta=0.5, alpha=2)

# Norms.
sample("native_layer_norm", input=real(2, 3, 8), normalized_shape=[8], weight=real(8), bias=real(8), eps=1e-5)
sample("native_layer_norm", input=real(2, 3, 8), normalized_shape=[3, 8], weight=real(3, 8), bias=None, eps=1e-5)
sample("native_layer_norm", input=real(2, 8), normalized_shape=[8], weight=None, bias=None, eps=1e-3)
for output_mask in ([True, True, True], [True, False, False], [False, True, True]):
    x, w, b = real(2, 3, 8), real(8), real(8)
    _, mean, rstd = torch.native_layer_norm(x, [8], w, b, 1e-5)
    sample("native_layer_norm_backward", grad_out=real(2, 3, 8), input=x, normalized_shape=[8], mean=mean, rstd=rstd,
           weight=w, bias=b, output_mask=output_mask)

# Windows.
def convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, transposed=False, output_padding=0, groups=1):
    rank = weight.dim() - 2
    given = dict(zip(("stride", "padding", "dilation", "output_padding"),
                     ([n] * rank for n in (stride, padding, dilation, output_padding))))
    given |= dict(transposed=transposed, groups=groups)
    sample("convolution", input=x, weight=weight, bias=bias, **given)
    out = torch.ops.aten.convolution(x, weight, bias, **given)
    for output_mask in ([True, True, True], [False, True, False], [True, False, False]):
        sample("convolution_backward", grad_output=real(*out.shape), input=x, weight=weight,
               bias_sizes=[out.shape[1]], **given,
               output_mask=output_mask)


convolution(real(2, 3, 5, 6), real(4, 3, 3, 2), real(4), padding=1)
convolution(real(2, 4, 7, 6), real(6, 2, 3, 3), stride=2, padding=1, dilation=2, groups=2)
convolution(real(2, 4, 7), real(4, 1, 3), groups=4)
convolution(real(1, 2, 3, 4, 4), real(3, 2, 2, 2, 2), real(3), stride=2, padding=1)
convolution(real(2, 4, 3, 3), real(4, 3, 3, 3), real(6), stride=2, padding=1, transposed=True,
            output_padding=1, groups=2)
for kernel, options in (([2, 2], {}), ([3, 3], dict(stride=[2, 2], padding=[1, 1])),
                        ([3, 2], dict(stride=[1, 2], dilation=[2, 1], ceil_mode=True))):
    x, ceil_mode = special(real(2, 3, 6, 7)), options.pop("ceil_mode", False)
    given = dict(kernel_size=kernel, stride=kernel, padding=[0, 0],
                 dilation=[1, 1]) | options | dict(ceil_mode=ceil_mode)
    sample("max_pool2d_with_indices", self=x, **given)
    out, indices = torch.ops.aten.max_pool2d_with_indices(x, **given)
    sample("max_pool2d_with_indices_backward", grad_output=real(*out.shape), self=x, **given, indices=indices)
given = dict(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[1, 1, 1], dilation=[1, 1, 1], ceil_mode=False)
x = real(2, 3, 4, 4, 5)
sample("max_pool3d_with_indices", self=x, **given)
out, indices = torch.ops.aten.max_pool3d_with_indices(x, **given)
sample("max_pool3d_with_indices_backward", grad_output=real(*out.shape), self=x, **given, indices=indices)
given = dict(kernel_size=[3, 2], dilation=[1, 2], padding=[1, 0], stride=[2, 1])
columns = torch.ops.aten.im2col(real(2, 3, 5, 6), **given)
sample("im2col", self=real(2, 3, 5, 6), **given)
sample("col2im", self=real(*columns.shape), output_size=[5, 6], **given)
sample("philox_uniform", seed=torch.tensor(2**52 + 17), step=torch.tensor(3), index=ints(2**40, 4, 5), stream=2)
sample("philox_uniform", seed=torch.tensor(5), step=torch.tensor(1), index=ints(9, 4), stream=0, word=3)
for shape, inner in (((2, 3, 8), [8]), ((2, 3, 8), [3, 8])):
    for weight in (real(*inner), None):
        x = real(*shape)
        sample("rms_norm", input=x, normalized_shape=inner, weight=weight, eps=1e-5)
        _, rstd = torch.ops.spmd.rms_norm(x, inner, weight, 1e-5)
        sample("rms_norm_backward", grad_out=real(*shape), input=x, normalized_shape=inner, rstd=rstd, weight=weight,
               output_mask=[True, weight is not None])

# Embedding.
sample("embedding", weight=real(6, 4), indices=ints(6, 2, 3), padding_idx=-1)
sample("embedding_dense_backward", grad_output=real(2, 3, 4), indices=ints(6, 2, 3), num_weights=6, padding_idx=-1,
       scale_grad_by_freq=False)
sample("embedding_dense_backward", grad_output=real(9, 4), indices=ints(6, 9), num_weights=6, padding_idx=2,
       scale_grad_by_freq=False)

# Softmax and losses.
for name in ("_softmax", "_log_softmax"):
    for dim in (0, 1, 2):
        x = real(3, 4, 5)
        sample(name, self=x, dim=dim, half_to_float=False)
        sample(f"{name}_backward_data", grad_output=real(3, 4, 5),
               output=getattr(torch.ops.aten, name)(x, dim, False), dim=dim,
               input_dtype=torch.float64)
for reduction in (0, 1, 2):
    logits, target, weight = real(6, 5), ints(5, 6), positive(5)
    target[2] = -100
    for w in (None, weight):
        arguments = dict(self=logits, target=target, weight=w, reduction=reduction, ignore_index=-100)
        sample("nll_loss_forward", **arguments)
        total = torch.ops.aten.nll_loss_forward(logits, target, w, reduction, -100)[1]
        grad = real(6) if reduction == 0 else real()
        sample("nll_loss_backward", grad_output=grad, **arguments, total_weight=total)
    sample("mse_loss", self=real(3, 4), target=real(3, 4), reduction=reduction)
    sample("mse_loss_backward", grad_output=real(3, 4) if reduction == 0 else real(), self=real(3, 4),
           target=real(3, 4), reduction=reduction)


# List ops.
def tensors(make=real):
    return [make(2, 3), make(4), make(1)]


for name in ("add", "sub", "mul", "div"):
    sample(f"_foreach_{name}.Scalar", self=tensors(), scalar=0.5)
    sample(f"_foreach_{name}.ScalarList", self=tensors(), scalars=[0.5, 2, -1.5])
    sample(f"_foreach_{name}.List", self=tensors(), other=tensors(positive),
           **({"alpha": 0.5} if name in ("add", "sub") else {}))
sample("_foreach_add.Tensor", self=tensors(), other=real(), alpha=0.5)
sample("_foreach_mul.Tensor", self=tensors(), other=real())
sample("_foreach_div.Tensor", self=tensors(), other=positive())
for name in ("neg", "sqrt", "reciprocal"):
    sample(f"_foreach_{name}", self=tensors(positive))
sample("_foreach_pow.ScalarAndTensor", self=0.9, exponent=tensors())
sample("_foreach_pow.Scalar", self=tensors(positive), exponent=1.5)
sample("_foreach_pow.ScalarList", self=tensors(positive), exponent=[1.5, 2, 0.5])
sample("_foreach_pow.List", self=tensors(positive), exponent=tensors())
sample("_foreach_lerp.Scalar", self=tensors(), tensors1=tensors(), weight=0.1)
sample("_foreach_lerp.ScalarList", self=tensors(), tensors1=tensors(), weight=[0.1, 0.9, 0.5])
sample("_foreach_lerp.List", self=tensors(), tensors1=tensors(), weights=tensors())
for name in ("addcmul", "addcdiv"):
    lists = dict(self=tensors(), tensor1=tensors(), tensor2=tensors(positive))
    sample(f"_foreach_{name}.Scalar", **lists, value=0.5)
    sample(f"_foreach_{name}.ScalarList", **lists, scalars=[0.5, 2, -1.0])
    sample(f"_foreach_{name}.Tensor", **lists, scalars=real(3))
sample("_foreach_maximum.List", self=tensors(), other=tensors())
sample("_foreach_maximum.Scalar", self=tensors(), scalar=0.25)
sample("_foreach_minimum.Scalar", self=tensors(), scalar=0.25)
sample("_foreach_norm.Scalar", self=tensors(), ord=2)
sample("_foreach_norm.Scalar", self=tensors(), ord=1.5)
sample("_foreach_norm.Scalar", self=tensors(), ord=float("inf"))


class Case:
    """One function: MLIR text, its inputs, and what PyTorch gives."""

    def __init__(self, name, operands, attributes, expected):
        self.name, self.operands, self.attributes = name, operands, attributes
        self.expected = [t.detach().contiguous() for t in expected]

    def text(self, label):
        arguments = ", ".join(f"%a{i}: {mlir_type(t)}" for i, t in enumerate(self.operands))
        types = ", ".join(map(mlir_type, self.operands))
        results = ", ".join(map(mlir_type, self.expected))
        attributes = ", ".join(f"{k} = {v}" for k, v in self.attributes.items())
        used = ", ".join(f"%a{i}" for i in range(len(self.operands)))
        returned = ", ".join(f"%r#{i}" for i in range(len(self.expected)))
        return (f"func.func @{label}({arguments}) -> ({results}) {{\n"
                f"  %r:{len(self.expected)} = aten.{self.name} {used} {{{attributes}}} : ({types}) -> ({results})\n"
                f"  return {returned} : {results}\n}}\n")


def mlir_type(tensor):
    return "tensor<" + "".join(f"{n}x" for n in tensor.shape) + MLIR_TYPES[tensor.dtype] + ">"


def real_text(value):
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "0x7FF0000000000000", "-inf": "0xFFF0000000000000"}.get(str(value),
                                                                               "0x7FF8000000000000") + " : f64"
    return f"{value:.17e} : f64"


def attribute(value, kind):
    """`value` as an attribute of a schema type."""
    if isinstance(value, torch.dtype):
        return MLIR_TYPES[value]
    if isinstance(value, str):
        return f'"{value}"'
    if kind.startswith("float"):
        return real_text(float(value))
    if isinstance(value, list):
        if "bool" in kind:
            return "array<i1: " + ", ".join(str(v).lower() for v in value) + ">"
        if "number" in kind:
            return "[" + ", ".join(attribute(v, "number") for v in value) + "]"
        return "array<i64" + (": " + ", ".join(map(str, value)) if value else "") + ">"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return real_text(value)
    return f"{value} : i64"


def overload(name):
    packet, _, suffix = name.partition(".")
    ours = packet == "philox_uniform" or packet.startswith("rms_norm")
    return getattr(getattr(torch.ops.spmd if ours else torch.ops.aten, packet), suffix or "default")


# The dialect's name for PyTorch's clamp list ops.
TORCH_NAMES = {"_foreach_maximum.Scalar": "_foreach_clamp_min.Scalar",
               "_foreach_minimum.Scalar": "_foreach_clamp_max.Scalar"}


def build(name, arguments):
    op = overload(TORCH_NAMES.get(name, name))
    operands, segments, attributes = [], [], {}
    for argument in op._schema.arguments:
        value = arguments.get(argument.name)
        kind = str(argument.type)
        if "Tensor" in kind:
            entries = value if isinstance(value, list) else [] if value is None else [value]
            operands += entries
            segments.append(len(entries))
        elif value is not None and (argument.name not in DROPPED or argument.name == "dtype" and name in KEPT_DTYPE):
            attributes[argument.name] = attribute(value, kind.removeprefix("Optional["))
    results = op(**arguments)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if name in SEGMENTED:
        attributes["operandSegmentSizes"] = f"array<i32: {', '.join(map(str, segments))}>"
    if name in ("native_layer_norm_backward", "rms_norm_backward", "convolution_backward"):
        present = [int(r is not None) for r in results]
        attributes["resultSegmentSizes"] = f"array<i32: {', '.join(map(str, present))}>"
    return Case(name, operands, attributes, [r for r in results if r is not None])


def attention(query, key, value, attn_mask=None, is_causal=False, scale=None):
    """Forward and backward cases of one attention problem, by autograd of the definition."""
    gqa = query.shape[1] != key.shape[1]
    inputs = [t.clone().requires_grad_() for t in (query, key, value)]
    bias = attn_mask.clone().requires_grad_() if attn_mask is not None and attn_mask.dtype != torch.bool else attn_mask
    repeat = query.shape[1] // key.shape[1]
    k, v = (t.repeat_interleave(repeat, 1) for t in inputs[1:])
    scores = inputs[0] @ k.transpose(-1, -2) * (scale or query.shape[-1] ** -0.5)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    if bias is not None:
        scores = scores.masked_fill(~bias, float("-inf")) if bias.dtype == torch.bool else scores + bias
    out, lse = scores.softmax(-1) @ v, scores.logsumexp(-1)
    grad_out = real(*out.shape)
    wanted = inputs + ([bias] if bias is not None and bias.dtype != torch.bool else [])
    grads = torch.autograd.grad(out, wanted, grad_out)
    attributes = {"dropout_p": "0.0 : f64", "is_causal": str(is_causal).lower(), "enable_gqa": str(gqa).lower()}
    if scale:
        attributes["scale"] = real_text(scale)
    masks = [attn_mask] if attn_mask is not None else []
    yield Case("sdpa", [query, key, value, *masks], attributes, [out, lse])
    yield Case("sdpa_backward", [grad_out, query, key, value, *masks, out.detach(), lse.detach()], attributes, grads)


def grouped():
    """Rows times the matrix of their group, and its gradient; rows of no group give nothing."""
    x, y, w, groups = real(6, 3), real(6, 4), real(3, 3, 4), torch.tensor([2, 0, -1, 2, 3, 0])
    known = ((groups >= 0) & (groups < 3)).to(x.dtype)[:, None]
    products = torch.einsum("sk,skn->sn", x * known, w[groups.clamp(0, 2)])
    sums = torch.zeros_like(w).index_add(0, groups.clamp(0, 2), torch.einsum("sk,sn->skn", x * known, y))
    yield Case("grouped_mm", [x, w, groups], {}, [products])
    yield Case("grouped_outer", [x, y, groups], {"num_groups": "3 : i64"}, [sums])
    yield Case("grouped_outer", [x, y, groups.int()], {"num_groups": "3 : i64"}, [sums])


def rows():
    """gather_rows and scatter_rows, against loops over batches of index_select and index_reduce; check_index."""
    x, index = real(2, 5, 3), ints(5, 2, 4)
    gathered = torch.stack([table[i] for table, i in zip(x, index)])
    yield Case("gather_rows", [x, index], {"batch_dims": "1 : i64"}, [gathered])
    yield Case("gather_rows", [x[0], index], {}, [x[0][index]])
    yield Case("gather_rows", [x[0], index.int()], {}, [x[0][index]])
    src = real(2, 4, 3)
    onto_zeros = torch.stack([torch.zeros(5, 3, dtype=x.dtype).index_add(0, i, s) for i, s in zip(index, src)])
    attributes = {"rows": "5 : i64", "batch_dims": "1 : i64"}
    yield Case("scatter_rows", [index, src], attributes | {"reduce": '"sum"'}, [onto_zeros])
    yield Case("scatter_rows", [x, index, src], attributes | {"reduce": '"sum"'}, [x + onto_zeros])
    for reduce in ("prod", "amax", "amin"):
        expected = torch.stack([table.index_reduce(0, i, s, reduce) for table, i, s in zip(x, index, src)])
        yield Case("scatter_rows", [x, index, src], attributes | {"reduce": f'"{reduce}"'}, [expected])
    once = torch.tensor([3, 0, 4])
    yield Case("scatter_rows", [x[0], once, src[0, :3]], {"rows": "5 : i64", "reduce": '"set"'},
               [x[0].index_copy(0, once, src[0, :3])])
    labels = torch.tensor([3, -100, 0])
    yield Case("check_index", [labels],
               {"low": "0 : i64", "high": "4 : i64", "ignore_index": "-100 : i64", "use": '"nll_loss"'}, [labels])


def optimizer(kind, steps=3, **options):
    """A fused optimizer op at its `steps`-th step, against torch.optim with two param groups."""
    params = [torch.nn.Parameter(real(3, 4)), torch.nn.Parameter(real(5)), torch.nn.Parameter(real(2))]
    second = dict(options, lr=options["lr"] * 0.1, weight_decay=0.0)
    groups = [dict(options, params=params[:2]), dict(second, params=params[2:])]
    opt = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind](groups, foreach=False)
    for _ in range(steps - 1):
        for p in params:
            p.grad = real(*p.shape)
        opt.step()
    grads = [real(*p.shape) for p in params]
    moments = ["exp_avg", "exp_avg_sq"] + (["max_exp_avg_sq"] if options.get("amsgrad") else [])
    names = ["momentum_buffer"] if kind == "sgd" else moments
    if kind == "sgd" and not options.get("momentum"):
        names = []

    def state():
        return [[opt.state[p][n].clone() for p in params] for n in names]

    before = [p.detach().clone() for p in params], state()
    for p, g in zip(params, grads):
        p.grad = g.clone()
    opt.step()
    after = [p.detach().clone() for p in params], state()
    per_group = lambda name: "array<f64: " + ", ".join(f"{v:.17e}" for v in (options[name], second[name])) + ">"
    flag = lambda name: str(bool(options.get(name))).lower()
    lists = [before[0], grads, *before[1]]
    attributes = {"groups": "array<i64: 0, 0, 1>", "lr_values": per_group("lr"),
                  "weight_decay": per_group("weight_decay"), "maximize": flag("maximize")}
    if kind == "sgd":
        attributes |= {n: per_group(n) for n in ("momentum", "dampening")} | {"nesterov": flag("nesterov"),
                                                                              "is_first_step": "false"}
        sizes, result_sizes = [3, 3, 3 * len(names), 0], [3, 3 * len(names)]
    else:
        for i, name in enumerate(("beta1", "beta2")):
            attributes[name] = f"array<f64: {options['betas'][i]:.17e}, {options['betas'][i]:.17e}>"
        attributes |= {"eps": "array<f64: 1.0e-8, 1.0e-8>", "amsgrad": flag("amsgrad")}
        lists.append([torch.tensor(float(steps), dtype=torch.float64)] * 3)
        amsgrad = 3 * bool(options.get("amsgrad"))
        sizes, result_sizes = [3, 3, 3, 3, amsgrad, 3, 0], [3, 3, 3, amsgrad]
    if options.get("tensor_lr"):
        del attributes["lr_values"]
        lists.append([torch.tensor(v, dtype=torch.float64) for v in (options["lr"], second["lr"])])
        sizes[-1] = 2
    attributes["operandSegmentSizes"] = f"array<i32: {', '.join(map(str, sizes))}>"
    attributes["resultSegmentSizes"] = f"array<i32: {', '.join(map(str, result_sizes))}>"
    return Case(f"_fused_{kind}", sum(lists, []), attributes, after[0] + sum(after[1], []))


def all_cases():
    cases = [build(name, arguments) for name, arguments in SAMPLES]
    cases += grouped()
    cases += rows()
    q, k, v = real(2, 4, 5, 6), real(2, 4, 7, 6), real(2, 4, 7, 3)
    cases += attention(q, k, v)
    cases += attention(q, k, v, scale=0.3, is_causal=True)
    cases += attention(q, k[:, :2], v[:, :2])
    cases += attention(q, k, v, attn_mask=real(1, 4, 5, 7))
    cases += attention(q, k, v, attn_mask=mask(5, 7) | torch.eye(5, 7, dtype=torch.bool))
    adam = dict(lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    for kind in ("adam", "adamw"):
        cases += [optimizer(kind, **adam), optimizer(kind, **adam, amsgrad=True),
                  optimizer(kind, **adam, maximize=True)]
    sgd = dict(lr=0.01, weight_decay=0.1, momentum=0.9, dampening=0.0)
    cases += [optimizer("sgd", **sgd), optimizer("sgd", **sgd, nesterov=True),
              optimizer("sgd", **(sgd | {"dampening": 0.5})),
              optimizer("sgd", **(sgd | {"momentum": 0.0}), maximize=True)]
    at = [[real(3, 4), real(3, 4), positive(3, 4)], [real(5), real(5), positive()]]
    cases.append(Case("_foreach_map", [t for ts in zip(*at) for t in ts],
                      {"op": '"addcdiv"', "options": "{value = 0.5 : f64}"},
                      [torch.addcdiv(*ts, value=0.5) for ts in at]))
    return cases


def run(cases, folder, *options):
    for i, case in enumerate(cases):
        case.label = f"f{i}"
    (folder / "ops.mlir").write_text("".join(case.text(case.label) for case in cases))
    inputs = {f"{case.label}/{i}": t.detach().clone().contiguous()
              for case in cases for i, t in enumerate(case.operands)}
    save_file(inputs, folder / "in.safetensors")
    done = subprocess.run([INTERPRET, folder / "ops.mlir", f"--calls={folder / 'in.safetensors'}",
                           f"--results={folder / 'out.safetensors'}", *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return load_file(folder / "out.safetensors")


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    cases = all_cases()
    return cases, run(cases, tmp_path_factory.mktemp("ops"))


def test_values_are_pytorchs(checked):
    cases, results = checked
    wrong = []
    for case in cases:
        for i, expected in enumerate(case.expected):
            got = results[f"{case.label}/{i}"]
            expected = expected.double() if expected.dtype == torch.float32 else expected  # all floats are doubles here
            close = got.dtype == expected.dtype and got.shape == expected.shape and (
                torch.allclose(got, expected, rtol=1e-13, atol=1e-13, equal_nan=True) if expected.is_floating_point()
                else torch.equal(got, expected))
            if not close:
                wrong.append(f"result {i} of {case.name} {case.attributes}\n  got {got}\n  expected {expected}")
    assert not wrong, f"{len(wrong)} of {len(cases)} cases:\n" + "\n".join(wrong)


def test_every_op_has_a_sample(checked):
    cases, _ = checked
    known = subprocess.run([INTERPRET, "--list-ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    # Those that scalar bodies define have samples in test/Coverage, and some of them here.
    bodies = {op.removesuffix(" (scalar body)") for op in known if op.endswith(" (scalar body)")}
    # A function of the user's and collectives have tests of their own (test_custom_kernels.py, test_collectives.py).
    sampled = {f"aten.{case.name}" for case in cases} | {"aten.constant", "aten.custom_call"}
    own = {op for op in known if op.startswith("aten.") and not op.startswith("aten.c10d_") and " " not in op}
    assert own == sampled - bodies


def test_program_types_round_once_per_op(tmp_path):
    """In the program's types an f32 op gives the double result, rounded once."""
    a, b = real(64).float(), real(64).float()
    case = Case("mul.Tensor", [a, b], {}, [(a.double() * b.double()).float()])
    cast = Case("_to_copy", [a], {"dtype": "bf16"}, [a.bfloat16()])
    results = run([case, cast], tmp_path, "--dtype=program")
    assert torch.equal(results["f0/0"], case.expected[0])
    assert torch.equal(results["f1/0"], cast.expected[0])


@pytest.mark.parametrize("op, tensors, attributes, message", [
    ("check_index", [torch.tensor([3, 4])], {"low": "0 : i64", "high": "4 : i64", "use": '"gather"'},
     "element 1 is 4, 'gather' allows [0, 4)"),
    ("gather_rows", [torch.zeros(3, 2, dtype=torch.float64), torch.tensor([0, 3])], {},
     "row number 3 is not in [0, 3)"),
    ("scatter_rows", [torch.tensor([-1]), torch.zeros(1, 2, dtype=torch.float64)],
     {"rows": "3 : i64", "reduce": '"sum"'}, "row number -1 is not in [0, 3)"),
])
def test_row_number_out_of_range_is_an_error(tmp_path, op, tensors, attributes, message):
    expected = {"check_index": tensors[0], "gather_rows": torch.zeros(2, 2, dtype=torch.float64),
                "scatter_rows": torch.zeros(3, 2, dtype=torch.float64)}
    case = Case(op, tensors, attributes, [expected[op]])
    (tmp_path / "ops.mlir").write_text(case.text("f"))
    save_file({f"f/{i}": t for i, t in enumerate(tensors)}, tmp_path / "in.safetensors")
    done = subprocess.run([INTERPRET, tmp_path / "ops.mlir", f"--calls={tmp_path / 'in.safetensors'}",
                           f"--results={tmp_path / 'out'}"],
                          capture_output=True, text=True)
    assert done.returncode == 3 and message in done.stderr, done.stderr  # a failure while running


def test_missing_input_is_named(tmp_path):
    (tmp_path / "ops.mlir").write_text(Case("neg", [real(2)], {}, [real(2)]).text("f"))
    save_file({"g/0": real(2)}, tmp_path / "in.safetensors")
    done = subprocess.run([INTERPRET, tmp_path / "ops.mlir", f"--calls={tmp_path / 'in.safetensors'}",
                           f"--results={tmp_path / 'out'}"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "has no tensor 'f/0'" in done.stderr
