//===- CompleteListOps.cpp - Identities where a group lacks an op ---------===//

#include "ListOp.h"

#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace spmd;

/// `old` over `more` too, where it is the identity; null if it cannot be.
static aten::ListOpInterface extend(aten::ListOpInterface old, ArrayRef<Value> more, RewriterBase &rewriter) {
  std::optional<int64_t> identity = old.getIdentity();
  if (!identity)
    return nullptr;
  for (Value value : more)
    if (failed(hoistBefore(value, old)))
      return nullptr;

  rewriter.setInsertionPoint(old);
  SmallVector<SmallVector<Value>> lists = llvm::to_vector_of<SmallVector<Value>>(old.getOperandLists());
  llvm::append_range(lists[0], more);
  NamedAttrList attrs(old->getAttrDictionary());
  StringRef name;
  if (!old.getShared().empty()) {
    Value shared = old.getShared().front();
    auto neutral = aten::ScalarTensorOp::create(rewriter, old.getLoc(), typeOf(shared),
                                                rewriter.getF64FloatAttr(static_cast<double>(*identity)));
    if (Attribute segment = old->getAttr(kSegmentAttr))
      neutral->setAttr(kSegmentAttr, segment);
    SmallVector<Value> others(old.getLength(), shared);
    others.append(more.size(), neutral);
    lists.push_back(others);
    name = old.getListOverload();
  } else {
    name = old.getScalarListOverload();
    auto *overload = OperationName(name, old.getContext()).getInterface<aten::ListOpInterface>();
    SmallVector<Attribute> scalars;
    Attribute before = attrs.erase(old.getScalarsName());
    if (auto list = dyn_cast<ArrayAttr>(before))
      llvm::append_range(scalars, list);
    else
      scalars.assign(old.getLength(), before);
    scalars.append(more.size(), rewriter.getI64IntegerAttr(*identity));
    attrs.set(overload->getScalarsName(), rewriter.getArrayAttr(scalars));
  }
  SmallVector<Type> types(old->getResultTypes());
  for (Value value : more)
    types.push_back(value.getType());
  return createListOp(rewriter, old.getLoc(), name, lists, nullptr, types, attrs);
}

/// Extends the list ops that only some entries of a list come from. Uses in
/// `user` are what needs the whole list; other uses keep what they had.
static void completeList(Operation *user, MutableArrayRef<OpOperand> list, RewriterBase &rewriter) {
  llvm::SetVector<Operation *> makers;
  for (OpOperand &entry : list)
    if (Operation *def = entry.get().getDefiningOp();
        def && asMergeableList(def) && getSegment(def) == getSegment(user))
      makers.insert(def);
  for (Operation *maker : makers) {
    SmallVector<OpOperand *> others;
    for (OpOperand &entry : list)
      if (entry.get().getDefiningOp() != maker)
        others.push_back(&entry);
    if (others.empty())
      continue;
    auto old = cast<aten::ListOpInterface>(maker);
    size_t length = old.getLength();
    SmallVector<Value> more = llvm::map_to_vector(others, [](OpOperand *entry) { return entry->get(); });
    aten::ListOpInterface extended = extend(old, more, rewriter);
    if (!extended)
      continue;
    for (auto [entry, value] : llvm::zip_equal(others, extended->getResults().drop_front(length)))
      entry->set(value);
    rewriter.replaceOp(maker, extended->getResults().take_front(length));
  }
}

void spmd::completeListOps(Block &block, RewriterBase &rewriter) {
  // Latest first: an extended op then has a longer list itself. What is replaced or moved is before `op`.
  for (Operation *op = block.empty() ? nullptr : &block.back(); op; op = op->getPrevNode()) {
    aten::ListOpInterface user = asMergeableList(op);
    if (!user)
      continue;
    size_t size = user.getLength(), lists = user.getOperandLists().size();
    for (size_t list = 0; list < lists; ++list)
      completeList(op, op->getOpOperands().slice(list * size, size), rewriter);
  }
}
