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
  /// Seconds of a kernel that computes `flops` at `rate` and moves its bytes meanwhile.
  double kernelSeconds(size_t command, double rate) const;
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

double Pricer::kernelSeconds(size_t command, double rate) const {
  double compute = rate > 0 ? static_cast<double>(commands.flops[command]) / rate : 0;
  double memory = static_cast<double>(commands.bytes[command]) / machine.memoryBandwidth();
  return machine.launch + std::max(compute, memory);
}

void Pricer::priceKernel(size_t command) {
  double peak = machine.matrixPeaks.of(commands.dtype[command]), rate = 0;
  double toBf16 = peak / machine.matrixPeaks.bf16;
  switch (commands.kind[command]) {
  case CommandKind::Gemm:
    rate = peak * machine.gemmEfficiency(commands.side[command]);
    break;
  case CommandKind::GroupedGemm:
    rate = peak * machine.groupedGemmEfficiency;
    break;
  case CommandKind::Attention:
    rate = machine.attentionForward * toBf16;
    break;
  case CommandKind::AttentionBackward:
    rate = machine.attentionBackward * toBf16;
    break;
  default: // bound by memory
    break;
  }
  prices.seconds[command] = kernelSeconds(command, rate);
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
