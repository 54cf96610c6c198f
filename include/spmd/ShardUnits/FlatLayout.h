//===- FlatLayout.h - arithmetic of a unit's flat buffer --------*- C++ -*-===//
//
// The one place that knows where a parameter lies in the flat buffer.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_SHARDUNITS_FLATLAYOUT_H
#define SPMD_SHARDUNITS_FLATLAYOUT_H

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

namespace spmd::units {

/// Offsets of segments, and the chunk of a rank, are multiples of this many elements, so that the wire dtype and the
/// master copy share offsets.
constexpr int64_t kSegmentAlignment = 128;

inline int64_t alignTo(int64_t value, int64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

struct FlatLayout {
  /// Positions of the given segments in the order of the buffer.
  std::vector<size_t> order;
  /// By position of the given segments.
  std::vector<int64_t> offsets;
  int64_t padded = 0;
};

/// Lays out segments (in registration order, with their optimizer groups) for `ranks` ranks: sorted by group,
/// registration order within, aligned, padded to ranks × 128.
inline FlatLayout layOut(const std::vector<int64_t> &numels, const std::vector<int64_t> &groups, int64_t ranks) {
  FlatLayout layout;
  layout.order.resize(numels.size());
  std::iota(layout.order.begin(), layout.order.end(), size_t(0));
  std::sort(layout.order.begin(), layout.order.end(),
            [&](size_t a, size_t b) { return std::tie(groups[a], a) < std::tie(groups[b], b); });
  layout.offsets.resize(numels.size());
  int64_t offset = 0;
  for (size_t segment : layout.order) {
    layout.offsets[segment] = offset;
    offset += alignTo(numels[segment], kSegmentAlignment);
  }
  layout.padded = alignTo(offset, ranks * kSegmentAlignment);
  return layout;
}

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_FLATLAYOUT_H
