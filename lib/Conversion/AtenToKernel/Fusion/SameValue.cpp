//===- SameValue.cpp ------------------------------------------------------===//

#include "SameValue.h"

#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace spmd;

/// What an op calls its result: those of one buffer need not have the same results.
static StringAttr getName(UnpackOp unpack, Value value) {
  return cast<StringAttr>(unpack.getNames()[cast<OpResult>(value).getResultNumber()]);
}

static bool isSameOperation(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getPropertiesAsAttribute() == b->getPropertiesAsAttribute() &&
         llvm::equal(a->getOperands(), b->getOperands(), isSameValue) &&
         llvm::all_of(llvm::zip_equal(a->getRegions(), b->getRegions()), [](auto regions) {
           return OperationEquivalence::isRegionEquivalentTo(&std::get<0>(regions), &std::get<1>(regions),
                                                             OperationEquivalence::IgnoreLocations);
         });
}

bool spmd::isSameValue(Value a, Value b) {
  if (a == b)
    return true;
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (!first || !second || a.getType() != b.getType())
    return false;
  if (auto one = dyn_cast<UnpackOp>(first))
    if (auto other = dyn_cast<UnpackOp>(second))
      return one.getUnitAttr() == other.getUnitAttr() && getName(one, a) == getName(other, b) &&
             isSameValue(one.getFlat(), other.getFlat());
  // Each has one operand: chains, not trees.
  return cast<OpResult>(a).getResultNumber() == cast<OpResult>(b).getResultNumber() &&
         isa<WaitOp, AllGatherStartOp, kernel::ClusterOp>(first) && first->getNumOperands() == 1 &&
         isSameOperation(first, second);
}
