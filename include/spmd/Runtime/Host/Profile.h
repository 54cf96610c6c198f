//===- Profile.h - When each command ran --------------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_PROFILE_H
#define SPMD_RUNTIME_HOST_PROFILE_H

#include "spmd/Runtime/Core/Artifact.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// The spans of all commands of all steps, per rank and stream. The thread of a
/// stream writes its own list only, and the lists are read between steps.
class Profile {
public:
  /// Nanoseconds of the steady clock.
  struct Span {
    int32_t command = 0;
    int64_t begin = 0, end = 0;
  };

  explicit Profile(const Artifact &artifact);

  static int64_t now();

  void record(int64_t rank, int64_t stream, Span span) { track(rank, stream).push_back(span); }

  const std::vector<Span> &spans(int64_t rank, int64_t stream) const {
    return tracks[static_cast<size_t>(rank * streams + stream)];
  }
  /// The span of a command in the latest step that ran it; zero when none did.
  Span latest(int64_t rank, int32_t command) const;

  /// Time per kind of command, averaged over ranks and steps, as a table. Of
  /// several steps the first is left out: it warms up.
  std::string formatSummary() const;

  /// A trace in the Chrome format, which Perfetto reads: a process per rank, a
  /// track per stream.
  std::string formatTrace() const;

private:
  std::vector<Span> &track(int64_t rank, int64_t stream) {
    return tracks[static_cast<size_t>(rank * streams + stream)];
  }
  int64_t countSteps() const;

  const Artifact &artifact;
  int64_t streams;
  std::vector<std::vector<Span>> tracks;
  std::vector<size_t> commandsOf; ///< number of commands of each stream
};

/// Bytes a command reads and writes when it touches each byte that it needs
/// once: of a kernel in the manifest's table what that says, since a kernel may
/// read a few rows of an operand; of others the operands. And floating-point
/// operations of a matrix product (else 0).
int64_t bytesOf(const Artifact &artifact, const Command &command);
double flopsOf(const Command &command);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_PROFILE_H
