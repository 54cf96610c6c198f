//===- AtenLoss.cpp - Definitions of the ops in AtenLoss.td --------------===//

#include "dialects/Aten/AtenLoss.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenLoss.cpp.inc"

void spmd::aten::AtenDialect::registerLossOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenLoss.cpp.inc"
      >();
}
