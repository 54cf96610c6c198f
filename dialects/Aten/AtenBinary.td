//===- AtenBinary.td - Functions of two numbers ------------*- tablegen -*-===//

#ifndef SPMD_ATEN_BINARY_TD
#define SPMD_ATEN_BINARY_TD

include "dialects/Aten/AtenBase.td"

def Aten_Atan2Op
    : Aten_RealBinaryOp<"atan2", "angle of the point (other, self)",
                        "s.atan2(self, other)">;
def Aten_HypotOp
    : Aten_BinaryOp<"hypot", "sqrt(self^2 + other^2)",
                    "hypot(s, self, other)">;
def Aten_LogaddexpOp
    : Aten_RealBinaryOp<"logaddexp", "log(exp(self) + exp(other))",
                        "logAddExp(s, self, other, false)">;
def Aten_Logaddexp2Op
    : Aten_RealBinaryOp<"logaddexp2", "log2(2^self + 2^other)",
                        "logAddExp(s, self, other, true)">;
def Aten_XlogyTensorOp
    : Aten_RealBinaryOp<"xlogy.Tensor", "self * log(other), 0 where self is 0",
                        "xlogy(s, self, other, s.log(other))">;
def Aten_XlogyScalarOtherOp
    : Aten_BinaryScalarOp<"xlogy.Scalar_Other",
                          "self * log(other), 0 where self is 0",
                          "xlogy(s, self, s.constant(getOther()), s.log(s.constant(getOther())))"> {
  let resultType = "floating";
}
def Aten_XlogyScalarSelfOp
    : Aten_PointwiseOp<"xlogy.Scalar_Self", "aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
                       "self * log(other), 0 if self is 0"> {
  let arguments = (ins Aten_Scalar:$self, Aten_Tensor:$other);
  let resultType = "floating";
  let body = "xlogy(s, s.constant(getSelf()), other, s.log(other))";
}
def Aten_SpecialXlog1pyOp
    : Aten_RealBinaryOp<"special_xlog1py",
                        "self * log1p(other), 0 where self is 0",
                        "xlogy(s, self, other, s.log1p(other))">;
def Aten_CopysignTensorOp
    : Aten_RealBinaryOp<"copysign.Tensor", "magnitude of self, sign of other",
                        "s.copySign(self, other)">;
def Aten_CopysignScalarOp
    : Aten_BinaryScalarOp<"copysign.Scalar",
                          "magnitude of self, sign of other",
                          "s.copySign(self, s.constant(getOther()))"> {
  let resultType = "floating";
}
def Aten_FmaxOp
    : Aten_BinaryOp<"fmax", "the larger; a number before not-a-number",
                    "fmax(s, self, other)">;
def Aten_FminOp
    : Aten_BinaryOp<"fmin", "the smaller; a number before not-a-number",
                    "fmin(s, self, other)">;
def Aten_HeavisideOp
    : Aten_PointwiseOp<"heaviside", "aten::heaviside(Tensor self, Tensor values) -> Tensor",
                       "0 below 0, 1 above, values at 0"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$values);
  let body = "s.select(s.compare(\"eq\", self, 0), values, s.cast(s.compare(\"gt\", self, 0)))";
}
def Aten_LerpTensorOp
    : Aten_PointwiseOp<"lerp.Tensor", "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
                       "self + weight * (end - self)"> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$end, Aten_Tensor:$weight);
  let body = "lerp(s, self, end, weight)";
}

// Of integers.
def Aten_GcdOp
    : Aten_BinaryOp<"gcd", "greatest common divisor, not negative",
                    "gcd(s, self, other)">;
def Aten_LcmOp
    : Aten_BinaryOp<"lcm", "least common multiple, not negative",
                    "lcm(s, self, other)">;

// Neighbours depend on the format: the body is that of the result's own type,
// where others compute 16 bit floats in f32.
def Aten_NextafterOp
    : Aten_BinaryOp<"nextafter", "the number next to self towards other",
                    "nextAfter(s, s.cast(self), s.cast(other))"> {
  let computeIn = "none";
}

#endif // SPMD_ATEN_BINARY_TD
