//===- AtenWindow.cpp - Definitions of the ops in AtenWindow.td -----------===//

#include "dialects/Aten/AtenWindow.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenWindow.cpp.inc"

void spmd::aten::AtenDialect::registerWindowOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenWindow.cpp.inc"
      >();
}
