//===- InitAll.h - Registration of everything the tools know ----*- C++ -*-===//
//
// The one list of our dialects and passes; every tool and the Python side use it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_INITALL_H
#define SPMD_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

#include <string>
#include <vector>

namespace spmd {

/// Adds our dialects, and the upstream dialects that our IR uses, to `registry`.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Adds the dialects of shared libraries (mlirGetDialectPluginInfo), for ops that import, interpreter and kernels then
/// know by what they say of themselves (AtenOpInterface). Returns why one cannot be loaded; empty when all are.
std::string loadDialectPlugins(const std::vector<std::string> &paths, mlir::DialectRegistry &registry);

/// Registers the passes of shared libraries (mlirGetPassPluginInfo). Returns why one cannot be loaded; empty when all are.
std::string loadPassPlugins(const std::vector<std::string> &paths);

/// Registers our passes and pipelines, and the few upstream passes that are useful beside them (canonicalize, cse).
void registerAllPasses();

} // namespace spmd

#endif // SPMD_INITALL_H
