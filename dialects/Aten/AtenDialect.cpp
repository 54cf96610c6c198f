//===- AtenDialect.cpp - The aten dialect ---------------------------------===//

#include "dialects/Aten/AtenDialect.h"

#include "dialects/Aten/AtenDialect.cpp.inc"
#include "dialects/Aten/AtenInterfaces.cpp.inc"

void spmd::aten::AtenDialect::initialize() {
  registerPointwiseOps();
  registerCompareOps();
  registerMathOps();
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
  registerWindowOps();
}
