//===- StridedRuns.cpp - Elements at strides ------------------------------===//

#include "StridedRuns.h"

#include <algorithm>

using namespace spmd::runtime;

/// Runs along a stride that are compared with all of the other side, which has no such stride.
static constexpr __int128 kMostApart = 64;

StridedRuns::StridedRuns(int64_t offset, const std::vector<std::pair<int64_t, int64_t>> &given, int64_t columns)
    : offset(offset), columns(columns) {
  for (auto [stride, count] : given)
    if (count > 1)
      dims.push_back({stride, count});
  std::sort(dims.begin(), dims.end(), [](const Dim &a, const Dim &b) { return a.stride > b.stride; });
}

/// From the first to behind the last element of what lies along the dims from `from` on.
__int128 StridedRuns::extent(size_t from) const {
  __int128 extent = columns;
  for (size_t dim = from; dim < dims.size(); ++dim)
    extent += (dims[dim].count - 1) * dims[dim].stride;
  return extent;
}

bool StridedRuns::mayOverlapItself() const {
  for (size_t dim = 0; dim < dims.size(); ++dim)
    if (dims[dim].stride < extent(dim + 1))
      return true;
  return false;
}

static __int128 floorOfQuotient(__int128 value, __int128 by) { return value / by - (value % by < 0 ? 1 : 0); }

bool StridedRuns::mayOverlap(const StridedRuns &other) const {
  return mayOverlap(*this, 0, offset, other, 0, other.offset);
}

bool StridedRuns::mayOverlap(const StridedRuns &a, size_t dimOfA, __int128 aAt, const StridedRuns &b, size_t dimOfB,
                             __int128 bAt) {
  if (aAt + a.extent(dimOfA) <= bAt || bAt + b.extent(dimOfB) <= aAt)
    return false;
  bool isOfA = dimOfA < a.dims.size(), isOfB = dimOfB < b.dims.size();
  if (!isOfA && !isOfB)
    return true;
  if (isOfB && (!isOfA || a.dims[dimOfA].stride < b.dims[dimOfB].stride))
    return mayOverlap(b, dimOfB, bAt, a, dimOfA, aAt);
  // Along the stride of `a`, which `b` may have too: then only how far apart both are counts.
  __int128 stride = a.dims[dimOfA].stride, most = a.dims[dimOfA].count - 1, least = 0;
  if (stride == 0)
    return true; // it overlaps itself
  bool isOfBoth = isOfB && b.dims[dimOfB].stride == stride;
  if (isOfBoth)
    least = 1 - b.dims[dimOfB].count;
  size_t nextOfA = dimOfA + 1, nextOfB = dimOfB + (isOfBoth ? 1 : 0);
  // Where a's part along the smaller strides meets that of `b`.
  least = std::max(least, floorOfQuotient(bAt - aAt - a.extent(nextOfA), stride) + 1);
  most = std::min(most, -floorOfQuotient(aAt - bAt - b.extent(nextOfB), stride) - 1);
  if (most - least >= kMostApart)
    return true;
  for (__int128 at = least; at <= most; ++at)
    if (mayOverlap(a, nextOfA, aAt + at * stride, b, nextOfB, bAt))
      return true;
  return false;
}
