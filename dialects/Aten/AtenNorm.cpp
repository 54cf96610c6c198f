//===- AtenNorm.cpp - Definitions of the ops in AtenNorm.td ---------------===//

#include "dialects/Aten/AtenNorm.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenNorm.cpp.inc"

void spmd::aten::AtenDialect::registerNormOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenNorm.cpp.inc"
      >();
}
