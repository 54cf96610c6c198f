//===- FuzzStep.cpp - Damaged step packages -------------------------------===//
//
// Imports each damaged step package, and what can be imported is compiled for 2 ranks up to its plan.
//
//===----------------------------------------------------------------------===//

#include "FuzzLoop.h"
#include "spmd/Import/Import.h"
#include "spmd/InitAll.h"
#include "spmd/Pipelines/Pipeline.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using spmd::fuzz::Verdict;

static Verdict compile(const std::string &path, const std::string &) {
  DialectRegistry registry;
  spmd::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  bool told = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    told |= diagnostic.getSeverity() == DiagnosticSeverity::Error && !diagnostic.str().empty();
    return success();
  });
  auto refused = [&] { return told ? Verdict::refused : Verdict::mute; };
  OwningOpRef<ModuleOp> module = spmd::importStep(path, &context);
  if (!module)
    return refused();
  spmd::PipelineOptions options;
  options.ranks = 2;
  PassManager pm(&context);
  if (failed(spmd::buildPipeline(pm, options, spmd::Phase::import, spmd::Phase::plan, llvm::errs())) ||
      failed(pm.run(*module)))
    return refused();
  return Verdict::accepted;
}

int main(int argc, char **argv) {
  spmd::registerAllPasses();
  return spmd::fuzz::runFuzzer(argc, argv, {{"step.json", "weights.safetensors"}, compile});
}
