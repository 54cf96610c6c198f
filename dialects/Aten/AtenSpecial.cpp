//===- AtenSpecial.cpp - Definitions of the ops in AtenSpecial.td --------------===//

#include "dialects/Aten/AtenSpecial.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenSpecial.cpp.inc"

void spmd::aten::AtenDialect::registerSpecialOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenSpecial.cpp.inc"
      >();
}
