//===- BatchSizes.cpp - a step captured at two batch sizes ----------------===//

#include "BatchSizes.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Aten/ScalarBuilder.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/Source.h"
#include <cmath>

using namespace mlir;

namespace spmd::partition {

SizeRefusal::SizeRefusal(Operation *op) : diag(op->emitError()) {
  diag << "one program cannot serve several batch sizes: ";
  if (isa<func::FuncOp>(op))
    diag << "the step";
  else
    diag << "'" << op->getName() << "'";
  if (std::string place = describeSource(op->getLoc()); !place.empty())
    diag << " (" << place << ")";
  diag << " ";
}

SizeRefusal::~SizeRefusal() {
  diag << "; compile each size for itself (without dynamic_batch), or pad batches to one size and mask the loss";
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static bool isNear(double a, double b) {
  return a == b || std::abs(a - b) <= 4 * std::numeric_limits<double>::epsilon() * std::max(std::abs(a), std::abs(b));
}

/// A factor that is whole but for rounding is whole.
static double roundFactor(double factor) { return isNear(factor, std::round(factor)) ? std::round(factor) : factor; }

/// n for each row, if value = n / (n - 1) and n is a multiple of the rows.
static std::optional<double> findUnbiasedCount(double value, double rows) {
  if (!(value > 1))
    return std::nullopt;
  double count = std::round(value / (value - 1));
  if (count < 2 || count > 0x1p53 || count / (count - 1) != value || std::fmod(count, rows) != 0)
    return std::nullopt;
  return count / rows;
}

std::optional<RowsNumber> findNumber(double value, double otherValue, int64_t rows, int64_t otherRows) {
  using Kind = RowsNumber::Kind;
  if (!std::isfinite(value) || !std::isfinite(otherValue))
    return std::nullopt;
  auto r = static_cast<double>(rows), o = static_cast<double>(otherRows);
  if (isNear(value / r, otherValue / o))
    return RowsNumber{Kind::multiple, value / r};
  if (isNear(value * r, otherValue * o))
    return RowsNumber{Kind::inverse, roundFactor(value * r)};
  std::optional<double> count = findUnbiasedCount(value, r);
  if (count && count == findUnbiasedCount(otherValue, o))
    return RowsNumber{Kind::unbiased, 0, *count};
  // value (n r - 1) = otherValue (n o - 1)
  double perRow = std::round((value - otherValue) / (value * r - otherValue * o));
  if (perRow >= 1 && perRow < 0x1p50 && perRow * std::min(r, o) > 1 &&
      isNear(value * (perRow * r - 1), otherValue * (perRow * o - 1)))
    return RowsNumber{Kind::inverseLessOne, roundFactor(value * (perRow * r - 1)), perRow};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

SmallVector<int64_t> BatchSizes::getDims(Value value) const {
  SmallVector<int64_t> dims;
  ArrayRef<int64_t> shape = typeOf(value).getShape(), other = typeOf(otherOf.at(value)).getShape();
  for (int64_t dim : llvm::seq<int64_t>(shape.size()))
    if (shape[dim] != other[dim])
      dims.push_back(dim);
  return dims;
}

void BatchSizes::forget(Operation *op) {
  numbers.erase(op);
  for (Value result : op->getResults())
    otherOf.erase(result);
}

/// Values at the same places, of `op` or arguments of the step that it is.
LogicalResult BatchSizes::compareValues(Operation *op, ValueRange values, ValueRange others) {
  if (values.size() != others.size())
    return SizeRefusal(op) << "has " << values.size() << " values at one size and " << others.size() << " at the other";
  for (auto [value, other] : llvm::zip_equal(values, others)) {
    auto type = dyn_cast<RankedTensorType>(value.getType()), otherType = dyn_cast<RankedTensorType>(other.getType());
    bool fits = type && otherType && type.getElementType() == otherType.getElementType() &&
                type.getRank() == otherType.getRank();
    if (fits)
      fits = llvm::all_of(llvm::zip_equal(type.getShape(), otherType.getShape()), [&](auto sizes) {
        auto [size, otherSize] = sizes;
        return size == otherSize || (size % rows == 0 && size / rows * otherRows == otherSize);
      });
    if (!fits)
      return SizeRefusal(op) << "has a value of type " << value.getType() << " with a batch of " << rows
                             << " rows and one of type " << other.getType() << " with " << otherRows
                             << ", which is not so many for each row";
    otherOf[value] = other;
  }
  return success();
}

static bool statesSize(Operation *op, StringAttr name) {
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  return iface && iface.statesSize(name);
}

/// The op computes with a number that may be one that is known when the step runs (DynamicBatch.cpp).
static bool takesNumber(Operation *op, StringAttr name) {
  auto iface = dyn_cast<aten::AtenOpInterface>(op);
  return iface && isa<FloatType>(typeOf(op->getResult(0)).getElementType()) &&
         (name == iface.getFillName() || (name == "other" && !iface.getTensorOverload().empty()));
}

LogicalResult BatchSizes::compareAttribute(Operation *op, Operation *other, NamedAttribute attr, Attribute otherAttr) {
  StringAttr name = attr.getName();
  if (attr.getValue() == otherAttr || (statesSize(op, name) && statesSize(other, name)))
    return success();
  if (takesNumber(op, name) && otherAttr)
    if (std::optional<RowsNumber> number =
            findNumber(aten::getScalarValue(attr.getValue()), aten::getScalarValue(otherAttr), rows, otherRows)) {
      numbers.try_emplace(op, *number);
      return success();
    }
  SizeRefusal refusal(op);
  refusal << "has " << name.getValue() << " = " << attr.getValue() << " with a batch of " << rows << " rows and ";
  if (otherAttr)
    refusal << otherAttr;
  else
    refusal << "none";
  return refusal << " with " << otherRows
                 << ", which is no size, nor a factor that a program can compute from the rows";
}

LogicalResult BatchSizes::compareOps(Operation *op, Operation *other) {
  if (op->getName() != other->getName() || op->getNumRegions() || other->getNumRegions())
    return SizeRefusal(op) << "is computed with a batch of " << rows << " rows, and '" << other->getName()
                           << "' in its place with " << otherRows;
  bool isSame = op->getNumOperands() == other->getNumOperands();
  for (auto [operand, otherOperand] : llvm::zip(op->getOperands(), other->getOperands()))
    isSame &= otherOf.lookup(operand) == otherOperand;
  if (!isSame)
    return SizeRefusal(op) << "has other operands with a batch of " << rows << " rows than with " << otherRows;
  DictionaryAttr attrs = op->getAttrDictionary(), otherAttrs = other->getAttrDictionary();
  if (attrs.size() != otherAttrs.size())
    return SizeRefusal(op) << "has other attributes with a batch of " << rows << " rows than with " << otherRows;
  if (failed(compareValues(op, op->getResults(), other->getResults())))
    return failure();
  for (NamedAttribute attr : attrs)
    if (failed(compareAttribute(op, other, attr, otherAttrs.get(attr.getName()))))
      return failure();
  return success();
}

FailureOr<BatchSizes> BatchSizes::compare(func::FuncOp step, func::FuncOp other, int64_t rows, int64_t otherRows) {
  BatchSizes sizes(rows, otherRows);
  if (step.getArgAttrsAttr() != other.getArgAttrsAttr() || step.getResAttrsAttr() != other.getResAttrsAttr())
    return LogicalResult(SizeRefusal(step) << "has other arguments or results with a batch of " << rows
                                           << " rows than with " << otherRows);
  if (failed(sizes.compareValues(step, step.getArguments(), other.getArguments())))
    return failure();
  Block &body = step.getBody().front(), &otherBody = other.getBody().front();
  auto at = otherBody.begin();
  for (Operation &op : body) {
    if (at == otherBody.end())
      return LogicalResult(SizeRefusal(&op) << "is computed with a batch of " << rows << " rows, and nothing in its "
                                            << "place with " << otherRows);
    if (failed(sizes.compareOps(&op, &*at++)))
      return failure();
  }
  return sizes;
}

} // namespace spmd::partition
