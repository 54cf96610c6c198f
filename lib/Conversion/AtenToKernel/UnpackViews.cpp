//===- UnpackViews.cpp - parameters of a gathered buffer ------------------===//

#include "UnpackViews.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace spmd::fusion {

/// Replaces `unpack` by one that gives `names`, of `types`.
static void replaceUnpack(UnpackOp unpack, ArrayRef<Attribute> names, ArrayRef<Type> types) {
  OpBuilder builder(unpack);
  auto replacement = UnpackOp::create(builder, unpack.getLoc(), types, unpack.getFlat(), unpack.getUnitAttr(),
                                      builder.getArrayAttr(names));
  replacement->setDiscardableAttrs(unpack->getDiscardableAttrDictionary());
  for (auto [name, value] : llvm::zip_equal(unpack.getNames(), unpack.getValues())) {
    const auto *position = llvm::find(names, name);
    if (position != names.end())
      value.replaceAllUsesWith(replacement.getValues()[position - names.begin()]);
  }
  unpack.erase();
}

Value getUnpacked(UnpackOp unpack) {
  Value flat = unpack.getFlat();
  while (Operation *op = flat.getDefiningOp()) {
    if (!isa<WaitOp, AllGatherOp, AllGatherStartOp>(op))
      break;
    flat = op->getOperand(0);
  }
  return flat;
}

void widenUnpacks(func::FuncOp func) {
  llvm::MapVector<Value, llvm::MapVector<Attribute, Type>> parameters;
  SmallVector<UnpackOp> unpacks = llvm::to_vector(func.getOps<UnpackOp>());
  for (UnpackOp unpack : unpacks)
    for (auto [name, value] : llvm::zip_equal(unpack.getNames(), unpack.getValues()))
      parameters[getUnpacked(unpack)].insert({name, value.getType()});
  for (UnpackOp unpack : unpacks) {
    SmallVector<Attribute> names;
    SmallVector<Type> types;
    for (auto [name, type] : parameters[getUnpacked(unpack)]) {
      names.push_back(name);
      types.push_back(type);
    }
    replaceUnpack(unpack, names, types);
  }
}

void narrowUnpacks(func::FuncOp func) {
  for (UnpackOp unpack : llvm::to_vector(func.getOps<UnpackOp>())) {
    SmallVector<Attribute> names;
    SmallVector<Type> types;
    for (auto [name, value] : llvm::zip_equal(unpack.getNames(), unpack.getValues())) {
      if (value.use_empty())
        continue;
      names.push_back(name);
      types.push_back(value.getType());
    }
    if (names.empty())
      unpack.erase();
    else if (names.size() != unpack.getNames().size())
      replaceUnpack(unpack, names, types);
  }
}

} // namespace spmd::fusion
