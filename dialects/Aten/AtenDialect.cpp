//===- AtenDialect.cpp - The aten dialect ---------------------------------===//

#include "dialects/Aten/AtenDialect.h"

#include "dialects/Aten/AtenDialect.cpp.inc"
#include "dialects/Aten/AtenInterfaces.cpp.inc"

void spmd::aten::AtenDialect::initialize() {
  registerPointwiseOps();
  registerCompareOps();
  registerViewOps();
  registerReduceOps();
  registerHeavyOps();
  registerOptimOps();
  registerNormOps();
  registerRandomOps();
  registerWindowOps();
}
