//===- OutlineKernels.cpp - spmd-outline-kernels --------------------------===//

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/BuiltinOps.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "llvm/ADT/Hashing.h"

namespace spmd {
#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "spmd/Conversion/KernelToPlan/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using kernel::KernelOpInterface;

/// Whether the same operands of `a` and of `b` are one tensor: what a kernel reads in two places, it reads once.
static bool repeatSameOperands(Operation *a, Operation *b) {
  for (unsigned i = 0; i < a->getNumOperands(); ++i)
    for (unsigned j = 0; j < i; ++j)
      if ((a->getOperand(i) == a->getOperand(j)) != (b->getOperand(i) == b->getOperand(j)))
        return false;
  return true;
}

/// Whether `a` and `b` compute the same function of their operands.
static bool areSameKernel(Operation *a, Operation *b) {
  if (a->getName() != b->getName() || a->getOperandTypes() != b->getOperandTypes() ||
      a->getResultTypes() != b->getResultTypes() || a->getPropertiesAsAttribute() != b->getPropertiesAsAttribute() ||
      !repeatSameOperands(a, b))
    return false;
  DenseMap<Value, Value> same;
  auto check = [&](Value x, Value y) { return success(same.lookup(x) == y); };
  auto mark = [&](Value x, Value y) { same[x] = y; };
  for (auto [x, y] : llvm::zip_equal(a->getRegions(), b->getRegions()))
    if (!OperationEquivalence::isRegionEquivalentTo(&x, &y, check, mark, OperationEquivalence::IgnoreLocations))
      return false;
  return true;
}

/// A hash of all that makes two kernels one: equal for equal kernels.
static llvm::hash_code hashKernel(Operation *op) {
  llvm::hash_code hash = llvm::hash_combine(op->getName(), op->getPropertiesAsAttribute());
  for (Type type : op->getOperandTypes())
    hash = llvm::hash_combine(hash, type);
  op->walk([&](Operation *inner) { hash = llvm::hash_combine(hash, inner->getName()); });
  return hash;
}

namespace {
struct OutlineKernelsPass : spmd::impl::OutlineKernelsPassBase<OutlineKernelsPass> {
  void runOnOperation() override {
    // Only looked up, never iterated over: the order of symbols is that of the program.
    DenseMap<size_t, SmallVector<Operation *>> byHash;
    unsigned next = 0;
    Builder builder(&getContext());
    getOperation().walk([&](KernelOpInterface op) {
      if (!op.isGenerated())
        return;
      op->removeAttr("symbol");
      SmallVector<Operation *> &candidates = byHash[hashKernel(op)];
      for (Operation *candidate : candidates) {
        StringAttr symbol = cast<KernelOpInterface>(candidate).getSymbolAttr();
        // Compared without its symbol.
        cast<KernelOpInterface>(candidate).setSymbolAttr(StringAttr());
        bool same = areSameKernel(candidate, op);
        cast<KernelOpInterface>(candidate).setSymbolAttr(symbol);
        if (same) {
          op.setSymbolAttr(symbol);
          return;
        }
      }
      op.setSymbolAttr(builder.getStringAttr("k" + Twine(next++)));
      candidates.push_back(op);
    });
  }
};
} // namespace
