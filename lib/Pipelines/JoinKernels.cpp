//===- JoinKernels.cpp - Kernels of two programs in one file --------------===//

#include "JoinKernels.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace spmd;

static void setSymbol(func::FuncOp function, StringAttr name) {
  function.setSymNameAttr(name);
  function.walk([&](kernel::KernelOpInterface kernel) { kernel->setAttr("symbol", name); });
}

/// What the kernel computes: two of the same text are one kernel.
static std::string describe(func::FuncOp function) {
  OwningOpRef<func::FuncOp> nameless(function.clone());
  setSymbol(*nameless, StringAttr::get(function.getContext(), "kernel"));
  std::string text;
  llvm::raw_string_ostream os(text);
  nameless->getOperation()->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  return text;
}

void spmd::joinKernels(ModuleOp program, ModuleOp into) {
  llvm::StringMap<StringAttr> known, renamed;
  llvm::StringSet<> names;
  for (auto function : into.getOps<func::FuncOp>()) {
    known.try_emplace(describe(function), function.getSymNameAttr());
    names.insert(function.getSymName());
  }
  for (auto function : llvm::make_early_inc_range(program.getOps<func::FuncOp>())) {
    StringAttr &name = renamed[function.getSymName()];
    name = known.lookup(describe(function));
    if (name) {
      function.erase();
      continue;
    }
    for (size_t number = names.size(); !name || !names.insert(name.getValue()).second; ++number)
      name = StringAttr::get(function.getContext(), "k" + Twine(number));
    setSymbol(function, name);
    function->moveBefore(into.getBody(), into.getBody()->end());
  }
  auto rename = [&](FlatSymbolRefAttr kernel) { return FlatSymbolRefAttr::get(renamed.lookup(kernel.getValue())); };
  program.walk([&](plan::LaunchOpInterface op) { op.setKernelAttr(rename(op.getKernelAttr())); });
  program.walk([&](plan::ComputeOp op) {
    if (auto kernel = dyn_cast<plan::KernelOperationAttr>(op.getWhat()))
      op.setWhatAttr(plan::KernelOperationAttr::get(op.getContext(), rename(kernel.getKernel())));
    if (auto attention = dyn_cast<plan::AttentionOperationAttr>(op.getWhat()))
      op.setWhatAttr(
          plan::AttentionOperationAttr::get(op.getContext(), rename(attention.getKernel()), attention.getShape()));
  });
}
