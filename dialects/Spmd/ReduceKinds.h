//===- ReduceKinds.h - what sharding rules call a reduction -----*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_REDUCEKINDS_H
#define SPMD_DIALECTS_SPMD_REDUCEKINDS_H

#include "dialects/Aten/ShardingRule.h"
#include "dialects/Spmd/AxisState.h"

namespace spmd {

/// The combination over ranks that a sharding rule names.
inline ReduceKind toReduceKind(aten::ReductionKind kind) {
  switch (kind) {
  case aten::ReductionKind::sum:
    return ReduceKind::sum;
  case aten::ReductionKind::max:
    return ReduceKind::max;
  case aten::ReductionKind::min:
    return ReduceKind::min;
  case aten::ReductionKind::norm2:
    return ReduceKind::norm2;
  }
  return ReduceKind::sum;
}

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_REDUCEKINDS_H
