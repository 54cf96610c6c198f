//===- AtenMath.cpp - Definitions of the ops in AtenMath.td --------------===//

#include "dialects/Aten/AtenMath.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenMath.cpp.inc"

void spmd::aten::AtenDialect::registerMathOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenMath.cpp.inc"
      >();
}
