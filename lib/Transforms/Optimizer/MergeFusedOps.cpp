//===- MergeFusedOps.cpp - One fused optimizer for several param groups ---===//

#include "ListOp.h"

#include "dialects/Aten/AtenOptim.h"
#include "dialects/Spmd/Roles.h"

using namespace mlir;
using namespace spmd;

/// Concatenates an attribute with one entry per param group; null for others.
static Attribute concatenate(Attribute a, Attribute b) {
  auto first = dyn_cast<DenseF64ArrayAttr>(a);
  auto second = dyn_cast_or_null<DenseF64ArrayAttr>(b);
  if (!first || !second)
    return {};
  SmallVector<double> values(first.asArrayRef());
  llvm::append_range(values, second.asArrayRef());
  return DenseF64ArrayAttr::get(a.getContext(), values);
}

template <typename OpTy>
static Operation *merge(OpTy a, OpTy b, RewriterBase &rewriter) {
  NamedAttrList attrs;
  // Constants and flags: lists of numbers are joined, all else must agree.
  SmallVector<StringRef> skipped{"operandSegmentSizes", "resultSegmentSizes", "groups"};
  if (a->getAttrDictionary().size() != b->getAttrDictionary().size())
    return nullptr;
  for (NamedAttribute attr : a->getAttrDictionary()) {
    if (llvm::is_contained(skipped, attr.getName().strref()))
      continue;
    Attribute other = b->getAttr(attr.getName());
    if (Attribute joined = concatenate(attr.getValue(), other))
      attrs.set(attr.getName(), joined);
    else if (attr.getValue() == other)
      attrs.set(attr.getName(), other);
    else
      return nullptr;
  }
  int64_t groupsOfA = a.getWeightDecay().size();
  SmallVector<int64_t> groups(a.getGroups());
  for (int64_t group : b.getGroups())
    groups.push_back(groupsOfA + group);
  attrs.set("groups", rewriter.getDenseI64ArrayAttr(groups));

  // Lists, operand by operand and result by result.
  SmallVector<Value> operands;
  SmallVector<int32_t> operandSizes, resultSizes;
  SmallVector<Type> types;
  unsigned numLists = a->template getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes").size();
  for (unsigned i = 0; i < numLists; ++i) {
    OperandRange first = a.getODSOperands(i), second = b.getODSOperands(i);
    if (first.empty() != second.empty())
      return nullptr;
    llvm::append_range(operands, first);
    llvm::append_range(operands, second);
    operandSizes.push_back(first.size() + second.size());
  }
  unsigned numResultLists = a->template getAttrOfType<DenseI32ArrayAttr>("resultSegmentSizes").size();
  for (unsigned i = 0; i < numResultLists; ++i) {
    llvm::append_range(types, a.getODSResults(i).getTypes());
    llvm::append_range(types, b.getODSResults(i).getTypes());
    resultSizes.push_back(a.getODSResults(i).size() + b.getODSResults(i).size());
  }
  attrs.set("operandSegmentSizes", rewriter.getDenseI32ArrayAttr(operandSizes));
  attrs.set("resultSegmentSizes", rewriter.getDenseI32ArrayAttr(resultSizes));

  rewriter.setInsertionPoint(a);
  OperationState state(a.getLoc(), OpTy::getOperationName(), operands, types, attrs);
  auto merged = cast<OpTy>(rewriter.create(state));
  for (unsigned i = 0; i < numResultLists; ++i) {
    auto results = merged.getODSResults(i);
    size_t ofA = a.getODSResults(i).size();
    for (auto [index, result] : llvm::enumerate(results)) {
      Value old = index < ofA ? a.getODSResults(i)[index] : b.getODSResults(i)[index - ofA];
      rewriter.replaceAllUsesWith(old, result);
    }
  }
  rewriter.eraseOp(a);
  rewriter.eraseOp(b);
  return merged;
}

template <typename OpTy>
static void mergeAll(Block &block, RewriterBase &rewriter) {
  SmallVector<OpTy> ops(block.getOps<OpTy>());
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t j = i + 1; ops[i] && j < ops.size(); ++j) {
      if (!ops[j] || getSegment(ops[i]) != getSegment(ops[j]) || ops[i].getUnitAttr() || ops[j].getUnitAttr())
        continue;
      if (!llvm::all_of(ops[j]->getOperands(), [&](Value operand) { return succeeded(hoistBefore(operand, ops[i])); }))
        continue;
      if (Operation *merged = merge<OpTy>(ops[i], ops[j], rewriter)) {
        ops[i] = cast<OpTy>(merged);
        ops[j] = nullptr;
      }
    }
  }
}

void spmd::mergeFusedOps(Block &block, RewriterBase &rewriter) {
  mergeAll<aten::FusedAdamOp>(block, rewriter);
  mergeAll<aten::FusedAdamwOp>(block, rewriter);
  mergeAll<aten::FusedSgdOp>(block, rewriter);
}
