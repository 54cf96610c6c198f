//===- AtenReduce.td - Reductions over dimensions ----------*- tablegen -*-===//
//
// `dim` always lists the reduced dimensions, non-negative and ascending: import
// spells out "all of them".
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_ATEN_REDUCE_TD
#define SPMD_ATEN_REDUCE_TD

include "dialects/Aten/AtenBase.td"

class Aten_ReduceOp<string mnemonic, string torchSchema, string sum>
    : Aten_Op<mnemonic, torchSchema, sum> {
  let results = (outs Aten_Tensor:$result);
  let flops = "operandElements(op)";
  let verifier = "verifyReduction(op)";
}

def Aten_SumDimIntListOp
    : Aten_ReduceOp<"sum.dim_IntList", "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                    "sum over dimensions; dtype: convert first"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_False:$keepdim, OptionalAttr<TypeAttr>:$dtype);
  let rule = "reductionRule(op, ReductionKind::sum, Linearity::additive)";
}
def Aten_MeanDimOp
    : Aten_ReduceOp<"mean.dim", "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                    "mean over dimensions; dtype: convert first"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_False:$keepdim, OptionalAttr<TypeAttr>:$dtype);
  let rule = "meanRule(op)";
}
def Aten_AmaxOp
    : Aten_ReduceOp<"amax", "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                    "maximum over dimensions"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_False:$keepdim);
  let rule = "reductionRule(op, ReductionKind::max)";
}
def Aten_LinalgVectorNormOp
    : Aten_ReduceOp<"linalg_vector_norm", "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                    "norm of order ord over dimensions; dtype: convert first"> {
  let arguments = (ins Aten_Tensor:$self,
                   DefaultValuedAttr<Aten_Scalar, "2">:$ord,
                   DenseI64ArrayAttr:$dim, Aten_False:$keepdim,
                   OptionalAttr<TypeAttr>:$dtype);
  let rule = "normRule(op)";
}
def Aten_VarMeanCorrectionOp
    : Aten_ReduceOp<"var_mean.correction", "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
                    "variance (divided by count - correction) and mean"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_ScalarOne:$correction, Aten_False:$keepdim);
  let results = (outs Aten_Tensor:$var, Aten_Tensor:$mean);
  let rule = "meanRule(op)";
}

#endif // SPMD_ATEN_REDUCE_TD
