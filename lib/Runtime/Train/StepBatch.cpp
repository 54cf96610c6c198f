//===- StepBatch.cpp ------------------------------------------------------===//

#include "spmd/Runtime/Train/StepBatch.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Train/BatchCutter.h"

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;

Status StepBatch::check(const BatchInput &wanted, const Input &input) const {
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
  return tensor.data ? checkRowIds(wanted, input.shape, tensor.data)
                     : Status::badInput("input '" + wanted.name + "': no data");
}

Status StepBatch::take(const HostTensor *tensors, size_t count) {
  const std::vector<BatchInput> &batch = manifest.batch;
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
      bool isCompared = isShared(manifest.batch[i]);
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
    Expected<std::vector<std::string>> parts =
        agreement.gather(std::string(static_cast<const char *>(input.tensor.data), own));
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
  }
  return Status::success();
}

Status StepBatch::copyTo(RankMemory &memory, int64_t rank) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const BatchInput &wanted = manifest.batch[i];
    // Rows of a process are those of its ranks, one after the other.
    int64_t first = inputs[i].isGlobal ? 0 : manifest.dataRankOf(ranks.first);
    int64_t position = manifest.dataRankOf(rank) - first;
    if (Status status = cutRows(wanted.split, inputs[i].shape, wanted.dtype, position, inputs[i].tensor.data, memory,
                                rank, wanted.offset);
        !status.ok())
      return status;
  }
  return Status::success();
}
