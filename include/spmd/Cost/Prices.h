//===- Prices.h - What each command takes on a machine ------------*- C++ -*-===//

#ifndef SPMD_COST_PRICES_H
#define SPMD_COST_PRICES_H

#include "spmd/Cost/CommandList.h"
#include "spmd/Cost/Machine.h"

#include <cstdint>
#include <vector>

namespace spmd::cost {

/// What a kernel computes, be it a command of a plan or an op of a step.
struct KernelWork {
  CommandKind kind = CommandKind::Kernel;
  runtime::DType dtype = runtime::DType::F32; ///< of the operands of products
  int64_t side = 0;                           ///< of a GEMM: the smaller side of its result
  double flops = 0;
  double bytes = 0; ///< read and written
};

/// Seconds of a kernel when nothing else runs: the price of every kernel comes from here.
double kernelSeconds(const KernelWork &work, const Machine &machine);

/// The price of each command of a list when nothing else runs: first `latency` seconds in which it shares nothing, then
/// `seconds` on its resource.
struct Prices {
  std::vector<double> latency, seconds;
  std::vector<Resource> resource;
  std::vector<uint8_t> slows; ///< kernels are slower while it runs
  double slowdown = 0;        ///< kernels take 1 + this times as long then

  double alone(size_t command) const { return latency[command] + seconds[command]; }
};

/// docs/cost.md has the formulas. Fails where a communicator spans more nodes than the machine's network has.
runtime::Expected<Prices> priceCommands(const CommandList &commands, const Machine &machine);

} // namespace spmd::cost

#endif // SPMD_COST_PRICES_H
