//===- Foreach.cpp - elementwise list ops ---------------------------------===//

#include "Lerp.h"
#include "ListArguments.h"
#include "Map.h"
#include "mlir/IR/TypeUtilities.h"
#include <array>
#include <cmath>

using namespace mlir;

namespace spmd::interp {
namespace {

/// One argument of a list op, for all positions.
struct Argument {
  SmallVector<Tensor> entries;     // one for all positions, or one each
  SmallVector<double> perPosition; // when it is a list of numbers

  Tensor at(const ListForm &form, int64_t position) const {
    return perPosition.empty() ? ListForm::entry(entries, position) : form.perPosition(perPosition, position);
  }
};

Argument list(OpCall &c, llvm::StringRef name) { return {SmallVector<Tensor>(c.tensors(name)), {}}; }
Argument scalar(OpCall &c, llvm::StringRef name) { return {{Tensor::scalar(DType::f64, c.number(name))}, {}}; }
Argument scalarList(OpCall &c, llvm::StringRef name) { return {{}, c.numbers(name)}; }
/// A 1-dimensional tensor with one entry per position or segment.
Argument entries(OpCall &c, llvm::StringRef name) {
  Argument argument;
  const Tensor &tensor = c.tensor(name);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    argument.perPosition.push_back(tensor.at(i));
  return argument;
}

/// results[i] = f(arguments[i]...). In chunk form the result is a chunk if any
/// argument is, and its padding is zero.
template <typename F, typename... A>
LogicalResult forEach(OpCall &call, F f, const A &...arguments) {
  FailureOr<ListForm> form = ListForm::of(call);
  if (failed(form))
    return failure();
  for (int64_t i = 0, e = call.op->getNumResults(); i < e; ++i) {
    std::array<Tensor, sizeof...(A)> at = {arguments.at(*form, i)...};
    if (llvm::any_of(at, [&](const Tensor &t) { return form->isChunk(t); }))
      for (Tensor &tensor : at)
        tensor = form->spread(tensor);
    FailureOr<Tensor> result =
        std::apply([&](const auto &...t) { return computeReals(call, call.resultType(i), f, t...); }, at);
    if (failed(result))
      return failure();
    call.result(form->keepPadding(std::move(*result), Tensor()));
  }
  return success();
}

template <typename F>
LogicalResult unary(OpCall &c, F f) {
  return forEach(c, f, list(c, "self"));
}

/// The four overloads of self (op) other, with `alpha` where the schema has it.
template <typename F>
LogicalResult binaryScalar(OpCall &c, F f) {
  return forEach(c, f, list(c, "self"), scalar(c, "scalar"));
}
template <typename F>
LogicalResult binaryScalarList(OpCall &c, F f) {
  return forEach(c, f, list(c, "self"), scalarList(c, "scalars"));
}
template <typename F>
LogicalResult binaryTensors(OpCall &c, F f) {
  double alpha = c.number("alpha", 1);
  return forEach(c, [=](double a, double b) { return f(a, alpha * b); }, list(c, "self"), list(c, "other"));
}

double add(double a, double b) { return a + b; }
double subtract(double a, double b) { return a - b; }
double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }
double addcmul(double s, double a, double b, double v) { return s + v * a * b; }
double addcdiv(double s, double a, double b, double v) { return s + v * a / b; }
double power(double a, double b) { return std::pow(a, b); }
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }

/// Registers `.Scalar`, `.ScalarList`, `.List` and, where the dialect has it,
/// `.Tensor`.
template <double (*f)(double, double)>
void addBinary(EvaluatorRegistry &r, const std::string &name, bool hasTensor) {
  r.add(name + ".Scalar", [](OpCall &c) { return binaryScalar(c, f); });
  r.add(name + ".ScalarList", [](OpCall &c) { return binaryScalarList(c, f); });
  r.add(name + ".List", [](OpCall &c) { return binaryTensors(c, f); });
  if (hasTensor)
    r.add(name + ".Tensor", [](OpCall &c) { return binaryTensors(c, f); });
}

/// Registers addcmul or addcdiv with a scalar, a list, or a tensor of values.
template <double (*f)(double, double, double, double)>
void addAddc(EvaluatorRegistry &r, const std::string &name) {
  r.add(name + ".Scalar", [](OpCall &c) {
    return forEach(c, f, list(c, "self"), list(c, "tensor1"), list(c, "tensor2"), scalar(c, "value"));
  });
  r.add(name + ".ScalarList", [](OpCall &c) {
    return forEach(c, f, list(c, "self"), list(c, "tensor1"), list(c, "tensor2"), scalarList(c, "scalars"));
  });
  r.add(name + ".Tensor", [](OpCall &c) {
    return forEach(c, f, list(c, "self"), list(c, "tensor1"), list(c, "tensor2"), entries(c, "scalars"));
  });
}

/// The op that the attributes name, at every position.
LogicalResult evaluateMap(OpCall &call) {
  FailureOr<ListForm> form = ListForm::of(call);
  if (failed(form))
    return failure();
  std::string name = ("aten." + call.string("op")).str();
  auto options = call.op->getAttrOfType<DictionaryAttr>("options");
  size_t size = call.op->getNumResults();
  for (size_t i = 0; i < size; ++i) {
    SmallVector<Tensor> at;
    SmallVector<Type> elementTypes;
    for (size_t operand = i; operand < call.operands().size(); operand += size) {
      at.push_back(call.operands()[operand]);
      elementTypes.push_back(getElementTypeOrSelf(call.op->getOperand(operand)));
    }
    if (llvm::any_of(at, [&](const Tensor &t) { return form->isChunk(t); }))
      for (Tensor &tensor : at)
        tensor = form->spread(tensor);
    // An op of its own to read types and attributes from.
    Block block;
    for (auto [tensor, type] : llvm::zip_equal(at, elementTypes))
      block.addArgument(RankedTensorType::get(tensor.shape(), type), call.op->getLoc());
    OperationState state(call.op->getLoc(), name, block.getArguments(), call.op->getResult(i).getType(),
                         options ? options.getValue() : ArrayRef<NamedAttribute>());
    Operation *op = Operation::create(state);
    block.push_back(op);
    Evaluator evaluator = findEvaluator(op);
    if (!evaluator)
      return call.error() << "there is no evaluator of '" << name << "'";
    OperandGroups groups = getOperandGroups(op);
    OpCall inner(op, groups, at, call.context);
    if (failed(evaluator(inner)))
      return call.error() << "'" << name << "' failed at position " << i;
    call.result(form->keepPadding(std::move(inner.results.front()), Tensor()));
  }
  return success();
}

/// The norm of elements [begin, end); 0 when there are none.
double normOf(const Tensor &tensor, int64_t begin, int64_t end, double order) {
  long double sum = 0;
  double largest = 0;
  for (int64_t i = begin; i < end; ++i) {
    double value = std::fabs(tensor.at(i));
    largest = larger(largest, value);
    sum += order == 2 ? static_cast<long double>(value) * value : std::pow(value, order);
  }
  if (order == INFINITY)
    return largest;
  return order == 2 ? std::sqrt(sum) : std::pow(static_cast<double>(sum), 1 / order);
}

LogicalResult evaluateNorm(OpCall &call) {
  FailureOr<ListForm> form = ListForm::of(call);
  if (failed(form))
    return failure();
  double order = call.number("ord");
  if (order <= 0)
    return call.error() << "norms of order " << order << " are not supported";
  for (auto [i, tensor] : llvm::enumerate(call.tensors("self"))) {
    if (!form->isChunk(tensor)) {
      call.result(Tensor::scalar(call.resultType(i), normOf(tensor, 0, tensor.numel(), order)));
      continue;
    }
    Tensor table(call.resultType(i), {form->chunk->numSegments});
    for (const SegmentRun &run : form->chunk->runs)
      table.set(run.segment, normOf(tensor, run.begin, run.end, order));
    call.result(std::move(table));
  }
  return success();
}

} // namespace

void registerForeach(EvaluatorRegistry &r) {
  addBinary<add>(r, "aten._foreach_add", true);
  addBinary<subtract>(r, "aten._foreach_sub", false);
  addBinary<multiply>(r, "aten._foreach_mul", true);
  addBinary<divide>(r, "aten._foreach_div", true);
  addAddc<addcmul>(r, "aten._foreach_addcmul");
  addAddc<addcdiv>(r, "aten._foreach_addcdiv");
  r.add("aten._foreach_neg", [](OpCall &c) { return unary(c, [](double x) { return -x; }); });
  r.add("aten._foreach_sqrt", [](OpCall &c) { return unary(c, [](double x) { return std::sqrt(x); }); });
  r.add("aten._foreach_reciprocal", [](OpCall &c) { return unary(c, [](double x) { return 1 / x; }); });
  r.add("aten._foreach_pow.ScalarAndTensor",
        [](OpCall &c) { return forEach(c, power, scalar(c, "self"), list(c, "exponent")); });
  r.add("aten._foreach_pow.Scalar",
        [](OpCall &c) { return forEach(c, power, list(c, "self"), scalar(c, "exponent")); });
  r.add("aten._foreach_pow.ScalarList",
        [](OpCall &c) { return forEach(c, power, list(c, "self"), scalarList(c, "exponent")); });
  r.add("aten._foreach_pow.List", [](OpCall &c) { return forEach(c, power, list(c, "self"), list(c, "exponent")); });
  r.add("aten._foreach_lerp.Scalar",
        [](OpCall &c) { return forEach(c, lerp, list(c, "self"), list(c, "tensors1"), scalar(c, "weight")); });
  r.add("aten._foreach_lerp.ScalarList",
        [](OpCall &c) { return forEach(c, lerp, list(c, "self"), list(c, "tensors1"), scalarList(c, "weight")); });
  r.add("aten._foreach_lerp.List",
        [](OpCall &c) { return forEach(c, lerp, list(c, "self"), list(c, "tensors1"), list(c, "weights")); });
  r.add("aten._foreach_maximum.List", [](OpCall &c) { return binaryTensors(c, larger); });
  r.add("aten._foreach_maximum.Scalar", [](OpCall &c) { return binaryScalar(c, larger); });
  r.add("aten._foreach_minimum.Scalar", [](OpCall &c) { return binaryScalar(c, smaller); });
  r.add("aten._foreach_map", evaluateMap);
  r.add("aten._foreach_norm.Scalar", evaluateNorm);
}

} // namespace spmd::interp
