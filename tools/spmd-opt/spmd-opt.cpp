//===- spmd-opt.cpp - Runs passes on IR, one by one or as pipelines ---===//

#include "spmd/InitAll.h"
#include "spmd/Pipelines/CrashMessage.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  spmd::explainCrashes(argc, argv);
  mlir::DialectRegistry registry;
  spmd::registerAllDialects(registry);
  spmd::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "spmd pass driver\n", registry));
}
