//===- ArrayFile.h - Arrays in .npy and safetensors files --------*- C++ -*-===//

#ifndef SPMD_RUNTIME_RUN_ARRAYFILE_H
#define SPMD_RUNTIME_RUN_ARRAYFILE_H

#include "spmd/Runtime/Core/MappedFile.h"
#include "spmd/Runtime/Core/Safetensors.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// A dense row-major array in a file, mapped. Its elements may be of a type that no tensor of a step has (uint16).
struct ArrayFile {
  enum class Kind { Float, Signed, Unsigned, Bool };

  /// Opens NAME.npy (numpy's format 1 to 3, C order, little-endian), or NAME.safetensors, which must hold one tensor or
  /// one named `tensor`.
  static Expected<ArrayFile> open(const std::string &path, const std::string &tensor);

  /// Copies `count` elements from element `first` on, converted to `dtype`. An error when a value does not fit.
  Status read(int64_t first, int64_t count, DType dtype, void *to) const;

  /// True when `read` can give `dtype`: the same type, or other integers.
  bool convertsTo(DType dtype) const;

  /// "int64", "float32", as numpy spells it.
  std::string typeName() const;

  std::string path;
  std::vector<int64_t> shape;
  Kind kind = Kind::Float;
  int64_t width = 4; ///< bytes of an element
  bool isBFloat16 = false;
  MappedFile file;
  SafetensorsFile tensors; ///< keeps a mapping of this kind
  const char *data = nullptr;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_ARRAYFILE_H
