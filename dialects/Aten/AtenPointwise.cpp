//===- AtenPointwise.cpp - Definitions of the ops in AtenPointwise.td --------------===//

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenPointwise.cpp.inc"

void spmd::aten::AtenDialect::registerPointwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenPointwise.cpp.inc"
      >();
}
