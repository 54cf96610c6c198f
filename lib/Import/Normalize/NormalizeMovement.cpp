//===- NormalizeMovement.cpp - Repetitions, rotations, windows ------------===//
//
// All of them are slices, permutations and concatenations, or masks by position.
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "Normalize.h"
#include "RowAccess.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace spmd;

/// Arguments `dims` counted from the front; failure if one does not exist.
static FailureOr<Ints> readDims(Emitter &emitter, Call &call, StringRef name, int64_t rank) {
  Ints dims = getIntegers(call, name);
  for (int64_t &dim : dims) {
    dim = wrapDim(dim, rank);
    if (dim < 0 || dim >= rank)
      return refuseDim(emitter, call, dim, rank);
  }
  return dims;
}

//===----------------------------------------------------------------------===//
// Repetition, rotation
//===----------------------------------------------------------------------===//

static LogicalResult emitRepeat(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  Ints repeats = getIntegers(call, "repeats"), shape(typeOf(self).getShape()), viewed, expanded;
  if (repeats.size() < shape.size())
    return emitter.error("'repeat' has fewer numbers than dimensions");
  shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
  for (auto [count, size] : llvm::zip_equal(repeats, shape)) {
    viewed.append({1, size});
    expanded.append({count, size});
  }
  results.push_back(
      emitter.view(emitter.expand(emitter.view(self, viewed), expanded), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitRoll(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  RankedTensorType type = typeOf(self);
  Ints shifts = getIntegers(call, "shifts");
  FailureOr<Ints> dims = readDims(emitter, call, "dims", type.getRank());
  if (failed(dims))
    return failure();
  Value value = self;
  if (dims->empty()) { // in flat order
    value = emitter.view(value, {type.getNumElements()});
    dims->push_back(0);
  }
  if (shifts.size() != dims->size())
    return emitter.error("'roll' has ") << shifts.size() << " shifts for " << dims->size() << " dimensions";
  for (auto [shift, dim] : llvm::zip_equal(shifts, *dims)) {
    int64_t size = typeOf(value).getDimSize(dim);
    if (size == 0)
      continue;
    int64_t by = (shift % size + size) % size;
    if (by != 0)
      value =
          emitCat(emitter,
                  {emitSlice(emitter, value, dim, size - by, size), emitSlice(emitter, value, dim, 0, size - by)}, dim);
  }
  results.push_back(emitter.view(value, type.getShape()));
  return success();
}

static LogicalResult emitFlip(Emitter &emitter, Call &call, Results &results) {
  FailureOr<Ints> dims = readDims(emitter, call, "dims", typeOf(call.value("self")).getRank());
  if (failed(dims))
    return failure();
  results.push_back(emitFlipOf(emitter, call.value("self"), *dims));
  return success();
}

static LogicalResult emitRot90(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  int64_t rank = typeOf(self).getRank();
  FailureOr<Ints> dims = readDims(emitter, call, "dims", rank);
  if (failed(dims) || dims->size() != 2)
    return failure(failed(dims) || failed(refuseDim(emitter, call, -1, rank)));
  int64_t k = (call.integer("k", 1) % 4 + 4) % 4;
  if (k == 2)
    self = emitFlipOf(emitter, self, *dims);
  if (k == 1 || k == 3) {
    Ints order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(order[(*dims)[0]], order[(*dims)[1]]);
    self = emitter.permute(emitFlipOf(emitter, self, {(*dims)[k == 1 ? 1 : 0]}), order);
  }
  results.push_back(self);
  return success();
}

/// [C r r, H, W] and [C, H r, W r], whatever is in front.
static LogicalResult emitPixelShuffle(Emitter &emitter, Call &call, Results &results) {
  bool inverse = call.op == "pixel_unshuffle";
  Value self = call.value("self");
  ArrayRef<int64_t> small = inverse ? call.resultTypes[0].getShape() : typeOf(self).getShape();
  int64_t r = call.integer(inverse ? "downscale_factor" : "upscale_factor", 1), rank = small.size();
  if (rank < 3 || r < 1)
    return refuseDim(emitter, call, -3, rank);
  Ints shuffled(small.drop_back(3));
  int64_t channels = small[rank - 3] / (r * r), height = small[rank - 2], width = small[rank - 1];
  Ints order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  if (inverse) {
    shuffled.append({channels, height, r, width, r});
    order.append({rank - 1, rank + 1, rank - 2, rank}); // r, r, H, W
  } else {
    shuffled.append({channels, r, r, height, width});
    order.append({rank, rank - 2, rank + 1, rank - 1}); // H, r, W, r
  }
  results.push_back(
      emitter.view(emitter.permute(emitter.view(self, shuffled), order), call.resultTypes[0].getShape()));
  return success();
}

static LogicalResult emitChannelShuffle(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  Ints shape(typeOf(self).getShape());
  int64_t groups = call.integer("groups", 1);
  if (shape.size() < 2 || groups < 1)
    return refuseDim(emitter, call, 1, shape.size());
  shape.insert(shape.begin() + 1, groups);
  shape[2] /= groups;
  Ints order = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  std::swap(order[1], order[2]);
  results.push_back(emitter.view(emitter.permute(emitter.view(self, shape), order), typeOf(self).getShape()));
  return success();
}

//===----------------------------------------------------------------------===//
// Masks by position
//===----------------------------------------------------------------------===//

static LogicalResult emitTriangle(Emitter &emitter, Call &call, Results &results) {
  Value self = call.value("self");
  RankedTensorType type = typeOf(self);
  int64_t rank = type.getRank();
  if (rank < 2)
    return refuseDim(emitter, call, 1, rank);
  Value distance = emitDistance(emitter, type.getDimSize(rank - 2), type.getDimSize(rank - 1));
  Builder &b = emitter.builder;
  Value kept = emitter.createValue(call.op == "tril" ? "le.Scalar" : "ge.Scalar", distance,
                                   emitter.named("other", b.getI64IntegerAttr(call.integer("diagonal", 0))),
                                   typeOf(distance).clone(b.getI1Type()));
  results.push_back(emitter.createValue("where.self", {kept, self, emitZero(emitter, type)}, {}, type));
  return success();
}

static LogicalResult emitEye(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  if (type.getRank() != 2)
    return refuseDim(emitter, call, 1, type.getRank());
  Value distance = emitDistance(emitter, type.getDimSize(0), type.getDimSize(1));
  Builder &b = emitter.builder;
  Value isOne = emitter.createValue("eq.Scalar", distance, emitter.named("other", b.getI64IntegerAttr(0)),
                                    typeOf(distance).clone(b.getI1Type()));
  results.push_back(emitter.cast(isOne, type.getElementType()));
  return success();
}

/// Row and column numbers of the elements of a triangle, row by row.
static LogicalResult emitTriangleIndices(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  int64_t rows = call.integer("row", 0), columns = call.integer("col", 0), offset = call.integer("offset", 0);
  bool lower = call.op == "tril_indices";
  SmallVector<APInt> numbers[2];
  unsigned bits = type.getElementTypeBitWidth();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (lower ? j - i <= offset : j - i >= offset) {
        numbers[0].push_back(APInt(bits, i));
        numbers[1].push_back(APInt(bits, j));
      }
  llvm::append_range(numbers[0], numbers[1]);
  if (static_cast<int64_t>(numbers[0].size()) != type.getNumElements())
    return emitter.error("'") << call.op << "' returns " << numbers[0].size() << " numbers, expected from the capture " << type;
  results.push_back(
      emitter.createValue("constant", {}, emitter.named("value", DenseElementsAttr::get(type, numbers[0])), type));
  return success();
}

/// start + step * i for the first half, end - step * (n - 1 - i) for the second,
/// as PyTorch computes it.
static LogicalResult emitLinspace(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  BoundArg *startArg = call.find("start"), *endArg = call.find("end");
  if (!startArg || !endArg || !startArg->isNumber() || !endArg->isNumber() || !isa<FloatType>(type.getElementType()))
    return emitter.error("'") << call.op << "' is supported for floating-point results between numbers";
  Builder &b = emitter.builder;
  double start = startArg->number(), end = endArg->number();
  int64_t steps = type.getNumElements();
  double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  auto with = [&](StringRef op, Value value, double other) {
    return emitter.createValue(op, value, emitter.named("other", b.getF64FloatAttr(other)), typeOf(value));
  };
  Value position = emitArange(emitter, steps);
  Value first = with("add.Scalar", with("mul.Scalar", emitter.cast(position, type.getElementType()), step), start);
  Value fromEnd = emitter.createValue("rsub.Scalar", position, emitter.named("other", b.getI64IntegerAttr(steps - 1)),
                                      typeOf(position));
  Value second =
      with("rsub.Scalar", with("mul.Scalar", emitter.cast(fromEnd, type.getElementType()), step), end);
  Value isFirst = emitter.createValue("lt.Scalar", position,
                                      emitter.named("other", b.getI64IntegerAttr(std::max<int64_t>(1, steps / 2))),
                                      typeOf(position).clone(b.getI1Type()));
  Value value = emitter.createValue("where.self", {isFirst, first, second}, {}, type);
  if (call.op == "logspace") {
    value = emitter.createValue("pow.Scalar", value,
                                emitter.named("self", b.getF64FloatAttr(call.number("base", 10))),
                                type);
  }
  results.push_back(value);
  return success();
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Window w of dimension `dim` is its rows w * step to w * step + size.
static RowAccess getWindows(Emitter &emitter, ArrayRef<int64_t> shape, int64_t dim, int64_t size, int64_t step) {
  int64_t rank = shape.size(), count = (shape[dim] - size) / step + 1;
  Builder &b = emitter.builder;
  auto i64 = [&](ArrayRef<int64_t> s) { return RankedTensorType::get(s, b.getI64Type()); };
  Value first = emitter.createValue("mul.Scalar", emitArange(emitter, count),
                                    emitter.named("other", b.getI64IntegerAttr(step)), i64({count}));
  RowAccess access;
  access.index = emitter.createValue("add.Tensor", {emitter.view(first, {count, 1}), emitArange(emitter, size)}, {},
                                     i64({count, size}));
  access.tablePermutation = {dim};
  access.rowsPermutation = {dim, rank};
  for (int64_t other = 0; other < rank; ++other)
    if (other != dim) {
      access.tablePermutation.push_back(other);
      access.rowsPermutation.push_back(other);
    }
  for (int64_t other : access.tablePermutation)
    access.tableShape.push_back(shape[other]);
  return access;
}

static LogicalResult emitUnfold(Emitter &emitter, Call &call, Results &results) {
  bool backward = call.op == "unfold_backward";
  Value self = call.value(backward ? "grad_in" : "self");
  Ints shape(backward ? call.resultTypes[0].getShape() : typeOf(self).getShape());
  int64_t rank = shape.size(), dim = wrapDim(call.integer(backward ? "dim" : "dimension", 0), rank);
  int64_t size = call.integer("size", 1), step = call.integer("step", 1);
  if (rank == 0) { // one window of one element
    results.push_back(emitter.view(self, call.resultTypes[0].getShape()));
    return success();
  }
  if (dim < 0 || dim >= rank || size < 1 || size > shape[dim] || step < 1)
    return emitter.error("'") << call.op << "' of windows of " << size << " rows, " << step << " apart, of dimension "
                              << dim;
  RowAccess access = getWindows(emitter, shape, dim, size, step);
  results.push_back(backward ? access.scatter(emitter, Value(), self, shape, "sum") : access.gather(emitter, self));
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Ops that PyTorch also has in another form with the same value.
static LogicalResult emitOtherName(Emitter &emitter, Call &call, Results &results) {
  auto [packet, overload] = StringRef(call.op).split('.');
  packet.consume_back("_copy") || packet.consume_front("unsafe_");
  call.op = overload.empty() ? packet.str() : (packet + "." + overload).str();
  if (call.op == "narrow") {
    call.op = "slice.Tensor";
    int64_t start = call.integer("start", 0);
    setInteger(call, "end", start + call.integer("length", 0));
  }
  return emitCall(emitter, call, results);
}

void spmd::normalizeMovement(NormalizerTable &table) {
  table["repeat"] = {&emitRepeat, {"self"}};
  table["roll"] = {&emitRoll, {"self"}};
  table["flip"] = {&emitFlip, {"self"}};
  table["rot90"] = {&emitRot90, {"self"}};
  for (StringRef op : {"pixel_shuffle", "pixel_unshuffle"})
    table[op] = {&emitPixelShuffle, {"self"}};
  table["channel_shuffle"] = {&emitChannelShuffle, {"self"}};
  for (StringRef op : {"tril", "triu"})
    table[op] = {&emitTriangle, {"self"}};
  for (StringRef op : {"eye", "eye.m"})
    table[op] = &emitEye;
  for (StringRef op : {"tril_indices", "triu_indices"})
    table[op] = &emitTriangleIndices;
  for (StringRef op : {"linspace", "logspace"})
    table[op] = &emitLinspace;
  table["unfold"] = {&emitUnfold, {"self"}};
  table["unfold_backward"] = {&emitUnfold, {"grad_in"}};
  for (StringRef op : {"alias_copy", "detach_copy", "diagonal_copy", "expand_copy", "permute_copy", "t_copy",
                       "transpose_copy.int", "view_copy", "unfold_copy", "unsqueeze_copy", "squeeze_copy",
                       "squeeze_copy.dim", "squeeze_copy.dims", "slice_copy.Tensor", "select_copy.int",
                       "unbind_copy.int", "split_copy.Tensor", "split_with_sizes_copy", "narrow_copy",
                       "unsafe_split.Tensor", "unsafe_split_with_sizes"})
    table[op] = &emitOtherName;
}
