//===- DType.cpp ----------------------------------------------------------===//

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/HalfFloat.h"

#include <cstring>
#include <iterator>

using namespace spmd::runtime;

namespace {
struct Entry {
  DType dtype;
  int64_t size;
  bool isFloating;
  const char *name;
  const char *safetensors;
};

// Indexed by the enum.
constexpr Entry kEntries[] = {
#define SPMD_DTYPE(NAME, CONSTANT, NUMBER, BYTES, IS_FLOATING, TEXT, SAFETENSORS)                                      \
  {DType::NAME, BYTES, IS_FLOATING != 0, TEXT, SAFETENSORS},
#include "spmd/Runtime/dtypes.def"
};

constexpr bool areByNumber() {
  int32_t number = 0;
  for (const Entry &entry : kEntries)
    if (static_cast<int32_t>(entry.dtype) != number++)
      return false;
  return true;
}
static_assert(areByNumber(), "dtypes.def is in the order of the numbers");

const Entry &entryOf(DType dtype) { return kEntries[static_cast<int32_t>(dtype)]; }

template <typename T>
double load(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

template <typename T>
void store(void *data, int64_t index, double number) {
  T value = static_cast<T>(number);
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}
} // namespace

std::optional<DType> spmd::runtime::findDType(int32_t number) {
  if (number < 0 || number >= static_cast<int32_t>(std::size(kDTypes)))
    return std::nullopt;
  return kDTypes[number];
}

int64_t spmd::runtime::sizeOf(DType dtype) { return entryOf(dtype).size; }

bool spmd::runtime::isFloating(DType dtype) { return entryOf(dtype).isFloating; }

const char *spmd::runtime::nameOf(DType dtype) { return entryOf(dtype).name; }

const char *spmd::runtime::safetensorsNameOf(DType dtype) { return entryOf(dtype).safetensors; }

std::optional<DType> spmd::runtime::parseDType(std::string_view name) {
  for (const Entry &entry : kEntries)
    if (name == entry.name)
      return entry.dtype;
  return std::nullopt;
}

std::optional<DType> spmd::runtime::parseSafetensorsDType(std::string_view name) {
  for (const Entry &entry : kEntries)
    if (name == entry.safetensors)
      return entry.dtype;
  return std::nullopt;
}

double spmd::runtime::loadAsDouble(const void *data, DType dtype, int64_t index) {
  switch (dtype) {
  case DType::F32:
    return load<float>(data, index);
  case DType::F64:
    return load<double>(data, index);
  case DType::F16:
    return load<Float16>(data, index);
  case DType::BF16:
    return load<BFloat16>(data, index);
  case DType::I64:
    return load<int64_t>(data, index);
  case DType::I32:
    return load<int32_t>(data, index);
  case DType::I16:
    return load<int16_t>(data, index);
  case DType::I8:
    return load<int8_t>(data, index);
  case DType::U8:
  case DType::I1:
    return load<uint8_t>(data, index);
  }
  return 0;
}

void spmd::runtime::storeFromDouble(void *data, DType dtype, int64_t index, double value) {
  switch (dtype) {
  case DType::F32:
    return store<float>(data, index, value);
  case DType::F64:
    return store<double>(data, index, value);
  case DType::F16:
    return store<Float16>(data, index, value);
  case DType::BF16:
    return store<BFloat16>(data, index, value);
  case DType::I64:
    return store<int64_t>(data, index, value);
  case DType::I32:
    return store<int32_t>(data, index, value);
  case DType::I16:
    return store<int16_t>(data, index, value);
  case DType::I8:
    return store<int8_t>(data, index, value);
  case DType::U8:
    return store<uint8_t>(data, index, value);
  case DType::I1:
    return store<uint8_t>(data, index, value != 0);
  }
}

int64_t spmd::runtime::numElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      return -1;
  return count;
}

int64_t spmd::runtime::bytesOf(int64_t elements, DType dtype) {
  int64_t bytes;
  return elements < 0 || __builtin_mul_overflow(elements, sizeOf(dtype), &bytes) ? INT64_MAX : bytes;
}

std::string spmd::runtime::formatShape(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}
