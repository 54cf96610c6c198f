"""Elementwise arithmetic, elementary and special functions, comparisons, logic, selection, casts."""
import math

import torch

from samples import by_hand, from_database, real, sample


ARITHMETIC = ("add", "sub", "rsub", "mul", "div.no_rounding_mode", "div.trunc_rounding", "div.floor_rounding",
              "true_divide", "floor_divide", "fmod", "remainder", "neg", "positive", "reciprocal", "pow", "float_power",
              "square", "sqrt", "rsqrt", "abs", "sign", "sgn", "signbit", "copysign", "addcmul", "addcdiv", "lerp",
              "ldexp", "heaviside", "__radd__", "__rdiv__", "__rmul__", "__rsub__", "__rpow__", "__rmod__")
ROUNDING = ("floor", "ceil", "trunc", "frac", "round", "round.decimals_0", "round.decimals_3", "round.decimals_neg_3")
FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "xlogy",
             "special.xlog1py", "special.entr", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
             "tanh", "asinh", "acosh", "atanh", "hypot", "sinc", "deg2rad", "rad2deg", "angle", "sigmoid", "logit",
             "erf", "erfc", "erfinv", "lgamma", "digamma", "polygamma.polygamma_n_0", "polygamma.polygamma_n_1",
             "polygamma.polygamma_n_2", "polygamma.polygamma_n_3", "mvlgamma.mvlgamma_p_1", "mvlgamma.mvlgamma_p_3",
             "mvlgamma.mvlgamma_p_5", "special.ndtr", "special.log_ndtr", "special.erfcx", "special.ndtri", "i0",
             "special.i0e", "special.i1", "special.i1e", "igamma", "igammac", "nextafter", "gcd", "lcm")
EXTREMES = ("maximum", "minimum", "max.binary", "min.binary", "fmax", "fmin", "clamp", "clamp_min", "clamp_max",
            "nan_to_num")
LOGIC = ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "isclose",
         "logical_not", "logical_and", "logical_or", "logical_xor", "bitwise_not", "bitwise_and", "bitwise_or",
         "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "__rand__", "__ror__", "__rxor__")
SELECTION = ("where", "masked_fill")
CASTS = ("double", "float", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool")

TOLERANCES = {
    # Near its zeros at 1 and 2, (z - 1/2) log z - z with z < 16 cancels: log z is off by 1 ulp of 2.8, times 15.5; the
    # product by half an ulp of 43, the sums and the other logarithm by half an ulp of 16 to 32 each. Together 1.7e-14,
    # which is relative to the larger of result and 1. The gradient is digamma, with sums of 3. PyTorch's own are good
    # to 2e-16 (against 40 digits).
    "lgamma": dict(tolerance=1.7e-14, magnitude=1),
    **{f"mvlgamma.mvlgamma_p_{p}": dict(tolerance=p * 1.7e-14, magnitude=1) for p in (1, 3, 5)},
    # PyTorch's own trigamma is off by up to 5e-10 (at 1.135, against 40 digits), and ends its zeta function's series at
    # 1e-8 or so.
    "digamma": dict(tolerance=1e-9), "polygamma.polygamma_n_0": dict(tolerance=1e-9, host_tolerance=1e-4),
    # In float32 it is off by 2e-5 itself, near poles, where ours, in double, is not.
    **{f"polygamma.polygamma_n_{n}": dict(tolerance=1e-6, host_tolerance=1e-4) for n in (1, 2, 3)},
    # PyTorch's own is off by 3e-10 from a = 20 on; ours is held against 50 digits in test_integer_functions.py.
    "igamma": dict(tolerance=1e-9), "igammac": dict(tolerance=1e-9),
    # Of whole numbers it is zero, which PyTorch computes in float32.
    "sinc": dict(tolerance=1e-6),
    # Samples run to 9 and beyond a pole; float32 loses digits to the argument's rounding there.
    "tan": dict(host_tolerance=1e-4),
}

OPS = [from_database(name, **TOLERANCES.get(name, {}))
       for name in (*ARITHMETIC, *ROUNDING, *FUNCTIONS, *EXTREMES, *LOGIC, *SELECTION, *CASTS)]

X = (3, 4)
TAILS = (-1e300, -700.0, -40.0, -9.0, -5.0, -1.0, -0.3, -1e-9, 0.0, 1e-12, 0.2, 0.99, 1.0, 7.99, 8.01, 30.0, 600.0,
         1e300, math.inf, math.nan)
PROBABILITIES = (0.0, 1e-30, 1e-9, 0.01, 0.124, 0.126, 0.3, 0.4999, 0.5, 0.51, 0.874, 0.876, 0.99, 0.9999999, 1.0, -0.1,
                 1.5, math.nan)


# Each number is a result of its own, because a result is as exact as its largest element.
OPS += [by_hand(f"special.{name}, tails", lambda x, f=getattr(torch.special, name): f(x).split(1),
                lambda t, values=values: sample(torch.tensor(values, dtype=t)), gradient=False)
        for name, values in (("i0e", TAILS), ("i1e", TAILS), ("log_ndtr", TAILS), ("erfcx", TAILS),
                             ("ndtri", PROBABILITIES))]
OPS += [
    by_hand("addcdiv, tensor value", lambda x, a, b, v: torch.addcdiv(x, a, b, value=v.item()),
            lambda t: sample(real(*X, dtype=t), real(4, dtype=t), 1 + real(*X, dtype=t).abs().detach(),
                             real(dtype=t, gradient=False)),
            gradient=False),
    by_hand("lerp, tensor weight", torch.lerp,
            lambda t: sample(real(*X, dtype=t), real(*X, dtype=t), torch.rand(4, dtype=t))),
]
