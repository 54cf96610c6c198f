//===- AtenDialect.cpp - The aten dialect ---------------------------------===//

#include "dialects/Aten/AtenDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "dialects/Aten/AtenDialect.cpp.inc"
#include "dialects/Aten/AtenInterfaces.cpp.inc"

void spmd::aten::AtenDialect::initialize() {
  // Scalar bodies are made of them.
  getContext()->loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect>();
  registerPointwiseOps();
  registerCompareOps();
  registerMathOps();
  registerSpecialOps();
  registerBinaryOps();
  registerActivationOps();
  registerLossOps();
  registerViewOps();
  registerReduceOps();
  registerHeavyOps();
  registerIndexingOps();
  registerOptimOps();
  registerNormOps();
  registerRandomOps();
  registerRankOps();
  registerWindowOps();
}
