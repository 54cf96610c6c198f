//===- Epilogue.cpp - what clusters do with a GEMM ------------------------===//

#include "Epilogue.h"
#include "SameValue.h"

#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/ScalarFunctions.h"
#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace spmd::kernel;

namespace spmd::epilogue {

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
static Value addStep(SmallVector<Site> &sites, bool acrossGathers,
                     function_ref<bool(ClusterOp, unsigned, unsigned)> fits) {
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
        if ((added && source != added && !(acrossGathers && isSameValue(source, added))) ||
            isGuarded(site.cluster, operand) || !fits(site.cluster, operand, site.operand))
          return {};
        if (!added)
          added = source;
        sums.push_back(sum);
      }
    site.values = sums;
  }
  if (added)
    sites = std::move(next);
  return added;
}

Value addBias(SmallVector<Site> &sites, int64_t columns, bool acrossGathers) {
  return addStep(sites, acrossGathers, [&](ClusterOp cluster, unsigned operand, unsigned matrix) {
    return getNumElements(cluster.getInputs()[operand].getType()) == columns &&
           readsColumn(cluster, operand, matrix, columns);
  });
}

/// Whether the cluster reads both operands alike, element upon element.
static bool readsAlike(ClusterOp cluster, unsigned operand, unsigned matrix) {
  return getNumElements(cluster.getInputs()[operand].getType()) ==
             getNumElements(cluster.getInputs()[matrix].getType()) &&
         cluster.getOperandMap(operand) == cluster.getOperandMap(matrix);
}

Value addMatrix(SmallVector<Site> &sites) { return addStep(sites, /*acrossGathers=*/false, readsAlike); }

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// What the arguments of a model are in the body of a cluster.
using Elements = llvm::SmallDenseMap<Value, Value, 2>;

/// Whether `value` is computed from the elements as `model` is from its arguments. An argument that has no element gets
/// the one that is found first.
static bool isSame(Value model, Value value, Elements &elements) {
  if (isa<BlockArgument>(model))
    return model.getType() == value.getType() && elements.try_emplace(model, value).first->second == value;
  Operation *a = model.getDefiningOp(), *b = value.getDefiningOp();
  return b && a->getName() == b->getName() && a->getNumOperands() == b->getNumOperands() &&
         a->getAttrDictionary() == b->getAttrDictionary() && model.getType() == value.getType() &&
         llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                      [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair), elements); });
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
        if (llvm::any_of(site.preActivation, [&](Value element) {
              Elements elements = {{argument, element}};
              return isSame(y, result, elements);
            }))
          site.values.push_back(result);
    found |= !site.values.empty();
  }
  return found;
}

/// The operand of a site that lies as the GEMM and is `at` in its body, or that is added to there.
static DerivativeAt findMatrix(const Site &site, Value at) {
  ClusterOp cluster = site.cluster;
  auto lies = [&](BlockArgument argument) {
    unsigned operand = argument.getArgNumber();
    return operand != site.operand && !isGuarded(cluster, operand) && readsAlike(cluster, operand, site.operand);
  };
  if (auto argument = dyn_cast<BlockArgument>(at))
    return {lies(argument) ? cluster.getInputs()[argument.getArgNumber()] : Value(), false};
  for (BlockArgument argument : cluster.getBodyBlock()->getArguments())
    for (OpOperand &use : argument.getUses())
      if (auto addition = getAddition(use);
          addition && addition->second == at && lies(argument) &&
          readsColumn(cluster, addition->first.getArgNumber(), site.operand,
                      getNumElements(cluster.getInputs()[addition->first.getArgNumber()].getType())))
        return {cluster.getInputs()[argument.getArgNumber()], true};
  return {};
}

/// Whether all that reads `element`, widened or not, are products of which all that is read is one of `ends`.
static bool isReadFor(Value element, ArrayRef<Value> ends) {
  return llvm::all_of(element.getUsers(), [&](Operation *user) {
    Value result = user->getNumResults() == 1 ? user->getResult(0) : Value();
    return result && (llvm::is_contained(ends, result) ||
                      (isa<arith::ExtFOp, arith::MulFOp>(user) && !result.use_empty() && isReadFor(result, ends)));
  });
}

std::optional<DerivativeAt> multiplyByGeluDerivative(SmallVector<Site> &sites) {
  Type type = sites.front().cluster.getBodyBlock()->getArgument(sites.front().operand).getType();
  Block model;
  Location loc = sites.front().cluster.getLoc();
  Value gradient = model.addArgument(type, loc), x = model.addArgument(type, loc);
  ImplicitLocOpBuilder b(loc, type.getContext());
  b.setInsertionPointToStart(&model);
  Type computed = aten::getComputeType(type);
  aten::ScalarBuilder s(b, computed);
  Value y = aten::geluBackward(s, aten::castScalar(b, gradient, computed), aten::castScalar(b, x, computed), "tanh");
  y = aten::castScalar(b, y, type);
  std::optional<DerivativeAt> found;
  SmallVector<Site> next = sites;
  for (Site &site : next) {
    Value element = site.values.front(), at;
    site.values.clear();
    for (Operation &op : *site.cluster.getBodyBlock())
      for (Value result : op.getResults()) {
        Elements elements = {{gradient, element}};
        if (!isSame(y, result, elements) || (at && elements[x] != at))
          continue;
        at = elements[x];
        site.values.push_back(result);
      }
    if (!at || !isReadFor(element, site.values))
      return std::nullopt;
    DerivativeAt derivative = findMatrix(site, at);
    if (!derivative.matrix || (found && (found->matrix != derivative.matrix || found->addsBias != derivative.addsBias)))
      return std::nullopt;
    found = derivative;
  }
  sites = std::move(next);
  return found;
}

} // namespace spmd::epilogue
