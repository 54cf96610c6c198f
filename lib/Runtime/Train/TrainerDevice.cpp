//===- TrainerDevice.cpp - What a step gives, to the caller's device ------===//

#include "spmd/Runtime/Train/Trainer.h"

using namespace spmd::runtime;

static Status checkSize(const std::string &what, int64_t needed, size_t found) {
  if (static_cast<size_t>(needed) == found)
    return Status::success();
  return Status::badInput(what + " has " + std::to_string(needed) + " bytes, the caller's buffer " +
                          std::to_string(found));
}

/// Calls body(copies) for those of the one rank here.
template <typename Body>
Status Trainer::copyOnDevice(const std::string &what, CallerStream stream, const Body &body) const {
  if (!content->shared->failure.ok())
    return content->shared->failure;
  if (content->shared->abort.isRaised()) // of a step that nobody has waited for yet
    return content->shared->abort.status();
  if (content->ranks.count != 1)
    return Status::badInput(what + " cannot be copied on a device: " + std::to_string(content->ranks.count) +
                            " ranks of this process have one each; read it to the host");
  Expected<DeviceCopies *> copies = copiesOf(content->ranks.first);
  if (!copies)
    return copies.error();
  if (!*copies)
    return Status::badInput(what + " cannot be copied on a device: the ranks compute on the host");
  if (Status status = (*copies)->begin(stream); !status.ok())
    return status;
  Status status = body(**copies);
  return status.ok() ? (*copies)->finish() : status;
}

bool Trainer::isOutputWhole(size_t index) const {
  const std::vector<Output> &outputs = manifest().outputs;
  if (index >= outputs.size())
    return false;
  const Output &output = outputs[index];
  bool isAlike = manifest().ranks == 1 || (!output.isVarying && !output.split.dim);
  return isAlike && output.localBytes() == numElements(output.shape) * sizeOf(output.dtype);
}

Status Trainer::copyOutput(size_t index, void *destination, size_t bytes, CallerStream stream) const {
  if (first && ranFirst)
    return first->copyOutput(index, destination, bytes, stream);
  const std::vector<Output> &outputs = manifest().outputs;
  if (index >= outputs.size())
    return Status::badInput("output " + std::to_string(index) + ": the step has " + std::to_string(outputs.size()));
  std::string what = "output " + std::to_string(index);
  if (!isOutputWhole(index))
    return Status::badInput(what + " cannot be copied on a device: each of " + std::to_string(manifest().ranks) +
                            " ranks has a part of it; read it to the host");
  if (Status status = checkSize(what, outputs[index].localBytes(), bytes); !status.ok())
    return status;
  return copyOnDevice(what, stream, [&](DeviceCopies &copies) {
    return bytes ? copies.copyOut(outputs[index].offset, destination, static_cast<int64_t>(bytes)) : Status::success();
  });
}

bool Trainer::isTensorWhole(const std::string &state, const std::string &name) const {
  const StateTensor *tensor = content->state.find(state, name);
  return tensor && content->state.isWhole(*tensor, content->ranks.first);
}

Status Trainer::copyTensor(const std::string &state, const std::string &name, void *destination, size_t bytes,
                           CallerStream stream) const {
  const StateTensor *tensor;
  if (Status status = locate(state, name, bytes, tensor); !status.ok())
    return status;
  std::string what = state + " '" + name + "'";
  if (!isTensorWhole(state, name))
    return Status::badInput(what +
                            " cannot be copied on a device: the rank here has a part of it; read it to the host");
  return copyOnDevice(what, stream, [&](DeviceCopies &copies) {
    auto copy = [&](int64_t inArena, int64_t inTensor, int64_t count) {
      return count ? copies.copyOut(inArena, static_cast<char *>(destination) + inTensor, count) : Status::success();
    };
    return content->state.visitPieces(*tensor, content->ranks.first, copy);
  });
}
