//===- CompleteListOps.cpp - Identities where a group lacks an op ---------===//

#include "ListOp.h"

#include "dialects/Aten/AtenView.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace spmd;

/// The second operand that changes nothing.
static std::optional<int64_t> identityOf(StringRef base) {
  if (base == "mul" || base == "div")
    return 1;
  if (base == "add" || base == "sub")
    return 0;
  return std::nullopt;
}

/// `old` over `more` too, where it is the identity; null if it cannot be.
static Operation *extend(const ListOp &old, ArrayRef<Value> more, RewriterBase &rewriter) {
  std::optional<int64_t> identity = identityOf(old.getBase());
  StringRef overload = old.getOverload();
  if (!identity || (overload != "Tensor" && overload != "Scalar" && overload != "ScalarList"))
    return nullptr;
  for (Value value : more)
    if (failed(hoistBefore(value, old.op)))
      return nullptr;

  rewriter.setInsertionPoint(old.op);
  SmallVector<SmallVector<Value>> lists = old.lists;
  llvm::append_range(lists[0], more);
  NamedAttrList attrs(old.op->getAttrDictionary());
  std::string name = ("_foreach_" + old.getBase()).str();
  if (overload == "Tensor") {
    auto neutral =
        aten::ScalarTensorOp::create(rewriter, old.op->getLoc(), cast<RankedTensorType>(old.shared.getType()),
                                     rewriter.getF64FloatAttr(static_cast<double>(*identity)));
    if (Attribute segment = old.op->getAttr(kSegmentAttr))
      neutral->setAttr(kSegmentAttr, segment);
    SmallVector<Value> others(old.size(), old.shared);
    others.append(more.size(), neutral);
    lists.push_back(others);
    name += ".List";
  } else {
    SmallVector<Attribute> scalars;
    if (auto list = attrs.erase("scalars"))
      llvm::append_range(scalars, cast<ArrayAttr>(list));
    else
      scalars.assign(old.size(), attrs.erase("scalar"));
    scalars.append(more.size(), rewriter.getI64IntegerAttr(*identity));
    attrs.set("scalars", rewriter.getArrayAttr(scalars));
    name += ".ScalarList";
  }
  SmallVector<Type> types(old.op->getResultTypes());
  for (Value value : more)
    types.push_back(value.getType());
  return createListOp(rewriter, old.op->getLoc(), name, lists, nullptr, types, attrs);
}

/// Extends the list ops that only some entries of a list come from. Uses in
/// `user` are what needs the whole list; other uses keep what they had.
static void completeList(Operation *user, MutableArrayRef<OpOperand> list, RewriterBase &rewriter) {
  llvm::SetVector<Operation *> makers;
  for (OpOperand &entry : list)
    if (Operation *def = entry.get().getDefiningOp();
        def && ListOp::classof(def) && getSegment(def) == getSegment(user))
      makers.insert(def);
  for (Operation *maker : makers) {
    SmallVector<OpOperand *> others;
    for (OpOperand &entry : list)
      if (entry.get().getDefiningOp() != maker)
        others.push_back(&entry);
    if (others.empty())
      continue;
    ListOp old(maker);
    SmallVector<Value> more = llvm::map_to_vector(others, [](OpOperand *entry) { return entry->get(); });
    Operation *extended = extend(old, more, rewriter);
    if (!extended)
      continue;
    for (auto [entry, value] : llvm::zip_equal(others, extended->getResults().drop_front(old.size())))
      entry->set(value);
    rewriter.replaceOp(maker, extended->getResults().take_front(old.size()));
  }
}

void spmd::completeListOps(Block &block, RewriterBase &rewriter) {
  // Latest first: an extended op then has a longer list itself. What is replaced or moved is before `op`.
  for (Operation *op = block.empty() ? nullptr : &block.back(); op; op = op->getPrevNode()) {
    if (!ListOp::classof(op))
      continue;
    size_t size = op->getNumResults();
    size_t lists = ListOp(op).lists.size();
    for (size_t list = 0; list < lists; ++list)
      completeList(op, op->getOpOperands().slice(list * size, size), rewriter);
  }
}
