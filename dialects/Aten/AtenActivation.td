//===- AtenActivation.td - Activation functions and their gradients ---*- tablegen -*-===//

#ifndef SPMD_ATEN_ACTIVATION_TD
#define SPMD_ATEN_ACTIVATION_TD

include "dialects/Aten/AtenBase.td"

// A gradient with the saved operand `self`, and Scalars.
class Aten_ActivationBackwardOp<string name, string rest, string sum,
                                string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor grad_output, Tensor "
                       "self" # rest # ") -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = scalar;
}
class Aten_ActivationOp<string name, string rest, string sum, string scalar>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self" # rest #
                       ") -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self);
  let body = scalar;
}

// PyTorch also returns a buffer for the backward, which computes it again here.
def Aten_LogSigmoidForwardOp
    : Aten_PointwiseOp<"log_sigmoid_forward",
                       "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
                       "log(sigmoid(self))"> {
  let arguments = (ins Aten_Tensor:$self);
  let body = "s.sub(s.min(self, s.constant(0)), s.log1p(s.exp(s.neg(s.abs(self)))))";
}
def Aten_LogSigmoidBackwardOp
    : Aten_PointwiseOp<"log_sigmoid_backward",
                       "aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
                       "grad_output * (1 - sigmoid(self))"> {
  let arguments =
      (ins Aten_Tensor:$grad_output, Aten_Tensor:$self, Aten_Tensor:$buffer);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = "logSigmoidBackward(s, grad_output, self)";
}

def Aten_SoftplusOp
    : Aten_ActivationOp<"softplus", ", Scalar beta=1, Scalar threshold=20",
                        "log(1 + exp(beta * self)) / beta; self above threshold",
                        "softplus(s, self, getBeta(), getThreshold())"> {
  let arguments = (ins Aten_Tensor:$self, Aten_ScalarOne:$beta,
                   DefaultValuedAttr<Aten_Scalar, "20">:$threshold);
}
def Aten_SoftplusBackwardOp
    : Aten_ActivationBackwardOp<"softplus_backward", ", Scalar beta, Scalar threshold",
                                "grad_output * sigmoid(beta * self)",
                                "softplusBackward(s, grad_output, self, getBeta(), getThreshold())"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Scalar:$beta, Aten_Scalar:$threshold);
}

def Aten_LeakyReluOp
    : Aten_ActivationOp<"leaky_relu", ", Scalar negative_slope=0.01",
                        "self, below 0 times negative_slope",
                        "s.select(s.compare(\"gt\", self, 0), self, s.mul(self, s.constant(getNegativeSlope())))"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$negative_slope);
}
def Aten_LeakyReluBackwardOp
    : Aten_ActivationBackwardOp<"leaky_relu_backward", ", Scalar negative_slope, bool self_is_result",
                                "grad_output, times negative_slope where self <= 0",
                                "s.select(s.compare(\"gt\", self, 0), grad_output, s.mul(grad_output, "
                                "s.constant(getNegativeSlope())))"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Scalar:$negative_slope, BoolAttr:$self_is_result);
}
def Aten_PreluKernelOp
    : Aten_PointwiseOp<"_prelu_kernel", "aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
                       "self, below 0 times weight"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$weight);
  let body = "s.select(s.compare(\"gt\", self, 0), self, s.mul(weight, self))";
}

def Aten_EluOp
    : Aten_ActivationOp<"elu", ", Scalar alpha=1, Scalar scale=1, Scalar input_scale=1",
                        "scale * self, below 0 scale * alpha * (exp(input_scale * self) - 1)",
                        "elu(s, self, getScalarValue(getAlpha()), getScalarValue(getScale()), "
                        "getScalarValue(getInputScale()))"> {
  let arguments = (ins Aten_Tensor:$self, Aten_ScalarOne:$alpha,
                   Aten_ScalarOne:$scale, Aten_ScalarOne:$input_scale);
}
def Aten_EluBackwardOp
    : Aten_PointwiseOp<"elu_backward",
                       "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
                       "bool is_result, Tensor self_or_result) -> Tensor",
                       "gradient of elu, from its operand or its result"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Scalar:$alpha,
                   Aten_Scalar:$scale, Aten_Scalar:$input_scale,
                   BoolAttr:$is_result, Aten_Tensor:$self_or_result);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = "eluBackward(s, grad_output, self_or_result, getScalarValue(getAlpha()), getScalarValue(getScale()), "
             "getScalarValue(getInputScale()), getIsResult())";
}
def Aten_CeluOp
    : Aten_ActivationOp<"celu", ", Scalar alpha=1.",
                        "self, below 0 alpha * (exp(self / alpha) - 1)",
                        "elu(s, self, getScalarValue(getAlpha()), 1, 1 / getScalarValue(getAlpha()))"> {
  let arguments = (ins Aten_Tensor:$self, Aten_ScalarOne:$alpha);
}

def Aten_HardtanhOp
    : Aten_ActivationOp<"hardtanh", ", Scalar min_val=-1, Scalar max_val=1",
                        "self, not below min_val nor above max_val",
                        "clampTo(s, self, s.constant(getMinVal()), s.constant(getMaxVal()))"> {
  let arguments = (ins Aten_Tensor:$self,
                   DefaultValuedAttr<Aten_Scalar, "-1">:$min_val,
                   Aten_ScalarOne:$max_val);
}
def Aten_HardtanhBackwardOp
    : Aten_ActivationBackwardOp<"hardtanh_backward", ", Scalar min_val, Scalar max_val",
                                "grad_output where min_val < self < max_val",
                                "hardtanhBackward(s, grad_output, self, getMinVal(), getMaxVal())"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Scalar:$min_val, Aten_Scalar:$max_val);
}
def Aten_HardswishOp
    : Aten_ActivationOp<"hardswish", "", "self * relu6(self + 3) / 6",
                        "s.div(s.mul(self, relu6(s, s.add(self, s.constant(3)))), s.constant(6))">;
def Aten_HardswishBackwardOp
    : Aten_ActivationBackwardOp<"hardswish_backward", "",
                                "gradient of hardswish",
                                "hardswishBackward(s, grad_output, self)">;
def Aten_HardsigmoidOp
    : Aten_ActivationOp<"hardsigmoid", "", "relu6(self + 3) / 6",
                        "s.div(relu6(s, s.add(self, s.constant(3))), s.constant(6))">;
def Aten_HardsigmoidBackwardOp
    : Aten_ActivationBackwardOp<"hardsigmoid_backward", "",
                                "grad_output / 6 where -3 < self < 3",
                                "hardsigmoidBackward(s, grad_output, self)">;
def Aten_MishOp : Aten_ActivationOp<"mish", "", "self * tanh(softplus(self))",
                                    "mish(s, self)">;
def Aten_MishBackwardOp
    : Aten_ActivationBackwardOp<"mish_backward", "", "gradient of mish",
                                "mishBackward(s, grad_output, self)">;
def Aten_SoftshrinkOp
    : Aten_ActivationOp<"softshrink", ", Scalar lambd=0.5",
                        "self moved to 0 by lambd", "softshrink(s, self, getLambd())"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$lambd);
}
def Aten_SoftshrinkBackwardOp
    : Aten_ActivationBackwardOp<"softshrink_backward", ", Scalar lambd",
                                "grad_output where |self| > lambd",
                                "outside(s, self, getLambd(), grad_output)"> {
  let arguments =
      (ins Aten_Tensor:$grad_output, Aten_Tensor:$self, Aten_Scalar:$lambd);
}
def Aten_HardshrinkOp
    : Aten_ActivationOp<"hardshrink", ", Scalar lambd=0.5",
                        "self where |self| > lambd", "outside(s, self, getLambd(), self)"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Scalar:$lambd);
}
def Aten_HardshrinkBackwardOp
    : Aten_PointwiseOp<"hardshrink_backward",
                       "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
                       "grad_out where |self| > lambd"> {
  let arguments =
      (ins Aten_Tensor:$grad_out, Aten_Tensor:$self, Aten_Scalar:$lambd);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = "outside(s, self, getLambd(), grad_out)";
}
def Aten_ThresholdOp
    : Aten_ActivationOp<"threshold", ", Scalar threshold, Scalar value",
                        "self, or value where self <= threshold",
                        "s.select(s.compare(\"le\", self, s.constant(getThreshold())), s.constant(getValue()), self)"> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Scalar:$threshold, Aten_Scalar:$value);
}
def Aten_LogitOp
    : Aten_ActivationOp<"logit", ", float? eps=None",
                        "log(self / (1 - self)), self clamped by eps",
                        "logit(s, self, number(getEps()).value_or(-1))"> {
  let arguments = (ins Aten_Tensor:$self, OptionalAttr<F64Attr>:$eps);
  let resultType = "floating";
}
def Aten_LogitBackwardOp
    : Aten_ActivationBackwardOp<"logit_backward", ", float? eps=None",
                                "grad_output / (self * (1 - self))",
                                "logitBackward(s, grad_output, self, number(getEps()).value_or(-1))"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   OptionalAttr<F64Attr>:$eps);
}

#endif // SPMD_ATEN_ACTIVATION_TD
