//===- spmd-lsp-server.cpp - Language server for our IR in editors ---===//

#include "spmd/InitAll.h"
#include "spmd/Pipelines/CrashMessage.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  spmd::explainCrashes(argc, argv);
  mlir::DialectRegistry registry;
  spmd::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
