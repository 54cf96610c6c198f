//===- TypePromotion.cpp - PyTorch's result element types -----------------===//

#include "dialects/Aten/TypePromotion.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

Type spmd::aten::promoteElementTypes(Type a, Type b) {
  if (!a || a == b)
    return b;
  if (!b)
    return a;
  bool floatA = isa<FloatType>(a), floatB = isa<FloatType>(b);
  if (floatA != floatB)
    return floatA ? a : b;
  unsigned widthA = a.getIntOrFloatBitWidth();
  unsigned widthB = b.getIntOrFloatBitWidth();
  if (widthA != widthB) {
    // Wider wins, except that u8 has no signed superset below i16, which every
    // wider integer is.
    return widthA > widthB ? a : b;
  }
  // Same width, different type: f16 with bf16, or u8 with i8.
  MLIRContext *context = a.getContext();
  if (floatA)
    return Float32Type::get(context);
  return IntegerType::get(context, 16);
}

/// 0 bool, 1 integer, 2 float.
static int kindOf(Type type) { return isa<FloatType>(type) ? 2 : type.isInteger(1) ? 0 : 1; }

/// `higher` decides unless `lower` is of a higher kind.
static Type combine(Type higher, Type lower) {
  if (!higher || !lower)
    return higher ? higher : lower;
  return kindOf(lower) > kindOf(higher) ? spmd::aten::promoteElementTypes(higher, lower) : higher;
}

Type spmd::aten::promoteTypes(ArrayRef<RankedTensorType> tensors, ArrayRef<Attribute> scalars, MLIRContext *context,
                              Type defaultFloat) {
  Type dimensioned, zeroDim, scalar;
  for (RankedTensorType tensor : tensors) {
    Type &slot = tensor.getRank() ? dimensioned : zeroDim;
    slot = promoteElementTypes(slot, tensor.getElementType());
  }
  for (Attribute attr : scalars) {
    Type type = IntegerType::get(context, isa<BoolAttr>(attr) ? 1 : 64);
    if (isa<FloatAttr>(attr))
      type = defaultFloat ? defaultFloat : Float32Type::get(context);
    scalar = promoteElementTypes(scalar, type);
  }
  return combine(dimensioned, combine(zeroDim, scalar));
}
