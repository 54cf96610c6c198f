//===- Values.h - What a step computes, apart from where it lies --*- C++ -*-===//
//
// The manifest's table "values" is the verified program in values: what it is given, every operation with its constants
// and operands, and what each state and output is in the end. It is written from the IR before any value has bytes, so
// that a plan can be held against it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_VALUES_H
#define SPMD_RUNTIME_CORE_VALUES_H

#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// One line of the table. Values are numbered in the order in which lines define them.
struct ValueEntry {
  enum class Kind {
    Source,  ///< defines what is bound to `what` when the step begins
    Compute, ///< defines the results of operation `what` on the values `of`
    Part,    ///< defines bytes [at, at + bytes) of a value
    Join,    ///< defines a unit's flat buffer: the values `of` at `at`, with zeros between them
    Target,  ///< defines nothing: a value is what is bound to `what` when the step ends
  };
  Kind kind = Kind::Source;
  std::string what;
  std::vector<int32_t> of;
  std::vector<int64_t> at;
  std::vector<int64_t> bytes; ///< of each value that it defines
  std::vector<std::vector<int32_t>> reads; ///< Compute: of each value the positions in `of`; empty: all of all
  std::vector<int32_t> byRank;             ///< Compute: values that are made with the rank's number, by position
  std::vector<std::string> along;          ///< Compute: the axes whose coordinates are read; empty: all
  /// Join, and Part of a unit's flat buffer: the parameters whose segments lie at `at`.
  std::vector<std::string> segments;
  std::string unit;
  std::string pointer; ///< JSON pointer, for errors
};

/// The operation of a command with all its constants, but not where operands lie, in which order it runs and how often
/// and in what pieces (a kernel file says that, KernelTable.h): "kernel k12 rrw". Empty for a command that computes
/// nothing: wait, copy, fill.
std::string operationOf(const Command &command, const std::vector<std::string> &axes = {});

/// The references that are operands of the operation, in order.
std::vector<const Ref *> operandsOf(const Command &command);
/// The references that hold its results, in order.
std::vector<const Ref *> resultsOf(const Command &command);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_VALUES_H
