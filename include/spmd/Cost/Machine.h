//===- Machine.h - The constants that prices are made of ----------*- C++ -*-===//
//
// A machine is a JSON file with a source for each constant (docs/cost.md). Nothing else in the tree holds a constant of
// time.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_COST_MACHINE_H
#define SPMD_COST_MACHINE_H

#include "spmd/Cost/Network.h"
#include "spmd/Runtime/Core/DType.h"

#include <string>
#include <vector>

namespace spmd::cost {

/// FLOP/s of matrix products at the device's peak, by the dtype of their operands.
struct MatrixPeaks {
  double bf16 = 0, f16 = 0, f32 = 0, f64 = 0;

  /// Integers count as f32: no matrix product has them.
  double of(runtime::DType dtype) const;
};

/// The share of the peak that a GEMM reaches whose smaller side of the result is at least `minSide`.
struct GemmEfficiency {
  int64_t minSide = 1;
  double efficiency = 0;
};

/// The link between a device and the memory of its host.
struct HostLink {
  double latency = 0;
  double toHost = 0, fromHost = 0; ///< bytes per second
};

struct Machine {
  std::string name, description;
  MatrixPeaks matrixPeaks;
  std::vector<GemmEfficiency> gemm; ///< ascending in `minSide`, the first one from 1 on
  double groupedGemmEfficiency = 0;
  double attentionForward = 0, attentionBackward = 0; ///< FLOP/s in bf16; other dtypes: by the ratio of the peaks
  double memoryPeak = 0;                              ///< bytes per second of the device's memory
  double memoryEfficiency = 0;                        ///< the share of it that kernels reach
  double launch = 0;                                  ///< seconds of a kernel beside its work
  /// Kernels take 1 + `slowdown` times as long while a collective of at least `slowingBytes` runs.
  double slowdown = 0;
  double slowingBytes = 0;
  HostLink host;
  Network network;

  double memoryBandwidth() const { return memoryPeak * memoryEfficiency; }
  double gemmEfficiency(int64_t side) const;
};

} // namespace spmd::cost

#endif // SPMD_COST_MACHINE_H
