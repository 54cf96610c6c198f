//===- AtenCompare.td - Comparisons, logic, selection ------*- tablegen -*-===//

#ifndef SPMD_ATEN_COMPARE_TD
#define SPMD_ATEN_COMPARE_TD

include "dialects/Aten/AtenBase.td"

def Aten_EqScalarOp : Aten_BinaryScalarOp<"eq.Scalar", "self == other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_NeScalarOp : Aten_BinaryScalarOp<"ne.Scalar", "self != other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_LtScalarOp : Aten_BinaryScalarOp<"lt.Scalar", "self < other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_LeScalarOp : Aten_BinaryScalarOp<"le.Scalar", "self <= other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_GtScalarOp : Aten_BinaryScalarOp<"gt.Scalar", "self > other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_GeScalarOp : Aten_BinaryScalarOp<"ge.Scalar", "self >= other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_EqTensorOp : Aten_BinaryOp<"eq.Tensor", "self == other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_NeTensorOp : Aten_BinaryOp<"ne.Tensor", "self != other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_LtTensorOp : Aten_BinaryOp<"lt.Tensor", "self < other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_LeTensorOp : Aten_BinaryOp<"le.Tensor", "self <= other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_GtTensorOp : Aten_BinaryOp<"gt.Tensor", "self > other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_GeTensorOp : Aten_BinaryOp<"ge.Tensor", "self >= other, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}

def Aten_LogicalNotOp : Aten_UnaryOp<"logical_not", "self == 0, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_LogicalAndOp
    : Aten_BinaryOp<"logical_and", "self != 0 and other != 0, as i1"> {
  let verifier = "verifyPointwise(op, ResultType::boolean)";
}
def Aten_BitwiseNotOp
    : Aten_UnaryOp<"bitwise_not", "all bits inverted; of i1, logical not">;
def Aten_BitwiseAndTensorOp
    : Aten_BinaryOp<"bitwise_and.Tensor", "bits set in both">;

def Aten_WhereSelfOp
    : Aten_PointwiseOp<"where.self", "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
                       "self where condition (i1) holds, else other"> {
  let arguments =
      (ins Aten_Tensor:$condition, Aten_Tensor:$self, Aten_Tensor:$other);
  let verifier = "verifyPointwise(op, ResultType::selected)";
}
def Aten_MaskedFillScalarOp
    : Aten_PointwiseOp<"masked_fill.Scalar", "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
                       "value where mask (i1) holds, else self"> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$mask, Aten_Scalar:$value);
  let verifier = "verifyPointwise(op, ResultType::first)";
}

#endif // SPMD_ATEN_COMPARE_TD
