//===- AtenRanks.cpp - Definitions of the ops in AtenRanks.td ------------===//

#include "dialects/Aten/AtenRanks.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenRanks.cpp.inc"

void spmd::aten::AtenDialect::registerRankOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenRanks.cpp.inc"
      >();
}
