//===- Remains.cpp - what a GEMM's epilogue leaves of clusters ------------===//

#include "Epilogue.h"

#include "dialects/Kernel/Body.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace spmd::kernel;

namespace spmd::epilogue {

/// Marks what the kept results are computed from; false when that is what the activation at `sites` is applied to
/// though it `reads` the activated value there.
static bool markLive(Remains &remains, ArrayRef<Site> sites, const DenseSet<unsigned> &readsPre) {
  ClusterOp cluster = remains.cluster;
  remains.operands.reset();
  remains.operations.clear();
  remains.replaced.clear();
  DenseSet<Value> forbidden;
  for (const Site &site : sites) {
    bool readsPreActivation = readsPre.contains(site.operand);
    for (Value value : readsPreActivation ? site.preActivation : site.values)
      remains.replaced[value] = site.operand;
    if (!readsPreActivation)
      forbidden.insert(site.preActivation.begin(), site.preActivation.end());
  }
  SmallVector<Value> worklist;
  for (auto [index, value] : llvm::enumerate(cluster.getBodyBlock()->getTerminator()->getOperands()))
    if (remains.results.test(index))
      worklist.push_back(value);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto it = remains.replaced.find(value); it != remains.replaced.end()) {
      remains.operands.set(it->second);
      continue;
    }
    if (forbidden.contains(value))
      return false;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      remains.operands.set(argument.getArgNumber());
      continue;
    }
    if (remains.operations.insert(value.getDefiningOp()).second)
      llvm::append_range(worklist, value.getDefiningOp()->getOperands());
  }
  return true;
}

/// All of the cluster, of which nothing is marked as live yet.
static Remains getWhole(ClusterOp cluster) {
  Remains remains;
  remains.cluster = cluster;
  remains.operands.resize(cluster.getInputs().size());
  remains.readsPreActivation.resize(cluster.getInputs().size());
  remains.results.resize(cluster.getNumResults(), true);
  remains.activated.resize(cluster.getNumResults());
  remains.preActivated.resize(cluster.getNumResults());
  return remains;
}

Remains findRemains(ClusterOp cluster, unsigned unread) {
  Remains remains = getWhole(cluster);
  remains.results.reset(unread);
  markLive(remains, {}, {});
  return remains;
}

Remains findRemains(ClusterOp cluster, ArrayRef<Site> sites) {
  Remains remains = getWhole(cluster);
  for (auto [index, value] : llvm::enumerate(cluster.getBodyBlock()->getTerminator()->getOperands()))
    for (const Site &site : sites) {
      if (cluster.getResultMap(index) != cluster.getOperandMap(site.operand) ||
          getNumElements(cluster.getResult(index).getType()) !=
              getNumElements(cluster.getInputs()[site.operand].getType()))
        continue;
      if (llvm::is_contained(site.values, value))
        remains.activated.set(index);
      else if (llvm::is_contained(site.preActivation, value))
        remains.preActivated.set(index);
      else
        continue;
      remains.results.reset(index);
    }
  // Sites read the activated value where that is all they need.
  DenseSet<unsigned> readsPre;
  for (const Site &site : sites)
    if (!site.preActivation.empty() && !markLive(remains, {site}, readsPre))
      readsPre.insert(site.operand);
  for (unsigned operand : readsPre)
    remains.readsPreActivation.set(operand);
  markLive(remains, sites, readsPre);
  return remains;
}

int64_t Remains::getSavedBytes() {
  auto getBytes = [](Type type) { return getNumElements(type) * getElementBytes(type); };
  int64_t bytes = 0;
  for (auto [index, input] : llvm::enumerate(cluster.getInputs()))
    if (isErased() || !operands.test(index))
      bytes += getBytes(input.getType());
  for (auto [index, type] : llvm::enumerate(cluster.getResultTypes()))
    if (!results.test(index))
      bytes += getBytes(type);
  return bytes;
}

void replaceCluster(const Remains &remains, Value gemm, Value result, Value preActivation) {
  ClusterOp cluster = remains.cluster;
  for (unsigned index : remains.activated.set_bits())
    cluster.getResult(index).replaceAllUsesWith(result);
  for (unsigned index : remains.preActivated.set_bits())
    cluster.getResult(index).replaceAllUsesWith(preActivation);
  if (remains.isErased())
    return cluster.erase();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> operandMaps, resultMaps;
  SmallVector<Type> types;
  SmallVector<int64_t> guarded;
  for (unsigned index : remains.operands.set_bits()) {
    if (isGuarded(cluster, index))
      guarded.push_back(inputs.size());
    Value input = cluster.getInputs()[index];
    if (input == gemm)
      input = remains.readsPreActivation.test(index) ? preActivation : result;
    inputs.push_back(input);
    operandMaps.push_back(cluster.getOperandMap(index));
  }
  for (unsigned index : remains.results.set_bits()) {
    types.push_back(cluster.getResult(index).getType());
    resultMaps.push_back(cluster.getResultMap(index));
  }
  OpBuilder builder(cluster);
  auto rest = ClusterOp::create(builder, cluster.getLoc(), types, inputs, cluster.getDims(), cluster.getParallel(),
                                operandMaps, resultMaps, guarded);
  numberInBlock(rest);
  rest->setDiscardableAttrs(cluster->getDiscardableAttrDictionary());
  IRMapping mapping;
  SmallVector<Value> arguments(cluster.getInputs().size());
  for (auto [argument, index] : llvm::zip_equal(rest.getBodyBlock()->getArguments(), remains.operands.set_bits())) {
    arguments[index] = argument;
    mapping.map(cluster.getBodyBlock()->getArgument(index), argument);
  }
  for (auto [value, operand] : remains.replaced)
    if (arguments[operand])
      mapping.map(value, arguments[operand]);
  builder.setInsertionPointToEnd(rest.getBodyBlock());
  for (Operation &op : *cluster.getBodyBlock())
    if (remains.operations.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> yielded;
  for (unsigned index : remains.results.set_bits())
    yielded.push_back(mapping.lookup(cluster.getBodyBlock()->getTerminator()->getOperand(index)));
  Operation *end = cluster.getBodyBlock()->getTerminator();
  YieldOp::create(builder, end->getLoc(), yielded);
  for (auto [index, value] : llvm::zip_equal(remains.results.set_bits(), rest.getResults()))
    cluster.getResult(index).replaceAllUsesWith(value);
  cluster.erase();
}

} // namespace spmd::epilogue
