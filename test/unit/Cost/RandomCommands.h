//===- RandomCommands.h - Lists of commands for tests -----------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_COST_RANDOMCOMMANDS_H
#define SPMD_TEST_UNIT_COST_RANDOMCOMMANDS_H

#include "spmd/Cost/Prices.h"

#include <random>

namespace spmd::cost {

/// Commands on `numStreams` streams with waits for earlier commands, and their prices. With `ownResources` each stream
/// has a resource of its own, so that no two commands share one.
struct RandomCommands {
  CommandList list;
  Prices prices;

  RandomCommands(uint32_t seed, int32_t numStreams, int32_t size, bool ownResources = false) : random(seed) {
    for (int32_t stream = 0; stream < numStreams; ++stream)
      list.streams.push_back("s" + std::to_string(stream));
    for (int32_t i = 0; i < size; ++i) {
      int32_t stream = draw(numStreams);
      if (i > 0 && draw(3) == 0)
        addPrice(list.addWait(stream, draw(i)), Resource::None, 0, 0);
      else
        addWork(stream, ownResources);
    }
    prices.slowdown = 0.07;
  }

  int32_t draw(int32_t below) { return static_cast<int32_t>(random() % static_cast<uint32_t>(below)); }

private:
  void addWork(int32_t stream, bool ownResources) {
    Resource resource = ownResources ? static_cast<Resource>(1 + stream % 5) : static_cast<Resource>(1 + draw(3));
    CommandKind kind = resource == Resource::Device ? CommandKind::Kernel : CommandKind::Collective;
    double latency = resource == Resource::Device ? 0 : 1e-6 * draw(50);
    addPrice(list.add(kind, stream), resource, latency, 1e-6 * (1 + draw(1000)));
  }

  void addPrice(int32_t, Resource resource, double latency, double seconds) {
    prices.latency.push_back(latency);
    prices.seconds.push_back(seconds);
    prices.resource.push_back(resource);
    prices.slows.push_back(resource == Resource::Node || resource == Resource::Fabric);
  }

  std::mt19937 random;
};

} // namespace spmd::cost

#endif // SPMD_TEST_UNIT_COST_RANDOMCOMMANDS_H
