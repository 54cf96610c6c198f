//===- MergeListOps.cpp - One _foreach op for several param groups --------===//

#include "ListOp.h"

#include "dialects/Spmd/Roles.h"

using namespace mlir;
using namespace spmd;

/// What an argument is, but not of which parameter: two lists of different
/// roles are different steps of an optimizer.
static Attribute roleKind(Value value) {
  auto arg = dyn_cast<BlockArgument>(value);
  auto func = arg ? dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()) : func::FuncOp();
  if (!func)
    return {};
  Builder builder(func.getContext());
  Attribute role = getArgRole(func, arg.getArgNumber());
  if (auto state = dyn_cast_or_null<StateAttr>(role))
    return builder.getStringAttr(state.getState());
  return role ? builder.getStringAttr(role.getAbstractAttribute().getName()) : Attribute();
}

namespace {
/// Which parameter each entry of a list belongs to: arguments say it, and what
/// stands at one position of a list op belongs to one parameter. Gradients are
/// known by the optimizer op that uses them.
class Owners {
public:
  explicit Owners(Block &block) {
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      if (ListOp::classof(&op))
        ops.push_back(&op);
    size_t known = 0;
    do {
      known = owners.size();
      for (Operation *op : ops)
        learn(ListOp(op));
    } while (owners.size() != known);
  }

  /// Parameters of the positions; null where unknown.
  SmallVector<Attribute> of(const ListOp &list) const {
    SmallVector<Attribute> params;
    for (size_t i = 0; i < list.size(); ++i)
      params.push_back(ofPosition(list, i));
    return params;
  }
  void replace(Value before, Value after) {
    if (Attribute owner = ofValue(before))
      owners[after] = owner;
  }

private:
  Attribute ofValue(Value value) const {
    if (Attribute owner = owners.lookup(value))
      return owner;
    auto arg = dyn_cast<BlockArgument>(value);
    auto func = arg ? dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()) : func::FuncOp();
    Attribute role = func ? getArgRole(func, arg.getArgNumber()) : Attribute();
    if (auto param = dyn_cast_or_null<ParamAttr>(role))
      return StringAttr::get(role.getContext(), param.getName());
    if (auto state = dyn_cast_or_null<StateAttr>(role))
      return StringAttr::get(role.getContext(), state.getOf());
    return {};
  }
  Attribute ofPosition(const ListOp &list, size_t index) const {
    for (const SmallVector<Value> &entries : list.lists)
      if (Attribute owner = ofValue(entries[index]))
        return owner;
    return ofValue(list.op->getResult(index));
  }
  void learn(const ListOp &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      Attribute owner = ofPosition(list, i);
      if (!owner)
        continue;
      owners.try_emplace(list.op->getResult(i), owner);
      for (const SmallVector<Value> &entries : list.lists)
        if (!ofValue(entries[i]))
          owners[entries[i]] = owner;
    }
  }

  llvm::DenseMap<Value, Attribute> owners;
};
} // namespace

/// The same step of the optimizer, for other parameters.
static bool belongTogether(const ListOp &a, const ListOp &b, const Owners &owners) {
  SmallVector<Attribute> ofA = owners.of(a), ofB = owners.of(b);
  llvm::SmallDenseSet<Attribute> seen(ofA.begin(), ofA.end());
  if (seen.contains(Attribute()) || llvm::any_of(ofB, [&](Attribute owner) { return !owner || seen.contains(owner); }))
    return false;
  for (auto [first, second] : llvm::zip_equal(a.lists, b.lists)) {
    Attribute kindA = roleKind(first.front()), kindB = roleKind(second.front());
    if (kindA && kindB && kindA != kindB)
      return false;
    auto rank = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
    if ((rank(first.front()) == 0) != (rank(second.front()) == 0))
      return false;
  }
  return true;
}

/// Name of the Scalar argument of a ".Scalar" overload that has a
/// ".ScalarList" twin, there and in the twin; empty if there is none.
static std::pair<StringRef, StringRef> scalarNames(StringRef base) {
  if (base == "add" || base == "sub" || base == "mul" || base == "div")
    return {"scalar", "scalars"};
  if (base == "pow")
    return {"exponent", "exponent"};
  if (base == "lerp")
    return {"weight", "weight"};
  if (base == "addcmul" || base == "addcdiv")
    return {"value", "scalars"};
  return {};
}

/// Attributes of the op, with defaults spelled out, without `except`.
static NamedAttrList attrsWithout(Operation *op, ArrayRef<StringRef> except) {
  NamedAttrList attrs(op->getAttrDictionary());
  for (StringRef name : except)
    attrs.erase(name);
  return attrs;
}

/// The op that does both, at the place of `a`; null if there is none.
static Operation *merge(const ListOp &a, const ListOp &b, RewriterBase &rewriter) {
  std::string name = a.op->getName().stripDialect().str();
  auto [scalar, scalars] = scalarNames(a.getBase());
  bool listed = a.getOverload() == "ScalarList";
  StringRef varying = listed ? scalars : a.getOverload() == "Scalar" ? scalar : StringRef();
  NamedAttrList attrs = attrsWithout(a.op, {varying});
  if (attrs != attrsWithout(b.op, {varying}))
    return nullptr;

  // A scalar that differs becomes a list.
  if (!varying.empty()) {
    Attribute first = a.op->getAttr(varying), second = b.op->getAttr(varying);
    if (!listed && first == second) {
      attrs.set(varying, first);
    } else {
      SmallVector<Attribute> entries;
      for (auto [op, attr] : {std::pair(&a, first), std::pair(&b, second)}) {
        if (auto list = dyn_cast<ArrayAttr>(attr))
          llvm::append_range(entries, list);
        else
          entries.append(op->size(), attr);
      }
      attrs.set(scalars, rewriter.getArrayAttr(entries));
      name = ("_foreach_" + a.getBase() + ".ScalarList").str();
    }
  } else if (a.getOverload() == "Scalar" && a.op->getAttrDictionary() != b.op->getAttrDictionary()) {
    return nullptr;
  }

  SmallVector<SmallVector<Value>> lists = a.lists;
  for (auto [list, more] : llvm::zip_equal(lists, b.lists))
    list.append(more);
  // A tensor that differs becomes a list too.
  Value shared = a.shared;
  if (a.shared != b.shared) {
    SmallVector<Value> others(a.size(), a.shared);
    others.append(b.size(), b.shared);
    lists.push_back(others);
    shared = nullptr;
    name = ("_foreach_" + a.getBase() + ".List").str();
  }
  SmallVector<Type> types(a.op->getResultTypes());
  llvm::append_range(types, b.op->getResultTypes());
  rewriter.setInsertionPoint(a.op);
  return createListOp(rewriter, a.op->getLoc(), name, lists, shared, types, attrs);
}

void spmd::mergeListOps(Block &block, RewriterBase &rewriter) {
  Owners owners(block);
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (ListOp::classof(&op))
      ops.push_back(&op);
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t j = i + 1; ops[i] && j < ops.size(); ++j) {
      if (!ops[j] || ops[i]->getName() != ops[j]->getName() || getSegment(ops[i]) != getSegment(ops[j]) ||
          ops[i]->getAttr("op") != ops[j]->getAttr("op"))
        continue;
      Operation *first = ops[i], *second = ops[j];
      if (second->isBeforeInBlock(first)) // it was moved for another merge
        std::swap(first, second);
      ListOp a(first), b(second);
      if (!belongTogether(a, b, owners) ||
          !llvm::all_of(second->getOperands(), [&](Value operand) { return succeeded(hoistBefore(operand, first)); }))
        continue;
      Operation *merged = merge(a, b, rewriter);
      if (!merged)
        continue;
      size_t ofA = a.size(); // `a` ends with its op
      for (auto [index, result] : llvm::enumerate(merged->getResults()))
        owners.replace(index < ofA ? a.op->getResult(index) : b.op->getResult(index - ofA), result);
      rewriter.replaceOp(first, merged->getResults().take_front(ofA));
      rewriter.replaceOp(second, merged->getResults().drop_front(ofA));
      ops[i] = merged;
      ops[j] = nullptr;
    }
  }
}
