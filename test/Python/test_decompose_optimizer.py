"""What spmd-decompose-optimizer makes of every list op and gradient op, run in float64 against PyTorch."""
import os
import subprocess

import pytest
import torch
from safetensors.torch import load_file, save_file

BIN = os.environ.get("SPMD_BIN", "build/bin")
GRADIENTS = ["native_layer_norm_backward", "_softmax_backward_data", "_log_softmax_backward_data", "tanh_backward",
             "sigmoid_backward"]
MLIR_TYPES = {torch.float64: "f64", torch.float32: "f32"}
SHAPES = [(3, 4), (5,), ()]

generator = torch.Generator().manual_seed(3)
CASES = {}  # name -> (operands, op with attributes, expected results)


def real(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def reals():
    return [real(*shape) for shape in SHAPES]


def positives():
    return [t.abs() + 0.5 for t in reals()]


def number(value):
    return f"{value:.17e}"  # MLIR wants a decimal point


def scalar_attr(value):
    return f"{number(value)} : f64" if isinstance(value, float) else f"{value} : i64"


def case(name, operands, attributes, expected):
    key = f"{name.replace('.', '_')}_{len(CASES)}"
    CASES[key] = (operands, f"aten.{name}", attributes, expected)


def foreach(name, *operands, attributes="", **arguments):
    """A _foreach op: lists and tensors by position, scalars by name; the expectation is PyTorch's."""
    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload or "default")
    expected = op(*operands, **arguments)
    flat = [t for operand in operands for t in (operand if isinstance(operand, list) else [operand])]
    case(name, flat, attributes or ", ".join(f"{k} = {scalar_attr(v)}" for k, v in arguments.items()), expected)


def list_attr(name, values):
    return f"{name} = [{', '.join(scalar_attr(v) for v in values)}]"


for base in ("add", "sub", "mul", "div"):
    foreach(f"_foreach_{base}.Scalar", reals(), scalar=1.5)
    foreach(f"_foreach_{base}.ScalarList", reals(), scalars=[0.5, 2.0, 3.0],
            attributes=list_attr("scalars", [0.5, 2.0, 3.0]))
    foreach(f"_foreach_{base}.List", reals(), positives(), **({"alpha": 0.3} if base in ("add", "sub") else {}))
foreach("_foreach_add.Tensor", reals(), real(), alpha=-2.0)
foreach("_foreach_mul.Tensor", reals(), real())
foreach("_foreach_div.Tensor", reals(), real())
for base in ("neg", "reciprocal"):
    foreach(f"_foreach_{base}", reals())
foreach("_foreach_sqrt", positives())
foreach("_foreach_pow.Scalar", positives(), exponent=1.5)
foreach("_foreach_pow.List", positives(), reals())
foreach("_foreach_pow.ScalarList", positives(), exponent=[1.0, 2.0, 0.5],
        attributes=list_attr("exponent", [1.0, 2.0, 0.5]))
exponents = reals()
case("_foreach_pow.ScalarAndTensor", exponents, "self = 0.9 : f64",
     torch.ops.aten._foreach_pow.ScalarAndTensor(0.9, exponents))
foreach("_foreach_lerp.Scalar", reals(), reals(), weight=0.1)
foreach("_foreach_lerp.List", reals(), reals(), reals())
foreach("_foreach_lerp.ScalarList", reals(), reals(), weight=[0.1, 0.2, 0.3],
        attributes=list_attr("weight", [0.1, 0.2, 0.3]))
for base in ("addcmul", "addcdiv"):
    foreach(f"_foreach_{base}.Scalar", reals(), reals(), positives(), value=-0.5)
    foreach(f"_foreach_{base}.ScalarList", reals(), reals(), positives(), scalars=[1.0, 2.0, 3.0],
            attributes=list_attr("scalars", [1.0, 2.0, 3.0]))
    foreach(f"_foreach_{base}.Tensor", reals(), reals(), positives(), real(3))
foreach("_foreach_maximum.List", reals(), reals())
foreach("_foreach_maximum.Scalar", reals(), scalar=0.25)
foreach("_foreach_minimum.Scalar", reals(), scalar=0.25)
foreach("_foreach_norm.Scalar", reals(), ord=2.0)
foreach("_foreach_norm.Scalar", reals(), ord=1.0)


def segments(**sizes):
    return ", ".join(f"{k} = array<i32: {', '.join(map(str, v))}>" for k, v in sizes.items())


def array(**values):
    return ", ".join(f"{k} = array<f64: {number(v)}>" for k, v in values.items())


def adam(name, amsgrad, maximize, weight_decay, lr):
    params, grads, moments, squares, largest = reals(), reals(), reals(), positives(), positives()
    steps = [torch.tensor(float(t)) for t in (1, 4, 100)]
    hyper = dict(beta1=0.9, beta2=0.95, weight_decay=weight_decay, eps=1e-8)
    operands = params + grads + moments + squares + (largest if amsgrad else []) + steps
    expected = [[t.clone() for t in l] for l in (params, moments, squares, largest if amsgrad else [])]
    getattr(torch, name + "_")(expected[0], [g.clone() for g in grads], expected[1], expected[2], expected[3], steps,
                               lr=lr, amsgrad=amsgrad, maximize=maximize, **hyper)
    n = len(SHAPES)
    tensor_lr = isinstance(lr, torch.Tensor)
    case(name, operands + ([lr] if tensor_lr else []),
         ", ".join([array(**hyper), *([] if tensor_lr else [array(lr_values=lr)]), "groups = array<i64: 0, 0, 0>",
                    f"amsgrad = {str(amsgrad).lower()}, maximize = {str(maximize).lower()}",
                    segments(operandSegmentSizes=[n] * 4 + [n * amsgrad, n, int(tensor_lr)],
                             resultSegmentSizes=[n] * 3 + [n * amsgrad])]),
         [t for l in expected for t in l])


for optimizer in ("_fused_adam", "_fused_adamw"):
    adam(optimizer, False, False, 0.0, 1e-2)
    adam(optimizer, False, True, 0.1, torch.tensor(1e-2, dtype=torch.float64))
    adam(optimizer, True, False, 0.1, torch.tensor(1e-2, dtype=torch.float64))


def sgd(momentum, nesterov, first, weight_decay, dampening, maximize):
    params, grads, buffers = reals(), reals(), reals() if momentum else []
    lr = torch.tensor(0.1, dtype=torch.float64)
    hyper = dict(weight_decay=weight_decay, momentum=momentum, dampening=dampening)
    expected = [[t.clone() for t in l] for l in (params, buffers)]
    torch._fused_sgd_(expected[0], [g.clone() for g in grads], expected[1], lr=lr, nesterov=nesterov, maximize=maximize,
                      is_first_step=first, **hyper)
    n, m = len(SHAPES), len(buffers)
    flags = (f"nesterov = {str(nesterov).lower()}, maximize = {str(maximize).lower()}, "
             f"is_first_step = {str(first).lower()}")
    case("_fused_sgd", params + grads + buffers + [lr],
         ", ".join([array(**hyper), "groups = array<i64: 0, 0, 0>", flags,
                    segments(operandSegmentSizes=[n, n, m, 1], resultSegmentSizes=[n, m])]),
         expected[0] + expected[1])


sgd(0.0, False, False, 0.0, 0.0, False)
sgd(0.9, False, False, 0.1, 0.2, True)
sgd(0.9, True, False, 0.1, 0.0, False)
sgd(0.9, False, True, 0.0, 0.3, False)

# Gradient ops.
x, grad, weight, bias = real(2, 3, 8), real(2, 3, 8), real(8), real(8)
_, mean, rstd = torch.ops.aten.native_layer_norm(x, [8], weight, bias, 1e-5)
for with_weight, output_mask in ((True, [True, True, True]), (False, [True, False, False]),
                                 (True, [False, True, False])):
    affine = [weight, bias] if with_weight else [None, None]
    results = torch.ops.aten.native_layer_norm_backward(grad, x, [8], mean, rstd, *affine, output_mask)
    case("native_layer_norm_backward", [grad, x, mean, rstd] + [t for t in affine if t is not None],
         "normalized_shape = array<i64: 8>, "
         + f"output_mask = array<i1: {', '.join(str(m).lower() for m in output_mask)}>, "
         + segments(operandSegmentSizes=[1] * 4 + [int(with_weight)] * 2,
                    resultSegmentSizes=[int(m) for m in output_mask]),
         [r for r, m in zip(results, output_mask) if m])
for name, function in (("_softmax", torch.softmax), ("_log_softmax", torch.log_softmax)):
    output = function(real(3, 5), 1)
    grad = real(3, 5)
    op = getattr(torch.ops.aten, name + "_backward_data")
    case(name + "_backward_data", [grad, output], "dim = 1 : i64, input_dtype = f64",
         [op(grad, output, 1, torch.float64)])
for name, function in (("tanh_backward", torch.tanh), ("sigmoid_backward", torch.sigmoid)):
    output, grad = function(real(3, 5)), real(3, 5)
    case(name, [grad, output], "", [getattr(torch.ops.aten, name)(grad, output)])


def mlir_type(tensor):
    return "tensor<" + "".join(f"{size}x" for size in tensor.shape) + MLIR_TYPES[tensor.dtype] + ">"


def function(key):
    operands, op, attributes, expected = CASES[key]
    arguments = ", ".join(f"%a{i}: {mlir_type(t)}" for i, t in enumerate(operands))
    uses = ", ".join(f"%a{i}" for i in range(len(operands)))
    types = ", ".join(mlir_type(t) for t in operands)
    results = ", ".join(mlir_type(t) for t in expected)
    values = ", ".join(f"%r#{i}" for i in range(len(expected)))
    return (f"func.func @{key}({arguments}) -> ({results}) {{\n  %r:{len(expected)} = {op} {uses} {{{attributes}}} : "
            f"({types}) -> ({results})\n  return {values} : {results}\n}}\n")


@pytest.fixture(scope="module")
def decomposed(tmp_path_factory):
    """The results of all functions after decomposition, and their IR."""
    folder = tmp_path_factory.mktemp("decompose")
    (folder / "ops.mlir").write_text("".join(map(function, CASES)))
    subprocess.run([os.path.join(BIN, "spmd-opt"), str(folder / "ops.mlir"), "-o", str(folder / "small.mlir"),
                    f"--spmd-decompose-optimizer=ops={','.join(GRADIENTS)}"], check=True)
    save_file({f"{key}/{i}": t.clone() for key, (operands, *_) in CASES.items() for i, t in enumerate(operands)},
              folder / "calls.safetensors")
    subprocess.run([os.path.join(BIN, "spmd-interpret"), str(folder / "small.mlir"),
                    f"--calls={folder}/calls.safetensors",
                    f"--results={folder}/results.safetensors"], check=True)
    return load_file(folder / "results.safetensors"), (folder / "small.mlir").read_text()


def test_nothing_is_left(decomposed):
    _, text = decomposed
    for name in ["aten._foreach", "aten._fused"] + [f"aten.{gradient} " for gradient in GRADIENTS]:
        assert name not in text


@pytest.mark.parametrize("key", CASES)
def test_decomposition(decomposed, key):
    results, _ = decomposed
    for i, expected in enumerate(CASES[key][3]):
        actual = results[f"{key}/{i}"].to(torch.float64)
        torch.testing.assert_close(actual, expected.to(torch.float64), rtol=1e-12, atol=1e-14)
