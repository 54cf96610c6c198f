//===- DType.h - Element types -----------------------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_DTYPE_H
#define SPMD_RUNTIME_CORE_DTYPE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

/// The values are part of the C interface (spmd.h).
enum class DType : int32_t {
#define SPMD_DTYPE(NAME, CONSTANT, NUMBER, BYTES, IS_FLOATING, TEXT, SAFETENSORS) NAME = NUMBER,
#include "spmd/Runtime/dtypes.def"
};

/// All of them, by number.
inline constexpr DType kDTypes[] = {
#define SPMD_DTYPE(NAME, CONSTANT, NUMBER, BYTES, IS_FLOATING, TEXT, SAFETENSORS) DType::NAME,
#include "spmd/Runtime/dtypes.def"
};

/// The dtype of this number; nothing when there is none.
std::optional<DType> findDType(int32_t number);

/// Bytes of one element.
int64_t sizeOf(DType dtype);

bool isFloating(DType dtype);

/// The name in manifests and plans: "f32", "i1".
const char *nameOf(DType dtype);

/// The name in safetensors headers: "F32", "BOOL".
const char *safetensorsNameOf(DType dtype);

std::optional<DType> parseDType(std::string_view name);
std::optional<DType> parseSafetensorsDType(std::string_view name);

/// Reads element `index` of `data` as a number; i64 beyond 2^53 is rounded.
double loadAsDouble(const void *data, DType dtype, int64_t index);

/// Writes `value`, rounded to `dtype`, as element `index` of `data`.
void storeFromDouble(void *data, DType dtype, int64_t index, double value);

/// Product of the dims, 1 for a scalar, -1 when it does not fit 64 bits.
int64_t numElements(const std::vector<int64_t> &shape);

/// Bytes of `elements`, a number of numElements; the largest number there is when they do not fit 64 bits, which no file or
/// arena has room for.
int64_t bytesOf(int64_t elements, DType dtype);

/// "[8, 128]".
std::string formatShape(const std::vector<int64_t> &shape);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_DTYPE_H
