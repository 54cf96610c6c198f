//===- LowerNormalizations.cpp - softmax, layer norm, rms norm ------------===//
//
// Each is taken apart into row reductions and scalar functions; fusion puts them together again, with their
// neighbours, into one pass over rows that are in the cache.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "../Graph/ScalarBodies.h"
#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenNorm.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace spmd::fusion {

namespace {

/// Scalar functions and row reductions in one float type.
class RowMath {
public:
  RowMath(GraphBuilder &g, Type type, ArrayRef<int64_t> dims) : g(g), type(type), dims(dims) {}

  Ref map(ArrayRef<Ref> inputs, std::function<Value(ScalarBuilder &, ValueRange)> formula) {
    Type type = this->type;
    return g.pointwise(inputs, type, [type, formula](ImplicitLocOpBuilder &b, ValueRange args) {
      ScalarBuilder s(b, type);
      return formula(s, args);
    });
  }
  Ref mul(Ref x, Ref y) {
    return map({x, y}, [](ScalarBuilder &s, ValueRange a) { return s.mul(a[0], a[1]); });
  }
  Ref sub(Ref x, Ref y) {
    return map({x, y}, [](ScalarBuilder &s, ValueRange a) { return s.sub(a[0], a[1]); });
  }
  Ref exp(Ref x) {
    return map({x}, [](ScalarBuilder &s, ValueRange a) { return s.exp(a[0]); });
  }
  Ref sum(Ref x) { return g.reduce(kernel::ReduceKind::Add, x, dims, /*keepDims=*/true); }
  Ref max(Ref x) { return g.reduce(kernel::ReduceKind::Max, x, dims, /*keepDims=*/true); }
  Ref mean(Ref x) {
    double count = 1;
    for (int64_t dim : dims)
      count *= x.shape[dim];
    return map({sum(x)}, [count](ScalarBuilder &s, ValueRange a) { return s.div(a[0], s.constant(count)); });
  }
  /// 1 / sqrt(x + eps)
  Ref inverseRoot(Ref x, double eps) {
    return map({x}, [eps](ScalarBuilder &s, ValueRange a) {
      return s.div(s.constant(1), s.sqrt(s.add(a[0], s.constant(eps))));
    });
  }

private:
  GraphBuilder &g;
  Type type;
  SmallVector<int64_t> dims;
};

int64_t normalizeDim(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

bool isLastDim(int64_t dim, const Ref &ref) {
  int64_t rank = ref.shape.size();
  return normalizeDim(dim, rank) == rank - 1;
}

void lowerSoftmax(GraphBuilder &g, Value self, Value result, int64_t dim, bool isLog) {
  Type resultType = typeOf(result).getElementType(), compute = getComputeType(resultType);
  Ref x = g.cast(g.get(self), compute);
  RowMath m(g, compute, {normalizeDim(dim, x.shape.size())});
  Ref max = m.max(x);
  Ref shifted = m.sub(x, max);
  Ref exp = m.exp(shifted);
  Ref sum = m.sum(exp);
  Ref value = isLog ? m.map({shifted, sum}, [](ScalarBuilder &s, ValueRange a) { return s.sub(a[0], s.log(a[1])); })
                    : m.map({exp, sum}, [](ScalarBuilder &s, ValueRange a) { return s.div(a[0], a[1]); });
  if (isLog && resultType == compute && isLastDim(dim, x))
    g.setLogSoftmax(result, {x, max, exp, sum});
  g.set(result, g.cast(value, resultType));
}

void lowerSoftmaxBackward(GraphBuilder &g, Value gradOutput, Value output, Value result, int64_t dim, bool isLog) {
  Type resultType = typeOf(result).getElementType(), compute = getComputeType(resultType);
  Ref grad = g.cast(g.get(gradOutput), compute), out = g.cast(g.get(output), compute);
  RowMath m(g, compute, {normalizeDim(dim, out.shape.size())});
  Ref value;
  const LogSoftmaxParts *parts = isLog ? g.findLogSoftmax(output) : nullptr;
  const Ref *known = grad.getElementType() == compute && isLastDim(dim, out) ? g.findRowSum(gradOutput) : nullptr;
  if (parts && isLastDim(dim, out)) {
    Ref share = m.map({known ? *known : m.sum(grad), parts->sum},
                      [](ScalarBuilder &s, ValueRange a) { return s.div(a[0], a[1]); });
    value = m.map({grad, parts->exp, share},
                  [](ScalarBuilder &s, ValueRange a) { return s.sub(a[0], s.mul(a[1], a[2])); });
  } else if (isLog) {
    value = m.map({grad, out, m.sum(grad)},
                  [](ScalarBuilder &s, ValueRange a) { return s.sub(a[0], s.mul(s.exp(a[1]), a[2])); });
  } else {
    Ref sum = m.sum(m.mul(grad, out));
    value = m.map({grad, out, sum}, [](ScalarBuilder &s, ValueRange a) { return s.mul(a[1], s.sub(a[0], a[2])); });
  }
  g.set(result, g.cast(value, resultType));
}

/// The innermost dims that `normalized` names.
SmallVector<int64_t> innerDims(int64_t rank, size_t normalized) {
  return llvm::to_vector(llvm::seq<int64_t>(rank - static_cast<int64_t>(normalized), rank));
}

/// A value per row as the result that has ones for the dims of a row.
void setStatistic(GraphBuilder &g, Value result, Ref statistic) {
  RankedTensorType type = typeOf(result);
  g.set(result, g.reshape(g.cast(statistic, type.getElementType()), type.getShape()));
}

void lowerLayerNorm(GraphBuilder &g, aten::NativeLayerNormOp op) {
  Type resultType = typeOf(op.getOut()).getElementType(), compute = getComputeType(resultType);
  Ref x = g.cast(g.get(op.getInput()), compute);
  RowMath m(g, compute, innerDims(x.shape.size(), op.getNormalizedShape().size()));
  Ref mean = m.mean(x);
  Ref centered = m.sub(x, mean);
  double eps = op.getEps().convertToDouble();
  Ref rstd = m.inverseRoot(m.mean(m.mul(centered, centered)), eps);
  Ref out = m.mul(centered, rstd);
  if (op.getWeight())
    out = m.mul(out, g.cast(g.get(op.getWeight()), compute));
  if (op.getBias())
    out = m.map({out, g.cast(g.get(op.getBias()), compute)},
                [](ScalarBuilder &s, ValueRange a) { return s.add(a[0], a[1]); });
  g.set(op.getOut(), g.cast(out, resultType));
  setStatistic(g, op.getMean(), mean);
  setStatistic(g, op.getRstd(), rstd);
}

void lowerLayerNormBackward(GraphBuilder &g, aten::NativeLayerNormBackwardOp op) {
  Ref input = g.get(op.getInput());
  Type compute = getComputeType(input.getElementType());
  int64_t rank = input.shape.size();
  SmallVector<int64_t> inner = innerDims(rank, op.getNormalizedShape().size());
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, rank - inner.size()));
  RowMath m(g, compute, inner);

  SmallVector<int64_t> statisticShape(input.shape);
  for (int64_t dim : inner)
    statisticShape[dim] = 1;
  auto statistic = [&](Value value) { return g.reshape(g.cast(g.get(value), compute), statisticShape); };
  Ref grad = g.cast(g.get(op.getGradOut()), compute), x = g.cast(input, compute);
  Ref rstd = statistic(op.getRstd());
  Ref normalized = m.mul(m.sub(x, statistic(op.getMean())), rstd);

  if (Value result = op.getGradInput()) {
    Ref scaled = op.getWeight() ? m.mul(grad, g.cast(g.get(op.getWeight()), compute)) : grad;
    Ref meanGrad = m.mean(scaled), meanProduct = m.mean(m.mul(scaled, normalized));
    Ref value = m.map({scaled, meanGrad, normalized, meanProduct, rstd}, [](ScalarBuilder &s, ValueRange a) {
      return s.mul(s.sub(s.sub(a[0], a[1]), s.mul(a[2], a[3])), a[4]);
    });
    g.set(result, g.cast(value, typeOf(result).getElementType()));
  }
  auto columnSum = [&](Value result, Ref term) {
    Ref sum = g.reduce(kernel::ReduceKind::Add, term, rows, /*keepDims=*/false);
    g.set(result, g.cast(sum, typeOf(result).getElementType()));
  };
  if (Value result = op.getGradWeight())
    columnSum(result, m.mul(grad, normalized));
  if (Value result = op.getGradBias())
    columnSum(result, grad);
}

void lowerRmsNorm(GraphBuilder &g, aten::RmsNormOp op) {
  Type resultType = typeOf(op.getOut()).getElementType(), compute = getComputeType(resultType);
  Ref x = g.cast(g.get(op.getInput()), compute);
  RowMath m(g, compute, innerDims(x.shape.size(), op.getNormalizedShape().size()));
  double eps = op.getEps().convertToDouble();
  Ref rstd = m.inverseRoot(m.mean(m.mul(x, x)), eps);
  Ref out = m.mul(x, rstd);
  if (op.getWeight())
    out = m.mul(out, g.cast(g.get(op.getWeight()), compute));
  g.set(op.getOut(), g.cast(out, resultType));
  setStatistic(g, op.getRstd(), rstd);
}

void lowerRmsNormBackward(GraphBuilder &g, aten::RmsNormBackwardOp op) {
  Ref input = g.get(op.getInput());
  Type compute = getComputeType(input.getElementType());
  int64_t rank = input.shape.size();
  SmallVector<int64_t> inner = innerDims(rank, op.getNormalizedShape().size());
  RowMath m(g, compute, inner);
  Ref grad = g.cast(g.get(op.getGradOut()), compute), rstd = g.cast(g.get(op.getRstd()), compute);
  Ref normalized = m.mul(g.cast(input, compute), rstd);
  if (Value result = op.getGradInput()) {
    Ref scaled = op.getWeight() ? m.mul(grad, g.cast(g.get(op.getWeight()), compute)) : grad;
    Ref mean = m.mean(m.mul(scaled, normalized));
    Ref value = m.map({scaled, normalized, mean, rstd}, [](ScalarBuilder &s, ValueRange a) {
      return s.mul(s.sub(a[0], s.mul(a[1], a[2])), a[3]);
    });
    g.set(result, g.cast(value, typeOf(result).getElementType()));
  }
  if (Value result = op.getGradWeight()) {
    auto rows = llvm::to_vector(llvm::seq<int64_t>(0, rank - static_cast<int64_t>(inner.size())));
    Ref sum = g.reduce(kernel::ReduceKind::Add, m.mul(grad, normalized), rows, /*keepDims=*/false);
    g.set(result, g.cast(sum, typeOf(result).getElementType()));
  }
}

} // namespace

Lowered lowerNormalizationOp(GraphBuilder &g, Operation *op) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](aten::SoftmaxOp softmax) -> Lowered {
        lowerSoftmax(g, softmax.getSelf(), softmax.getResult(), softmax.getDim(), /*isLog=*/false);
        return success();
      })
      .Case([&](aten::LogSoftmaxOp softmax) -> Lowered {
        lowerSoftmax(g, softmax.getSelf(), softmax.getResult(), softmax.getDim(), /*isLog=*/true);
        return success();
      })
      .Case([&](aten::SoftmaxBackwardDataOp softmax) -> Lowered {
        lowerSoftmaxBackward(g, softmax.getGradOutput(), softmax.getOutput(), softmax.getResult(), softmax.getDim(),
                             /*isLog=*/false);
        return success();
      })
      .Case([&](aten::LogSoftmaxBackwardDataOp softmax) -> Lowered {
        lowerSoftmaxBackward(g, softmax.getGradOutput(), softmax.getOutput(), softmax.getResult(), softmax.getDim(),
                             /*isLog=*/true);
        return success();
      })
      .Case([&](aten::NativeLayerNormOp norm) -> Lowered {
        lowerLayerNorm(g, norm);
        return success();
      })
      .Case([&](aten::NativeLayerNormBackwardOp norm) -> Lowered {
        lowerLayerNormBackward(g, norm);
        return success();
      })
      .Case([&](aten::RmsNormOp norm) -> Lowered {
        lowerRmsNorm(g, norm);
        return success();
      })
      .Case([&](aten::RmsNormBackwardOp norm) -> Lowered {
        lowerRmsNormBackward(g, norm);
        return success();
      })
      .Default([](Operation *) -> Lowered { return std::nullopt; });
}

} // namespace spmd::fusion
