//===- MergeListOps.cpp - One _foreach op for several param groups --------===//

#include "ListOp.h"

#include "dialects/Aten/TensorType.h"
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
    SmallVector<aten::ListOpInterface> lists;
    for (Operation &op : block)
      if (aten::ListOpInterface list = asMergeableList(&op))
        lists.push_back(list);
    size_t known = 0;
    do {
      known = owners.size();
      for (aten::ListOpInterface list : lists)
        learn(list);
    } while (owners.size() != known);
  }

  /// Parameters of the positions; null where unknown.
  SmallVector<Attribute> of(aten::ListOpInterface list) const {
    SmallVector<Attribute> params;
    for (size_t i = 0; i < list.getLength(); ++i)
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
  Attribute ofPosition(aten::ListOpInterface list, size_t index) const {
    for (OperandRange entries : list.getOperandLists())
      if (Attribute owner = ofValue(entries[index]))
        return owner;
    return ofValue(list->getResult(index));
  }
  void learn(aten::ListOpInterface list) {
    for (size_t i = 0; i < list.getLength(); ++i) {
      Attribute owner = ofPosition(list, i);
      if (!owner)
        continue;
      owners.try_emplace(list->getResult(i), owner);
      for (OperandRange entries : list.getOperandLists())
        if (!ofValue(entries[i]))
          owners[entries[i]] = owner;
    }
  }

  llvm::DenseMap<Value, Attribute> owners;
};
} // namespace

/// The same step of the optimizer, for other parameters.
static bool belongTogether(aten::ListOpInterface a, aten::ListOpInterface b, const Owners &owners) {
  SmallVector<Attribute> ofA = owners.of(a), ofB = owners.of(b);
  llvm::SmallDenseSet<Attribute> seen(ofA.begin(), ofA.end());
  if (seen.contains(Attribute()) || llvm::any_of(ofB, [&](Attribute owner) { return !owner || seen.contains(owner); }))
    return false;
  for (auto [first, second] : llvm::zip_equal(a.getOperandLists(), b.getOperandLists())) {
    Attribute kindA = roleKind(first.front()), kindB = roleKind(second.front());
    if (kindA && kindB && kindA != kindB)
      return false;
    auto rank = [](Value value) { return typeOf(value).getRank(); };
    if ((rank(first.front()) == 0) != (rank(second.front()) == 0))
      return false;
  }
  return true;
}

/// Attributes of the op, with defaults spelled out, without `except`.
static NamedAttrList attrsWithout(Operation *op, StringRef except) {
  NamedAttrList attrs(op->getAttrDictionary());
  attrs.erase(except);
  return attrs;
}

/// The numbers of the positions: those of a list, or one for all.
static void appendScalars(SmallVectorImpl<Attribute> &entries, Attribute scalars, size_t length) {
  if (auto list = dyn_cast<ArrayAttr>(scalars))
    llvm::append_range(entries, list);
  else
    entries.append(length, scalars);
}

/// The op that does both, at the place of `a`; null if there is none.
static aten::ListOpInterface merge(aten::ListOpInterface a, aten::ListOpInterface b, RewriterBase &rewriter) {
  StringRef name = a->getName().getStringRef(), varying = a.getScalarsName();
  NamedAttrList attrs = attrsWithout(a, varying);
  if (attrs != attrsWithout(b, varying))
    return nullptr;

  // A scalar that differs becomes a list.
  if (!varying.empty()) {
    Attribute first = a->getAttr(varying), second = b->getAttr(varying);
    if (first == second && !isa<ArrayAttr>(first)) {
      attrs.set(varying, first);
    } else {
      name = a.getScalarListOverload();
      auto *overload = OperationName(name, a.getContext()).getInterface<aten::ListOpInterface>();
      SmallVector<Attribute> entries;
      appendScalars(entries, first, a.getLength());
      appendScalars(entries, second, b.getLength());
      attrs.set(overload->getScalarsName(), rewriter.getArrayAttr(entries));
    }
  }

  SmallVector<SmallVector<Value>> lists;
  for (auto [list, more] : llvm::zip_equal(a.getOperandLists(), b.getOperandLists())) {
    lists.emplace_back(list);
    llvm::append_range(lists.back(), more);
  }
  // A tensor that differs becomes a list too.
  Value shared = a.getShared().empty() ? Value() : a.getShared().front();
  if (shared && shared != b.getShared().front()) {
    SmallVector<Value> others(a.getLength(), shared);
    others.append(b.getLength(), b.getShared().front());
    lists.push_back(others);
    shared = nullptr;
    name = a.getListOverload();
  }
  SmallVector<Type> types(a->getResultTypes());
  llvm::append_range(types, b->getResultTypes());
  rewriter.setInsertionPoint(a);
  return createListOp(rewriter, a.getLoc(), name, lists, shared, types, attrs);
}

void spmd::mergeListOps(Block &block, RewriterBase &rewriter) {
  Owners owners(block);
  SmallVector<aten::ListOpInterface> ops;
  for (Operation &op : block)
    if (aten::ListOpInterface list = asMergeableList(&op))
      ops.push_back(list);
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t j = i + 1; ops[i] && j < ops.size(); ++j) {
      if (!ops[j] || ops[i]->getName() != ops[j]->getName() || getSegment(ops[i]) != getSegment(ops[j]) ||
          ops[i]->getAttr("op") != ops[j]->getAttr("op"))
        continue;
      aten::ListOpInterface a = ops[i], b = ops[j];
      if (b->isBeforeInBlock(a)) // it was moved for another merge
        std::swap(a, b);
      if (!belongTogether(a, b, owners) ||
          !llvm::all_of(b->getOperands(), [&](Value operand) { return succeeded(hoistBefore(operand, a)); }))
        continue;
      aten::ListOpInterface merged = merge(a, b, rewriter);
      if (!merged)
        continue;
      size_t ofA = a.getLength(); // `a` ends with its op
      for (auto [index, result] : llvm::enumerate(merged->getResults()))
        owners.replace(index < ofA ? a->getResult(index) : b->getResult(index - ofA), result);
      rewriter.replaceOp(a, merged->getResults().take_front(ofA));
      rewriter.replaceOp(b, merged->getResults().drop_front(ofA));
      ops[i] = merged;
      ops[j] = nullptr;
    }
  }
}
