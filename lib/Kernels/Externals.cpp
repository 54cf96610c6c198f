//===- Externals.cpp - Functions that kernels call ------------------------===//

#include "Externals.h"
#include "spmd/Runtime/Core/Externals.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace spmd::kernel {

std::string getPointerName(CustomCallOp op) {
  return ("spmd_external." + *op.getHash() + "." + *op.getFunction()).str();
}

void addExternals(llvm::Module &module, ModuleOp kernels) {
  std::vector<runtime::External> externals;
  llvm::StringSet<> seen;
  kernels.walk([&](CustomCallOp op) {
    std::string name = getPointerName(op);
    if (seen.insert(name).second)
      externals.push_back({name, op.getHash()->str(), op.getFunction()->str(), op.getLibrary()->str()});
  });
  if (externals.empty())
    return;
  auto *pointer = llvm::PointerType::get(module.getContext(), 0);
  for (const runtime::External &external : externals) {
    llvm::GlobalVariable *global = module.getNamedGlobal(external.pointer);
    if (!global)
      global = new llvm::GlobalVariable(module, pointer, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                        nullptr, external.pointer);
    global->setInitializer(llvm::ConstantPointerNull::get(pointer));
  }
  llvm::Constant *text = llvm::ConstantDataArray::getString(module.getContext(), runtime::formatExternals(externals));
  new llvm::GlobalVariable(module, text->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, text,
                           runtime::kExternalTableSymbol);
}

} // namespace spmd::kernel
