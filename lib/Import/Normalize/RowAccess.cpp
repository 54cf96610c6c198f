//===- RowAccess.cpp - Indexing ops as rows by number ---------------------===//

#include "RowAccess.h"

#include "dialects/Aten/Aten.h"

using namespace mlir;
using namespace spmd;

static Ints invert(ArrayRef<int64_t> permutation) {
  Ints inverse(permutation.size());
  for (auto [to, from] : llvm::enumerate(permutation))
    inverse[from] = to;
  return inverse;
}

static Ints applyTo(ArrayRef<int64_t> permutation, ArrayRef<int64_t> shape) {
  Ints permuted;
  for (int64_t dim : permutation)
    permuted.push_back(shape[dim]);
  return permuted;
}

//===----------------------------------------------------------------------===//
// Facts about values
//===----------------------------------------------------------------------===//

static bool isNumber(Attribute attr, double number) {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attr))
    return static_cast<double>(integer.getValue().getSExtValue()) == number;
  if (auto real = dyn_cast_or_null<FloatAttr>(attr))
    return real.getValueAsDouble() == number;
  return false;
}

bool spmd::isZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto full = dyn_cast<aten::FullOp>(op))
    return isNumber(full.getFillValue(), 0);
  if (isa<aten::ToCopyOp, aten::ExpandOp, aten::ViewOp, aten::PermuteOp, aten::CloneOp>(op))
    return isZero(op->getOperand(0));
  return false;
}

/// The dim of a view's result whose positions are those of `dim` of its operand,
/// when all other dims have size 1.
static std::optional<int64_t> followView(ArrayRef<int64_t> from, int64_t dim, ArrayRef<int64_t> to) {
  for (auto [other, size] : llvm::enumerate(from))
    if (static_cast<int64_t>(other) != dim && size != 1)
      return std::nullopt;
  for (auto [other, size] : llvm::enumerate(to))
    if (size == from[dim])
      return other;
  return std::nullopt;
}

std::optional<int64_t> spmd::getCountingDim(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto arange = dyn_cast<aten::ArangeStartStepOp>(op)) {
    if (isNumber(arange.getStart(), 0) && isNumber(arange.getStep(), 1))
      return 0;
    return std::nullopt;
  }
  if (auto cast = dyn_cast<aten::ToCopyOp>(op)) {
    bool toInteger = isa<IntegerType>(typeOf(value).getElementType()) && !typeOf(value).getElementType().isInteger(1);
    return toInteger ? getCountingDim(cast.getSelf()) : std::nullopt;
  }
  if (auto add = dyn_cast<aten::AddScalarOp>(op)) // position offsets of caches that are empty
    return isNumber(add.getOther(), 0) ? getCountingDim(add.getSelf()) : std::nullopt;
  if (auto view = dyn_cast<aten::ViewOp>(op)) {
    std::optional<int64_t> dim = getCountingDim(view.getSelf());
    return dim ? followView(typeOf(view.getSelf()).getShape(), *dim, typeOf(value).getShape()) : std::nullopt;
  }
  if (auto permute = dyn_cast<aten::PermuteOp>(op)) {
    std::optional<int64_t> dim = getCountingDim(permute.getSelf());
    if (!dim)
      return std::nullopt;
    return llvm::find(permute.getDims(), *dim) - permute.getDims().begin();
  }
  if (auto expand = dyn_cast<aten::ExpandOp>(op)) {
    std::optional<int64_t> dim = getCountingDim(expand.getSelf());
    if (!dim)
      return std::nullopt;
    RankedTensorType from = typeOf(expand.getSelf());
    int64_t result = *dim + typeOf(value).getRank() - from.getRank();
    // One number that is repeated counts nowhere.
    if (from.getDimSize(*dim) != typeOf(value).getDimSize(result))
      return std::nullopt;
    return result;
  }
  return std::nullopt;
}

/// No element is negative, for certain.
static bool isNonNegative(Value value) {
  if (getCountingDim(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<aten::SortStableOp>(op))
    return value == op->getResult(1);
  if (isa<aten::ExpandOp, aten::ViewOp, aten::PermuteOp, aten::SliceTensorOp, aten::SelectIntOp>(op))
    return isNonNegative(op->getOperand(0));
  auto full = dyn_cast<aten::FullOp>(op);
  auto number = full ? dyn_cast<IntegerAttr>(full.getFillValue()) : IntegerAttr();
  return number && number.getInt() >= 0;
}

//===----------------------------------------------------------------------===//
// Row numbers
//===----------------------------------------------------------------------===//

Value spmd::checkIndex(Emitter &emitter, Value index, int64_t low, int64_t high, StringRef use,
                       std::optional<int64_t> ignored) {
  for (Operation *user : index.getUsers()) {
    auto known = dyn_cast<aten::CheckIndexOp>(user);
    if (known && static_cast<int64_t>(known.getLow()) == low && static_cast<int64_t>(known.getHigh()) == high &&
        known.getIgnoreIndex() == ignored)
      return known.getResult();
  }
  Builder &b = emitter.builder;
  SmallVector<NamedAttribute> attrs = {emitter.named("low", b.getI64IntegerAttr(low)),
                                       emitter.named("high", b.getI64IntegerAttr(high)),
                                       emitter.named("use", b.getStringAttr(use))};
  if (ignored)
    attrs.push_back(emitter.named("ignore_index", b.getI64IntegerAttr(*ignored)));
  return emitter.createValue("check_index", index, attrs, typeOf(index));
}

Value spmd::refuseWhere(Emitter &emitter, Value condition, const Twine &what) {
  return checkIndex(emitter, condition, 0, 1, what.str());
}

static Value arithmetic(Emitter &emitter, StringRef op, Value value, int64_t number) {
  return emitter.createValue(op, value, emitter.named("other", emitter.builder.getI64IntegerAttr(number)),
                             typeOf(value));
}

/// Checks `index` and counts negative numbers from the end of `size` rows.
static Value normalizeIndex(Emitter &emitter, Value index, int64_t size, StringRef use) {
  index = emitter.cast(index, emitter.builder.getI64Type());
  if (isNonNegative(index))
    return checkIndex(emitter, index, 0, size, use);
  index = checkIndex(emitter, index, -size, size, use);
  RankedTensorType type = typeOf(index);
  Value negative =
      emitter.createValue("lt.Scalar", index, emitter.named("other", emitter.builder.getI64IntegerAttr(0)),
                          type.clone(emitter.builder.getI1Type()));
  return emitter.createValue("where.self", {negative, arithmetic(emitter, "add.Scalar", index, size), index}, {}, type);
}

/// Checks an index that may not be negative. Casts to i64.
static Value checkRows(Emitter &emitter, Value index, int64_t size, StringRef use) {
  return checkIndex(emitter, emitter.cast(index, emitter.builder.getI64Type()), 0, size, use);
}

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

Value RowAccess::gather(Emitter &emitter, Value self) const {
  Value table = emitter.view(emitter.permute(self, tablePermutation), tableShape);
  Ints shape(typeOf(index).getShape());
  llvm::append_range(shape, ArrayRef<int64_t>(tableShape).drop_front(batchDims + 1));
  Value rows =
      emitter.createValue("gather_rows", {table, index},
                          emitter.named("batch_dims", emitter.builder.getI64IntegerAttr(batchDims)),
                          typeOf(self).clone(shape));
  return emitter.permute(rows, invert(rowsPermutation));
}

Value RowAccess::scatter(Emitter &emitter, Value self, Value src, ArrayRef<int64_t> shape, StringRef reduce) const {
  Builder &b = emitter.builder;
  SmallVector<Value> operands;
  if (self)
    operands.push_back(emitter.view(emitter.permute(self, tablePermutation), tableShape));
  operands.push_back(index);
  operands.push_back(emitter.permute(src, rowsPermutation));
  Value table = emitter.createValue("scatter_rows", operands,
                                    {emitter.named("rows", b.getI64IntegerAttr(getNumRows())),
                                     emitter.named("batch_dims", b.getI64IntegerAttr(batchDims)),
                                     emitter.named("reduce", b.getStringAttr(reduce))},
                                    typeOf(src).clone(tableShape));
  table = emitter.view(table, applyTo(tablePermutation, shape));
  return emitter.permute(table, invert(tablePermutation));
}

Value RowAccess::scatterSum(Emitter &emitter, Value self, Value src) const {
  // What ranks add to zeros adds up to the sum; what they add to self does not.
  Value sum = scatter(emitter, Value(), src, typeOf(self).getShape(), "sum");
  if (isZero(self))
    return sum;
  return emitter.createValue("add.Tensor", {self, sum}, {}, typeOf(self));
}

//===----------------------------------------------------------------------===//
// The forms of access
//===----------------------------------------------------------------------===//

RowAccess spmd::getAccessOfRows(Emitter &emitter, ArrayRef<int64_t> shape, int64_t dim, Value index, StringRef use) {
  RowAccess access;
  access.tablePermutation = {dim};
  for (int64_t other = 0; other < static_cast<int64_t>(shape.size()); ++other)
    if (other != dim)
      access.tablePermutation.push_back(other);
  access.tableShape = applyTo(access.tablePermutation, shape);
  access.rowsPermutation = access.tablePermutation;
  access.index = emitter.view(checkRows(emitter, index, shape[dim], use), {typeOf(index).getNumElements()});
  return access;
}

RowAccess spmd::getAccessAlongDim(Emitter &emitter, ArrayRef<int64_t> shape, int64_t dim, Value index, StringRef use) {
  index = checkRows(emitter, index, shape[dim], use);
  RankedTensorType type = typeOf(index);
  int64_t rank = type.getRank();
  // Where the index is the same along a dimension, that is part of a row.
  SmallVector<bool> isRow(rank, false);
  Value source = index;
  if (auto check = source.getDefiningOp<aten::CheckIndexOp>())
    source = check.getSelf();
  if (auto cast = source.getDefiningOp<aten::ToCopyOp>())
    source = cast.getSelf();
  if (auto expand = source.getDefiningOp<aten::ExpandOp>()) {
    RankedTensorType from = typeOf(expand.getSelf());
    for (int64_t other = 0; other < rank; ++other) {
      int64_t own = other - (rank - from.getRank());
      isRow[other] = other != dim && type.getDimSize(other) > 1 && (own < 0 || from.getDimSize(own) == 1);
    }
    if (llvm::is_contained(isRow, true)) {
      Ints kept, shapeOfKept;
      for (int64_t other = 0; other < rank; ++other) {
        int64_t own = other - (rank - from.getRank());
        if (isRow[other])
          continue;
        kept.push_back(own < 0 ? 1 : from.getDimSize(own));
        shapeOfKept.push_back(type.getDimSize(other));
      }
      index = checkRows(emitter, emitter.expand(emitter.view(expand.getSelf(), kept), shapeOfKept), shape[dim], use);
    }
  }

  RowAccess access;
  Ints indexPermutation;
  int64_t position = 0, own = 0;
  for (int64_t other = 0; other < rank; ++other) {
    if (isRow[other])
      continue;
    if (other == dim) {
      position = own++;
      continue;
    }
    access.tablePermutation.push_back(other);
    indexPermutation.push_back(own++);
  }
  access.batchDims = access.tablePermutation.size();
  access.tablePermutation.push_back(dim);
  indexPermutation.push_back(position);
  for (int64_t other = 0; other < rank; ++other)
    if (isRow[other])
      access.tablePermutation.push_back(other);
  access.tableShape = applyTo(access.tablePermutation, shape);
  access.rowsPermutation = access.tablePermutation;
  access.index = emitter.permute(index, indexPermutation);
  return access;
}

RowAccess spmd::getFlatAccess(Emitter &emitter, Value index, int64_t elements, StringRef use) {
  RowAccess access;
  access.index = normalizeIndex(emitter, index, elements, use);
  access.tablePermutation = {0};
  access.tableShape = {elements};
  access.rowsPermutation = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(index).getRank()));
  return access;
}

FailureOr<IndexAccess> spmd::getIndexAccess(Emitter &emitter, ArrayRef<int64_t> shape, ArrayRef<Value> indices,
                                            StringRef use) {
  IndexAccess access;
  int64_t rank = shape.size();
  if (static_cast<int64_t>(indices.size()) > rank)
    return emitter.error("'") << use << "' has " << indices.size() << " indices for a tensor of rank " << rank;

  // The shape of the index tensors together, and where it goes.
  Ints together;
  SmallVector<bool> isIndexed(rank, false);
  int64_t first = -1, last = -1, numIndexed = 0;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (!index)
      continue;
    if (!typeOf(index).getElementType().isInteger(64) && !typeOf(index).getElementType().isInteger(32))
      return emitter.error("'") << use << "' has an index of type " << index.getType()
                                << "; only integers can be compiled, because the number of rows that a mask selects "
                                   "depends on data";
    isIndexed[dim] = true;
    first = first < 0 ? dim : first;
    last = dim;
    ++numIndexed;
    ArrayRef<int64_t> other = typeOf(index).getShape();
    if (other.size() > together.size())
      together.insert(together.begin(), other.size() - together.size(), 1);
    for (auto [mine, theirs] : llvm::zip(llvm::reverse(together), llvm::reverse(other))) {
      if (mine != theirs && mine != 1 && theirs != 1)
        return emitter.error("'") << use << "' has index tensors that do not broadcast";
      mine = mine == 1 ? theirs : mine;
    }
  }
  if (numIndexed == 0)
    return emitter.error("'") << use << "' has no index";
  int64_t position = last - first + 1 == numIndexed ? first : 0;
  int64_t indexRank = together.size();

  // Dimensions counted through are batch dimensions, each axis once.
  SmallVector<int64_t> dimOfAxis(indexRank, -1);
  SmallVector<int64_t> rowDims;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    if (!index)
      continue;
    std::optional<int64_t> axis = getCountingDim(index);
    if (axis)
      *axis += indexRank - typeOf(index).getRank();
    if (axis && dimOfAxis[*axis] < 0 && together[*axis] == shape[dim] && shape[dim] > 1)
      dimOfAxis[*axis] = dim;
    else
      rowDims.push_back(dim);
  }

  Ints rest;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!isIndexed[dim])
      rest.push_back(dim);
  for (int64_t i = 0; i < position; ++i)
    access.shape.push_back(shape[rest[i]]);
  llvm::append_range(access.shape, together);
  for (size_t i = position; i < rest.size(); ++i)
    access.shape.push_back(shape[rest[i]]);

  RowAccess &rows = access.rows;
  Ints axisOrder;
  for (int64_t axis = 0; axis < indexRank; ++axis)
    if (dimOfAxis[axis] >= 0) {
      axisOrder.push_back(axis);
      rows.tablePermutation.push_back(dimOfAxis[axis]);
      rows.tableShape.push_back(together[axis]);
    }
  rows.batchDims = axisOrder.size();
  for (int64_t axis = 0; axis < indexRank; ++axis)
    if (dimOfAxis[axis] < 0)
      axisOrder.push_back(axis);
  for (int64_t axis : axisOrder)
    rows.rowsPermutation.push_back(position + axis);
  for (int64_t i = 0; i < static_cast<int64_t>(rest.size()); ++i)
    rows.rowsPermutation.push_back(i < position ? i : i + indexRank);

  // The numbers of rows: several dimensions become one.
  Value linear;
  int64_t numRows = 1;
  for (int64_t dim : llvm::reverse(rowDims)) {
    Value index = normalizeIndex(emitter, indices[dim], shape[dim], use);
    if (numRows != 1)
      index = arithmetic(emitter, "mul.Scalar", index, numRows);
    if (linear) {
      Ints sum;
      ArrayRef<int64_t> a = typeOf(linear).getShape(), b = typeOf(index).getShape();
      for (int64_t i = 0, e = std::max(a.size(), b.size()); i < e; ++i) {
        int64_t fromEnd = e - i;
        int64_t x = fromEnd > static_cast<int64_t>(a.size()) ? 1 : a[a.size() - fromEnd];
        int64_t y = fromEnd > static_cast<int64_t>(b.size()) ? 1 : b[b.size() - fromEnd];
        sum.push_back(std::max(x, y));
      }
      index = emitter.createValue("add.Tensor", {linear, index}, {}, typeOf(linear).clone(sum));
    }
    linear = index;
    numRows *= shape[dim];
  }
  llvm::append_range(rows.tablePermutation, rowDims);
  llvm::append_range(rows.tablePermutation, rest);
  access.isView = !linear;
  if (linear) {
    rows.tableShape.push_back(numRows);
    rows.index = emitter.permute(emitter.expand(linear, together), axisOrder);
  } else {
    // Axes that nothing counts through repeat what is there.
    access.viewed = rows.tableShape;
    access.viewed.append(indexRank - rows.batchDims, 1);
    access.expanded = applyTo(axisOrder, together);
    for (int64_t dim : rest) {
      access.viewed.push_back(shape[dim]);
      access.expanded.push_back(shape[dim]);
    }
    access.permutation = invert(rows.rowsPermutation);
  }
  for (int64_t dim : rest)
    rows.tableShape.push_back(shape[dim]);
  return access;
}
