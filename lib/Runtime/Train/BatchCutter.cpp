//===- BatchCutter.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Train/BatchCutter.h"
#include "spmd/Runtime/Train/CheckIndex.h"

#include <algorithm>

using namespace spmd::runtime;

/// Calls visit(global offset, local offset, valid bytes, padding bytes) for
/// every run of rows that lies together in both tensors, until one fails.
template <typename Visit>
static Status forEachRun(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank,
                         const Visit &visit) {
  int64_t size = sizeOf(dtype);
  if (!split.dim)
    return visit(int64_t(0), int64_t(0), numElements(shape) * size, int64_t(0));
  auto dim = static_cast<size_t>(*split.dim);
  int64_t outer = 1, inner = size;
  for (size_t i = 0; i < dim; ++i)
    outer *= shape[i];
  for (size_t i = dim + 1; i < shape.size(); ++i)
    inner *= shape[i];
  int64_t total = shape[dim] / split.pre;
  int64_t first = std::min(total, rank * split.chunk);
  int64_t rows = std::min(split.chunk, total - first);
  Status status;
  for (int64_t i = 0; i < outer * split.pre && status.ok(); ++i)
    status = visit((i * total + first) * inner, i * split.chunk * inner, rows * inner, (split.chunk - rows) * inner);
  return status;
}

Status spmd::runtime::cutRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t position,
                              const void *tensor, RankMemory &memory, int64_t rank, int64_t offset) {
  return forEachRun(split, shape, dtype, position, [&](int64_t from, int64_t to, int64_t bytes, int64_t padding) {
    Status status =
        bytes ? memory.copyIn(rank, offset + to, static_cast<const char *>(tensor) + from, bytes) : Status::success();
    return status.ok() && padding ? memory.fill(rank, offset + to + bytes, 0, padding) : status;
  });
}

Status spmd::runtime::joinRows(const DimSplit &split, const std::vector<int64_t> &shape, DType dtype, int64_t rank,
                               int64_t position, const RankAccess &reader, int64_t offset, void *global) {
  return forEachRun(split, shape, dtype, position, [&](int64_t to, int64_t from, int64_t bytes, int64_t) {
    return reader.read(rank, offset + from, static_cast<char *>(global) + to, bytes);
  });
}

Status spmd::runtime::checkRowIds(const BatchInput &input, const std::vector<int64_t> &shape, const void *data) {
  if (!input.indexBound)
    return Status::success();
  int64_t bad = findBadIndex(data, input.dtype, numElements(shape), 0, *input.indexBound, input.ignoreIndex);
  if (bad < 0)
    return Status::success();
  std::vector<int64_t> position(shape.size());
  int64_t rest = bad;
  for (size_t i = shape.size(); i-- > 0;) {
    position[i] = rest % shape[i];
    rest /= shape[i];
  }
  auto value = static_cast<long long>(loadAsDouble(data, input.dtype, bad));
  return Status::badInput("input '" + input.name + "': value " + std::to_string(value) + " at position " +
                          formatShape(position) + " is not a row id in [0, " + std::to_string(*input.indexBound) + ")");
}
