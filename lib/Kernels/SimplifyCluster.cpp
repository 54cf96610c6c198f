//===- SimplifyCluster.cpp - fewer and longer dims ------------------------===//

#include "SimplifyCluster.h"
#include "dialects/Kernel/AccessMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

/// An iteration space on its way to fewer dims.
struct Space {
  explicit Space(ClusterOp op)
      : op(op), dims(op.getDims()), parallel(op.getParallel()),
        original(llvm::to_vector(llvm::seq<int64_t>(0, dims.size()))) {
    for (unsigned i = 0; i < op.getInputs().size(); ++i)
      maps.push_back(op.getOperandMap(i));
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      maps.push_back(op.getResultMap(i));
  }

  /// Takes dim `d` out, which is 0 everywhere from now on.
  void remove(unsigned d) {
    MLIRContext *context = op.getContext();
    for (AffineMap &map : maps) {
      SmallVector<AffineExpr> exprs;
      for (unsigned i = 0; i < dims.size(); ++i)
        exprs.push_back(i == d ? getAffineConstantExpr(0, context) : getAffineDimExpr(i - (i > d), context));
      map =
          AffineMap::get(dims.size() - 1, map.getNumSymbols(),
                         simplifyAffineExpr(map.getResult(0).replaceDims(exprs), dims.size() - 1, map.getNumSymbols()));
    }
    dims.erase(dims.begin() + d);
    original.erase(original.begin() + d);
    if (d < parallel)
      --parallel;
  }

  /// Whether (d, d + 1) can be walked as one dim.
  bool canMerge(unsigned d) {
    if ((d < parallel) != (d + 1 < parallel))
      return false;
    for (AffineMap map : maps) {
      AccessMap access = AccessMap::get(map);
      auto outer = access.getStride(d), inner = access.getStride(d + 1);
      if (!outer || !inner || *outer != *inner * dims[d + 1])
        return false;
    }
    for (Operation &inner : *op.getBodyBlock()) {
      if (auto index = dyn_cast<IndexOp>(inner))
        if (llvm::is_contained({original[d], original[d + 1]}, static_cast<int64_t>(index.getDim())))
          return false;
      if (auto reduce = dyn_cast<ReduceOp>(inner))
        if (llvm::is_contained(reduce.getOver(), original[d]) != llvm::is_contained(reduce.getOver(), original[d + 1]))
          return false;
    }
    return true;
  }

  ClusterOp op;
  SmallVector<int64_t> dims;
  unsigned parallel;
  SmallVector<AffineMap> maps;
  /// Number in `op` of each dim that is left.
  SmallVector<int64_t> original;
};

} // namespace

OwningOpRef<ClusterOp> simplifyCluster(ClusterOp op) {
  Space space(op);
  for (unsigned d = space.dims.size(); d-- > 0;)
    if (space.dims[d] == 1)
      space.remove(d);
  for (unsigned d = space.dims.size(); d-- > 1;)
    if (space.canMerge(d - 1)) {
      space.dims[d] *= space.dims[d - 1];
      space.remove(d - 1);
    }

  OpBuilder b(op.getContext());
  unsigned numInputs = op.getInputs().size();
  ArrayRef<AffineMap> maps = space.maps;
  auto simple = ClusterOp::create(b, op.getLoc(), op.getResultTypes(), op.getInputs(), space.dims, space.parallel,
                                  maps.take_front(numInputs), maps.drop_front(numInputs), op.getGuarded());
  simple.setSymbolAttr(op.getSymbolAttr());
  IRMapping mapping;
  mapping.map(op.getBodyBlock()->getArguments(), simple.getBodyBlock()->getArguments());
  b.setInsertionPointToEnd(simple.getBodyBlock());
  auto renumber = [&](int64_t d) -> int64_t {
    auto it = llvm::find(space.original, d);
    return it == space.original.end() ? -1 : it - space.original.begin();
  };
  for (Operation &inner : *op.getBodyBlock()) {
    if (auto index = dyn_cast<IndexOp>(inner)) {
      int64_t d = renumber(index.getDim());
      mapping.map(index.getResult(), d < 0 ? Value(arith::ConstantIndexOp::create(b, inner.getLoc(), 0))
                                           : Value(IndexOp::create(b, inner.getLoc(), d)));
      continue;
    }
    if (auto reduce = dyn_cast<ReduceOp>(inner)) {
      SmallVector<int64_t> over;
      for (int64_t d : reduce.getOver())
        if (int64_t kept = renumber(d); kept >= 0)
          over.push_back(kept);
      Value value = mapping.lookup(reduce.getValue());
      mapping.map(reduce.getResult(),
                  over.empty() ? value : Value(ReduceOp::create(b, inner.getLoc(), reduce.getKind(), value, over)));
      continue;
    }
    b.clone(inner, mapping);
  }
  return simple;
}

} // namespace spmd::kernel
