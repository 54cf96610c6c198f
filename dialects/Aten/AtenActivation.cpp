//===- AtenActivation.cpp - Definitions of the ops in AtenActivation.td --------------===//

#include "dialects/Aten/AtenActivation.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenActivation.cpp.inc"

void spmd::aten::AtenDialect::registerActivationOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Aten/AtenActivation.cpp.inc"
      >();
}
