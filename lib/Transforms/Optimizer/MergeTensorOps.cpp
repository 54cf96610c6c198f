//===- MergeTensorOps.cpp - One list op for chains of ops per parameter ---===//
//
// [Note: chains]
// PyTorch's single-tensor optimizers run one chain of pointwise ops per parameter.
// The chain of a parameter are the ops of the optimizer phase that read or make its
// values: what a parameter's value is follows from the roles of arguments and
// spreads over pointwise ops and the positions of list ops (PyTorch's foreach
// optimizers run a chain between two of them). Parameters whose chains are equal, op by op, have them
// merged: the k-th ops of all chains become one `_foreach_map`. Any such merge is
// right, since every position keeps its own operands; that chains are equal only
// makes it worth while.
//
//===----------------------------------------------------------------------===//

#include "ListOp.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/AtenOptim.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace spmd;

namespace {
/// The pointwise ops of the optimizer phase, by the parameter they work for.
class Chains {
public:
  explicit Chains(func::FuncOp func) : func(func) {
    for (Operation &op : func.getBody().front()) {
      if (getPhase(&op) != StepPhase::optimizer)
        continue;
      if (canBeMapped(&op))
        candidates.push_back(&op);
      else if (aten::ListOpInterface list = asMergeableList(&op))
        lists.push_back(list);
    }
    for (BlockArgument arg : func.getArguments()) {
      Attribute role = getArgRole(func, arg.getArgNumber());
      if (auto param = dyn_cast_or_null<ParamAttr>(role))
        owners[arg] = StringAttr::get(func.getContext(), param.getName());
      else if (auto state = dyn_cast_or_null<StateAttr>(role))
        owners[arg] = StringAttr::get(func.getContext(), state.getOf());
    }
    size_t known = 0;
    do {
      known = owners.size();
      for (Operation *op : candidates)
        learn(op->getResult(0), llvm::to_vector(op->getOperands()));
      for (aten::ListOpInterface list : lists)
        for (size_t position = 0; position < list.getLength(); ++position)
          learn(list->getResult(position), llvm::map_to_vector(list.getOperandLists(), [&](OperandRange operands) {
                  return Value(operands[position]);
                }));
    } while (owners.size() != known);
    for (Operation *op : candidates)
      if (Attribute owner = ownerOf(op->getResult(0), llvm::to_vector(op->getOperands())))
        chains[owner].push_back(op);
  }

  /// Chains of several parameters that are equal, in the order of the program.
  SmallVector<SmallVector<ArrayRef<Operation *>>> equalChains() const {
    llvm::MapVector<Attribute, SmallVector<ArrayRef<Operation *>>> classes;
    for (auto &[owner, chain] : chains)
      classes[describe(chain)].push_back(chain);
    SmallVector<SmallVector<ArrayRef<Operation *>>> equal;
    for (auto &[description, members] : classes)
      if (members.size() > 1)
        equal.push_back(members);
    return equal;
  }

private:
  static bool canBeMapped(Operation *op) {
    auto iface = dyn_cast<aten::ScalarBodyOpInterface>(op);
    if (!iface || !iface.isPointwise() || op->getNumResults() != 1 || op->getNumOperands() == 0)
      return false;
    // Operands that may be absent have no place in a list.
    if (op->hasAttr("operandSegmentSizes"))
      return false;
    ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return typeOf(operand).getShape() == shape || typeOf(operand).getRank() == 0;
    });
  }

  /// The one parameter that operands and result belong to; null if there is none.
  Attribute ownerOf(Value result, ArrayRef<Value> operands) const {
    Attribute found = owners.lookup(result);
    for (Value operand : operands) {
      Attribute owner = owners.lookup(operand);
      if (found && owner && owner != found)
        return {};
      found = found ? found : owner;
    }
    return found;
  }

  void learn(Value result, ArrayRef<Value> operands) {
    Attribute owner = ownerOf(result, operands);
    if (!owner)
      return;
    owners.try_emplace(result, owner);
    // A number may serve all parameters; what has the parameter's shape does not.
    for (Value operand : operands)
      if (typeOf(operand).getRank() != 0)
        owners.try_emplace(operand, owner);
  }

  /// Equal for chains that do the same.
  Attribute describe(ArrayRef<Operation *> chain) const {
    Builder builder(func.getContext());
    llvm::DenseMap<Value, int64_t> numbers;
    SmallVector<Attribute> description;
    for (Operation *op : chain) {
      description.push_back(builder.getStringAttr(op->getName().getStringRef()));
      description.push_back(op->getAttrDictionary());
      for (Value operand : op->getOperands()) {
        description.push_back(builder.getBoolAttr(typeOf(operand).getRank() == 0));
        description.push_back(describe(operand, builder, numbers));
      }
      Value result = op->getResult(0);
      description.push_back(TypeAttr::get(typeOf(result).getElementType()));
      description.push_back(builder.getBoolAttr(typeOf(result).getRank() == 0));
      numbers.try_emplace(result, numbers.size());
    }
    return builder.getArrayAttr(description);
  }

  Attribute describe(Value value, Builder &builder, llvm::DenseMap<Value, int64_t> &numbers) const {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      Attribute role = getArgRole(func, arg.getArgNumber());
      if (auto state = dyn_cast_or_null<StateAttr>(role))
        return builder.getStringAttr(state.getState());
      if (isa_and_nonnull<ParamAttr>(role))
        return builder.getUnitAttr();
    }
    return builder.getI64IntegerAttr(numbers.try_emplace(value, numbers.size()).first->second);
  }

  mutable func::FuncOp func; // its accessors are not const
  SmallVector<Operation *> candidates;
  SmallVector<aten::ListOpInterface> lists;
  llvm::DenseMap<Value, Attribute> owners;
  llvm::MapVector<Attribute, SmallVector<Operation *>> chains;
};
} // namespace

/// One op for `members`, at the place of the first; nothing if one of them needs it.
static void mergeMembers(ArrayRef<Operation *> members, RewriterBase &rewriter) {
  Operation *first = *llvm::min_element(members, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *member : members)
    for (Value operand : member->getOperands())
      if (failed(hoistBefore(operand, first)))
        return;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (unsigned i = 0; i < first->getNumOperands(); ++i)
    for (Operation *member : members)
      operands.push_back(member->getOperand(i));
  for (Operation *member : members)
    types.push_back(member->getResult(0).getType());
  NamedAttrList options(first->getAttrDictionary());
  Attribute segment = options.erase(kSegmentAttr);
  rewriter.setInsertionPoint(first);
  auto map = aten::ForeachMapOp::create(rewriter, first->getLoc(), types, operands,
                                        rewriter.getStringAttr(first->getName().stripDialect()),
                                        options.getDictionary(rewriter.getContext()), FlatSymbolRefAttr());
  map->setAttr(kSegmentAttr, segment);
  for (auto [member, result] : llvm::zip_equal(members, map.getOuts()))
    rewriter.replaceOp(member, result);
}

void spmd::mergeTensorOps(func::FuncOp func, RewriterBase &rewriter) {
  Chains chains(func);
  for (const SmallVector<ArrayRef<Operation *>> &equal : chains.equalChains())
    for (size_t k = 0; k < equal.front().size(); ++k)
      mergeMembers(llvm::map_to_vector(equal, [&](ArrayRef<Operation *> chain) { return chain[k]; }), rewriter);
}
