//===- AtenReduce.cpp - Definitions of the ops in AtenReduce.td --------------===//

#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenReduce.cpp.inc"

void spmd::aten::AtenDialect::registerReduceOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenReduce.cpp.inc"
      >();
}
