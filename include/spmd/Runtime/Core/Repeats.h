//===- Repeats.h - A list in which iterations are left out --------*- C++ -*-===//
//
// A loop over microbatches is one iteration in an artifact's files, and the number of those that follow. What runs, and
// what the certificate is of, is the whole list: unroll (Plan.h, Values.h) puts in what is left out.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_REPEATS_H
#define SPMD_RUNTIME_CORE_REPEATS_H

#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <vector>

namespace spmd::runtime {

/// Items [begin, end) of a list are an iteration of a loop, as many before them the iteration before it, and `more`
/// iterations follow, of which each is to the one before what these two are to each other.
struct Repeats {
  int64_t begin = 0, end = 0, more = 0;
  /// What iterations are fed, as numbers of what items refer to: a list for each thing that differs between them, in
  /// the order of iterations.
  std::vector<std::vector<int32_t>> fed;

  int64_t period() const { return end - begin; }
  /// Of item `i` of the whole list that one among those which are not left out that it is a copy of.
  int64_t originOf(int64_t i) const;
};

/// As many items as a list may have when all iterations are put in.
constexpr int64_t kMaxUnrolledItems = int64_t(1) << 20;

/// As many iterations as may be left out, so that a small file is not minutes of work for who reads it: the certificate
/// compares the accesses to what all of them share with each other.
constexpr int64_t kMaxLeftOut = int64_t(1) << 12;

/// As much as all iterations that are put in may hold: references, operands and sizes, and 64 bytes of texts each.
constexpr int64_t kMaxUnrolledParts = int64_t(1) << 23;

/// Whether `repeats` can be of a list of `size` items.
Status checkRepeats(const Repeats &repeats, int64_t size);
/// Whether an iteration that holds `parts` may be put in so often.
Status checkParts(const Repeats &repeats, size_t parts);

/// Of numbers that iterations are fed, the one that another iteration has.
class FedNumbers {
public:
  explicit FedNumbers(const Repeats &repeats);

  /// No number is in two places.
  bool areDistinct() const { return distinct; }
  bool contains(int32_t number) const;
  /// What the iteration `by` later has instead of `number`, which is fed; -1 if it is fed nothing.
  int32_t later(int32_t number, int64_t by) const;

private:
  struct Place {
    int32_t list = -1, at = 0;
  };

  const Repeats &repeats;
  std::vector<Place> places; ///< by number
  bool distinct = true;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_REPEATS_H
