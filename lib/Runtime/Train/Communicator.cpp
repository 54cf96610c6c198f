//===- Communicator.cpp ---------------------------------------------------===//

#include "spmd/Runtime/Train/Communicator.h"

#include <cstring>

using namespace spmd::runtime;

Status CommunicatorFactory::gather(const void *mine, int64_t bytes, void *all, const AbortState &abort,
                                   std::chrono::steady_clock::duration) {
  std::memcpy(static_cast<char *>(all) + process() * bytes, mine, static_cast<size_t>(bytes));
  for (int64_t from = 0; from < numProcesses(); ++from)
    if (Status status = share(from, static_cast<char *>(all) + from * bytes, bytes, abort); !status.ok())
      return status;
  return Status::success();
}
