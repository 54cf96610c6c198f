//===- NormalizeStrides.cpp - as_strided ----------------------------------===//
//
// [Note: as_strided]
// Values have no memory, so no strides; the capture lets as_strided through where the memory of its operand is known to
// be the operand's elements in order, and counts the offset from the first. Then element (i, j, ...) of the result is
// element offset + i s0 + j s1 + ... of the flat operand. Where a dim's elements lie in rows of a matrix, one in each,
// it is a slice and a view; windows that overlap, and dims that interleave, are read by number.
//
//===----------------------------------------------------------------------===//

#include "Normalize.h"
#include "RowAccess.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <tuple>

using namespace mlir;
using namespace spmd;

namespace {

/// A dim of the result that moves in memory.
struct StridedDim {
  int64_t dim, size, stride;
};

/// The elements of a flat tensor that a call names.
struct Strides {
  int64_t elements, offset;
  /// Longest strides first.
  SmallVector<StridedDim> dims;
  /// The result's shape; `still`: with 1 for the dims along which nothing moves.
  Ints shape, still;
};

/// Slices of a flat tensor, one inside the other, with a view that makes rows of each but the last.
class NestedSlices {
public:
  NestedSlices(Emitter &emitter, const Strides &strides) : emitter(emitter), strides(strides) {}

  /// [size of each dim], or null where the elements are no slices.
  Value read(Value flat);
  /// The flat tensor that was read with `value`, of the same shape, in the place of what was read.
  Value write(Value value);

private:
  struct Level {
    Value whole;
    int64_t start, end, step;
    Ints sliced;
  };
  Value slice(Value whole, int64_t start, int64_t end, int64_t step);

  Emitter &emitter;
  const Strides &strides;
  SmallVector<Level> levels;
};

} // namespace

Value NestedSlices::slice(Value whole, int64_t start, int64_t end, int64_t step) {
  int64_t dim = typeOf(whole).getRank() - 1;
  Value value = emitSlice(emitter, whole, dim, start, end, step);
  levels.push_back({whole, start, end, step, Ints(typeOf(value).getShape())});
  return value;
}

Value NestedSlices::read(Value flat) {
  int64_t offset = strides.offset, span = 1;
  if (strides.dims.empty())
    return emitter.view(slice(flat, offset, offset + 1, 1), {});
  for (const StridedDim &dim : strides.dims)
    span += (dim.size - 1) * dim.stride;
  Value value = flat;
  for (const StridedDim &dim : ArrayRef(strides.dims).drop_back()) {
    // `size` rows of `stride` elements, each with all of what is inside.
    Ints shape(typeOf(value).getShape());
    int64_t rows = dim.size * dim.stride, first = std::min(offset, shape.back() - rows);
    span -= (dim.size - 1) * dim.stride;
    if (first < std::max<int64_t>(0, offset + span - dim.stride))
      return {};
    value = slice(value, first, first + rows, 1);
    offset -= first;
    shape.back() = dim.size;
    shape.push_back(dim.stride);
    value = emitter.view(value, shape);
  }
  const StridedDim &last = strides.dims.back();
  return slice(value, offset, offset + (last.size - 1) * last.stride + 1, last.stride);
}

Value NestedSlices::write(Value value) {
  for (const Level &level : llvm::reverse(levels))
    value = emitReplace(emitter, level.whole, emitter.view(value, level.sliced),
                        typeOf(level.whole).getRank() - 1, level.start, level.end, level.step);
  return value;
}

/// The elements by their number: [size of each dim].
static Value emitElements(Emitter &emitter, Value flat, const Strides &strides) {
  Builder &b = emitter.builder;
  auto i64 = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, b.getI64Type()); };
  Value numbers = emitter.full(i64({}), b.getI64IntegerAttr(strides.offset));
  Ints shape;
  for (const StridedDim &dim : strides.dims) {
    Value steps = emitter.createValue("mul.Scalar", emitArange(emitter, dim.size),
                                      emitter.named("other", b.getI64IntegerAttr(dim.stride)), i64({dim.size}));
    Ints column(shape);
    column.push_back(1);
    shape.push_back(dim.size);
    numbers = emitter.createValue("add.Tensor", {emitter.view(numbers, column), steps}, {}, i64(shape));
  }
  RowAccess access;
  access.tablePermutation = {0};
  access.tableShape = {strides.elements};
  access.index = numbers;
  access.rowsPermutation = Ints(shape.size());
  std::iota(access.rowsPermutation.begin(), access.rowsPermutation.end(), 0);
  return access.gather(emitter, flat);
}

static FailureOr<Strides> readStrides(Emitter &emitter, Call &call, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> size = getIntegers(call, "size"), stride = getIntegers(call, "stride");
  int64_t offset = call.integer("storage_offset", 0);
  uint64_t last = offset;
  Strides strides{typeOf(call.value("self")).getNumElements(), offset, {}, Ints(size), Ints(size.size(), 1)};
  auto refuse = [&]() {
    return emitter.error("'") << call.op << "' of size [" << size << "] and stride [" << stride << "] ";
  };
  if (size.size() != stride.size() || ArrayRef<int64_t>(size) != shape)
    return refuse() << "gives a tensor of shape [" << shape << "]";
  for (auto [dim, n, step] : llvm::enumerate(size, stride)) {
    if (offset < 0 || step < 0)
      return refuse() << "has a negative stride or offset";
    if (n > 0) // a package may name any numbers
      last = llvm::SaturatingMultiplyAdd<uint64_t>(n - 1, step, last);
    if (n > 1 && step != 0) {
      strides.dims.push_back({static_cast<int64_t>(dim), n, step});
      strides.still[dim] = n;
    }
  }
  if (!llvm::is_contained(size, 0) && last >= static_cast<uint64_t>(strides.elements))
    return refuse() << "reads elements " << offset << " to " << last << " of " << strides.elements;
  llvm::sort(strides.dims, [](const StridedDim &a, const StridedDim &b) {
    return std::make_tuple(-a.stride, a.dim) < std::make_tuple(-b.stride, b.dim);
  });
  return strides;
}

/// Where each of `strides.dims` is among those dims in the result's order; the order of the result's among them.
static std::pair<Ints, Ints> getOrders(const Strides &strides) {
  Ints byStride(strides.dims.size()), byDim(strides.dims.size());
  std::iota(byDim.begin(), byDim.end(), 0);
  llvm::sort(byDim, [&](int64_t a, int64_t b) { return strides.dims[a].dim < strides.dims[b].dim; });
  for (auto [to, from] : llvm::enumerate(byDim))
    byStride[from] = to;
  return {byStride, byDim};
}

/// See [Note: as_strided].
static LogicalResult emitAsStrided(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  FailureOr<Strides> strides = readStrides(emitter, call, type.getShape());
  if (failed(strides))
    return failure();
  if (type.getNumElements() == 0) {
    results.push_back(emitNumber(emitter, type, 0));
    return success();
  }
  Value flat = emitter.view(call.value("self"), {strides->elements});
  Value value = NestedSlices(emitter, *strides).read(flat);
  if (!value)
    value = emitElements(emitter, flat, *strides);
  value = emitter.permute(value, getOrders(*strides).second);
  results.push_back(emitter.expand(emitter.view(value, strides->still), type.getShape()));
  return success();
}

/// self with src in the place of what as_strided gives, where that has no element twice.
static LogicalResult emitAsStridedScatter(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self"), src = call.value("src");
  FailureOr<Strides> strides = readStrides(emitter, call, typeOf(src).getShape());
  if (failed(strides))
    return failure();
  if (typeOf(src).getNumElements() == 0) {
    results.push_back(self);
    return success();
  }
  NestedSlices slices(emitter, *strides);
  Value read;
  if (strides->shape == strides->still)
    read = slices.read(emitter.view(self, {strides->elements}));
  if (!read)
    return emitter.error("'") << call.op << "' of size [" << strides->shape << "] and stride ["
                              << getIntegers(call, "stride")
                              << "] may write an element twice; write through slices, select, diagonal or index_put";
  Ints moving;
  for (int64_t dim : getOrders(*strides).second)
    moving.push_back(strides->dims[dim].size);
  Value value = emitter.view(emitter.cast(src, typeOf(self).getElementType()), moving);
  value = slices.write(emitter.permute(value, getOrders(*strides).first));
  results.push_back(emitter.view(value, typeOf(self).getShape()));
  return success();
}

void spmd::normalizeStrides(NormalizerTable &table) {
  for (StringRef op : {"as_strided", "as_strided_copy"})
    table[op] = {&emitAsStrided, {"self"}};
  table["as_strided_scatter"] = {&emitAsStridedScatter, {"self", "src"}};
}
