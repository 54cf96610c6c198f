//===- AtenNorm.td - Normalizations ------------------------*- tablegen -*-===//
//
// Batch, group and instance norm dissolve at import (lib/Import/Normalize/NormalizeNorms.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_ATEN_NORM_TD
#define SPMD_ATEN_NORM_TD

include "dialects/Aten/AtenBase.td"

// RMS norm: rstd has the leading dimensions and ones.
def Aten_RmsNormOp
    : Aten_Op<"rms_norm",
              "spmd::rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
              "input * rstd * weight, rstd being 1 / sqrt(mean of squares + eps)"> {
  let arguments = (ins Aten_Tensor:$input, DenseI64ArrayAttr:$normalized_shape,
                   Optional<Aten_Tensor>:$weight, F64Attr:$eps);
  let results = (outs Aten_Tensor:$out, Aten_Tensor:$rstd);
  let rule = "rmsNormRule(op)";
  let flops = "operandElements(op, 5)";
  let verifier = "verifyRmsNorm(op)";
}
def Aten_RmsNormBackwardOp
    : Aten_Op<"rms_norm_backward",
              "spmd::rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, "
              "Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
              "gradients of rms norm that output_mask asks for",
              [AttrSizedResultSegments]> {
  let arguments = (ins Aten_Tensor:$grad_out, Aten_Tensor:$input,
                   DenseI64ArrayAttr:$normalized_shape, Aten_Tensor:$rstd,
                   Optional<Aten_Tensor>:$weight,
                   DenseBoolArrayAttr:$output_mask);
  let results = (outs Optional<Aten_Tensor>:$grad_input,
                 Optional<Aten_Tensor>:$grad_weight);
  let rule = "rmsNormRule(op)";
  let flops = "operandElements(op, 9)";
  let verifier = "verifyRmsNorm(op)";
}

#endif // SPMD_ATEN_NORM_TD
