//===- AtenView.cpp - Definitions of the ops in AtenView.td --------------===//

#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenView.cpp.inc"

void spmd::aten::AtenDialect::registerViewOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenView.cpp.inc"
      >();
}
