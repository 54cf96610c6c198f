//===- MappedFile.h - A file's bytes, mapped for reading ---------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_MAPPEDFILE_H
#define SPMD_RUNTIME_CORE_MAPPEDFILE_H

#include "spmd/Runtime/Core/Status.h"

#include <cstddef>
#include <memory>
#include <string>

namespace spmd::runtime {

/// The bytes of a regular file, read when they are touched. They stay as long as any copy of this.
class MappedFile {
public:
  /// An error says why `path` cannot be read, or that it is no regular file.
  static Expected<MappedFile> open(const std::string &path);

  const char *data() const { return static_cast<const char *>(mapping.get()); }
  size_t size() const { return bytes; }

private:
  std::shared_ptr<void> mapping; ///< null when the file is empty
  size_t bytes = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_MAPPEDFILE_H
