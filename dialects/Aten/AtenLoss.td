//===- AtenLoss.td - Elementwise losses --------------------*- tablegen -*-===//
//
// Losses per element, and their gradients: PyTorch's ops with reduction "none".
// Import writes the reduction out as a sum or a mean over everything, so that
// losses need no rule and no kernel of their own.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_ATEN_LOSS_TD
#define SPMD_ATEN_LOSS_TD

include "dialects/Aten/AtenBase.td"

class Aten_ElementLossOp<string name, string rest, string sum, string scalar,
                         list<Trait> traits = []>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor self, Tensor target" #
                       rest # ") -> Tensor", sum, traits> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target);
  let body = scalar;
}
class Aten_ElementLossBackwardOp<string name, string rest, string sum,
                                 string slope>
    : Aten_PointwiseOp<name, "aten::" # name # "(Tensor grad_output, Tensor "
                       "self, Tensor target" # rest # ") -> Tensor", sum> {
  let arguments =
      (ins Aten_Tensor:$grad_output, Aten_Tensor:$self, Aten_Tensor:$target);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = "s.mul(" # slope # ", grad_output)";
}

def Aten_SmoothL1LossOp
    : Aten_ElementLossOp<"smooth_l1_loss", ", int reduction=1, float beta=1.",
                         "d^2 / (2 beta) below beta, else d - beta / 2, of d = |self - target|",
                         "smoothL1(s, self, target, getBeta().convertToDouble())"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target, F64Attr:$beta);
}
def Aten_SmoothL1LossBackwardOp
    : Aten_ElementLossBackwardOp<"smooth_l1_loss_backward", ", int reduction, float beta",
                                 "gradient of smooth_l1_loss",
                                 "smoothL1Slope(s, self, target, getBeta().convertToDouble())"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Tensor:$target, F64Attr:$beta);
}
def Aten_HuberLossOp
    : Aten_ElementLossOp<"huber_loss", ", int reduction=1, float delta=1.",
                         "d^2 / 2 below delta, else delta (d - delta / 2), of d = |self - target|",
                         "huber(s, self, target, getDelta().convertToDouble())"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target, F64Attr:$delta);
}
def Aten_HuberLossBackwardOp
    : Aten_ElementLossBackwardOp<"huber_loss_backward", ", int reduction, float delta",
                                 "gradient of huber_loss",
                                 "huberSlope(s, self, target, getDelta().convertToDouble())"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Tensor:$target, F64Attr:$delta);
}
def Aten_SoftMarginLossOp
    : Aten_ElementLossOp<"soft_margin_loss", ", int reduction=1",
                         "log(1 + exp(-target * self))",
                         "softMargin(s, self, target)">;
def Aten_SoftMarginLossBackwardOp
    : Aten_ElementLossBackwardOp<"soft_margin_loss_backward", ", int reduction",
                                 "gradient of soft_margin_loss",
                                 "softMarginSlope(s, self, target)">;
def Aten_BinaryCrossEntropyOp
    : Aten_ElementLossOp<"binary_cross_entropy", ", Tensor? weight=None, int reduction=1",
                         "-weight (target log(self) + (1 - target) log(1 - self)), logs at least -100",
                         "bce(s, self, target, weight)"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target,
                   Optional<Aten_Tensor>:$weight);
}
def Aten_BinaryCrossEntropyBackwardOp
    : Aten_ElementLossBackwardOp<"binary_cross_entropy_backward", ", Tensor? weight=None, int reduction=1",
                                 "gradient of binary_cross_entropy",
                                 "bceSlope(s, self, target, weight)"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Tensor:$target, Optional<Aten_Tensor>:$weight);
}
def Aten_BinaryCrossEntropyWithLogitsOp
    : Aten_ElementLossOp<"binary_cross_entropy_with_logits",
                         ", Tensor? weight=None, Tensor? pos_weight=None, int reduction=1",
                         "binary_cross_entropy of sigmoid(self); pos_weight scales target log(self)",
                         "bceWithLogits(s, self, target, weight, pos_weight)",
                         [AttrSizedOperandSegments]> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target,
                   Optional<Aten_Tensor>:$weight,
                   Optional<Aten_Tensor>:$pos_weight);
}

#endif // SPMD_ATEN_LOSS_TD
