//===- RankMemory.h - The arenas of the ranks of a process --------*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_RANKMEMORY_H
#define SPMD_RUNTIME_TRAIN_RANKMEMORY_H

#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Train/DeviceCopies.h"

namespace spmd::runtime {

/// One arena for each rank here, in the memory of a device. The state comes first in every arena; programs over one
/// state share the memory, and the rest of it belongs to the one that runs.
///
/// Copies and fills come after the steps issued before them and before those issued later; the host's bytes may change
/// when they return. A rank must be here, and bytes must lie in its arena.
class RankMemory {
public:
  explicit RankMemory(const RanksHere &ranks) : here(ranks) {}
  virtual ~RankMemory() = default;

  const RanksHere &ranks() const { return here; }

  /// Of each arena.
  virtual int64_t bytes() const = 0;

  /// Makes the arenas at least `bytes` large, zero where they are new, and keeps the first `stateBytes` of each. They
  /// may move: then generation() is another.
  virtual Status grow(int64_t bytes, int64_t stateBytes) = 0;
  virtual int64_t generation() const = 0;

  virtual Status copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) = 0;
  virtual Status copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const = 0;
  /// Memory of the host for bytes of an arena: what the caller puts there at once, all of it, goes to the arena in one
  /// piece, as copyIn's does. Null: there is none, and copyIn does it as well.
  virtual Expected<char *> stage(int64_t rank, int64_t offset, int64_t bytes) { return static_cast<char *>(nullptr); }
  /// Sets each byte to `value`.
  virtual Status fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) = 0;

  /// Where the arena of a rank is. On the host: then tensors of the caller are there, too.
  virtual Place placeOf(int64_t rank) const { return {}; }
  /// Copies from and to tensors that the caller has at a rank's place; null where that is the host. They are the
  /// memory's, one at a time.
  virtual Expected<DeviceCopies *> copiesOf(int64_t rank) { return static_cast<DeviceCopies *>(nullptr); }

  /// What kernels and communicators are given for a byte; not for the host to look at.
  virtual void *addressOf(int64_t rank, int64_t offset) const = 0;

private:
  RanksHere here;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_RANKMEMORY_H
