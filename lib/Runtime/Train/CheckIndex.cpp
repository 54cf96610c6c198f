//===- CheckIndex.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Train/CheckIndex.h"

#include <cstring>

using namespace spmd::runtime;

namespace {

template <typename T>
int64_t find(const void *data, int64_t count, int64_t low, int64_t high, std::optional<int64_t> ignored) {
  // Callers' tensors, those of a safetensors file among them, may start at any byte.
  auto *bytes = static_cast<const char *>(data);
  for (int64_t i = 0; i < count; ++i) {
    T stored;
    std::memcpy(&stored, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    auto value = static_cast<int64_t>(stored);
    if ((value < low || value >= high) && (!ignored || value != *ignored))
      return i;
  }
  return -1;
}

} // namespace

int64_t spmd::runtime::findBadIndex(const void *data, DType dtype, int64_t count, int64_t low, int64_t high,
                                    std::optional<int64_t> ignored) {
  switch (dtype) {
  case DType::I64:
    return find<int64_t>(data, count, low, high, ignored);
  case DType::I32:
    return find<int32_t>(data, count, low, high, ignored);
  case DType::I16:
    return find<int16_t>(data, count, low, high, ignored);
  case DType::I8:
    return find<int8_t>(data, count, low, high, ignored);
  case DType::U8:
  case DType::I1:
    return find<uint8_t>(data, count, low, high, ignored);
  case DType::F32:
  case DType::F64:
  case DType::F16:
  case DType::BF16:
    return -1;
  }
  return -1;
}

Status spmd::runtime::runCheckIndex(const CheckIndexCommand &check, int32_t id, const std::string &location,
                                    int64_t rank, const void *ids) {
  int64_t bad = findBadIndex(ids, check.dtype, check.count, check.low, check.high, check.ignoreIndex);
  if (bad < 0)
    return Status::success();
  std::string place = " at position " + std::to_string(bad) + " of rank " + std::to_string(rank);
  if (check.dtype == DType::I1)
    return Status::failed(check.use + place, static_cast<int32_t>(rank), id, location);
  int64_t value = check.dtype == DType::I64 ? static_cast<const int64_t *>(ids)[bad]
                                            : static_cast<int64_t>(loadAsDouble(ids, check.dtype, bad));
  std::string text = "'" + check.use + "': row number " + std::to_string(value) + place + " is not in [" +
                     std::to_string(check.low) + ", " + std::to_string(check.high) + ")";
  if (check.ignoreIndex)
    text += " nor the ignored " + std::to_string(*check.ignoreIndex);
  return Status::failed(text, static_cast<int32_t>(rank), id, location);
}
