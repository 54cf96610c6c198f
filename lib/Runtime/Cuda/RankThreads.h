//===- RankThreads.h - The same for each rank here ----------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CUDA_RANKTHREADS_H
#define SPMD_LIB_RUNTIME_CUDA_RANKTHREADS_H

#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"

#include <thread>
#include <vector>

namespace spmd::runtime::cuda {

/// Runs `body(rank)` for each rank here at once: what they do may wait for each other. The first error by rank.
template <typename Body>
Status forEachRank(const RanksHere &ranks, const Body &body) {
  std::vector<Status> statuses(static_cast<size_t>(ranks.count));
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < ranks.count; ++i)
    threads.emplace_back([&, i] { statuses[static_cast<size_t>(i)] = body(ranks.first + i); });
  statuses[0] = body(ranks.first);
  for (std::thread &thread : threads)
    thread.join();
  for (Status &status : statuses)
    if (!status.ok())
      return std::move(status);
  return Status::success();
}

} // namespace spmd::runtime::cuda

#endif // SPMD_LIB_RUNTIME_CUDA_RANKTHREADS_H
