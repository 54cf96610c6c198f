//===- Epilogue.cpp - what clusters do with a GEMM ------------------------===//

#include "Epilogue.h"

#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/ScalarFunctions.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace spmd::kernel;

namespace spmd::epilogue {

static bool isGuarded(ClusterOp cluster, unsigned operand) {
  return llvm::is_contained(cluster.getGuarded(), static_cast<int64_t>(operand));
}

std::optional<SmallVector<Site>> findSites(Value gemm) {
  SmallVector<Site> sites;
  for (OpOperand &use : gemm.getUses()) {
    auto cluster = dyn_cast<ClusterOp>(use.getOwner());
    if (!cluster || isGuarded(cluster, use.getOperandNumber()))
      return std::nullopt;
    sites.push_back(
        {cluster, use.getOperandNumber(), {cluster.getBodyBlock()->getArgument(use.getOperandNumber())}, {}});
  }
  return sites;
}

//===----------------------------------------------------------------------===//
// Additions
//===----------------------------------------------------------------------===//

/// The operand of the cluster that is added to a value where `use` reads it, and the sum, rounded to the value's type.
static std::optional<std::pair<BlockArgument, Value>> getAddition(OpOperand &use) {
  Type type = use.get().getType();
  if (auto add = dyn_cast<arith::AddFOp>(use.getOwner())) {
    auto other = dyn_cast<BlockArgument>(add->getOperand(1 - use.getOperandNumber()));
    return other && other != use.get() ? std::make_optional(std::make_pair(other, add.getResult())) : std::nullopt;
  }
  // The same, of a narrow type.
  auto widened = dyn_cast<arith::ExtFOp>(use.getOwner());
  if (!widened || !widened->hasOneUse())
    return std::nullopt;
  OpOperand &wide = *widened->use_begin();
  auto add = dyn_cast<arith::AddFOp>(wide.getOwner());
  auto other = add ? add->getOperand(1 - wide.getOperandNumber()).getDefiningOp<arith::ExtFOp>() : arith::ExtFOp();
  if (!other || !add->hasOneUse() || !add.getType().isF32())
    return std::nullopt;
  auto argument = dyn_cast<BlockArgument>(other.getIn());
  auto rounded = dyn_cast<arith::TruncFOp>(*add->user_begin());
  if (!argument || argument == use.get() || argument.getType() != type || !rounded || rounded.getType() != type)
    return std::nullopt;
  return std::make_pair(argument, rounded.getResult());
}

/// Whether `operand` reads its element of a row of `columns` elements where `matrix` reads that of a matrix of such
/// rows.
static bool readsColumn(ClusterOp cluster, unsigned operand, unsigned matrix, int64_t columns) {
  AccessMap row = AccessMap::get(cluster.getOperandMap(operand)), all = AccessMap::get(cluster.getOperandMap(matrix));
  auto isPlain = [](const AccessMap &map) {
    return map.isLinear() && map.constant == 0 && llvm::all_of(map.symbols, [](int64_t stride) { return stride == 0; });
  };
  if (!isPlain(row) || !isPlain(all))
    return false;
  int64_t last = 0;
  for (auto [dim, size] : llvm::enumerate(cluster.getDims())) {
    int64_t stride = all.strides[dim];
    if (size == 1)
      continue;
    bool crossesRows = stride % columns == 0;
    if (stride < 0 || row.strides[dim] != (crossesRows ? 0 : stride))
      return false;
    last += crossesRows ? 0 : (size - 1) * stride;
  }
  return last < columns;
}

/// What all sites add next, if it `fits` at each of them (a predicate of cluster, operand added, operand added to).
static Value addStep(SmallVector<Site> &sites, function_ref<bool(ClusterOp, unsigned, unsigned)> fits) {
  Value added;
  SmallVector<Site> next = sites;
  for (Site &site : next) {
    SmallVector<Value> sums;
    for (Value value : site.values)
      for (OpOperand &use : value.getUses()) {
        auto addition = getAddition(use);
        if (!addition)
          return {};
        auto [argument, sum] = *addition;
        unsigned operand = argument.getArgNumber();
        Value source = site.cluster.getInputs()[operand];
        if ((added && source != added) || isGuarded(site.cluster, operand) ||
            !fits(site.cluster, operand, site.operand))
          return {};
        added = source;
        sums.push_back(sum);
      }
    site.values = sums;
  }
  if (added)
    sites = std::move(next);
  return added;
}

Value addBias(SmallVector<Site> &sites, int64_t columns) {
  return addStep(sites, [&](ClusterOp cluster, unsigned operand, unsigned matrix) {
    return getNumElements(cluster.getInputs()[operand].getType()) == columns &&
           readsColumn(cluster, operand, matrix, columns);
  });
}

Value addMatrix(SmallVector<Site> &sites) {
  return addStep(sites, [](ClusterOp cluster, unsigned operand, unsigned matrix) {
    return getNumElements(cluster.getInputs()[operand].getType()) ==
               getNumElements(cluster.getInputs()[matrix].getType()) &&
           cluster.getOperandMap(operand) == cluster.getOperandMap(matrix);
  });
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// Whether `value` is computed from `element` as `model` is from `argument`.
static bool isSame(Value model, Value argument, Value value, Value element) {
  if (model == argument)
    return value == element;
  Operation *a = model.getDefiningOp(), *b = value.getDefiningOp();
  return b && a->getName() == b->getName() && a->getNumOperands() == b->getNumOperands() &&
         a->getAttrDictionary() == b->getAttrDictionary() && model.getType() == value.getType() &&
         llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()), [&](auto pair) {
           return isSame(std::get<0>(pair), argument, std::get<1>(pair), element);
         });
}

bool applyActivation(SmallVector<Site> &sites, Activation activation) {
  Type type = sites.front().cluster.getBodyBlock()->getArgument(sites.front().operand).getType();
  Block model;
  Value argument = model.addArgument(type, sites.front().cluster.getLoc());
  ImplicitLocOpBuilder b(argument.getLoc(), type.getContext());
  b.setInsertionPointToStart(&model);
  aten::ScalarBuilder s(b, aten::getComputeType(type));
  Value x = aten::castScalar(b, argument, aten::getComputeType(type));
  Value y = activation == Activation::Relu ? s.max(x, s.constant(0))
                                           : aten::gelu(s, x, activation == Activation::GeluTanh ? "tanh" : "none");
  y = aten::castScalar(b, y, type);
  bool found = false;
  for (Site &site : sites) {
    site.preActivation = site.values;
    site.values.clear();
    for (Operation &op : *site.cluster.getBodyBlock())
      for (Value result : op.getResults())
        if (llvm::any_of(site.preActivation, [&](Value element) { return isSame(y, argument, result, element); }))
          site.values.push_back(result);
    found |= !site.values.empty();
  }
  return found;
}

//===----------------------------------------------------------------------===//
// What is left
//===----------------------------------------------------------------------===//

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
