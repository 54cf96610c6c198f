//===- AtenPointwise.td - Elementwise arithmetic -----------*- tablegen -*-===//

#ifndef SPMD_ATEN_POINTWISE_TD
#define SPMD_ATEN_POINTWISE_TD

include "dialects/Aten/AtenBase.td"

// self ± alpha * other
class Aten_AddLikeOp<string name, string sum>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Tensor other, *, "
                       "Scalar alpha=1) -> Tensor", sum> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$other, Aten_ScalarOne:$alpha);
  let rule = "pointwiseRule(op, Linearity::additive)";
}
class Aten_AddScalarLikeOp<string name, string sum>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Scalar other, "
                       "Scalar alpha=1) -> Tensor", sum> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Scalar:$other, Aten_ScalarOne:$alpha);
}
// self + value * f(tensor1, tensor2)
class Aten_AddcOp<string name, string sum>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Tensor tensor1, "
                       "Tensor tensor2, *, Scalar value=1) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$tensor1,
                   Aten_Tensor:$tensor2, Aten_ScalarOne:$value);
}
// The gradient of a function of `self` or of its `output`: linear in the
// incoming gradient.
class Aten_UnaryBackwardOp<string name, string saved, string sum>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor grad_output, Tensor " #
                       saved # ") -> Tensor", sum> {
  let arguments = !con((ins Aten_Tensor:$grad_output),
                       !dag(ins, [Aten_Tensor], [saved]));
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
}

def Aten_AddTensorOp : Aten_AddLikeOp<"add.Tensor", "self + alpha * other">;
def Aten_AddScalarOp
    : Aten_AddScalarLikeOp<"add.Scalar", "self + alpha * other">;
def Aten_SubTensorOp : Aten_AddLikeOp<"sub.Tensor", "self - alpha * other">;
def Aten_SubScalarOp
    : Aten_AddScalarLikeOp<"sub.Scalar", "self - alpha * other">;
def Aten_RsubScalarOp
    : Aten_AddScalarLikeOp<"rsub.Scalar", "other - alpha * self">;

def Aten_MulTensorOp : Aten_BinaryOp<"mul.Tensor", "self * other"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0, 1})";
}
def Aten_MulScalarOp : Aten_BinaryScalarOp<"mul.Scalar", "self * other"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
}
def Aten_DivTensorOp : Aten_BinaryOp<"div.Tensor", "self / other"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_DivScalarOp : Aten_BinaryScalarOp<"div.Scalar", "self / other"> {
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let verifier = "verifyPointwise(op, ResultType::floating)";
}

def Aten_NegOp : Aten_UnaryOp<"neg", "-self"> {
  let rule = "pointwiseRule(op, Linearity::additive)";
}
def Aten_ExpOp : Aten_UnaryOp<"exp", "e to the power of self"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_LogOp : Aten_UnaryOp<"log", "natural logarithm"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_SqrtOp : Aten_UnaryOp<"sqrt", "square root"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_RsqrtOp : Aten_UnaryOp<"rsqrt", "1 / sqrt(self)"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_ReciprocalOp : Aten_UnaryOp<"reciprocal", "1 / self"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_AbsOp : Aten_UnaryOp<"abs", "absolute value">;
def Aten_ErfOp : Aten_UnaryOp<"erf", "Gauss error function"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_CosOp : Aten_UnaryOp<"cos", "cosine"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_SinOp : Aten_UnaryOp<"sin", "sine"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_TanhOp : Aten_UnaryOp<"tanh", "hyperbolic tangent"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_SigmoidOp : Aten_UnaryOp<"sigmoid", "1 / (1 + exp(-self))"> {
  let verifier = "verifyPointwise(op, ResultType::floating)";
}
def Aten_SiluOp : Aten_UnaryOp<"silu", "self * sigmoid(self)">;
def Aten_ReluOp : Aten_UnaryOp<"relu", "max(self, 0)">;
def Aten_GeluOp
    : Aten_PointwiseOp<"gelu", [{aten::gelu(Tensor self, *, str approximate="none") -> Tensor}],
                       "self * Phi(self), Phi by erf or by tanh"> {
  let arguments = (ins Aten_Tensor:$self,
                   DefaultValuedStrAttr<StrAttr, "none">:$approximate);
}

def Aten_TanhBackwardOp
    : Aten_UnaryBackwardOp<"tanh_backward", "output",
                           "grad_output * (1 - output^2)">;
def Aten_SigmoidBackwardOp
    : Aten_UnaryBackwardOp<"sigmoid_backward", "output",
                           "grad_output * output * (1 - output)">;
def Aten_SiluBackwardOp
    : Aten_UnaryBackwardOp<"silu_backward", "self",
                           "grad_output * silu'(self)">;
def Aten_GeluBackwardOp
    : Aten_PointwiseOp<"gelu_backward", [{aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor}],
                       "grad_output * gelu'(self)"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   DefaultValuedStrAttr<StrAttr, "none">:$approximate);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
}
def Aten_ThresholdBackwardOp
    : Aten_PointwiseOp<"threshold_backward", "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
                       "grad_output where self > threshold, else 0"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Scalar:$threshold);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
}

def Aten_PowTensorScalarOp
    : Aten_PointwiseOp<"pow.Tensor_Scalar", "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                       "self to the power of exponent"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$exponent);
}
def Aten_PowScalarOp
    : Aten_PointwiseOp<"pow.Scalar", "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                       "scalar self to the power of exponent"> {
  let arguments = (ins Aten_Scalar:$self, Aten_Tensor:$exponent);
}
def Aten_PowTensorTensorOp
    : Aten_PointwiseOp<"pow.Tensor_Tensor", "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                       "self to the power of exponent"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$exponent);
}

def Aten_ClampOp
    : Aten_PointwiseOp<"clamp", "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                       "min(max(self, min), max); an absent bound is none"> {
  let arguments = (ins Aten_Tensor:$self, OptionalAttr<Aten_Scalar>:$min,
                   OptionalAttr<Aten_Scalar>:$max);
}
def Aten_ClampTensorOp
    : Aten_PointwiseOp<"clamp.Tensor", "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                       "min(max(self, min), max); an absent bound is none",
                       [AttrSizedOperandSegments]> {
  let arguments = (ins Aten_Tensor:$self, Optional<Aten_Tensor>:$min,
                   Optional<Aten_Tensor>:$max);
}
def Aten_MaximumOp : Aten_BinaryOp<"maximum", "max(self, other)">;
def Aten_MinimumOp : Aten_BinaryOp<"minimum", "min(self, other)">;

def Aten_AddcmulOp : Aten_AddcOp<"addcmul", "self + value * tensor1 * tensor2">;
def Aten_AddcdivOp : Aten_AddcOp<"addcdiv", "self + value * tensor1 / tensor2">;
def Aten_LerpScalarOp
    : Aten_PointwiseOp<"lerp.Scalar", "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
                       "self + weight * (end - self)"> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$end, Aten_Scalar:$weight);
  let rule = "pointwiseRule(op, Linearity::additive)";
}

#endif // SPMD_ATEN_POINTWISE_TD
