//===- AtenCompare.td - Comparisons, logic, selection ------*- tablegen -*-===//

#ifndef SPMD_ATEN_COMPARE_TD
#define SPMD_ATEN_COMPARE_TD

include "dialects/Aten/AtenBase.td"

// Comparisons are made in the type that the operands promote to.
class Aten_CompareScalarOp<string predicate, string sum>
    : Aten_BinaryScalarOp<predicate # ".Scalar", sum,
          "s.compare(\"" # predicate # "\", self, s.constant(getOther()))"> {
  let resultType = "boolean";
  let computeIn = "operands";
}
class Aten_CompareOp<string predicate, string sum>
    : Aten_BinaryOp<predicate # ".Tensor", sum,
                    "s.compare(\"" # predicate # "\", self, other)"> {
  let resultType = "boolean";
  let computeIn = "operands";
}
// A truth value of one operand, of any type.
class Aten_PredicateOp<string name, string sum, string scalar>
    : Aten_UnaryOp<name, sum, scalar> {
  let resultType = "boolean";
  let computeIn = "operands";
}
class Aten_LogicalOp<string name, string sum, string scalar>
    : Aten_BinaryOp<name, sum, scalar> {
  let resultType = "boolean";
  let computeIn = "none";
}

def Aten_EqScalarOp : Aten_CompareScalarOp<"eq", "self == other, as i1">;
def Aten_NeScalarOp : Aten_CompareScalarOp<"ne", "self != other, as i1">;
def Aten_LtScalarOp : Aten_CompareScalarOp<"lt", "self < other, as i1">;
def Aten_LeScalarOp : Aten_CompareScalarOp<"le", "self <= other, as i1">;
def Aten_GtScalarOp : Aten_CompareScalarOp<"gt", "self > other, as i1">;
def Aten_GeScalarOp : Aten_CompareScalarOp<"ge", "self >= other, as i1">;
def Aten_EqTensorOp : Aten_CompareOp<"eq", "self == other, as i1">;
def Aten_NeTensorOp : Aten_CompareOp<"ne", "self != other, as i1">;
def Aten_LtTensorOp : Aten_CompareOp<"lt", "self < other, as i1">;
def Aten_LeTensorOp : Aten_CompareOp<"le", "self <= other, as i1">;
def Aten_GtTensorOp : Aten_CompareOp<"gt", "self > other, as i1">;
def Aten_GeTensorOp : Aten_CompareOp<"ge", "self >= other, as i1">;

def Aten_LogicalNotOp : Aten_UnaryOp<"logical_not", "self == 0, as i1",
                                     "s.logicalNot(s.truth(self))"> {
  let resultType = "boolean";
  let computeIn = "none";
}
def Aten_LogicalAndOp
    : Aten_LogicalOp<"logical_and", "self != 0 and other != 0, as i1",
                     "s.bitAnd(s.truth(self), s.truth(other))">;
def Aten_LogicalOrOp
    : Aten_LogicalOp<"logical_or", "self != 0 or other != 0, as i1",
                     "s.bitOr(s.truth(self), s.truth(other))">;
def Aten_LogicalXorOp
    : Aten_LogicalOp<"logical_xor", "either self != 0 or other != 0, as i1",
                     "s.bitXor(s.truth(self), s.truth(other))">;

def Aten_IsnanOp : Aten_PredicateOp<"isnan", "self is not a number, as i1",
                                    "s.isNan(self)">;
def Aten_IsinfOp
    : Aten_PredicateOp<"isinf", "self is an infinity, as i1",
                       "s.isInfinite(self)">;
def Aten_IsposinfOp
    : Aten_PredicateOp<"isposinf", "self is positive infinity, as i1",
                       "s.compareInfinity(self, INFINITY)">;
def Aten_IsneginfOp
    : Aten_PredicateOp<"isneginf", "self is negative infinity, as i1",
                       "s.compareInfinity(self, -INFINITY)">;
def Aten_SignbitOp
    : Aten_PredicateOp<"signbit", "self is negative, or negative zero, as i1",
                       "s.isNegative(self)">;

def Aten_BitwiseNotOp
    : Aten_UnaryOp<"bitwise_not", "all bits inverted; of i1, logical not",
                   "s.bitNot(self)">;
def Aten_BitwiseAndTensorOp
    : Aten_BinaryOp<"bitwise_and.Tensor", "bits set in both",
                    "s.bitAnd(self, other)">;
def Aten_BitwiseOrTensorOp
    : Aten_BinaryOp<"bitwise_or.Tensor", "bits set in either",
                    "s.bitOr(self, other)">;
def Aten_BitwiseXorTensorOp
    : Aten_BinaryOp<"bitwise_xor.Tensor", "bits set in one of both",
                    "s.bitXor(self, other)">;
def Aten_BitwiseAndScalarOp
    : Aten_BinaryScalarOp<"bitwise_and.Scalar", "bits set in both",
                          "s.bitAnd(self, s.constant(getOther()))">;
def Aten_BitwiseOrScalarOp
    : Aten_BinaryScalarOp<"bitwise_or.Scalar", "bits set in either",
                          "s.bitOr(self, s.constant(getOther()))">;
def Aten_BitwiseXorScalarOp
    : Aten_BinaryScalarOp<"bitwise_xor.Scalar", "bits set in one of both",
                          "s.bitXor(self, s.constant(getOther()))">;
def Aten_BitwiseLeftShiftTensorOp
    : Aten_BinaryOp<"bitwise_left_shift.Tensor", "self moved up by other bits",
                    "s.shiftLeft(self, other)">;
def Aten_BitwiseRightShiftTensorOp
    : Aten_BinaryOp<"bitwise_right_shift.Tensor",
                    "self moved down by other bits, with its sign",
                    "s.shiftRight(self, other)">;
def Aten_BitwiseLeftShiftTensorScalarOp
    : Aten_BinaryScalarOp<"bitwise_left_shift.Tensor_Scalar",
                          "self moved up by other bits",
                          "s.shiftLeft(self, s.constant(getOther()))">;
def Aten_BitwiseRightShiftTensorScalarOp
    : Aten_BinaryScalarOp<"bitwise_right_shift.Tensor_Scalar",
                          "self moved down by other bits, with its sign",
                          "s.shiftRight(self, s.constant(getOther()))">;

def Aten_WhereSelfOp
    : Aten_PointwiseOp<"where.self", "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
                       "self where condition (i1) holds, else other"> {
  let arguments =
      (ins Aten_Tensor:$condition, Aten_Tensor:$self, Aten_Tensor:$other);
  let resultType = "selected";
  let computeIn = "none";
  let body = "s.select(condition, s.cast(self), s.cast(other))";
}
def Aten_MaskedFillScalarOp
    : Aten_PointwiseOp<"masked_fill.Scalar",
                       "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
                       "value where mask (i1) holds, else self"> {
  let arguments =
      (ins Aten_Tensor:$self, Aten_Tensor:$mask, Aten_Scalar:$value);
  let resultType = "first";
  let computeIn = "none";
  let body = "s.select(mask, s.constant(getValue()), self)";
}

#endif // SPMD_ATEN_COMPARE_TD
