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
    : Aten_ReduceOp<"sum.dim_IntList",
                    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) "
                    "-> Tensor",
                    "sum over dimensions; dtype: convert first"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_False:$keepdim, OptionalAttr<TypeAttr>:$dtype);
  let rule = "reductionRule(op, ReductionKind::sum, Linearity::additive)";
  let integerRanges = "rangeOfSums(ranges.front(), countReduced(op))";
}
def Aten_MeanDimOp
    : Aten_ReduceOp<"mean.dim",
                    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
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
  let integerRanges = "ranges.front()";
}
def Aten_AminOp
    : Aten_ReduceOp<"amin", "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                    "minimum over dimensions"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_False:$keepdim);
  let rule = "reductionRule(op, ReductionKind::min)";
  let integerRanges = "ranges.front()";
}
def Aten_ProdDimIntOp
    : Aten_ReduceOp<"prod.dim_int",
                    "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                    "product over a dimension; dtype: convert first"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, Aten_False:$keepdim,
                   OptionalAttr<TypeAttr>:$dtype);
  let rule = "wholeReductionRule(op)";
}
// The values, and where the first of them stands (i64); not-a-number wins.
class Aten_ExtremeOp<string name, string sum>
    : Aten_ReduceOp<name, "aten::" # name # "(Tensor self, int dim, bool "
                    "keepdim=False) -> (Tensor values, Tensor indices)", sum> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, Aten_False:$keepdim);
  let results = (outs Aten_Tensor:$values, Aten_Tensor:$indices);
  let rule = "wholeReductionRule(op)";
  let integerRanges = "ranges.front(), rangeOfPlaces(op, getDim())";
}
def Aten_MaxDimOp
    : Aten_ExtremeOp<"max.dim", "maximum over a dimension, and its place">;
def Aten_MinDimOp
    : Aten_ExtremeOp<"min.dim", "minimum over a dimension, and its place">;

// Scans: element i of the dimension combines the elements up to i.
class Aten_ScanOp<string name, string rest, string sum>
    : Aten_Op<name, "aten::" # name # "(Tensor self, int dim" # rest, sum> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim);
  let results = (outs Aten_Tensor:$result);
  let rule = "wholeDimRule(op)";
  let verifier = "verifyScan(op)";
}
// The last place of the extreme so far (i64); not-a-number wins.
class Aten_CumulativeExtremeOp<string name, string sum>
    : Aten_ScanOp<name, ") -> (Tensor values, Tensor indices)", sum> {
  let results = (outs Aten_Tensor:$values, Aten_Tensor:$indices);
  let integerRanges = "ranges.front(), rangeOfPlaces(op, getDim())";
}
def Aten_CumsumOp
    : Aten_ScanOp<"cumsum", ", *, ScalarType? dtype=None) -> Tensor",
                  "sums up to each element"> {
  let rule = "wholeDimRule(op, Linearity::additive)";
  let integerRanges = "rangeOfSums(ranges.front(), countAlong(op, getDim()))";
}
def Aten_CumprodOp
    : Aten_ScanOp<"cumprod", ", *, ScalarType? dtype=None) -> Tensor",
                  "products up to each element">;
def Aten_LogcumsumexpOp
    : Aten_ScanOp<"logcumsumexp", ") -> Tensor",
                  "logarithms of sums of exponentials up to each element">;
def Aten_CummaxOp
    : Aten_CumulativeExtremeOp<"cummax", "maxima up to each element">;
def Aten_CumminOp
    : Aten_CumulativeExtremeOp<"cummin", "minima up to each element">;

def Aten_LinalgVectorNormOp
    : Aten_ReduceOp<"linalg_vector_norm",
                    "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
                    "ScalarType? dtype=None) -> Tensor",
                    "norm of order ord over dimensions; dtype: convert first"> {
  let arguments = (ins Aten_Tensor:$self,
                   DefaultValuedAttr<Aten_Scalar, "2">:$ord,
                   DenseI64ArrayAttr:$dim, Aten_False:$keepdim,
                   OptionalAttr<TypeAttr>:$dtype);
  let rule = "normRule(op)";
}
def Aten_VarMeanCorrectionOp
    : Aten_ReduceOp<"var_mean.correction",
                    "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
                    "bool keepdim=False) -> (Tensor, Tensor)",
                    "variance (divided by count - correction) and mean"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dim,
                   Aten_ScalarOne:$correction, Aten_False:$keepdim);
  let results = (outs Aten_Tensor:$var, Aten_Tensor:$mean);
  let rule = "meanRule(op)";
}

#endif // SPMD_ATEN_REDUCE_TD
