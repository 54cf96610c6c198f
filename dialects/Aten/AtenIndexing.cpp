//===- AtenIndexing.cpp - Definitions of the ops in AtenIndexing.td --------------===//

#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenIndexing.cpp.inc"

void spmd::aten::AtenDialect::registerIndexingOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenIndexing.cpp.inc"
      >();
}
