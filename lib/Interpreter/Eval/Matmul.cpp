//===- Matmul.cpp - matrix products ---------------------------------------===//

#include "Map.h"
#include "MatmulKernel.h"

using namespace mlir;

namespace spmd::interp {

/// a[.., m, k] times b[.., k, n] over equal leading dims (none or one).
static FailureOr<Tensor> product(OpCall &call, const Tensor &a, const Tensor &b) {
  if (!a.isFloating() || !b.isFloating())
    return call.error() << "products of integers are not supported";
  int64_t rank = a.rank();
  if (rank < 2 || b.rank() != rank || a.dim(rank - 1) != b.dim(rank - 2) || (rank == 3 && a.dim(0) != b.dim(0)))
    return call.error() << "the operands' shapes do not multiply";
  int64_t m = a.dim(rank - 2), k = a.dim(rank - 1), n = b.dim(rank - 1);
  int64_t batch = rank == 3 ? a.dim(0) : 1;
  Shape shape(a.shape());
  shape.back() = n;
  Tensor result(a.dtype(), shape);
  for (int64_t i = 0; i < batch; ++i)
    multiplyAdd(a.reals().data() + i * m * k, b.reals().data() + i * k * n, result.realData() + i * m * n, m, n, k);
  return result;
}

static LogicalResult evaluateProduct(OpCall &call) {
  FailureOr<Tensor> result = product(call, call.tensor("self"), call.tensor("mat2"));
  if (failed(result))
    return failure();
  call.result(std::move(*result));
  return success();
}

/// beta * self + alpha * a b; with beta 0 self is not read, as in PyTorch.
static LogicalResult scaledProduct(OpCall &call, const Tensor &a, const Tensor &b) {
  FailureOr<Tensor> result = product(call, a, b);
  if (failed(result))
    return failure();
  double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  return mapReals(
      call, [=](double p, double s) { return beta == 0 ? alpha * p : beta * s + alpha * p; }, *result,
      call.tensor("self"));
}

/// Whether a row is of one of `count` groups.
static bool isOfGroup(const Tensor &groups, int64_t row, int64_t count) {
  return groups.integers()[row] >= 0 && groups.integers()[row] < count;
}

static LogicalResult evaluateGroupedMm(OpCall &call) {
  const Tensor &self = call.tensor("self"), &mat2 = call.tensor("mat2"), &groups = call.tensor("groups");
  int64_t rows = self.dim(0), k = self.dim(1), n = mat2.dim(2);
  Tensor result(self.dtype(), {rows, n});
  for (int64_t row = 0; row < rows; ++row)
    if (isOfGroup(groups, row, mat2.dim(0)))
      multiplyAdd(self.reals().data() + row * k, mat2.reals().data() + groups.integers()[row] * k * n,
                  result.realData() + row * n, 1, n, k);
  call.result(std::move(result));
  return success();
}

static LogicalResult evaluateGroupedOuter(OpCall &call) {
  const Tensor &self = call.tensor("self"), &other = call.tensor("other"), &groups = call.tensor("groups");
  int64_t rows = self.dim(0), k = self.dim(1), n = other.dim(1), count = call.integer("num_groups");
  Tensor result(self.dtype(), {count, k, n});
  for (int64_t row = 0; row < rows; ++row)
    if (isOfGroup(groups, row, count))
      multiplyAdd(self.reals().data() + row * k, other.reals().data() + row * n,
                  result.realData() + groups.integers()[row] * k * n, k, n, 1);
  call.result(std::move(result));
  return success();
}

void registerMatmul(EvaluatorRegistry &r) {
  r.add("aten.mm", evaluateProduct);
  r.add("aten.bmm", evaluateProduct);
  r.add("aten.grouped_mm", evaluateGroupedMm);
  r.add("aten.grouped_outer", evaluateGroupedOuter);
  r.add("aten.addmm", [](OpCall &c) { return scaledProduct(c, c.tensor("mat1"), c.tensor("mat2")); });
  r.add("aten.baddbmm", [](OpCall &c) { return scaledProduct(c, c.tensor("batch1"), c.tensor("batch2")); });
}

} // namespace spmd::interp
