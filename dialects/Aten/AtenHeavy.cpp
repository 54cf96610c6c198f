//===- AtenHeavy.cpp - Definitions of the ops in AtenHeavy.td --------------===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenHeavy.cpp.inc"

void spmd::aten::AtenDialect::registerHeavyOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenHeavy.cpp.inc"
      >();
}
