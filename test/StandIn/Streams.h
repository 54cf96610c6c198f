//===- Streams.h - Streams and events -----------------------------*- C++ -*-===//

#ifndef SPMD_TEST_STANDIN_STREAMS_H
#define SPMD_TEST_STANDIN_STREAMS_H

#include "Core.h"

#include <thread>

namespace spmd::runtime::cuda {

struct CUstream_st {
  uint32_t lane = 0, number = 0;
  standin::Frontier frontier;
  standin::Clock clock;
  standin::Captured *graph = nullptr; ///< that captures it
  bool isOrigin = false;
  std::thread::id capturer;
  std::vector<int> nodes; ///< frontier in the graph
};

struct CUevent_st {
  standin::Frontier frontier;
  standin::Clock clock;
  bool isRecorded = false;
  bool isTimed = false;
  double seconds = 0; ///< when it came by
  standin::Captured *graph = nullptr;
  uint64_t capture = 0; ///< the number of that
  std::vector<int> nodes;
};

} // namespace spmd::runtime::cuda

#endif // SPMD_TEST_STANDIN_STREAMS_H
