"""Special functions as GPU kernels, emulated: what PyTorch gives in float64, forward and in the gradient.

Every function has a bound of its own, to first order in u = 2^-24, the rounding of f32. What is computed in f64 is
rounded once: 1 u of it. Of the functions of f32, test_math_error.py measures exp (0.9 ulp, so 1.8 u), log (1 ulp: 2 u)
and erf (4 ulp: 8 u); a sum, product or quotient adds 1 u of its result; an argument that is off by k u gives k |x
f'(x)| u.
"""
from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Callable

import pytest
import torch
from torch import Tensor, special

sys.path[:0] = [str(Path(__file__).parents[2] / "Python")]
from step_check import run, tool

import spmd

U = 2.0**-24
RATE = 0.5
ANY, POSITIVE, UNIT = (-4.0, 4.0), (0.1, 9.0), (-0.95, 0.95)
EXP, LOG, ERF = 1.8, 2, 8
# x log(1 + x) / ((1 + x) - 1) and (e - 1) x / log(e): in both the rounding of what log is taken of cancels; log, a
# quotient, a product, and 1 for what is of second order near 0.
LOG1P = EXPM1 = LOG + 3


def once(x: Tensor, f: Tensor) -> Tensor:
    """f64 inside. PyTorch's float64 is off too, by 0.01 u where it is worst (trigamma)."""
    return 1.01 * f.abs()


@dataclasses.dataclass
class Case:
    """`value` and `slope` are the largest errors, in u, of f(x) and f'(x), given x and f(x) or f'(x)."""

    name: str
    function: Callable[[Tensor], Tensor]
    where: tuple[float, float]
    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


def times(units: float) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, f: units * f.abs()


def gauss(scale: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Of a constant times exp(-scale x^2): the square is rounded."""
    return lambda x, slope: (EXP + 2 + scale * x.square()) * slope.abs()


def mvlgamma_arguments(x: Tensor) -> list[Tensor]:
    return [x + 2, x + 1.5, x + 1]


def mvlgamma_value(x: Tensor, f: Tensor) -> Tensor:
    """Three times an argument rounded twice, lgamma, and sums."""
    terms = [z.lgamma().abs() for z in mvlgamma_arguments(x)]
    moved = [2 * (z * z.digamma()).abs() for z in mvlgamma_arguments(x)]
    return sum(terms) + sum(moved) + 3 * (sum(terms) + 1.5 * math.log(math.pi))


def mvlgamma_slope(x: Tensor, slope: Tensor) -> Tensor:
    terms = [z.digamma().abs() for z in mvlgamma_arguments(x)]
    return 3 * sum(terms) + sum(2 * (z * torch.polygamma(1, z)).abs() for z in mvlgamma_arguments(x))


def ndtri_value(x: Tensor, f: Tensor) -> Tensor:
    """The argument p = (x + 1) / 2 is rounded, and the slope is sqrt(2 pi) exp(f^2 / 2)."""
    return f.abs() + (x + 1) / 2 * math.sqrt(2 * math.pi) * (f.square() / 2).exp()


def ndtri_slope(x: Tensor, slope: Tensor) -> Tensor:
    """exp(f^2 / 2) of an f with the error above; the constant, two products and the square."""
    f = special.ndtri((x + 1) / 2)
    return (EXP + 3 + f.square() / 2 + f.abs() * ndtri_value(x, f)) * slope.abs()


def log_ndtr_slope(x: Tensor, slope: Tensor) -> Tensor:
    """exp(-(f + x^2 / 2)) / sqrt(2 pi)"""
    f, half = special.log_ndtr(x), x.square() / 2
    return (EXP + 2 + f.abs() + half + (f + half).abs()) * slope.abs()


def sinc_value(x: Tensor, f: Tensor) -> Tensor:
    """sin(a) / a, a = pi x with two roundings, which sin(a) sees as 2 |a cos(a)| u."""
    return 4 * f.abs() + 2 * (math.pi * x).cos().abs()


def sinc_slope(x: Tensor, slope: Tensor) -> Tensor:
    """(a cos(a) - sin(a)) / (pi x^2). The same a is in all of the difference, whose derivative is -a sin(a)."""
    a = math.pi * x
    sin, cos = a.sin().abs(), (a * a.cos()).abs()
    return 5 * slope.abs() + (2 * cos + sin + 2 * a.square() * sin) / (math.pi * x.square())


CASES = [
    Case("lgamma", torch.lgamma, POSITIVE, once, once),
    Case("digamma", torch.digamma, POSITIVE, once, once),
    Case("trigamma", lambda x: torch.polygamma(1, x), POSITIVE, once, lambda x, s: 1.2 * s.abs()),  # PyTorch's: 1e-8
    Case("mvlgamma", lambda x: torch.mvlgamma(x + 2, 3), POSITIVE, mvlgamma_value, mvlgamma_slope),
    Case("erf", torch.erf, ANY, times(ERF), gauss(1)),
    Case("erfc", torch.erfc, ANY, once, gauss(1)),
    Case("erfinv", torch.erfinv, UNIT, once, lambda x, s: (EXP + 2 + 3 * x.erfinv().square()) * s.abs()),
    # 2 x f - 2 / sqrt(pi)
    Case("erfcx", special.erfcx, ANY, once,
         lambda x, s: s.abs() + 2 * (2 * x * special.erfcx(x)).abs() + 2 / math.pi**.5),
    # (1 + erf(x / sqrt(2))) / 2: y erf'(y) is at most 0.484, and its argument is rounded twice.
    Case("ndtr", special.ndtr, ANY,
         lambda x, f: f + ((x * math.sqrt(0.5)).erf().abs() * ERF + 2 * 0.484) / 2, gauss(0.5)),
    Case("ndtri", lambda x: special.ndtri((x + 1) / 2), UNIT, ndtri_value, ndtri_slope),
    Case("log_ndtr", special.log_ndtr, ANY, once, log_ndtr_slope),
    Case("entr", special.entr, POSITIVE, times(LOG + 1), lambda x, s: LOG * x.log().abs() + s.abs()),
    Case("sinc", torch.sinc, ANY, sinc_value, sinc_slope),
    Case("i0", torch.i0, ANY, once, once),
    Case("i0e", special.i0e, ANY, once, lambda x, s: special.i1e(x).abs() + special.i0e(x) + s.abs()),
    # i0 - i1 / x
    Case("i1", special.i1, ANY, once, lambda x, s: torch.i0(x) + 2 * (special.i1(x) / x).abs() + s.abs()),
    # i0e - i1e (sign x + 1 / x)
    Case("i1e", special.i1e, ANY, once,
         lambda x, s: special.i0e(x) + 4 * (special.i1e(x) * (x.sign() + 1 / x)).abs() + s.abs()),
    # log(x / (1 - x)): two roundings in the quotient. 1 / (x (1 - x))
    Case("logit", torch.logit, (0.05, 0.95), lambda x, f: LOG * f.abs() + 2, times(3)),
    Case("xlogy", lambda x: torch.xlogy(x, x), POSITIVE, times(LOG + 1),
         lambda x, s: (LOG + 1) * x.log().abs() + 2 + s.abs()),
    # x / (1 + x): a sum and a quotient
    Case("xlog1py", lambda x: special.xlog1py(x, x), POSITIVE, times(LOG1P + 1),
         lambda x, s: (LOG1P + 1) * x.log1p() + 3 * x / (1 + x) + s.abs()),
    Case("expm1", torch.expm1, ANY, times(EXPM1), lambda x, s: EXPM1 * x.expm1().abs() + s.abs()),
    Case("log1p", torch.log1p, POSITIVE, times(LOG1P), times(2)),
    # 1 / sqrt(x^2 + 1): half of the square's and the sum's, the root, the quotient
    Case("asinh", torch.asinh, ANY, once, times(3)),
    Case("acosh", torch.acosh, (1.1, 9.0), once, lambda x, s: (2.5 + x.square() / (x.square() - 1) / 2) * s.abs()),
    Case("atanh", torch.atanh, UNIT, once, lambda x, s: (2 + x.square() / (1 - x.square())) * s.abs()),
]


class Inputs(torch.nn.Module):
    """An input per function, so that gradients become new values of parameters."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.x = torch.nn.ParameterList(torch.empty(301).uniform_(*case.where) for case in CASES)


def train_step(model, optimizer, weight):
    values = [case.function(x) for case, x in zip(CASES, model.x)]
    sum((value * weight).sum() for value in values).backward()
    optimizer.step()
    optimizer.zero_grad()
    return [value.detach() for value in values]


@pytest.mark.filterwarnings("ignore:the step does not")
def test_values_and_gradients(tmp_path) -> None:
    model, weight = Inputs(), torch.linspace(-1, 1, 301)
    spmd.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=RATE), weight, batch_dims={"weight": None}) \
        .save(tmp_path / "s.step")
    run(tool("spmd-compile"), tmp_path / "s.step", "--ranks=1", "--target=emulate:sm_90", "--quiet",
        "-o", tmp_path / "s.spmd")
    with spmd.load(tmp_path / "s.spmd") as trainer:
        values = trainer.step(weight)
        updated = [torch.from_numpy(trainer.read("param", f"x.{i}")) for i in range(len(CASES))]
    weight = weight.double()
    wrong = []
    for case, x, got, new in zip(CASES, model.x, values, updated, strict=True):
        x = x.detach().double().requires_grad_()
        f = case.function(x)
        slope, = torch.autograd.grad(f.sum(), x)
        x, f = x.detach(), f.detach()
        # A new value is x - RATE weight slope: a product with the weight, RATE is a power of 2, a difference.
        moved = RATE * weight.abs()
        wanted = x - RATE * weight * slope
        for what, error, bound in (
                ("value", (got.double() - f).abs(), case.value(x, f)),
                ("gradient", (new.double() - wanted).abs(),
                 wanted.abs() + moved * (slope.abs() + case.slope(x, slope)))):
            part = (error / (U * bound)).nan_to_num(torch.inf)
            worst = part.argmax()
            print(f"{case.name:8} {what:8} at most {part[worst]:.2f} of the bound, {bound[worst]:.3g} u at "
                  f"x = {x[worst]:.5f}; {(error / U / (f if what == 'value' else wanted).abs()).median():.2f} u in the "
                  "median")
            if not part[worst] <= 1:
                wrong.append(f"{what} of {case.name} at {x[worst]}")
    assert not wrong
