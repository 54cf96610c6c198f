//===- ScalarBodies.cpp - what one element of a pointwise op is -----------===//

#include "spmd/Conversion/AtenToKernel/ScalarBodies.h"

#include "dialects/Aten/AtenInterfaces.h"

using namespace mlir;

namespace spmd::fusion {

ScalarBody getScalarBody(Operation *op) {
  auto aten = dyn_cast<aten::AtenOpInterface>(op);
  if (!aten || !aten.hasScalarBody())
    return nullptr;
  return [aten](ImplicitLocOpBuilder &b, ValueRange args) mutable { return aten.buildScalarBody(b, args); };
}

} // namespace spmd::fusion
