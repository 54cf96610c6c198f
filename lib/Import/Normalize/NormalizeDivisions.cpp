//===- NormalizeDivisions.cpp - Quotients and remainders ------------------===//

#include "Normalize.h"
#include "RowAccess.h"

using namespace mlir;
using namespace spmd;

/// The divisor, none of which is zero: the step ends with an error where one is.
static Value refuseZeros(Emitter &emitter, Value divisor, const Twine &what) {
  RankedTensorType type = typeOf(divisor);
  Builder &b = emitter.builder;
  Value isZero = emitter.createValue("eq.Scalar", divisor, emitter.named("other", b.getI64IntegerAttr(0)),
                                     type.clone(b.getI1Type()));
  Value one = emitter.full(RankedTensorType::get({}, type.getElementType()), b.getI64IntegerAttr(1));
  return emitter.createValue("where.self", {refuseWhere(emitter, isZero, what), one, divisor}, {}, type);
}

/// Whole numbers are divided by none that is zero, as in PyTorch, whose RuntimeError is "ZeroDivisionError".
static LogicalResult emitDivision(Emitter &emitter, Call &call, Results &results) {
  std::string op = call.op; // of which the names are parts, also when the call is of another
  auto [name, overload] = StringRef(op).split('.');
  BoundArg *other = call.find("other");
  if (overload == "Scalar_Tensor") // the number becomes a tensor
    call.op = (name + ".Tensor").str();
  else if (overload == "Scalar" && other && other->isValue())
    call.op = (name + ".Tensor").str();
  RankedTensorType type = call.resultTypes[0];
  if (other && type.getElementType().isInteger() && !type.getElementType().isInteger(1)) {
    std::string what = (name + " of whole numbers by zero").str();
    if (other->isNumber() && other->number() == 0)
      return emitter.error(what);
    if (other->isValue())
      other->values[0] = refuseZeros(emitter, other->values[0], what);
  }
  return emitSameOp(emitter, call, results);
}

void spmd::normalizeDivisions(NormalizerTable &table) {
  for (StringRef op : {"floor_divide", "floor_divide.Scalar", "div.Tensor_mode", "div.Scalar_mode", "remainder.Tensor",
                       "remainder.Scalar", "remainder.Scalar_Tensor", "fmod.Tensor", "fmod.Scalar"})
    table[op] = &emitDivision;
}
