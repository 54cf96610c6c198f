//===- KernelTable.cpp - What the kernels in a file take ------------------===//

#include "spmd/Kernels/KernelTable.h"
#include "CollectKernels.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Kernel/PaddedRows.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Runtime/Core/KernelTable.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace spmd::kernel {

FailureOr<std::string> getKernelTable(ModuleOp module, const llvm::StringMap<int64_t> &blocks) {
  auto kernels = collectKernels(module);
  if (failed(kernels))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](char access, Value value) {
    auto tensor = cast<RankedTensorType>(value.getType());
    int64_t bytes = tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
    os << ' ' << access << ':' << tensor.getElementType() << ':' << bytes;
  };
  for (Operation *op : *kernels) {
    auto kernel = cast<KernelOpInterface>(op);
    StringRef symbol = kernel.getSymbolAttr().getValue();
    auto grid = blocks.find(symbol);
    os << symbol << ' ' << (grid == blocks.end() ? kernel.getParallelIterations() : grid->second);
    for (Value operand : op->getOperands())
      print('r', operand);
    auto cluster = dyn_cast<ClusterOp>(op);
    for (OpResult result : op->getResults()) {
      print('w', result);
      if (std::optional<PaddedRows> rows = cluster ? getPaddedRows(cluster, result.getResultNumber()) : std::nullopt)
        os << ':' << rows->columns << '/' << rows->ld;
    }
    os << '\n';
  }
  return text;
}

void addKernelTable(llvm::Module &module, StringRef table) {
  llvm::Constant *text = llvm::ConstantDataArray::getString(module.getContext(), table);
  new llvm::GlobalVariable(module, text->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, text,
                           runtime::kKernelTableSymbol);
}

void addKernelTable(CubinArchive &archive, StringRef table) {
  archive.code += runtime::formatArchiveTable(table);
  archive.ptx += runtime::formatPtxTable(table);
}

} // namespace spmd::kernel
