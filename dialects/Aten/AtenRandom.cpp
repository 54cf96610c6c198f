//===- AtenRandom.cpp - Definitions of the ops in AtenRandom.td ------------===//

#include "dialects/Aten/AtenRandom.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenRandom.cpp.inc"

void spmd::aten::AtenDialect::registerRandomOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenRandom.cpp.inc"
      >();
}
