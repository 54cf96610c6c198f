//===- Sorting.cpp - order along a dimension ------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace spmd::interp {

/// Not-a-number is greatest.
static bool isLess(const Tensor &tensor, int64_t a, int64_t b) {
  if (!tensor.isFloating())
    return tensor.integers()[a] < tensor.integers()[b];
  double x = tensor.reals()[a], y = tensor.reals()[b];
  return x < y || (std::isnan(y) && !std::isnan(x));
}

static LogicalResult evaluateSort(OpCall &call) {
  const Tensor &self = call.tensor("self");
  int64_t dim = call.integer("dim"), size = self.dim(dim);
  bool descending = call.flag("descending");
  int64_t inner = numElements(self.shape().drop_front(dim + 1)), outer = numElements(self.shape().take_front(dim));
  Tensor values(self.dtype(), self.shape()), indices(DType::i64, self.shape());
  std::vector<int64_t> order(size);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      int64_t first = o * size * inner + i;
      std::iota(order.begin(), order.end(), 0);
      // Equal elements stay in order. (std::stable_sort warns of a deprecated function inside it.)
      llvm::sort(order, [&](int64_t a, int64_t b) {
        int64_t x = first + a * inner, y = first + b * inner;
        if (descending ? isLess(self, y, x) : isLess(self, x, y))
          return true;
        return !(descending ? isLess(self, x, y) : isLess(self, y, x)) && a < b;
      });
      for (int64_t k = 0; k < size; ++k) {
        values.copyElement(first + k * inner, self, first + order[k] * inner);
        indices.set(first + k * inner, order[k]);
      }
    }
  call.result(std::move(values));
  call.result(std::move(indices));
  return success();
}

void registerSorting(EvaluatorRegistry &r) { r.add("aten.sort.stable", evaluateSort); }

} // namespace spmd::interp
