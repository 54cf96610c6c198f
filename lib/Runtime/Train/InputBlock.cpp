//===- InputBlock.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Train/InputBlock.h"

#include <algorithm>
#include <set>

using namespace spmd::runtime;

InputBlock InputBlock::find(const Manifest &manifest, const Plan &plan) {
  std::set<int64_t> own;
  int64_t begin = INT64_MAX, end = 0;
  auto add = [&](const std::optional<int64_t> &buffer, int64_t offset, int64_t bytes) {
    if (bytes == 0)
      return true;
    if (!buffer || plan.buffers[static_cast<size_t>(*buffer)].state)
      return false;
    own.insert(*buffer);
    begin = std::min(begin, offset);
    end = std::max(end, offset + bytes);
    return true;
  };
  for (const BatchInput &input : manifest.batch)
    if (!add(input.buffer, input.offset, input.localBytes()))
      return {};
  for (const HyperParameter &hyper : manifest.hyper)
    if (!add(hyper.buffer, hyper.offset, sizeOf(hyper.dtype)))
      return {};
  bool isShared = std::any_of(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer &buffer) {
    return !own.count(buffer.id) && buffer.bytes > 0 && buffer.offset < end && begin < buffer.offset + buffer.bytes;
  });
  return isShared || begin >= end ? InputBlock() : InputBlock{begin, end - begin};
}
