//===- HappensBefore.h - Order of commands over streams and waits -*- C++ -*-===//
//
// Which command is certain to have completed before which other one starts, however long either takes.
//
// The certificate computes the same relation by code of its own (spmd/Runtime/Core/HappensBefore.h): it checks the plan
// that is placed by this one, and a mistake that both shared would go unseen.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_TRANSFORMS_MEMORY_HAPPENSBEFORE_H
#define SPMD_TRANSFORMS_MEMORY_HAPPENSBEFORE_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace spmd::memory {

/// A command as far as order is concerned. Commands are numbered in program order.
struct StreamCommand {
  unsigned stream = 0;
  /// For a wait: the earlier command, on another stream, that it waits for. -1 for every other command.
  int64_t awaited = -1;
};

/// The happens-before relation of a list of commands: those of one stream run in order, and a wait completes only after
/// the command that it waits for.
class HappensBefore {
public:
  HappensBefore(llvm::ArrayRef<StreamCommand> commands, unsigned numStreams);

  /// True if command `a` has completed, on every execution, before command `b` starts.
  bool precedes(int64_t a, int64_t b) const { return before(b)[commands[a].stream] >= a; }

  /// The commands of a stream, in order.
  llvm::ArrayRef<int64_t> getCommands(unsigned stream) const { return ofStream[stream]; }

private:
  /// One entry per stream: the last command of that stream that has completed when `command` starts, or -1.
  const int64_t *before(int64_t command) const { return &clocks[command * numStreams]; }

  std::vector<StreamCommand> commands;
  unsigned numStreams;
  std::vector<int64_t> clocks;
  std::vector<std::vector<int64_t>> ofStream;
};

/// Where a buffer is used: the first and the last command of each stream that touches it.
class Uses {
public:
  explicit Uses(unsigned numStreams) : first(numStreams, -1), last(numStreams, -1) {}

  /// Records a use by `command`, which runs on `stream`.
  void add(unsigned stream, int64_t command);
  /// The first and the last use in program order; -1 if there is none.
  int64_t firstUse() const;
  int64_t lastUse() const;
  /// True if every use recorded here completes before any use of `other` starts.
  bool precede(const Uses &other, const HappensBefore &order) const;
  /// True if every use recorded here completes before `command` starts.
  bool precede(int64_t command, const HappensBefore &order) const;
  /// The first command of `stream` that uses it; -1 if there is none.
  int64_t firstUse(unsigned stream) const { return first[stream]; }
  /// The first command such that every use recorded here completes before it, or a later one, of `stream` starts.
  int64_t findPast(unsigned stream, const HappensBefore &order) const;

private:
  std::vector<int64_t> first, last;
};

} // namespace spmd::memory

#endif // SPMD_TRANSFORMS_MEMORY_HAPPENSBEFORE_H
