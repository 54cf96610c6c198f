//===- StridedRuns.h - Elements at strides ----------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CORE_STRIDEDRUNS_H
#define SPMD_LIB_RUNTIME_CORE_STRIDEDRUNS_H

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace spmd::runtime {

/// Runs of elements that lie in a row, at every combination of multiples of some strides. Offsets, strides and counts
/// are at most 2^50 (JsonValue::asSize).
class StridedRuns {
public:
  /// `dims` are strides, and how many runs lie at each.
  StridedRuns(int64_t offset, const std::vector<std::pair<int64_t, int64_t>> &dims, int64_t columns);

  /// Whether two of its runs may have an element in common: all that lies along some strides is longer than the next
  /// larger one.
  bool mayOverlapItself() const;

  /// Whether both may have an element in common; false is a proof, and what true says where both have the same strides
  /// or only a few runs at others. Neither overlaps itself.
  bool mayOverlap(const StridedRuns &other) const;

private:
  struct Dim {
    __int128 stride, count;
  };
  using Dims = std::vector<Dim>;
  __int128 extent(std::size_t from) const;
  static bool mayOverlap(const StridedRuns &a, std::size_t dimOfA, __int128 aAt, const StridedRuns &b,
                         std::size_t dimOfB, __int128 bAt);

  int64_t offset, columns;
  Dims dims; ///< with more than one, the largest stride first
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CORE_STRIDEDRUNS_H
