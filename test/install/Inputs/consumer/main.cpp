// Uses the installed package as another project would: parses a module that holds our dialects.
#include "spmd/InitAll.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

int main() {
  mlir::DialectRegistry registry;
  spmd::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  const char *source = "spmd.mesh @mesh [\"data\" = 4]";
  return mlir::parseSourceString<mlir::ModuleOp>(source, &context) ? 0 : 1;
}
