//===- StepRing.cpp -------------------------------------------------------===//

#include "StepRing.h"

#include <algorithm>

namespace spmd::runtime::cuda {

/// Losses and norms have a few bytes; whole logits are read when somebody asks for them.
static constexpr int64_t kMostBytes = 256 << 10;

OutputBlock OutputBlock::find(const Manifest &manifest, const Plan &plan) {
  int64_t begin = INT64_MAX, end = 0;
  for (const Output &output : manifest.outputs) {
    bool isState = std::any_of(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer &buffer) {
      return buffer.state && buffer.offset <= output.offset && output.offset < buffer.offset + buffer.bytes;
    });
    if (isState || output.localBytes() == 0)
      continue;
    begin = std::min(begin, output.offset);
    end = std::max(end, output.offset + output.localBytes());
  }
  return begin < end && end - begin <= kMostBytes ? OutputBlock{begin, end - begin} : OutputBlock();
}

Status StepRing::make(const std::shared_ptr<const Gpu> &on, const OutputBlock &block, Address blockAddress) {
  gpu = on;
  outputBlock = block;
  address = blockAddress;
  for (Slot &slot : slots) {
    Expected<OwnEvent> event = OwnEvent::make(gpu, kEventDisableTiming);
    if (!event)
      return event.error();
    slot.ended = std::move(*event);
    if (block.bytes == 0)
      continue;
    Expected<OwnPinned> outputs = OwnPinned::make(gpu, static_cast<size_t>(block.bytes));
    if (!outputs)
      return outputs.error();
    slot.outputs = std::move(*outputs);
  }
  return Status::success();
}

Status StepRing::end(uint64_t step) {
  if (Status status = gpu->use(); !status.ok())
    return status;
  const Driver &d = gpu->driver();
  const Slot &slot = slots[step % kSteps];
  if (outputBlock.bytes)
    SPMD_CUDA_TRY(d, cuMemcpyDtoHAsync, slot.outputs.get(), address, static_cast<size_t>(outputBlock.bytes),
                  gpu->mainStream());
  SPMD_CUDA_TRY(d, cuEventRecord, slot.ended.get(), gpu->mainStream());
  return Status::success();
}

Result StepRing::query(uint64_t step) const {
  return gpu->use().ok() ? gpu->driver().cuEventQuery(ended(step)) : kNotInitialized;
}

} // namespace spmd::runtime::cuda
