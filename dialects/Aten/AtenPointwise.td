//===- AtenPointwise.td - Elementwise arithmetic -----------*- tablegen -*-===//

#ifndef SPMD_ATEN_POINTWISE_TD
#define SPMD_ATEN_POINTWISE_TD

include "dialects/Aten/AtenBase.td"

// self ± alpha * other
class Aten_AddLikeOp<string name, string sum, string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Tensor other, *, "
                       "Scalar alpha=1) -> Tensor", sum> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$other, Aten_ScalarOne:$alpha);
  let rule = "pointwiseRule(op, Linearity::additive)";
  let body = scalar;
}
class Aten_AddScalarLikeOp<string name, string sum, string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Scalar other, "
                       "Scalar alpha=1) -> Tensor", sum> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Scalar:$other, Aten_ScalarOne:$alpha);
  let body = scalar;
}
// self + value * f(tensor1, tensor2)
class Aten_AddcOp<string name, string sum, string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Tensor tensor1, "
                       "Tensor tensor2, *, Scalar value=1) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$tensor1,
                   Aten_Tensor:$tensor2, Aten_ScalarOne:$value);
  let body = scalar;
}

def Aten_AddTensorOp : Aten_AddLikeOp<"add.Tensor", "self + alpha * other",
                          "s.add(self, s.scaled(other, getAlpha()))">;
def Aten_AddScalarOp
    : Aten_AddScalarLikeOp<"add.Scalar", "self + alpha * other",
                          "s.add(self, s.scaledConstant(getOther(), getAlpha()))">;
def Aten_SubTensorOp : Aten_AddLikeOp<"sub.Tensor", "self - alpha * other",
                          "s.sub(self, s.scaled(other, getAlpha()))">;
def Aten_SubScalarOp
    : Aten_AddScalarLikeOp<"sub.Scalar", "self - alpha * other",
                          "s.sub(self, s.scaledConstant(getOther(), getAlpha()))">;
def Aten_RsubScalarOp
    : Aten_AddScalarLikeOp<"rsub.Scalar", "other - alpha * self",
                          "s.sub(s.constant(getOther()), s.scaled(self, getAlpha()))">;

def Aten_MulTensorOp : Aten_BinaryOp<"mul.Tensor", "self * other",
                          "s.mul(self, other)"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0, 1})";
}
def Aten_MulScalarOp : Aten_BinaryScalarOp<"mul.Scalar", "self * other",
                          "s.mul(self, s.constant(getOther()))"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let tensorOverload = "MulTensorOp";
}
def Aten_DivTensorOp : Aten_BinaryOp<"div.Tensor", "self / other",
                          "s.div(self, other)"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let resultType = "floating";
}
def Aten_DivScalarOp : Aten_BinaryScalarOp<"div.Scalar", "self / other",
                          "s.div(self, s.constant(getOther()))"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let tensorOverload = "DivTensorOp";
  let resultType = "floating";
}

// A place with a name, for passes over the partitioned program (docs/passes.md); spmd-drop-anchors takes it out.
def Aten_AnchorOp
    : Aten_PointwiseOp<"anchor", "spmd::anchor(Tensor self, str name) -> Tensor", "self, at a place with a name"> {
  let arguments = (ins Aten_Tensor:$self, StrAttr:$name);
  let rule = "pointwiseRule(op, Linearity::additive)";
  let body = "self";
}

def Aten_NegOp : Aten_UnaryOp<"neg", "-self",
                          "s.neg(self)"> {
  let rule = "pointwiseRule(op, Linearity::additive)";
}
def Aten_ExpOp : Aten_RealUnaryOp<"exp", "e to the power of self",
                          "s.exp(self)">;
def Aten_LogOp : Aten_RealUnaryOp<"log", "natural logarithm",
                          "s.log(self)">;
def Aten_SqrtOp : Aten_RealUnaryOp<"sqrt", "square root",
                          "s.sqrt(self)">;
def Aten_RsqrtOp : Aten_RealUnaryOp<"rsqrt", "1 / sqrt(self)",
                          "s.div(s.constant(1), s.sqrt(self))">;
def Aten_ReciprocalOp : Aten_RealUnaryOp<"reciprocal", "1 / self",
                          "s.div(s.constant(1), self)">;
def Aten_AbsOp : Aten_UnaryOp<"abs", "absolute value",
                          "s.abs(self)">;
def Aten_ErfOp : Aten_RealUnaryOp<"erf", "Gauss error function",
                          "s.erf(self)">;
def Aten_CosOp : Aten_RealUnaryOp<"cos", "cosine",
                          "s.cos(self)">;
def Aten_SinOp : Aten_RealUnaryOp<"sin", "sine",
                          "s.sin(self)">;
def Aten_TanhOp : Aten_RealUnaryOp<"tanh", "hyperbolic tangent",
                          "s.tanh(self)">;
def Aten_SigmoidOp : Aten_RealUnaryOp<"sigmoid", "1 / (1 + exp(-self))",
                          "s.sigmoid(self)">;
def Aten_SiluOp : Aten_UnaryOp<"silu", "self * sigmoid(self)",
                          "s.div(self, s.add(s.constant(1), s.exp(s.neg(self))))">;
def Aten_ReluOp : Aten_UnaryOp<"relu", "max(self, 0)",
                          "s.max(self, s.constant(0))">;
def Aten_GeluOp
    : Aten_PointwiseOp<"gelu", [{aten::gelu(Tensor self, *, str approximate="none") -> Tensor}],
                       "self * Phi(self), Phi by erf or by tanh"> {
  let arguments = (ins Aten_Tensor:$self,
                   DefaultValuedStrAttr<StrAttr, "none">:$approximate);
  let body = "gelu(s, self, getApproximate())";
}

def Aten_TanhBackwardOp
    : Aten_UnaryBackwardOp<"tanh_backward", "output",
                           "grad_output * (1 - output^2)",
                          "s.mul(grad_output, s.sub(s.constant(1), s.square(output)))">;
def Aten_SigmoidBackwardOp
    : Aten_UnaryBackwardOp<"sigmoid_backward", "output",
                           "grad_output * output * (1 - output)",
                          "s.mul(s.mul(grad_output, s.sub(s.constant(1), output)), output)">;
def Aten_SiluBackwardOp
    : Aten_UnaryBackwardOp<"silu_backward", "self",
                           "grad_output * silu'(self)",
                          "siluBackward(s, grad_output, self)">;
def Aten_GeluBackwardOp
    : Aten_PointwiseOp<"gelu_backward",
                       [{aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor}],
                       "grad_output * gelu'(self)"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   DefaultValuedStrAttr<StrAttr, "none">:$approximate);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = "geluBackward(s, grad_output, self, getApproximate())";
}
def Aten_ThresholdBackwardOp
    : Aten_PointwiseOp<"threshold_backward",
                       "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
                       "grad_output where self > threshold, else 0"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Scalar:$threshold);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = "s.select(s.compare(\"le\", self, s.constant(getThreshold())), s.constant(0), grad_output)";
}

def Aten_PowTensorScalarOp
    : Aten_PointwiseOp<"pow.Tensor_Scalar", "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                       "self to the power of exponent"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$exponent);
  let body = "power(s, self, getExponent())";
}
def Aten_PowScalarOp
    : Aten_PointwiseOp<"pow.Scalar", "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                       "scalar self to the power of exponent"> {
  let arguments = (ins Aten_Scalar:$self, Aten_Tensor:$exponent);
  let body = "s.pow(s.constant(getSelf()), exponent)";
}
def Aten_PowTensorTensorOp
    : Aten_PointwiseOp<"pow.Tensor_Tensor", "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                       "self to the power of exponent"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$exponent);
  let body = "s.pow(self, exponent)";
}

def Aten_ClampOp
    : Aten_PointwiseOp<"clamp", "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                       "min(max(self, min), max); an absent bound is none"> {
  let arguments = (ins Aten_Tensor:$self, OptionalAttr<Aten_Scalar>:$min,
                   OptionalAttr<Aten_Scalar>:$max);
  let body = "clampTo(s, self, optional(s, getMin()), optional(s, getMax()))";
}
def Aten_ClampTensorOp
    : Aten_PointwiseOp<"clamp.Tensor", "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                       "min(max(self, min), max); an absent bound is none",
                       [AttrSizedOperandSegments]> {
  let arguments = (ins Aten_Tensor:$self, Optional<Aten_Tensor>:$min,
                   Optional<Aten_Tensor>:$max);
  let body = "clampTo(s, self, min, max)";
}
def Aten_MaximumOp : Aten_BinaryOp<"maximum", "max(self, other)",
                          "s.max(self, other)">;
def Aten_MinimumOp : Aten_BinaryOp<"minimum", "min(self, other)",
                          "s.min(self, other)">;

def Aten_AddcmulOp : Aten_AddcOp<"addcmul", "self + value * tensor1 * tensor2",
                          "s.add(self, s.mul(s.scaled(tensor1, getValue()), tensor2))">;
def Aten_AddcdivOp : Aten_AddcOp<"addcdiv", "self + value * tensor1 / tensor2",
                          "s.add(self, s.div(s.scaled(tensor1, getValue()), tensor2))">;
def Aten_LerpScalarOp
    : Aten_PointwiseOp<"lerp.Scalar", "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
                       "self + weight * (end - self)"> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$end, Aten_Scalar:$weight);
  let rule = "pointwiseRule(op, Linearity::additive)";
  let body = "lerp(s, self, end, getScalarValue(getWeight()))";
}

#endif // SPMD_ATEN_POINTWISE_TD
