//===- AtomicFile.h - A file that is written whole or not at all --*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_ATOMICFILE_H
#define SPMD_RUNTIME_CORE_ATOMICFILE_H

#include "spmd/Runtime/Core/Status.h"

#include <cstdio>
#include <string>
#include <string_view>

namespace spmd::runtime {

/// Writes to a temporary beside the target, which commit() renames; so nobody ever sees a partial file, and one that
/// was there stays until a whole one takes its place. Without commit() the temporary is removed.
class AtomicFile {
public:
  /// Creates the temporary. An error says why `target` cannot be written; what is there and no regular file is one.
  static Expected<AtomicFile> create(const std::string &target);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  /// Appends. A failure is kept until commit().
  void write(const void *data, size_t bytes);

  /// Brings everything to the disk, then gives the file its name.
  Status commit();

private:
  AtomicFile(std::string path, std::string temporary, std::FILE *stream)
      : path(std::move(path)), temporary(std::move(temporary)), stream(stream) {}
  void close();

  std::string path, temporary;
  std::FILE *stream; ///< null once closed
  int error = 0;     ///< errno of the first failure
};

/// Writes all of `text` to `path`.
Status writeFile(const std::string &path, std::string_view text);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_ATOMICFILE_H
