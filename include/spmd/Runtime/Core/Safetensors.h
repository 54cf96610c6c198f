//===- Safetensors.h - Reading and writing safetensors files -----*- C++ -*-===//
//
// The file is an 8-byte little-endian header size, a JSON header (name, dtype,
// shape, byte range), and the bytes. Reading maps the file; tensors are views
// of the mapping. Writing goes through AtomicFile.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_SAFETENSORS_H
#define SPMD_RUNTIME_CORE_SAFETENSORS_H

#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/MappedFile.h"
#include "spmd/Runtime/Core/Status.h"

#include <map>
#include <string>
#include <vector>

namespace spmd::runtime {

/// A dense row-major tensor that somebody else owns.
struct TensorView {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr;
  int64_t bytes = 0;
};

class SafetensorsFile {
public:
  /// Maps `path` and checks the header: every byte range lies in the file and
  /// matches its dtype and shape, and every byte of the data is of one tensor.
  static Expected<SafetensorsFile> open(const std::string &path);

  /// The tensor `name`, or null.
  const TensorView *find(const std::string &name) const;

  const std::map<std::string, TensorView> &tensors() const { return entries; }
  const std::map<std::string, std::string> &metadata() const { return notes; }
  const std::string &path() const { return fileName; }

  /// Where the bytes of one of its tensors begin in the file.
  int64_t offsetOf(const TensorView &tensor) const { return static_cast<const char *>(tensor.data) - mapping.data(); }

  /// A hash of names, types, shapes and a sample of the values: tells that two processes were given different files.
  uint64_t fingerprint() const;

private:
  std::string fileName;
  MappedFile mapping;
  std::map<std::string, TensorView> entries;
  std::map<std::string, std::string> notes;
};

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

/// A file that gets the bytes of its tensors one after the other, so that they need not be in memory together.
class SafetensorsWriter {
public:
  /// Begins the file with what `tensors` are, in their order; their data is not looked at. Names must be different.
  static Expected<SafetensorsWriter> create(const std::string &path, const std::vector<NamedTensor> &tensors,
                                            const std::map<std::string, std::string> &metadata);

  /// The next bytes of the tensors. A failure is kept until commit().
  void write(const void *data, int64_t bytes) { file.write(data, static_cast<size_t>(bytes)); }

  /// Brings the file to the disk under its name, once all bytes are written.
  Status commit() { return file.commit(); }

private:
  explicit SafetensorsWriter(AtomicFile file) : file(std::move(file)) {}
  AtomicFile file;
};

/// Writes `tensors` in their order; names must be different.
Status writeSafetensors(const std::string &path, const std::vector<NamedTensor> &tensors,
                        const std::map<std::string, std::string> &metadata);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_SAFETENSORS_H
