//===- CudaCopies.cpp -----------------------------------------------------===//

#include "CudaCopies.h"
#include "CudaMemory.h"

#include <algorithm>
#include <cstring>

namespace spmd::runtime::cuda {

static constexpr int64_t kPieceBytes = 1 << 20;

Expected<std::unique_ptr<CudaCopies>> CudaCopies::make(CudaMemory &memory, int64_t rank) {
  const std::shared_ptr<const Gpu> &gpu = memory.gpuOf(rank);
  if (Status status = gpu->useAgain(); !status.ok())
    return status;
  std::unique_ptr<CudaCopies> copies(new CudaCopies(memory, rank, gpu));
  Expected<StreamHandle> stream = gpu->makeStream(0); // what the host waits for
  if (!stream)
    return stream.error();
  copies->arrivals = std::make_unique<CudaStream>(gpu, *stream, /*owns=*/true);
  for (OwnEvent *event : {&copies->given, &copies->copied}) {
    Expected<OwnEvent> made = OwnEvent::make(gpu, kEventDisableTiming);
    if (!made)
      return made.error();
    *event = std::move(*made);
  }
  return copies;
}

Status CudaCopies::begin(CallerStream stream) {
  // The calling thread may have used another device since, through a library that this one does not know.
  if (Status status = gpu->useAgain(); !status.ok())
    return status;
  caller = reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(stream));
  leaves = false;
  SPMD_CUDA_TRY(gpu->driver(), cuEventRecord, given.get(), caller);
  SPMD_CUDA_TRY(gpu->driver(), cuStreamWaitEvent, gpu->mainStream(), given.get(), 0);
  return Status::success();
}

Status CudaCopies::copyIn(int64_t offset, const void *source, int64_t bytes) {
  return memory.copyOnDevice(rank, offset, [&](Address inArena) {
    SPMD_CUDA_TRY(gpu->driver(), cuMemcpyDtoDAsync, inArena, reinterpret_cast<Address>(source),
                  static_cast<size_t>(bytes), gpu->mainStream());
    return Status::success();
  });
}

Status CudaCopies::copyOut(int64_t offset, void *destination, int64_t bytes) {
  leaves = true;
  return memory.copyOnDevice(rank, offset, [&](Address inArena) {
    SPMD_CUDA_TRY(gpu->driver(), cuMemcpyDtoDAsync, reinterpret_cast<Address>(destination), inArena,
                  static_cast<size_t>(bytes), gpu->mainStream());
    return Status::success();
  });
}

Status CudaCopies::fetch(const void *source, void *destination, int64_t bytes) {
  const Driver &d = gpu->driver();
  if (!pieces) {
    Expected<OwnPinned> made = OwnPinned::make(gpu, kPieceBytes);
    if (!made)
      return made.error();
    pieces = std::move(*made);
  }
  if (caller != arrivals->get())
    SPMD_CUDA_TRY(d, cuStreamWaitEvent, arrivals->get(), given.get(), 0);
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    auto count = static_cast<size_t>(std::min(kPieceBytes, bytes - at));
    SPMD_CUDA_TRY(d, cuMemcpyDtoHAsync, pieces.get(), reinterpret_cast<Address>(source) + static_cast<Address>(at),
                  count, arrivals->get());
    SPMD_CUDA_TRY(d, cuStreamSynchronize, arrivals->get());
    std::memcpy(static_cast<char *>(destination) + at, pieces.get(), count);
  }
  return Status::success();
}

Status CudaCopies::finish() {
  const Driver &d = gpu->driver();
  if (caller == arrivals->get() && !leaves)
    return Status::success(); // whoever has no stream keeps the tensors until the step is over
  SPMD_CUDA_TRY(d, cuEventRecord, copied.get(), gpu->mainStream());
  if (caller == arrivals->get())
    SPMD_CUDA_TRY(d, cuEventSynchronize, copied.get());
  else
    SPMD_CUDA_TRY(d, cuStreamWaitEvent, caller, copied.get(), 0);
  return Status::success();
}

CallerStream CudaCopies::ownStream() const {
  return static_cast<CallerStream>(reinterpret_cast<uintptr_t>(arrivals->get()));
}

} // namespace spmd::runtime::cuda
