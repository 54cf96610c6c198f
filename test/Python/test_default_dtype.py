"""Whole numbers in ops of floating ones are of torch's default dtype, whatever that is: in the interpreter and on the
host."""
from __future__ import annotations

import copy

import pytest
import torch
from step_check import capture_function, compute

import spmd

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")


@pytest.fixture(params=[torch.float64, torch.bfloat16], ids=["float64", "bfloat16"])
def default(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


# Of whole numbers y up to 2^24 + 1, which no f32 holds, small ones k, truth values, and a floating number of no dims.
FUNCTIONS = {
    "div": lambda y, k, b, s: y / 3,
    "div of tensors": lambda y, k, b, s: y / (k + 9),
    "div, not rounded": lambda y, k, b, s: torch.div(y, 7, rounding_mode=None),
    "div, floor": lambda y, k, b, s: torch.div(y, 2.5, rounding_mode="floor"),
    "div, trunc": lambda y, k, b, s: torch.div(y, 2.5, rounding_mode="trunc"),
    "reciprocal": lambda y, k, b, s: y.reciprocal(),
    "sin": lambda y, k, b, s: k.sin(),
    "exp": lambda y, k, b, s: k.exp(),
    "sqrt": lambda y, k, b, s: y.abs().sqrt(),
    "log1p": lambda y, k, b, s: y.abs().log1p(),
    "sigmoid": lambda y, k, b, s: k.sigmoid(),
    "tanh": lambda y, k, b, s: k.tanh(),
    "lgamma": lambda y, k, b, s: (k + 20).lgamma(),
    "atan2": lambda y, k, b, s: torch.atan2(y, k),
    "xlogy": lambda y, k, b, s: torch.xlogy(k, y.abs() + 1),
    "deg2rad": lambda y, k, b, s: torch.deg2rad(k),
    "logit": lambda y, k, b, s: torch.logit(k, eps=0.25),
    "copysign": lambda y, k, b, s: torch.copysign(y, k),
    "plus a number": lambda y, k, b, s: y + 0.1,
    "number minus": lambda y, k, b, s: 0.1 - y,
    "times a number": lambda y, k, b, s: y * 0.1,
    "power": lambda y, k, b, s: y ** 0.5,
    "number to the power": lambda y, k, b, s: 1.1 ** k,
    "remainder": lambda y, k, b, s: y % 2.5,
    "fmod": lambda y, k, b, s: torch.fmod(y, 2.5),
    "floor_divide": lambda y, k, b, s: y // 2.5,
    "clamp": lambda y, k, b, s: y.clamp(-1e6 + 0.1, 1e7 + 0.1),
    "less": lambda y, k, b, s: y < 2 ** 24 + 0.5,
    "equal": lambda y, k, b, s: y == float(2 ** 24 + 1),
    "where": lambda y, k, b, s: torch.where(b, y, 0.1),
    "truth values": lambda y, k, b, s: b / 3,
    "truth value times": lambda y, k, b, s: b * 0.1,
    "a tensor of no dims": lambda y, k, b, s: y * s,
    "mean": lambda y, k, b, s: y.mean(dtype=torch.get_default_dtype()),
    "softmax": lambda y, k, b, s: k.softmax(0, dtype=torch.get_default_dtype()),
    "arange": lambda y, k, b, s: torch.arange(0, 1, 0.1) + k[:10],
    "linspace": lambda y, k, b, s: torch.linspace(0, 1, 7),
    "full": lambda y, k, b, s: torch.full((3,), 0.1),
    "tensor": lambda y, k, b, s: torch.tensor(0.1) * y,
    "scalar_tensor": lambda y, k, b, s: torch.scalar_tensor(0.1) + k,
    "zeros": lambda y, k, b, s: torch.zeros(4) + 0.1,
    "one_hot": lambda y, k, b, s: torch.nn.functional.one_hot(k.abs(), 17) / 3,
    "cumsum": lambda y, k, b, s: k.cumsum(0) / 7,
    "in place": lambda y, k, b, s: torch.zeros(len(k)).add_(y).mul_(0.1),
}


def all_of_them(*inputs: torch.Tensor) -> list[torch.Tensor]:
    return [function(*inputs) for function in FUNCTIONS.values()]


@pytest.mark.parametrize("target", ["interpreter", "--target=host"])
def test_ops(default: torch.dtype, target: str, tmp_path) -> None:
    torch.manual_seed(3)
    y = torch.randint(-2 ** 24, 2 ** 24, (40,))
    y[:3] = torch.tensor([2 ** 24 + 1, 2 ** 24, 1])
    k = torch.randint(-8, 9, (40,))
    inputs = (y, k, k > 0, torch.tensor(0.1))
    eps = torch.finfo(default).eps
    for name, ours, expected in zip(FUNCTIONS, compute(all_of_them, inputs, tmp_path, target), all_of_them(*inputs),
                                    strict=True):
        assert ours.dtype == expected.dtype, name
        if not expected.is_floating_point():
            assert torch.equal(ours, expected), name
            continue
        # Functions of PyTorch and ours may be off by an eps each; in bfloat16 sums of PyTorch are of f32.
        torch.testing.assert_close(ours, expected, rtol=16 * eps, atol=0, equal_nan=True, msg=lambda m: f"{name}: {m}")


def test_ldexp_of_whole_numbers_is_refused(default: torch.dtype, tmp_path) -> None:
    """PyTorch's fake tensors have f32 for it. Where one is a floating number it is right."""
    def ldexp(x, k):
        return torch.ldexp(x, k)
    k = torch.arange(4)
    with pytest.raises(Exception, match="'ldexp' of whole numbers is of the default dtype"):
        compute(ldexp, (k, k), tmp_path, "interpreter")
    for x, n in ((torch.ones(4, dtype=torch.float32), k), (k, k.to(default))):
        ours = compute(ldexp, (x, n), tmp_path, "interpreter")[0]
        assert ours.dtype == torch.ldexp(x, n).dtype and torch.equal(ours, torch.ldexp(x, n))

    def train_step(model, optimizer, k):
        loss = (model.weight * torch.ldexp(k, k).to(default)).sum()
        loss.backward()
        optimizer.step()
        return loss
    model = torch.nn.Linear(4, 1)
    package = spmd.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), k)
    with pytest.raises(spmd.CompileError, match=r"\n  hint: x \* 2.0 \*\* n\n") as refused:
        package.plan(ranks=1)
    assert [said.hint for said in refused.value.diagnostics] == ["x * 2.0 ** n"]


def _whole_arguments() -> dict[str, tuple]:
    """The calls of torch's namespaces on whole numbers and truth values alone that give the default dtype; what draws,
    makes tensors or changes torch's state aside."""
    k = torch.randint(1, 6, (4, 4), generator=torch.Generator().manual_seed(1))
    forms = {"k": (k,), "b": (k > 2,), "kk": (k + 1, k), "k 3": (k, 3), "k 2.5": (k, 2.5), "k k 0.5": (k, k + 1, 0.5)}
    aside = ("set_", "rand", "dropout", "alpha_drop", "feature_", "bernoulli", "multinomial", "empty", "gumbel", "rrelu",
             "poisson", "normal", "ones", "zeros", "hann", "hamming", "kaiser", "bartlett", "blackman", "range", "eye",
             "arange", "tile", "repeat", "fork", "wait", "load", "save", "manual", "seed", "init", "clear", "compile",
             "autocast", "from_file", "import_ir", "full", "lgamma", "ldexp")  # lgamma(1) is zero but for roundings
    found = {}
    for space in (torch, torch.special, torch.nn.functional):
        for name in dir(space):
            function = getattr(space, name)
            if name.startswith(("_", "is_", *aside)) or name.endswith("_") or isinstance(function, type):
                continue
            for form, arguments in forms.items():
                try:
                    result = function(*(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments))
                except Exception:
                    continue
                if isinstance(result, torch.Tensor) and result.dtype == torch.get_default_dtype():
                    found[f"{space.__name__}.{name} {form}"] = (function, arguments)
    return found


@pytest.mark.filterwarnings("ignore")
def test_all_functions_of_whole_numbers(whole: bool, tmp_path) -> None:
    """What the importer takes has the default dtype and its precision; the rest is refused, one by one. Of the calls one
    in eight, or all, in half a minute."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = _whole_arguments()
        assert len(found) > 200
        if not whole:
            found = dict(list(found.items())[::8])
        taken = 0
        pending = [list(found)[n::8] for n in range(8)]
        while pending:
            names = pending.pop()
            inputs = tuple(t for name in names for t in found[name][1] if isinstance(t, torch.Tensor))

            def all_of_them(*inputs):
                given = iter(inputs)
                return [found[name][0](*(next(given).clone() if isinstance(a, torch.Tensor) else a
                                         for a in found[name][1])) for name in names]
            try:
                results = compute(all_of_them, inputs, tmp_path, "interpreter")
            except (spmd.CaptureError, AssertionError) as error:  # refused by the capture, or by a tool
                assert "error: " in str(error) or isinstance(error, spmd.CaptureError), error
                assert "Stack dump" not in str(error), error
                if len(names) > 1:
                    pending += [names[:len(names) // 2], names[len(names) // 2:]]
                continue
            taken += len(names)
            for name, ours, expected in zip(names, results, all_of_them(*inputs), strict=True):
                assert ours.dtype == expected.dtype, name
                torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-14, equal_nan=True,
                                           msg=lambda m: f"{name}: {m}")
        assert taken > len(found) / 2
    finally:
        torch.set_default_dtype(before)


def test_the_default_is_part_of_the_package(default: torch.dtype) -> None:
    assert capture_function(lambda y: y / 3, (torch.arange(3),)).step["default_dtype"] == \
        {torch.float64: "f64", torch.bfloat16: "bf16"}[default]


def test_another_default_is_another_program(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def train_step(model, optimizer, x, y):
        loss = (model(x) * (y < 2 ** 24 + 0.5)[:, None]).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss, y < 2 ** 24 + 0.5
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    x, y = torch.randn(4, 3), torch.tensor([2 ** 24 + 1, 2 ** 24, 0, 5])
    step = spmd.compile(train_step, ranks=2)
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            ours, expected = step(model, optimizer, x, y), train_step(twin, twin_optimizer, x, y)
            torch.testing.assert_close(ours[0], expected[0])
            assert torch.equal(ours[1], expected[1]), dtype
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("target", ["interpreter", "--target=host", "--target=emulate:sm_90"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_are_compared_in_the_operands_type(dtype: torch.dtype, target: str, tmp_path) -> None:
    """0.1 is equal to itself in 16 bits, which its f32 is not."""
    x = torch.tensor([0.1, 0.3, 257.0, 2049.0, 1.0, -0.1], dtype=dtype)

    def compare(x):
        return x == 0.1, x >= 0.3, x < 0.1, x != 257, x <= 2049, x > -0.1
    for ours, expected in zip(compute(compare, (x,), tmp_path, target), compare(x), strict=True):
        assert torch.equal(ours, expected)
