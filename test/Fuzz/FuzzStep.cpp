//===- FuzzStep.cpp - Damaged step packages -------------------------------===//
//
// Imports each damaged step package, and what can be imported is compiled for 2 ranks up to its plan: of a loop with
// repeated iterations a few of them up to the kernels, where the others are put in.
//
//===----------------------------------------------------------------------===//

#include "FuzzLoop.h"
#include "dialects/Spmd/Iterations.h"
#include "spmd/Conversion/KernelToPlan/RepeatIterations.h"
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
  OwningOpRef<ModuleOp> module = spmd::importIterations(path, /*kept=*/4, &context);
  if (!module)
    return refused();
  spmd::PipelineOptions options;
  options.ranks = 2;
  auto run = [&](spmd::Phase from, spmd::Phase to) {
    PassManager pm(&context);
    return succeeded(spmd::buildPipeline(pm, options, from, to, llvm::errs())) && succeeded(pm.run(*module));
  };
  if (!run(spmd::Phase::import, spmd::Phase::kernels))
    return refused();
  if (auto iterations = spmd::FewIterations::of(*module)) {
    std::string why;
    if (failed(spmd::repeatIterations(*module, iterations->missing(), why)))
      return why.empty() ? Verdict::mute : Verdict::refused;
    (*module)->removeAttr(spmd::kIterationsAttr);
  }
  return run(spmd::Phase::kernels, spmd::Phase::plan) ? Verdict::accepted : refused();
}

int main(int argc, char **argv) {
  spmd::registerAllPasses();
  return spmd::fuzz::runFuzzer(argc, argv, {{"step.json", "weights.safetensors"}, compile});
}
