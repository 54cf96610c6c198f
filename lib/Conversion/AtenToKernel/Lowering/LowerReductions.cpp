//===- LowerReductions.cpp - sum, mean, amax, norms, variance -------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenReduce.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace spmd::fusion {

namespace {

int64_t countOf(const Ref &ref, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= ref.shape[dim];
  return count;
}

/// x / count, in the compute type.
Ref divideBy(GraphBuilder &g, Ref ref, double count) {
  Type type = ref.getElementType();
  return g.pointwise({ref}, type, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, getComputeType(type));
    return castScalar(b, s.div(castScalar(b, args[0], s.type), s.constant(count)), type);
  });
}

void lowerNorm(GraphBuilder &g, aten::LinalgVectorNormOp op) {
  Ref ref = g.cast(g.get(op.getSelf()), typeOf(op.getResult()).getElementType());
  Type type = ref.getElementType(), compute = getComputeType(type);
  ref = g.cast(ref, compute);
  double order = getScalarValue(op.getOrd());
  bool isExtreme = std::isinf(order);
  kernel::ReduceKind kind = !isExtreme    ? kernel::ReduceKind::Add
                            : order > 0 ? kernel::ReduceKind::Max
                                        : kernel::ReduceKind::Min;
  Ref term = g.pointwise({ref}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, compute);
    if (order == 2)
      return s.square(args[0]);
    if (order == 0)
      return s.cast(s.compare("ne", args[0], 0));
    Value size = s.abs(args[0]);
    return order == 1 || isExtreme ? size : s.pow(size, s.constant(order));
  });
  Ref total = g.reduce(kind, term, op.getDim(), op.getKeepdim());
  if (order != 0 && order != 1 && !isExtreme)
    total = g.pointwise({total}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
      ScalarBuilder s(b, compute);
      return order == 2 ? s.sqrt(args[0]) : s.pow(args[0], s.constant(1 / order));
    });
  g.set(op.getResult(), g.cast(total, type));
}

LogicalResult lowerVarMean(GraphBuilder &g, aten::VarMeanCorrectionOp op) {
  Type type = typeOf(op.getVar()).getElementType(), compute = getComputeType(type);
  Ref ref = g.cast(g.get(op.getSelf()), compute);
  int64_t count = countOf(ref, op.getDim());
  Ref mean = divideBy(g, g.reduce(kernel::ReduceKind::Add, ref, op.getDim(), /*keepDims=*/true), count);
  Ref squares = g.pointwise({ref, mean}, compute, [=](ImplicitLocOpBuilder &b, ValueRange args) {
    ScalarBuilder s(b, compute);
    return s.square(s.sub(args[0], args[1]));
  });
  double divisor = std::max(0.0, count - getScalarValue(op.getCorrection()));
  Ref var = divideBy(g, g.reduce(kernel::ReduceKind::Add, squares, op.getDim(), /*keepDims=*/true), divisor);
  g.set(op.getVar(), g.reshape(g.cast(var, type), typeOf(op.getVar()).getShape()));
  g.set(op.getMean(), g.reshape(g.cast(mean, type), typeOf(op.getMean()).getShape()));
  return success();
}

} // namespace

Lowered lowerReductionOp(GraphBuilder &g, Operation *op) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::SumDimIntListOp sum) -> Lowered {
        Ref ref = g.cast(g.get(sum.getSelf()), typeOf(sum.getResult()).getElementType());
        g.set(sum.getResult(), g.reduce(kernel::ReduceKind::Add, ref, sum.getDim(), sum.getKeepdim()));
        return success();
      })
      .Case([&](aten::MeanDimOp mean) -> Lowered {
        Ref ref = g.cast(g.get(mean.getSelf()), typeOf(mean.getResult()).getElementType());
        Ref sum = g.reduce(kernel::ReduceKind::Add, ref, mean.getDim(), mean.getKeepdim());
        g.set(mean.getResult(), divideBy(g, sum, countOf(ref, mean.getDim())));
        return success();
      })
      .Case([&](aten::AmaxOp amax) -> Lowered {
        g.set(amax.getResult(),
              g.reduce(kernel::ReduceKind::Max, g.get(amax.getSelf()), amax.getDim(), amax.getKeepdim()));
        return success();
      })
      .Case([&](aten::AminOp amin) -> Lowered {
        g.set(amin.getResult(),
              g.reduce(kernel::ReduceKind::Min, g.get(amin.getSelf()), amin.getDim(), amin.getKeepdim()));
        return success();
      })
      .Case([&](aten::LinalgVectorNormOp norm) -> Lowered {
        lowerNorm(g, norm);
        return success();
      })
      .Case([&](aten::VarMeanCorrectionOp varMean) -> Lowered { return lowerVarMean(g, varMean); })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
