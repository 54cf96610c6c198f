//===- StepApi.cpp - The steps of spmd.h, and their tensors on devices ----===//

#include "Handles.h"

#include <optional>

using namespace spmd::runtime;

/// One step of tensors that are at `places`; null: on the host.
static Status step(spmd_trainer &trainer, const spmd_tensor *inputs, const spmd_place *places, size_t count,
                   int64_t stream) {
  if (count != trainer.inputs.size())
    return trainer.trainer->step(nullptr, count); // says how many
  for (size_t i = 0; i < count; ++i) {
    std::optional<DType> dtype = findDType(inputs[i].dtype);
    if (!dtype || inputs[i].rank < 0)
      return Status::badInput("input " + std::to_string(i) + ": not a tensor description");
    trainer.inputs[i] = {inputs[i].data, *dtype, inputs[i].rank, inputs[i].shape};
    if (places)
      trainer.places[i] = {places[i].kind, places[i].number};
  }
  DeviceBatch device{trainer.places.data(), stream};
  return trainer.trainer->step(trainer.inputs.data(), count, places ? &device : nullptr);
}

int32_t spmd_step(spmd_trainer *trainer, const spmd_tensor *inputs, size_t count, spmd_status *status) {
  return guarded(status, [&] { return step(*trainer, inputs, nullptr, count, 0); });
}

int32_t spmd_step_on(spmd_trainer *trainer, const spmd_tensor *inputs, const spmd_place *places, size_t count,
                     int64_t stream, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (!places && count)
      return Status::badInput("spmd_step_on: places must be given");
    return step(*trainer, inputs, places, count, stream);
  });
}

int32_t spmd_rank_place(const spmd_trainer *trainer, spmd_place *place, int64_t *stream, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    *place = {Place::kHost, 0};
    *stream = 0;
    const RanksHere &ranks = trainer->trainer->ranks();
    if (ranks.count != 1)
      return Status::success();
    Place found = trainer->trainer->placeOf(ranks.first);
    Expected<DeviceCopies *> copies = trainer->trainer->copiesOf(ranks.first);
    if (!copies)
      return copies.error();
    *place = {found.kind, found.number};
    *stream = *copies ? (*copies)->ownStream() : 0;
    return Status::success();
  });
}

int32_t spmd_is_output_whole(const spmd_trainer *trainer, size_t index) {
  return trainer->trainer->isOutputWhole(index);
}

int32_t spmd_copy_output(const spmd_trainer *trainer, size_t index, void *data, size_t bytes, int64_t stream,
                         spmd_status *status) {
  return guarded(status, [&] { return trainer->trainer->copyOutput(index, data, bytes, stream); });
}

int32_t spmd_read_output_ago(const spmd_trainer *trainer, size_t index, int64_t ago, void *data, size_t bytes,
                             spmd_status *status) {
  return guarded(status, [&] { return trainer->trainer->readOutput(index, data, bytes, ago); });
}

int64_t spmd_steps_kept(const spmd_trainer *trainer, size_t index) { return trainer->trainer->stepsKept(index); }

int32_t spmd_is_tensor_whole(const spmd_trainer *trainer, const char *state, const char *name) {
  return trainer->trainer->isTensorWhole(textOrEmpty(state), textOrEmpty(name));
}

int32_t spmd_copy_tensor(const spmd_trainer *trainer, const char *state, const char *name, void *data, size_t bytes,
                         int64_t stream, spmd_status *status) {
  return guarded(
      status, [&] { return trainer->trainer->copyTensor(textOrEmpty(state), textOrEmpty(name), data, bytes, stream); });
}
