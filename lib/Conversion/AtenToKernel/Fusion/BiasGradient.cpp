//===- BiasGradient.cpp - sums of columns that a GEMM can give ------------===//

#include "BiasGradient.h"
#include "Epilogue.h"

#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace spmd::kernel;

namespace spmd::epilogue {

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// The strides of a map that reaches each of a tensor's `elements` once as the dims that are not `left out` run;
/// nothing for another map.
static std::optional<SmallVector<int64_t>> getDenseStrides(AffineMap map, ArrayRef<int64_t> dims,
                                                           ArrayRef<int64_t> leftOut, int64_t elements) {
  AccessMap access = AccessMap::get(map);
  if (!access.isLinear() || access.constant != 0 || llvm::any_of(access.symbols, [](int64_t s) { return s != 0; }))
    return std::nullopt;
  SmallVector<std::pair<int64_t, int64_t>> steps;
  for (auto [dim, size] : llvm::enumerate(dims)) {
    if (size == 1)
      continue;
    if (!llvm::is_contained(leftOut, static_cast<int64_t>(dim)))
      steps.push_back({access.strides[dim], size});
    else if (access.strides[dim] != 0)
      return std::nullopt;
  }
  llvm::sort(steps);
  int64_t reached = 1;
  for (auto [stride, size] : steps) {
    if (stride != reached)
      return std::nullopt;
    reached *= size;
  }
  return reached == elements ? std::make_optional(access.strides) : std::nullopt;
}

/// Whether the sums over the dims `over` of a matrix of rows of `columns`, at `from`, make a matrix at `to` that has
/// the same sums of columns: each element goes to its own column.
static bool keepsColumns(ClusterOp cluster, AffineMap from, int64_t elements, AffineMap to, int64_t sums,
                         ArrayRef<int64_t> over, int64_t columns) {
  auto read = getDenseStrides(from, cluster.getDims(), {}, elements);
  auto written = getDenseStrides(to, cluster.getDims(), over, sums);
  if (!read || !written)
    return false;
  for (auto [dim, size] : llvm::enumerate(cluster.getDims())) {
    if (size == 1)
      continue;
    int64_t stride = (*read)[dim];
    bool crossesRows = stride % columns == 0, isSummed = llvm::is_contained(over, static_cast<int64_t>(dim));
    if (crossesRows ? !isSummed && (*written)[dim] % columns != 0
                    : isSummed || (*written)[dim] != stride || stride * size > columns)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The chain
//===----------------------------------------------------------------------===//

static bool isAfter(Operation *op, Operation *other) {
  return op->getBlock() == other->getBlock() && other->isBeforeInBlock(op);
}

/// The result of `cluster` that sums columns of `value`, which is its element of a tensor at `map`; null without one.
/// The last sums may be rounded to `narrow` there.
static OpResult findSum(ClusterOp cluster, Value value, AffineMap map, int64_t elements, int64_t columns, Type narrow) {
  Operation *end = cluster.getBodyBlock()->getTerminator();
  SmallVector<Value> terms;
  if (value.getType().isF32())
    terms.push_back(value);
  else
    for (Operation *user : value.getUsers())
      if (auto widened = dyn_cast<arith::ExtFOp>(user); widened && widened.getType().isF32())
        terms.push_back(widened);
  for (auto [index, yielded] : llvm::enumerate(end->getOperands())) {
    Value sum = yielded;
    auto rounded = sum.getDefiningOp<arith::TruncFOp>();
    if (rounded)
      sum = rounded.getIn();
    auto reduce = sum.getDefiningOp<ReduceOp>();
    int64_t sums = getNumElements(cluster.getResult(index).getType());
    if (!reduce || reduce.getKind() != kernel::ReduceKind::Add || !llvm::is_contained(terms, reduce.getValue()) ||
        (rounded && (rounded.getType() != narrow || sums != columns)))
      continue;
    if (keepsColumns(cluster, map, elements, cluster.getResultMap(index), sums, reduce.getOver(), columns))
      return cluster->getResult(index);
  }
  return {};
}

/// Where clusters sum columns of `matrix`, in program order: where it is made, then where it is read.
static SmallVector<OpResult> findSums(Value matrix, int64_t columns, Type narrow) {
  int64_t elements = getNumElements(matrix.getType());
  SmallVector<OpResult> sums;
  auto add = [&](ClusterOp cluster, Value value, AffineMap map) {
    OpResult sum = findSum(cluster, value, map, elements, columns, narrow);
    if (sum && !llvm::is_contained(sums, sum))
      sums.push_back(sum);
  };
  if (auto cluster = matrix.getDefiningOp<ClusterOp>()) {
    unsigned index = cast<OpResult>(matrix).getResultNumber();
    add(cluster, cluster.getBodyBlock()->getTerminator()->getOperand(index), cluster.getResultMap(index));
  }
  for (OpOperand &use : matrix.getUses())
    if (auto cluster = dyn_cast<ClusterOp>(use.getOwner());
        cluster && !llvm::is_contained(cluster.getGuarded(), static_cast<int64_t>(use.getOperandNumber())))
      add(cluster, cluster.getBodyBlock()->getArgument(use.getOperandNumber()),
          cluster.getOperandMap(use.getOperandNumber()));
  llvm::sort(sums, [](OpResult a, OpResult b) {
    return a.getOwner() == b.getOwner() ? a.getResultNumber() < b.getResultNumber()
                                        : a.getOwner()->isBeforeInBlock(b.getOwner());
  });
  return sums;
}

/// Whether the cluster does nothing but round its one operand to `type`, element upon element.
static bool isRounding(ClusterOp cluster, Type type) {
  Block *body = cluster.getBodyBlock();
  if (cluster.getInputs().size() != 1 || cluster.getNumResults() != 1 || !llvm::hasNItems(*body, 2) ||
      cluster.getOperandMap(0) != cluster.getResultMap(0))
    return false;
  auto rounded = dyn_cast<arith::TruncFOp>(body->front());
  return rounded && rounded.getType() == type && body->getTerminator()->getOperand(0) == rounded.getResult();
}

/// Whether a reader comes after the GEMM or, as a cluster that nobody reads before and that only kernels are between,
/// can come right after it: nothing that it reads is released meanwhile.
static bool canComeLater(BiasGradient &gradient, Operation *reader, GemmOp gemm) {
  if (isAfter(reader, gemm) || llvm::is_contained(gradient.waiting, reader))
    return true;
  auto cluster = dyn_cast<ClusterOp>(reader);
  if (!cluster || reader->getBlock() != gemm->getBlock() ||
      !llvm::all_of(reader->getUsers(), [&](Operation *user) { return isAfter(user, gemm); }))
    return false;
  for (Operation *op = reader; op != gemm; op = op->getNextNode())
    if (op->getDialect() != gemm->getDialect())
      return false;
  gradient.waiting.push_back(cluster);
  return true;
}

/// Whether all that reads the chain's last result comes after the GEMM, or can, and would read the same of it. Clusters
/// that only round are gone then, so those that read them count.
static bool canBeRead(BiasGradient &gradient, GemmOp gemm, Type type) {
  OpResult sums = gradient.chain.back();
  auto isLater = [&](Operation *user) { return canComeLater(gradient, user, gemm); };
  if (getElementTypeOrSelf(sums.getType()) == type)
    return llvm::all_of(sums.getUsers(), isLater);
  for (OpOperand &use : sums.getUses()) {
    auto cluster = dyn_cast<ClusterOp>(use.getOwner());
    if (!cluster || llvm::is_contained(cluster.getGuarded(), static_cast<int64_t>(use.getOperandNumber())))
      return false;
    if (isRounding(cluster, type) && (gradient.roundings.empty() || gradient.roundings.front().getResult(0).getType() ==
                                                                        cluster.getResult(0).getType())) {
      gradient.roundings.push_back(cluster);
      if (!llvm::all_of(cluster->getUsers(), isLater))
        return false;
      continue;
    }
    Value element = cluster.getBodyBlock()->getArgument(use.getOperandNumber());
    if (!isLater(cluster) || !llvm::all_of(element.getUsers(), [&](Operation *user) {
          return isa<arith::TruncFOp>(user) && user->getResult(0).getType() == type;
        }))
      return false;
  }
  return true;
}

/// A matrix of a GEMM whose columns it could sum.
struct Summed {
  GemmOperand operand;
  Value value;
  int64_t columns;
};

static SmallVector<Summed, 2> findSummed(GemmOp gemm) {
  SmallVector<Summed, 2> matrices;
  auto add = [&](GemmOperand operand, Value value, bool hasRows, int64_t rows, int64_t columns, int64_t offset,
                 int64_t ld) {
    if (hasRows && offset == 0 && ld == columns && getNumElements(value.getType()) == rows * columns)
      matrices.push_back({operand, value, columns});
  };
  if (gemm.isGeluTanhBackward()) {
    add(GemmOperand::C, gemm.getResult(), true, gemm.getM(), gemm.getN(), 0, gemm.getResultLd());
    return matrices;
  }
  add(GemmOperand::A, gemm.getA(), gemm.getTransA(), gemm.getK(), gemm.getM(), gemm.getAOffset(), gemm.getLda());
  add(GemmOperand::B, gemm.getB(), !gemm.getTransB(), gemm.getK(), gemm.getN(), gemm.getBOffset(), gemm.getLdb());
  return matrices;
}

std::optional<BiasGradient> findBiasGradient(GemmOp gemm) {
  Type type = getElementTypeOrSelf(gemm.getResult().getType());
  bool isPlain = !gemm.getBias() && (!gemm.getActivation() || gemm.isGeluTanhBackward());
  if (type.isF64() || gemm.getBatch() != 1 || !isPlain || gemm.getBiasGradient())
    return std::nullopt;
  for (auto [operand, matrix, columns] : findSummed(gemm)) {
    for (OpResult sum : findSums(matrix, columns, type)) {
      BiasGradient gradient{operand, {sum}, {}, {}};
      // Partial sums have one reader, which sums them.
      while (getNumElements(gradient.chain.back().getType()) != columns && gradient.chain.back().hasOneUse()) {
        SmallVector<OpResult> next = findSums(gradient.chain.back(), columns, type);
        if (next.size() != 1)
          break;
        gradient.chain.push_back(next.front());
      }
      if (getNumElements(gradient.chain.back().getType()) == columns && canBeRead(gradient, gemm, type))
        return gradient;
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Giving it
//===----------------------------------------------------------------------===//

GemmOp giveBiasGradient(GemmOp gemm, const BiasGradient &gradient, int64_t &saved) {
  OpResult sums = gradient.chain.back();
  Type element = getElementTypeOrSelf(gemm.getResult().getType());
  auto shape = cast<RankedTensorType>(
      gradient.roundings.empty() ? sums.getType() : ClusterOp(gradient.roundings.front()).getResult(0).getType());
  OpBuilder builder(gemm);
  auto fused = GemmOp::create(builder, gemm.getLoc(), gemm.getResult().getType(), /*pre_activation=*/Type(),
                              shape.clone(element), gemm.getA(), gemm.getB(), gemm.getResidual(), /*bias=*/Value(),
                              gemm.getSavedPreActivation(), gemm.getM(), gemm.getN(), gemm.getK(), gemm.getBatch(),
                              gemm.getTransA(), gemm.getTransB(), gemm.getAOffset(), gemm.getLda(), gemm.getAStride(),
                              gemm.getBOffset(), gemm.getLdb(), gemm.getBStride(), gemm.getActivationAttr(),
                              GemmOperandAttr::get(gemm.getContext(), gradient.of), gemm.getLdcAttr());
  numberInBlock(fused);
  fused->setDiscardableAttrs(gemm->getDiscardableAttrDictionary());
  gemm.getResult().replaceAllUsesWith(fused.getResult());
  gemm.erase();

  saved = 0;
  for (ClusterOp cluster : gradient.roundings) {
    saved += getTensorBytes(cluster);
    cluster.getResult(0).replaceAllUsesWith(fused.getBiasGradient());
    cluster.erase();
  }
  for (OpOperand &use : llvm::make_early_inc_range(sums.getUses())) {
    if (getElementTypeOrSelf(sums.getType()) != element) { // what reads it rounds it first
      Value argument = cast<ClusterOp>(use.getOwner()).getBodyBlock()->getArgument(use.getOperandNumber());
      argument.setType(element);
      for (Operation *rounding : llvm::make_early_inc_range(argument.getUsers())) {
        rounding->getResult(0).replaceAllUsesWith(argument);
        rounding->erase();
      }
    }
    use.set(fused.getBiasGradient());
  }
  SmallVector<ClusterOp> waiting = gradient.waiting;
  llvm::sort(waiting, [](ClusterOp a, ClusterOp b) { return a->isBeforeInBlock(b); });
  for (ClusterOp cluster : llvm::reverse(waiting)) {
    cluster->moveAfter(fused);
    numberInBlock(cluster);
  }
  for (OpResult link : llvm::reverse(gradient.chain)) {
    auto cluster = cast<ClusterOp>(link.getOwner());
    Remains remains = findRemains(cluster, link.getResultNumber());
    saved += remains.getSavedBytes();
    replaceCluster(remains, /*gemm=*/Value(), Value(), Value());
  }
  return fused;
}

} // namespace spmd::epilogue
