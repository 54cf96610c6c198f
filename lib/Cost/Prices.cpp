//===- Prices.cpp ---------------------------------------------------------===//

#include "spmd/Cost/Prices.h"

#include <algorithm>

using namespace spmd;
using namespace spmd::cost;
using namespace spmd::runtime;

namespace {

/// The path of each communicator, found once.
struct GroupPath {
  GroupSpan span;
  Path path;
};

class Pricer {
public:
  Pricer(const CommandList &commands, const Machine &machine) : commands(commands), machine(machine) {}

  Status findPaths();
  void price(size_t command);

  Prices prices;

private:
  void priceKernel(size_t command);
  void priceCollective(size_t command);
  void priceHostCopy(size_t command, Resource resource, double bandwidth);

  const CommandList &commands;
  const Machine &machine;
  std::vector<GroupPath> paths; ///< by communicator
};

} // namespace

Status Pricer::findPaths() {
  for (const RankGroups &groups : commands.groups) {
    GroupSpan span = spanOf(groups, machine.network.ranksPerNode);
    Expected<Path> path = machine.network.findPath(span);
    if (!path)
      return path.error();
    paths.push_back({span, *path});
  }
  return Status::success();
}

/// FLOP/s of a kernel; 0 if it is bound by memory.
static double rateOf(const KernelWork &work, const Machine &machine) {
  double peak = machine.matrixPeaks.of(work.dtype), toBf16 = peak / machine.matrixPeaks.bf16;
  switch (work.kind) {
  case CommandKind::Gemm:
    return peak * machine.gemmEfficiency(work.side);
  case CommandKind::GroupedGemm:
    return peak * machine.groupedGemmEfficiency;
  case CommandKind::Attention:
    return machine.attentionForward * toBf16;
  case CommandKind::AttentionBackward:
    return machine.attentionBackward * toBf16;
  default:
    return 0;
  }
}

double spmd::cost::kernelSeconds(const KernelWork &work, const Machine &machine) {
  double rate = rateOf(work, machine);
  double compute = rate > 0 ? work.flops / rate : 0;
  return machine.launch + std::max(compute, work.bytes / machine.memoryBandwidth());
}

void Pricer::priceKernel(size_t command) {
  KernelWork work{commands.kind[command], commands.dtype[command], commands.side[command],
                  static_cast<double>(commands.flops[command]), static_cast<double>(commands.bytes[command])};
  prices.seconds[command] = kernelSeconds(work, machine);
  prices.resource[command] = Resource::Device;
}

/// How often the bytes of a message pass the links of a ring: a sum that all ranks receive is a reduce-scatter and an
/// all-gather.
static double passesOf(CollectiveKind kind) { return isInPlace(kind) && combines(kind) ? 2 : 1; }

void Pricer::priceCollective(size_t command) {
  const auto &[span, path] = paths[static_cast<size_t>(commands.communicator[command])];
  if (span.ranks <= 1)
    return;
  double others = static_cast<double>(span.ranks - 1) / static_cast<double>(span.ranks);
  double moved = passesOf(commands.collective[command]) * static_cast<double>(commands.bytes[command]) * others;
  prices.latency[command] = path.latency;
  prices.seconds[command] = moved / path.bandwidth;
  prices.resource[command] = span.nodes > 1 ? Resource::Fabric : Resource::Node;
  prices.slows[command] = static_cast<double>(commands.bytes[command]) >= machine.slowingBytes;
}

void Pricer::priceHostCopy(size_t command, Resource resource, double bandwidth) {
  prices.latency[command] = machine.host.latency;
  prices.seconds[command] = static_cast<double>(commands.bytes[command]) / bandwidth;
  prices.resource[command] = resource;
}

void Pricer::price(size_t command) {
  prices.latency.push_back(0);
  prices.seconds.push_back(0);
  prices.resource.push_back(Resource::None);
  prices.slows.push_back(0);
  switch (commands.kind[command]) {
  case CommandKind::Collective:
    return priceCollective(command);
  case CommandKind::ToHost:
    return priceHostCopy(command, Resource::ToHost, machine.host.toHost);
  case CommandKind::FromHost:
    return priceHostCopy(command, Resource::FromHost, machine.host.fromHost);
  case CommandKind::Wait:
    return;
  default:
    return priceKernel(command);
  }
}

Expected<Prices> spmd::cost::priceCommands(const CommandList &commands, const Machine &machine) {
  Pricer pricer(commands, machine);
  if (Status status = pricer.findPaths(); !status.ok())
    return status;
  pricer.prices.slowdown = machine.slowdown;
  for (size_t command = 0; command < commands.size(); ++command)
    pricer.price(command);
  return std::move(pricer.prices);
}
