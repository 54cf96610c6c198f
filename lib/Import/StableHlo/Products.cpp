//===- Products.cpp - Products of matrices --------------------------------===//

#include "Lowering.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::stablehlo;

namespace {
/// One side of a product: its dimensions by what they are.
struct Side {
  Ints shape, batch, contracted, kept;

  Ints sizes(ArrayRef<int64_t> dims) const {
    Ints result;
    for (int64_t dim : dims)
      result.push_back(shape[dim]);
    return result;
  }
};
} // namespace

static bool readSide(Side &side, Value value, const Fields &fields, StringRef prefix) {
  side.shape = Ints(cast<RankedTensorType>(value.getType()).getShape());
  side.batch = fields.list((prefix + "_batching_dimensions").str());
  side.contracted = fields.list((prefix + "_contracting_dimensions").str());
  Ints seen;
  for (int64_t dim : join({side.batch, side.contracted})) {
    if (dim < 0 || dim >= static_cast<int64_t>(side.shape.size()) || llvm::is_contained(seen, dim))
      return false;
    seen.push_back(dim);
  }
  for (int64_t dim : llvm::seq<int64_t>(0, side.shape.size()))
    if (!llvm::is_contained(seen, dim))
      side.kept.push_back(dim);
  return true;
}

/// Any product is one of matrices, or of as many as there are batch elements: [batch, rows, k] × [batch, k, columns].
static LogicalResult lowerDotGeneral(Lowering &lowering, Operation *op) {
  if (op->getNumOperands() != 2 || op->getNumResults() != 1)
    return opError(op) << "expected two operands and one result";
  FailureOr<Fields> fields = Fields::read(op, "dot_dimension_numbers", "dot");
  if (failed(fields))
    return failure();
  if (getAttribute(op, "algorithm")) {
    InFlightDiagnostic error = opError(op) << "a product with an algorithm of its own is not supported";
    error.attachNote() << "leave out precision=, or give one of jax.lax.Precision; f32 is always computed as such";
    return error;
  }
  Side lhs, rhs;
  if (!readSide(lhs, op->getOperand(0), *fields, "lhs") || !readSide(rhs, op->getOperand(1), *fields, "rhs") ||
      lhs.sizes(lhs.batch) != rhs.sizes(rhs.batch) || lhs.sizes(lhs.contracted) != rhs.sizes(rhs.contracted))
    return opError(op) << "dot_dimension_numbers do not fit the operands";

  TensorSpec result = *getSpec(op->getResult(0).getType(), op->getLoc());
  int64_t batch = product(lhs.sizes(lhs.batch)), k = product(lhs.sizes(lhs.contracted));
  int64_t rows = product(lhs.sizes(lhs.kept)), columns = product(rhs.sizes(rhs.kept));
  bool isBatched = !lhs.batch.empty();
  Ints left = join({lhs.batch, lhs.kept, lhs.contracted});
  Ints right = join({rhs.batch, rhs.contracted, rhs.kept});
  auto shape = [&](int64_t a, int64_t b) { return isBatched ? Ints{batch, a, b} : Ints{a, b}; };
  // Operands of less precision than the result are exact in its type.
  int64_t a = lowering.cast(lowering.use(op->getOperand(0)), result.dtype);
  int64_t b = lowering.cast(lowering.use(op->getOperand(1)), result.dtype);
  a = lowering.view(lowering.permute(a, left), shape(rows, k));
  b = lowering.view(lowering.permute(b, right), shape(k, columns));
  Ints flat = shape(rows, columns);
  int64_t id = lowering.emit(isBatched ? "aten.bmm.default" : "aten.mm.default",
                             {makeValue("self", a), makeValue("mat2", b)}, {{flat.begin(), flat.end()}, result.dtype});
  lowering.bind(op->getResult(0), lowering.view(id, Ints(result.shape.begin(), result.shape.end())));
  return success();
}

void spmd::stablehlo::addProductHandlers(HandlerTable &table) { table["stablehlo.dot_general"] = &lowerDotGeneral; }
