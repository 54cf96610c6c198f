//===- Profile.h - When each command ran --------------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_PROFILE_H
#define SPMD_RUNTIME_TRAIN_PROFILE_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/RanksHere.h"

#include <string>
#include <vector>

namespace spmd::runtime {

/// The spans of all commands of all steps, per rank here and stream. The thread of a
/// stream writes its own list only, and the lists are read between steps.
class Profile {
public:
  /// Nanoseconds of the steady clock.
  struct Span {
    int32_t command = 0;
    int64_t begin = 0, end = 0;
  };

  Profile(const Artifact &artifact, const RanksHere &ranks);

  static int64_t now();

  void record(int64_t rank, int64_t stream, Span span) { tracks[trackOf(rank, stream)].push_back(span); }

  const std::vector<Span> &spans(int64_t rank, int64_t stream) const { return tracks[trackOf(rank, stream)]; }
  /// The span of a command in the latest step that ran it here; zero when none did.
  Span latest(int64_t rank, int32_t command) const;

  /// Time per kind of command, averaged over ranks and steps, as a table. Of
  /// several steps the first is left out: it warms up.
  std::string formatSummary() const;

  /// The events of a trace, for joinTrace: a process per rank, a track per stream.
  std::string formatEvents() const;

private:
  size_t trackOf(int64_t rank, int64_t stream) const {
    return ranks.indexOf(rank) * static_cast<size_t>(streams) + static_cast<size_t>(stream);
  }
  int64_t countSteps() const;

  const Artifact &artifact;
  RanksHere ranks;
  int64_t streams;
  std::vector<std::vector<Span>> tracks;
  std::vector<size_t> commandsOf; ///< number of commands of each stream
};

/// A trace in the Chrome format, which Perfetto reads, of the events of several processes. It begins with the first of
/// them; each process with its own first, unless they have one clock.
std::string joinTrace(const std::vector<std::string> &events, bool haveOneClock);

/// Bytes a command reads and writes when it touches each byte that it needs
/// once: of a kernel in the manifest's table what that says, since a kernel may
/// read a few rows of an operand; of others the operands. And floating-point
/// operations of a matrix product (else 0).
int64_t bytesOf(const Artifact &artifact, const Command &command);
double flopsOf(const Command &command);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_PROFILE_H
