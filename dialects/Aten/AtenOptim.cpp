//===- AtenOptim.cpp - Definitions of the ops in AtenOptim.td --------------===//

#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenOptim.cpp.inc"

void spmd::aten::AtenDialect::registerOptimOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenOptim.cpp.inc"
      >();
}
