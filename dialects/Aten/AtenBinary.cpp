//===- AtenBinary.cpp - Definitions of the ops in AtenBinary.td --------------===//

#include "dialects/Aten/AtenBinary.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenBinary.cpp.inc"

void spmd::aten::AtenDialect::registerBinaryOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenBinary.cpp.inc"
      >();
}
