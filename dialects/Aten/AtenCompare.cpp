//===- AtenCompare.cpp - Definitions of the ops in AtenCompare.td --------------===//

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenCompare.cpp.inc"

void spmd::aten::AtenDialect::registerCompareOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenCompare.cpp.inc"
      >();
}
