//===- spmd-reduce.cpp - Shrinks IR that makes a pass fail ---===//

#include "spmd/InitAll.h"
#include "spmd/Pipelines/CrashMessage.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  spmd::explainCrashes(argc, argv);
  mlir::DialectRegistry registry;
  spmd::registerAllDialects(registry);
  spmd::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
