//===- AtenHeavy.td - Products, norms, losses, attention ---*- tablegen -*-===//

#ifndef SPMD_ATEN_HEAVY_TD
#define SPMD_ATEN_HEAVY_TD

include "dialects/Aten/AtenBase.td"

// Matrix products.
class Aten_ContractionOp<string mnemonic, string torchSchema, string sum>
    : Aten_Op<mnemonic, torchSchema, sum> {
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let matrixProduct = "true";
  let flops = "contractionFlops(op)";
  let verifier = "verifyContraction(op)";
}

def Aten_MmOp
    : Aten_ContractionOp<"mm", "aten::mm(Tensor self, Tensor mat2) -> Tensor",
                         "[m,k] times [k,n]"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat2);
  let rule = [{einsumRule(op, "mk,kn->mn", Linearity::multilinear, {0, 1})}];
}
def Aten_BmmOp
    : Aten_ContractionOp<"bmm", "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
                         "[b,m,k] times [b,k,n], for each b"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat2);
  let rule = [{einsumRule(op, "bmk,bkn->bmn", Linearity::multilinear, {0, 1})}];
}
def Aten_AddmmOp
    : Aten_ContractionOp<"addmm",
                         "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
                         "-> Tensor",
                         "beta * self + alpha * mat1 times mat2"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat1, Aten_Tensor:$mat2,
                   Aten_ScalarOne:$beta, Aten_ScalarOne:$alpha);
  let rule = "addmmRule(op)";
}
def Aten_BaddbmmOp
    : Aten_ContractionOp<"baddbmm",
                         "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, "
                         "Scalar alpha=1) -> Tensor",
                         "beta * self + alpha * batch1 times batch2, for each b"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$batch1,
                   Aten_Tensor:$batch2, Aten_ScalarOne:$beta,
                   Aten_ScalarOne:$alpha);
  let rule = "addmmRule(op)";
}

// Products of groups of rows, each group with a matrix of its own: the experts
// of a mixture. groups[s] is the group of row s, in any order; a row whose
// number is none of a group gives zeros, and is in no sum.
class Aten_GroupedOp<string mnemonic, string torchSchema, string sum>
    : Aten_Op<mnemonic, torchSchema, sum> {
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let matrixProduct = "true";
  let flops = "groupedFlops(op)";
  let verifier = "verifyGrouped(op)";
}
def Aten_GroupedMmOp
    : Aten_GroupedOp<"grouped_mm", "spmd::grouped_mm(Tensor self, Tensor mat2, Tensor groups) -> Tensor",
                     "result[s] = self[s] times mat2[groups[s]], of [s,k] and [g,k,n]"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$mat2,
                   Aten_Tensor:$groups);
  let rule = "groupedMmRule(op)";
}
def Aten_GroupedOuterOp
    : Aten_GroupedOp<"grouped_outer",
                     "spmd::grouped_outer(Tensor self, Tensor other, Tensor groups, int num_groups) -> Tensor",
                     "result[g,k,n] = sum of self[s,k] * other[s,n] over the rows s of group g"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other,
                   Aten_Tensor:$groups, I64Attr:$num_groups);
  let rule = "groupedOuterRule(op)";
}

// Layer norm: mean and rstd have the leading dimensions and ones.
def Aten_NativeLayerNormOp
    : Aten_Op<"native_layer_norm",
              "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
              "float eps) -> (Tensor, Tensor, Tensor)",
              "(input - mean) * rstd * weight + bias over the inner dimensions",
              [AttrSizedOperandSegments]> {
  let arguments = (ins Aten_Tensor:$input, DenseI64ArrayAttr:$normalized_shape,
                   Optional<Aten_Tensor>:$weight, Optional<Aten_Tensor>:$bias,
                   F64Attr:$eps);
  let results = (outs Aten_Tensor:$out, Aten_Tensor:$mean, Aten_Tensor:$rstd);
  let rule = "layerNormRule(op)";
  let flops = "operandElements(op, 8)";
  let verifier = "verifyLayerNorm(op)";
}
def Aten_NativeLayerNormBackwardOp
    : Aten_Op<"native_layer_norm_backward",
              "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
              "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
              "gradients of layer norm that output_mask asks for",
              [AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let arguments = (ins Aten_Tensor:$grad_out, Aten_Tensor:$input,
                   DenseI64ArrayAttr:$normalized_shape, Aten_Tensor:$mean,
                   Aten_Tensor:$rstd, Optional<Aten_Tensor>:$weight,
                   Optional<Aten_Tensor>:$bias, DenseBoolArrayAttr:$output_mask);
  let results = (outs Optional<Aten_Tensor>:$grad_input,
                 Optional<Aten_Tensor>:$grad_weight,
                 Optional<Aten_Tensor>:$grad_bias);
  let rule = "layerNormBackwardRule(op)";
  let flops = "operandElements(op, 12)";
  let verifier = "verifyLayerNorm(op)";
}

// Embedding.
def Aten_EmbeddingOp
    : Aten_Op<"embedding",
              "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, "
              "bool sparse=False) -> Tensor",
              "rows of weight, by number"> {
  let arguments = (ins Aten_Tensor:$weight, Aten_Tensor:$indices,
                   DefaultValuedAttr<I64Attr, "-1">:$padding_idx,
                   Aten_False:$scale_grad_by_freq, Aten_False:$sparse);
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let flops = "noFlops(op)";
  let rule = "embeddingRule(op)";
  let rowNumbers = "rowNumbersIn(getIndicesMutable(), operand, getWeight().getType().getDimSize(0))";
  let verifier = "verifyEmbedding(op)";
}
def Aten_EmbeddingDenseBackwardOp
    : Aten_Op<"embedding_dense_backward",
              "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
              "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
              "sum of the rows of grad_output that share a number"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$indices,
                   I64Attr:$num_weights, I64Attr:$padding_idx,
                   Aten_False:$scale_grad_by_freq);
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let flops = "operandElements(op)";
  let rule = "embeddingBackwardRule(op)";
  let rowNumbers = "rowNumbersIn(getIndicesMutable(), operand, getNumWeights())";
  let verifier = "verifyEmbedding(op)";
}

// Softmax.
class Aten_SoftmaxLikeOp<string name, string sum>
    : Aten_Op<name, "aten::" # name # "(Tensor self, int dim, bool half_to_float) -> Tensor", sum> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim,
                   Aten_False:$half_to_float);
  let results = (outs Aten_Tensor:$result);
  let rule = "wholeDimRule(op)";
  let flops = "resultElements(op, 5)";
  let verifier = "verifySoftmax(op)";
}
class Aten_SoftmaxBackwardOp<string name, string sum>
    : Aten_Op<name,
              "aten::" # name # "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
              sum> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$output,
                   I64Attr:$dim, TypeAttr:$input_dtype);
  let results = (outs Aten_Tensor:$result);
  let rule = "wholeDimRule(op)";
  let flops = "resultElements(op, 5)";
  let verifier = "verifySoftmax(op)";
}
def Aten_SoftmaxOp : Aten_SoftmaxLikeOp<"_softmax", "softmax along dim">;
def Aten_LogSoftmaxOp
    : Aten_SoftmaxLikeOp<"_log_softmax", "logarithm of softmax along dim">;
def Aten_SoftmaxBackwardDataOp
    : Aten_SoftmaxBackwardOp<"_softmax_backward_data",
          "output * (grad_output - sum(grad_output * output))">;
def Aten_LogSoftmaxBackwardDataOp
    : Aten_SoftmaxBackwardOp<"_log_softmax_backward_data",
          "grad_output - exp(output) * sum(grad_output)">;

// Losses. reduction: 0 none, 1 mean, 2 sum.
def Aten_NllLossForwardOp
    : Aten_Op<"nll_loss_forward",
              "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, "
              "SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
              "minus the log-probability of the target class"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target,
                   Optional<Aten_Tensor>:$weight, I64Attr:$reduction,
                   I64Attr:$ignore_index);
  let results = (outs Aten_Tensor:$output, Aten_Tensor:$total_weight);
  let rule = "nllLossRule(op)";
  let rowNumbers = "rowNumbersIn(getTargetMutable(), operand, getSelf().getType().getShape().back(), getIgnoreIndex())";
  let verifier = "verifyNllLoss(op)";
}
def Aten_NllLossBackwardOp
    : Aten_Op<"nll_loss_backward",
              "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
              "SymInt ignore_index, Tensor total_weight) -> Tensor",
              "gradient of nll_loss_forward; with reduction mean it divides by total_weight"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Tensor:$target, Optional<Aten_Tensor>:$weight,
                   I64Attr:$reduction, I64Attr:$ignore_index,
                   Aten_Tensor:$total_weight);
  let results = (outs Aten_Tensor:$result);
  let rule = "nllLossBackwardRule(op)";
  let rowNumbers = "rowNumbersIn(getTargetMutable(), operand, getSelf().getType().getShape().back(), getIgnoreIndex())";
  let verifier = "verifyNllLoss(op)";
}
def Aten_MseLossOp
    : Aten_Op<"mse_loss", "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
              "(self - target)^2, reduced"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$target,
                   DefaultValuedAttr<I64Attr, "1">:$reduction);
  let results = (outs Aten_Tensor:$result);
  let rule = "mseLossRule(op)";
  let flops = "operandElements(op, 3)";
  let verifier = "verifyMseLoss(op)";
}
def Aten_MseLossBackwardOp
    : Aten_Op<"mse_loss_backward",
              "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
              "grad_output * 2 * (self - target), divided by the count for mean"> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Tensor:$target, I64Attr:$reduction);
  let results = (outs Aten_Tensor:$result);
  let rule = "mseLossBackwardRule(op)";
  let verifier = "verifyMseLoss(op)";
}

// Attention: query [B,H,T,E], key [B,Hk,S,E], value [B,Hk,S,Ev]; logsumexp is
// f32 [B,H,T]. With enable_gqa, Hk divides H. scale absent: 1/sqrt(E).
def Aten_SdpaOp
    : Aten_Op<"sdpa",
              "spmd::sdpa(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool is_causal, "
              "float? scale, bool enable_gqa) -> (Tensor out, Tensor logsumexp)",
              "softmax(query key^T * scale + attn_mask) value, and the row logsumexp"> {
  let arguments = (ins Aten_Tensor:$query, Aten_Tensor:$key, Aten_Tensor:$value,
                   Optional<Aten_Tensor>:$attn_mask, F64Attr:$dropout_p,
                   Aten_False:$is_causal, OptionalAttr<F64Attr>:$scale,
                   Aten_False:$enable_gqa);
  let results = (outs Aten_Tensor:$out, Aten_Tensor:$logsumexp);
  let heavy = "true";
  let matrixProduct = "true";
  let rule = "attentionRule(op)";
  let flops = "attentionFlops(op)";
  let verifier = "verifyAttention(op)";
}
def Aten_SdpaBackwardOp
    : Aten_Op<"sdpa_backward",
              "spmd::sdpa_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, "
              "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, float? scale, bool enable_gqa) "
              "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor? grad_mask)",
              "gradients of sdpa"> {
  let arguments = (ins Aten_Tensor:$grad_out, Aten_Tensor:$query,
                   Aten_Tensor:$key, Aten_Tensor:$value,
                   Optional<Aten_Tensor>:$attn_mask, Aten_Tensor:$out,
                   Aten_Tensor:$logsumexp, F64Attr:$dropout_p,
                   Aten_False:$is_causal, OptionalAttr<F64Attr>:$scale,
                   Aten_False:$enable_gqa);
  let results = (outs Aten_Tensor:$grad_query, Aten_Tensor:$grad_key,
                 Aten_Tensor:$grad_value, Optional<Aten_Tensor>:$grad_mask);
  let heavy = "true";
  let matrixProduct = "true";
  let rule = "attentionRule(op)";
  let flops = "attentionFlops(op)";
  let verifier = "verifyAttention(op)";
}

// An operator of the user's own, by a function in a shared library
// (docs/custom-kernels.md). `arguments` has an entry for each argument of the
// operator's schema: unit for the next of `inputs`, else its number or numbers.
// `sharding` names the loops over the dimensions of the tensors, as
// AtenCustomCall.h says; `reduce` says how each result combines over the loops
// that it lacks ("" where it lacks none).
def Aten_CustomCallOp
    : Aten_Op<"custom_call",
              "spmd::custom_call(Tensor[] inputs, *, str op, Scalar[] arguments, str sharding, str[] reduce, "
              "str? library, str? hash, str? symbol, str[]? names, str? launch, str[]? cubins) -> Tensor[]",
              "what a function in a shared library, or a kernel in a cubin, computes"> {
  let arguments = (ins Aten_List:$inputs, StrAttr:$op, ArrayAttr:$arguments,
                   StrAttr:$sharding, StrArrayAttr:$reduce,
                   OptionalAttr<StrAttr>:$library, OptionalAttr<StrAttr>:$hash,
                   OptionalAttr<StrAttr>:$symbol,
                   OptionalAttr<StrArrayAttr>:$names, OptionalAttr<StrAttr>:$launch,
                   OptionalAttr<StrArrayAttr>:$cubins);
  let results = (outs Aten_List:$outs);
  let heavy = "true";
  let rule = "customCallRule(op)";
  let verifier = "verifyCustomCall(op)";
}

#endif // SPMD_ATEN_HEAVY_TD
