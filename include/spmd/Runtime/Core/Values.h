//===- Values.h - What a step computes, apart from where it lies --*- C++ -*-===//
//
// The manifest's table "values" is the verified program in values: what it is given, every operation with its constants
// and operands, and what each state and output is in the end. It is written from the IR before any value has bytes, so
// that a plan can be held against it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_VALUES_H
#define SPMD_RUNTIME_CORE_VALUES_H

#include "spmd/Runtime/Core/Binding.h"
#include "spmd/Runtime/Core/Operation.h"
#include "spmd/Runtime/Core/Repeats.h"

#include <optional>

namespace spmd::runtime {

/// One line of the table. Values are numbered in the order in which lines define them.
struct ValueEntry {
  enum class Kind {
    Source,  ///< defines what `binding` is when the step begins
    Compute, ///< defines the results of `operation` on the values `of`
    Part,    ///< defines bytes [at, at + bytes) of a value
    Join,    ///< defines a unit's flat buffer: the values `of` at `at`, with zeros between them
    Target,  ///< defines nothing: a value is what `binding` is when the step ends
  };
  Kind kind = Kind::Source;
  Binding binding;
  Operation operation;
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

/// A table as files have it. Where an iteration of a loop stands for those behind it, all lines of `repeats` compute;
/// its numbers of lines are positions, and what is fed are values.
struct ValueTable {
  std::vector<ValueEntry> entries;
  std::optional<Repeats> repeats;
};

/// The lines with all iterations put in. Values that are defined behind the loop get higher numbers.
Expected<std::vector<ValueEntry>> unroll(const ValueTable &table);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_VALUES_H
