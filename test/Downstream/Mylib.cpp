//===- Mylib.cpp - A dialect as a plugin: no line names an op -------------===//

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/ScalarFunctions.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

#include "test/Downstream/MylibDialect.h.inc"
#define GET_OP_CLASSES
#include "test/Downstream/Mylib.h.inc"

#include "test/Downstream/MylibDialect.cpp.inc"
#define GET_OP_CLASSES
#include "test/Downstream/Mylib.cpp.inc"

void mylib::MylibDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "test/Downstream/Mylib.cpp.inc"
      >();
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "mylib", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) { registry->insert<mylib::MylibDialect>(); }};
}
