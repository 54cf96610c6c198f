//===- AtenMath.td - Elementary functions ------------------*- tablegen -*-===//

#ifndef SPMD_ATEN_MATH_TD
#define SPMD_ATEN_MATH_TD

include "dialects/Aten/AtenBase.td"

def Aten_Exp2Op
    : Aten_RealUnaryOp<"exp2", "2 to the power of self",
                       "s.exp2(self)">;
def Aten_Expm1Op
    : Aten_RealUnaryOp<"expm1", "exp(self) - 1, exact near 0",
                       "s.expm1(self)">;
def Aten_Log1pOp
    : Aten_RealUnaryOp<"log1p", "log(1 + self), exact near 0",
                       "s.log1p(self)">;
def Aten_Log2Op
    : Aten_RealUnaryOp<"log2", "logarithm to base 2",
                       "s.log2(self)">;
def Aten_Log10Op
    : Aten_RealUnaryOp<"log10", "logarithm to base 10",
                       "s.log10(self)">;
def Aten_TanOp
    : Aten_RealUnaryOp<"tan", "tangent",
                       "s.tan(self)">;
def Aten_AsinOp
    : Aten_RealUnaryOp<"asin", "inverse sine",
                       "s.asin(self)">;
def Aten_AcosOp
    : Aten_RealUnaryOp<"acos", "inverse cosine",
                       "s.acos(self)">;
def Aten_AtanOp
    : Aten_RealUnaryOp<"atan", "inverse tangent",
                       "s.atan(self)">;
def Aten_SinhOp
    : Aten_RealUnaryOp<"sinh", "hyperbolic sine",
                       "s.sinh(self)">;
def Aten_CoshOp
    : Aten_RealUnaryOp<"cosh", "hyperbolic cosine",
                       "s.cosh(self)">;
def Aten_AsinhOp
    : Aten_RealUnaryOp<"asinh", "inverse hyperbolic sine",
                       "s.asinh(self)">;
def Aten_AcoshOp
    : Aten_RealUnaryOp<"acosh", "inverse hyperbolic cosine",
                       "s.acosh(self)">;
def Aten_AtanhOp
    : Aten_RealUnaryOp<"atanh", "inverse hyperbolic tangent",
                       "s.atanh(self)">;
def Aten_ErfcOp
    : Aten_RealUnaryOp<"erfc", "1 - erf(self)",
                       "s.erfc(self)">;
def Aten_Deg2radOp
    : Aten_RealUnaryOp<"deg2rad", "degrees as radians",
                       "s.mul(self, s.constant(M_PI / 180))">;
def Aten_Rad2degOp
    : Aten_RealUnaryOp<"rad2deg", "radians as degrees",
                       "s.mul(self, s.constant(180 / M_PI))">;
def Aten_SincOp
    : Aten_RealUnaryOp<"sinc", "sin(pi self) / (pi self), 1 at 0",
                       "sinc(s, self)">;
def Aten_AngleOp
    : Aten_RealUnaryOp<"angle", "pi of negative numbers, else 0",
                       "angle(s, self)">;

// Signs and rounding.
def Aten_SignOp : Aten_UnaryOp<"sign", "-1, 0 or 1", "sign(s, self)">;
def Aten_SgnOp : Aten_UnaryOp<"sgn", "-1, 0 or 1", "sign(s, self)">;
def Aten_FloorOp : Aten_UnaryOp<"floor", "rounded down", "s.floor(self)">;
def Aten_CeilOp : Aten_UnaryOp<"ceil", "rounded up", "s.ceil(self)">;
def Aten_TruncOp : Aten_UnaryOp<"trunc", "rounded to zero", "s.trunc(self)">;
def Aten_FracOp : Aten_UnaryOp<"frac", "self - trunc(self)",
                               "s.sub(self, s.trunc(self))">;
def Aten_RoundOp
    : Aten_UnaryOp<"round", "rounded to nearest, ties to even",
                   "s.round(self)">;
def Aten_RoundDecimalsOp
    : Aten_PointwiseOp<"round.decimals", "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
                       "rounded to a number of decimal digits"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$decimals);
  let body = "roundTo(s, self, getDecimals())";
}
def Aten_NanToNumOp
    : Aten_PointwiseOp<"nan_to_num",
                       "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) "
                       "-> Tensor",
                       "self with not-a-number and infinities replaced"> {
  let arguments = (ins Aten_Tensor:$self, OptionalAttr<F64Attr>:$nan,
                   OptionalAttr<F64Attr>:$posinf, OptionalAttr<F64Attr>:$neginf);
  let body = "nanToNum(s, self, number(getNan()), number(getPosinf()), number(getNeginf()))";
}

// Quotients and remainders.
class Aten_DivModeOp<string name, string other, string sum, string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, " # other #
                       " other, *, str? rounding_mode) -> Tensor", sum> {
  let resultType = "quotient";
  let body = scalar;
}
def Aten_DivTensorModeOp
    : Aten_DivModeOp<"div.Tensor_mode", "Tensor", "self / other, rounded",
                     "divide(s, self, other, getRoundingMode().value_or(\"\"))"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other,
                   OptionalAttr<StrAttr>:$rounding_mode);
}
def Aten_DivScalarModeOp
    : Aten_DivModeOp<"div.Scalar_mode", "Scalar", "self / other, rounded",
                     "divide(s, self, s.constant(getOther()), getRoundingMode().value_or(\"\"))"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$other,
                   OptionalAttr<StrAttr>:$rounding_mode);
}
def Aten_FloorDivideOp
    : Aten_BinaryOp<"floor_divide", "self / other, rounded down",
                    "s.floorDiv(self, other)">;
def Aten_FmodTensorOp
    : Aten_BinaryOp<"fmod.Tensor", "remainder with the sign of self",
                    "s.fmod(self, other)">;
def Aten_FmodScalarOp
    : Aten_BinaryScalarOp<"fmod.Scalar", "remainder with the sign of self",
                          "s.fmod(self, s.constant(getOther()))">;
def Aten_RemainderTensorOp
    : Aten_BinaryOp<"remainder.Tensor", "remainder with the sign of other",
                    "s.remainder(self, other)"> {
  let integerRanges = "rangeOfRemainder(op, ranges, ranges.back())";
}
def Aten_RemainderScalarOp
    : Aten_BinaryScalarOp<"remainder.Scalar",
                          "remainder with the sign of other",
                          "s.remainder(self, s.constant(getOther()))"> {
  let integerRanges = "rangeOfRemainder(op, ranges, rangeOfNumber(getOther()))";
}

#endif // SPMD_ATEN_MATH_TD
