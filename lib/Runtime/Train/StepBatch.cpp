//===- StepBatch.cpp ------------------------------------------------------===//

#include "spmd/Runtime/Train/StepBatch.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Train/BatchCutter.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace spmd::runtime;

/// A rank looks at its own device's memory only: a tensor elsewhere is one of the host, or an error.
Status StepBatch::locate(const BatchInput &wanted, const Place &place, Input &input, const RankMemory &memory) const {
  input.isOnDevice = !place.isHost();
  if (!input.isOnDevice)
    return Status::success();
  for (int64_t rank = ranks.first; rank < ranks.end(); ++rank)
    if (Place own = memory.placeOf(rank); !place.isOf(own))
      return Status::badInput("input '" + wanted.name + "' is on " + place.describe() + ", and rank " +
                              std::to_string(rank) + " computes on " + own.describe() + "; give it on " +
                              (own.isHost() ? "" : own.describe() + " or ") + "the host");
  return Status::success();
}

Status StepBatch::begin(const DeviceBatch &device, RankMemory &memory) {
  Expected<DeviceCopies *> made = memory.copiesOf(ranks.first); // of its device, and others have no tensor here
  if (!made)
    return made.error();
  if (Status status = (*made)->begin(device.stream); !status.ok())
    return status;
  copies = *made;
  return Status::success();
}

Status StepBatch::check(const BatchInput &wanted, const Input &input) {
  const HostTensor &tensor = input.tensor;
  bool fits = tensor.dtype == wanted.dtype && input.shape.size() == wanted.shape.size();
  for (size_t dim = 0; fits && dim < wanted.shape.size(); ++dim) // of own rows there may be any number
    fits = input.shape[dim] == wanted.shape[dim] || (!input.isGlobal && *wanted.split.dim == static_cast<int64_t>(dim));
  if (!fits)
    return Status::badInput("input '" + wanted.name + "': expected " + nameOf(wanted.dtype) + formatShape(wanted.shape) +
                            (input.isGlobal ? "" : ", or other rows of it") + ", found " + nameOf(tensor.dtype) +
                            formatShape(input.shape));
  if (!input.isGlobal && wanted.split.pre != 1)
    return Status::badInput("input '" + wanted.name + "' is not made of rows; give every process the global batch");
  if (numElements(input.shape) == 0)
    return Status::success();
  if (!tensor.data)
    return Status::badInput("input '" + wanted.name + "': no data");
  if (!input.isOnDevice || !wanted.indexBound)
    return checkRowIds(wanted, input.shape, tensor.data);
  ids.resize(static_cast<size_t>(numElements(input.shape) * sizeOf(wanted.dtype)));
  Status status = copies->fetch(tensor.data, ids.data(), static_cast<int64_t>(ids.size()));
  return status.ok() ? checkRowIds(wanted, input.shape, ids.data()) : status;
}

Status StepBatch::take(const HostTensor *tensors, size_t count, const DeviceBatch *device, RankMemory &memory) {
  const std::vector<BatchInput> &batch = manifest.batch;
  copies = nullptr;
  if (count != batch.size())
    return Status::badInput("the step takes " + std::to_string(batch.size()) + " batch inputs, found " +
                            std::to_string(count));
  for (size_t i = 0; i < count; ++i) {
    if (hasRows(batch[i]) && manifest.tensorRanks() > 1)
      return Status::badInput(
          "input '" + batch[i].name +
          "': along a tensor axis processes have the same rows; give every process the global batch");
    inputs[i].tensor = tensors[i];
    inputs[i].shape.assign(tensors[i].shape, tensors[i].shape + tensors[i].rank);
    inputs[i].isGlobal = !hasRows(batch[i]);
    inputs[i].isOnDevice = false;
    if (device)
      if (Status status = locate(batch[i], device->places[i], inputs[i], memory); !status.ok())
        return status;
    if (inputs[i].isOnDevice && !copies)
      if (Status status = begin(*device, memory); !status.ok())
        return status;
    if (Status status = check(batch[i], inputs[i]); !status.ok())
      return status;
  }
  return Status::success();
}

/// Of large inputs pages spread over the whole: a mistake of a process is in more than one of them.
static uint64_t hashSample(const char *data, int64_t bytes) {
  constexpr int64_t kPage = 4096, kPages = 64;
  if (bytes <= kPage * kPages)
    return hashBytes({data, static_cast<size_t>(bytes)});
  uint64_t hash = 0;
  for (int64_t page = 0; page < kPages; ++page)
    hash = hash * 31 + hashBytes({data + (bytes - kPage) / (kPages - 1) * page, static_cast<size_t>(kPage)});
  return hash;
}

void StepBatch::describe(StepNote &note) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input &input = inputs[i];
    const DimSplit &split = manifest.batch[i].split;
    if (input.isGlobal) {
      int64_t bytes = numElements(input.shape) * sizeOf(input.tensor.dtype);
      bool isCompared = isShared(manifest.batch[i]) && !input.isOnDevice;
      note.inputs.push_back(isCompared ? hashSample(static_cast<const char *>(input.tensor.data), bytes) : 0);
      continue;
    }
    note.inputs.push_back(0);
    auto dim = static_cast<size_t>(*split.dim);
    int64_t total = manifest.batch[i].shape[dim];
    int64_t first = std::min(total, ranks.first * split.chunk), end = std::min(total, ranks.end() * split.chunk);
    note.hasExpectedRows &= input.shape[dim] == end - first;
  }
}

Status StepBatch::fetchRows(StepAgreement &agreement) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Input &input = inputs[i];
    if (input.isGlobal)
      continue;
    const BatchInput &wanted = manifest.batch[i];
    auto dim = static_cast<size_t>(*wanted.split.dim);
    int64_t inner = sizeOf(wanted.dtype), outer = 1;
    for (size_t d = 0; d < wanted.shape.size(); ++d)
      (d < dim ? outer : inner) *= d == dim ? 1 : wanted.shape[d];
    auto own = static_cast<size_t>(numElements(input.shape) * sizeOf(wanted.dtype));
    std::string mine(own, 0);
    if (!input.isOnDevice)
      std::memcpy(mine.data(), input.tensor.data, own);
    else if (Status status = copies->fetch(input.tensor.data, mine.data(), static_cast<int64_t>(own)); !status.ok())
      return status;
    Expected<std::vector<std::string>> parts = agreement.gather(mine);
    if (!parts)
      return parts.error();
    int64_t rows = 0, slice = inner * outer;
    for (const std::string &part : *parts)
      rows += slice ? static_cast<int64_t>(part.size()) / slice : 0;
    if (rows != wanted.shape[dim])
      return Status::badInput("the processes give " + std::to_string(rows) + " rows of input '" + wanted.name +
                              "', the program takes " + std::to_string(wanted.shape[dim]));
    input.joined.resize(static_cast<size_t>(rows * slice));
    int64_t before = 0;
    for (const std::string &part : *parts) {
      int64_t bytes = static_cast<int64_t>(part.size()) / outer; // of one slab
      for (int64_t slab = 0; slab < outer; ++slab)
        std::memcpy(input.joined.data() + slab * rows * inner + before, part.data() + slab * bytes,
                    static_cast<size_t>(bytes));
      before += bytes;
    }
    input.tensor.data = input.joined.data();
    input.shape = wanted.shape;
    input.isGlobal = true;
    input.isOnDevice = false;
  }
  return Status::success();
}

namespace {
/// The arena of one rank, to which bytes come on its device.
class CopiedOnDevice final : public RankMemory {
public:
  CopiedOnDevice(RankMemory &memory, DeviceCopies &copies)
      : RankMemory(memory.ranks()), memory(memory), copies(copies) {}

  int64_t bytes() const override { return memory.bytes(); }
  Status grow(int64_t bytes, int64_t stateBytes) override { return memory.grow(bytes, stateBytes); }
  int64_t generation() const override { return memory.generation(); }
  Status copyIn(int64_t, int64_t offset, const void *source, int64_t bytes) override {
    return copies.copyIn(offset, source, bytes);
  }
  Status copyOut(int64_t, int64_t offset, void *destination, int64_t bytes) const override {
    return copies.copyOut(offset, destination, bytes);
  }
  Status fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) override {
    return memory.fill(rank, offset, value, bytes);
  }
  void *addressOf(int64_t rank, int64_t offset) const override { return memory.addressOf(rank, offset); }

private:
  RankMemory &memory;
  DeviceCopies &copies;
};
} // namespace

Status StepBatch::copyTo(RankMemory &memory, int64_t rank) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BatchInput &wanted = manifest.batch[i];
    // Rows of a process are those of its ranks, one after the other.
    int64_t first = inputs[i].isGlobal ? 0 : manifest.dataRankOf(ranks.first);
    int64_t position = manifest.dataRankOf(rank) - first;
    std::optional<CopiedOnDevice> onDevice;
    RankMemory &to = inputs[i].isOnDevice ? onDevice.emplace(memory, *copies) : memory;
    if (Status status = cutRows(wanted.split, inputs[i].shape, wanted.dtype, position, inputs[i].tensor.data, to, rank,
                                wanted.offset);
        !status.ok())
      return status;
  }
  return copies ? copies->finish() : Status::success();
}
