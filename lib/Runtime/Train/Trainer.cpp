//===- Trainer.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Train/Trainer.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Train/BatchCutter.h"

#include <algorithm>
#include <optional>
#include <utility>

using namespace spmd::runtime;

Status Trainer::SharedState::settle() {
  Executor *running = std::exchange(issued, nullptr);
  if (!failure.ok() || !running)
    return Status::success();
  return note(running->wait());
}

Status Trainer::SharedState::note(Status status) {
  if (status.ok() || status.code == StatusCode::BadInput)
    return status;
  return failure = recorder.report(std::move(status));
}

/// Starts the ranks on the arenas as they are.
Status Trainer::startRanks() {
  const Fault &fault = executorOptions.fault;
  auto commands = static_cast<int64_t>(content->artifact.plan.commands.size());
  if (fault.kind != Fault::Kind::None && (fault.rank >= manifest().ranks || fault.command >= commands))
    return Status::badInput("fault at rank " + std::to_string(fault.rank) + ", command " +
                            std::to_string(fault.command) + ": there are " + std::to_string(manifest().ranks) +
                            " ranks and " + std::to_string(commands) + " commands");
  if (!stopRanks())
    return Status::failed("a rank does not end");
  content->executor.reset();
  Expected<std::unique_ptr<Executor>> executor = content->device->makeExecutor(
      content->memory(), *content->communicators, content->shared->abort, executorOptions);
  // All processes start theirs: one that has none is an error of all.
  if (Status status = agreeOn(executor ? Status::success() : executor.error()); !status.ok()) {
    content->shared->abort.fail(status); // before this one ends: nobody is to be waited for
    return status;
  }
  content->executor = std::move(*executor);
  generation = content->memory().generation();
  issuedHere = 0;
  return Status::success();
}

/// False when one does not end.
bool Trainer::stopRanks() {
  if (!content->executor)
    return true;
  if (content->shared->issued == content->executor.get())
    (void)content->shared->settle(); // a failure is kept
  content->shared->recorder.forget(*content->executor);
  return content->executor->shutdown();
}

Trainer::~Trainer() {
  if (content && !stopRanks())
    (void)content.release(); // a thread still runs in these arenas
}

Status Trainer::setHyper(const std::string &name, int64_t group, double value) {
  if (first)
    if (Status status = first->setHyper(name, group, value); !status.ok())
      return status;
  const std::vector<HyperParameter> &all = manifest().hyper;
  std::string known;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name && all[i].group == group) {
      hyper[i] = value;
      return Status::success();
    }
    known += (known.empty() ? "" : ", ") + all[i].name + " of group " + std::to_string(all[i].group);
  }
  return Status::badInput("no hyper-parameter '" + name + "' of group " + std::to_string(group) +
                          " is an input of the step; " + (known.empty() ? "it has none" : "it has: " + known));
}

std::chrono::steady_clock::duration Trainer::patience() const {
  // Between steps a process may do other things than train: save a checkpoint, evaluate.
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(10 * executorOptions.timeout);
}

StepAgreement Trainer::agreement() const {
  return {manifest(), content->ranks, *content->shared->processes, content->shared->abort, patience()};
}

/// Compares what the processes bring to a step; afterwards all have tried, and found the same.
Status Trainer::agreeOnStep(Status problem) {
  StepNote note;
  note.program = content->artifact.traceHash;
  note.problem = std::move(problem);
  note.hyper = hyper;
  if (note.problem.ok())
    content->batch->describe(note);
  note.inputs.resize(manifest().batch.size());
  StepAgreement meeting = agreement();
  Expected<bool> hasExpectedRows = meeting.meet(note, content->shared->written);
  content->shared->written.clear();
  if (!hasExpectedRows)
    return hasExpectedRows.error();
  return *hasExpectedRows ? Status::success() : content->batch->fetchRows(meeting);
}

Status Trainer::firstNotFinite() const {
  if (first)
    return first->firstNotFinite();
  return content->finite ? content->finite->describe() : Status::success();
}

Status Trainer::step(const HostTensor *inputs, size_t count, const DeviceBatch *device) {
  SharedState &shared = *content->shared;
  Status taken = content->batch->take(inputs, count, device, *shared.memory);
  if (content->ranks.areAll() && !taken.ok())
    return taken;
  if (!shared.failure.ok())
    return shared.failure;
  if (first && !ranFirst) {
    Status status = first->step(inputs, count, device);
    ranFirst = status.ok();
    return status;
  }
  first.reset();
  if (shared.issued != content->executor.get())
    if (Status status = shared.settle(); !status.ok())
      return status;
  if (!content->ranks.areAll())
    if (Status status = agreeOnStep(std::move(taken)); !status.ok())
      return status.code == StatusCode::Failed ? shared.recorder.report(std::move(status)) : status;
  if (content->finite)
    content->finite->reset();
  RankMemory &memory = *shared.memory;
  if (generation != memory.generation())
    if (Status status = startRanks(); !status.ok())
      return status;
  if (Status status = passInputs(); !status.ok())
    return status;
  shared.issued = content->executor.get();
  shared.recorder.follow(*content->executor, content->artifact, shared.steps++, issuedHere);
  Status status = shared.note(content->executor->step());
  issuedHere += status.ok();
  // Who reads alone must know that the others are done.
  // In arenas that they map they see only what has run; others' reads wait for what was issued.
  if (shared.processes->hasAllArenas() && status.ok())
    status = shared.settle();
  if (shared.processes->readsAlone() && status.ok())
    shared.processes->finishStep();
  return status;
}

Status Trainer::passHyper(RankMemory &memory, int64_t rank) {
  for (size_t i = 0; i < hyper.size(); ++i) {
    const HyperParameter &entry = manifest().hyper[i];
    char value[8];
    storeFromDouble(value, entry.dtype, 0, hyper[i]);
    if (Status status = memory.copyIn(rank, entry.offset, value, sizeOf(entry.dtype)); !status.ok())
      return status;
  }
  return Status::success();
}

/// Gives each rank here its rows and the hyper-parameters: in one piece where the device likes that, and does not have
/// a part of it already.
Status Trainer::passInputs() {
  const InputBlock &block = content->inputs;
  for (int64_t rank = content->ranks.first; rank < content->ranks.end(); ++rank) {
    RankMemory *memory = &content->memory();
    std::optional<StagedBlock> staged;
    if (block.bytes && !content->batch->isOnDevice()) {
      Expected<char *> place = memory->stage(rank, block.offset, block.bytes);
      if (!place)
        return place.error();
      if (*place)
        memory = &staged.emplace(content->ranks, block, *place);
    }
    Status status = content->batch->copyTo(*memory, rank);
    if (status.ok())
      status = passHyper(*memory, rank);
    if (!status.ok())
      return status;
  }
  return Status::success();
}

static Status checkBytes(const std::string &what, int64_t needed, size_t found) {
  if (static_cast<size_t>(needed) == found)
    return Status::success();
  return Status::badInput(what + " has " + std::to_string(needed) + " bytes, the caller's buffer " +
                          std::to_string(found));
}

Status Trainer::readOutput(size_t index, void *destination, size_t bytes) const {
  if (first && ranFirst)
    return first->readOutput(index, destination, bytes);
  const std::vector<Output> &outputs = manifest().outputs;
  if (index >= outputs.size())
    return Status::badInput("output " + std::to_string(index) + ": the step has " + std::to_string(outputs.size()));
  const Output &output = outputs[index];
  if (Status status =
          checkBytes("output " + std::to_string(index), numElements(output.shape) * sizeOf(output.dtype), bytes);
      !status.ok())
    return status;
  return content->shared->read([&] { return gatherOutput(output, destination); });
}

/// A number that every rank has for itself, of which users see the mean.
static bool isAveraged(const Output &output) {
  return output.isVarying && output.shape.empty() && isFloating(output.dtype);
}

template <typename Read>
Status Trainer::meanOfRanks(const Output &output, void *destination, const Read &read) const {
  double sum = 0;
  for (int64_t rank = 0; rank < manifest().ranks; ++rank) {
    char value[8];
    if (Status status = read(rank, value); !status.ok())
      return status;
    sum += loadAsDouble(value, output.dtype, 0);
  }
  storeFromDouble(destination, output.dtype, 0, sum / static_cast<double>(manifest().ranks));
  return Status::success();
}

int64_t Trainer::stepsKept(size_t index) const {
  const std::vector<Output> &outputs = manifest().outputs;
  bool isHere =
      index < outputs.size() && (isOutputWhole(index) || (isAveraged(outputs[index]) && content->ranks.areAll()));
  return isHere && !first && content->executor ? content->executor->keptSteps() : 1;
}

/// Whether a process of several has for itself what the latest step gave, of which nothing is to be found out by
/// waiting for it: then it reads alone, also where ranks are on several hosts.
bool Trainer::hasLatest(size_t index) const {
  const std::vector<Command> &commands = content->artifact.plan.commands;
  return !content->ranks.areAll() && isOutputWhole(index) &&
         std::none_of(commands.begin(), commands.end(),
                      [](const Command &command) { return command.is<CheckIndexCommand>(); });
}

Status Trainer::readOutput(size_t index, void *destination, size_t bytes, int64_t ago) const {
  // After a failure the last step may be one that was ended in the middle.
  if (ago == 0 && (stepsKept(index) == 1 || (content->shared->failure.ok() && !hasLatest(index))))
    return readOutput(index, destination, bytes);
  const std::vector<Output> &outputs = manifest().outputs;
  if (index >= outputs.size())
    return readOutput(index, destination, bytes); // says how many there are
  std::string what = "output " + std::to_string(index);
  if (int64_t kept = stepsKept(index); ago < 0 || ago >= kept)
    return Status::badInput(what + " of the step " + std::to_string(ago) + " before the latest: " +
                            (kept == 1 ? std::string("it is read before the next step is issued")
                                       : "that of the last " + std::to_string(kept) + " steps can be read"));
  const Output &output = outputs[index];
  if (Status status = checkBytes(what, output.localBytes(), bytes); !status.ok())
    return status;
  auto read = [&](int64_t rank, void *value) {
    return content->executor->readBack(issuedHere - 1 - ago, rank, output.offset, value, output.localBytes());
  };
  Status status = isAveraged(output) ? meanOfRanks(output, destination, read) : read(content->ranks.first, destination);
  return content->shared->failure.ok() ? content->shared->note(std::move(status)) : status;
}

Status Trainer::gatherOutput(const Output &output, void *destination) const {
  RankAccess ranks = content->access();
  if (isAveraged(output))
    return meanOfRanks(output, destination, [&](int64_t rank, char *value) {
      return ranks.read(rank, output.offset, value, sizeOf(output.dtype));
    });
  int64_t sources = output.split.dim ? manifest().ranks : 1;
  for (int64_t rank = 0; rank < sources; rank += manifest().tensorRanks())
    if (Status status = joinRows(output.split, output.shape, output.dtype, rank, manifest().dataRankOf(rank), ranks,
                                 output.offset, destination);
        !status.ok())
      return status;
  return Status::success();
}

Status Trainer::locate(const std::string &state, const std::string &name, size_t bytes,
                       const StateTensor *&tensor) const {
  tensor = content->state.find(state, name);
  if (!tensor)
    return Status::badInput("no " + state + " is named '" + name + "'");
  return checkBytes(state + " '" + name + "'", tensor->bytes(), bytes);
}

Status Trainer::readTensor(const std::string &state, const std::string &name, void *destination, size_t bytes) const {
  const StateTensor *tensor;
  if (Status status = locate(state, name, bytes, tensor); !status.ok())
    return status;
  return readState([&] { return content->state.read(*tensor, content->access(), destination); });
}

Status Trainer::writeTensor(const std::string &state, const std::string &name, const void *source, size_t bytes) {
  const StateTensor *tensor;
  Status status = locate(state, name, bytes, tensor);
  if (status.ok())
    status = content->shared->settle();
  // Of a sum the ranks keep their summands where it is the same.
  if (status.ok() && content->ranks.areAll() && tensor->entry->isSum) {
    Expected<bool> changes = content->state.replace(*tensor, content->access(), source);
    return changes ? Status::success() : changes.error();
  }
  if (!status.ok() || content->ranks.areAll())
    return status.ok() ? content->state.write(*tensor, content->memory(), source) : status;
  CommunicatorFactory &processes = *content->shared->processes;
  status = processes.awaitSteps(content->shared->abort);
  if (status.ok() && tensor->entry->isSum) // of which the others' part is read
    status = processes.awaitWrites(content->shared->abort, patience());
  if (!status.ok())
    return status;
  Expected<bool> changes = content->state.replace(*tensor, content->access(), source);
  if (!changes)
    return changes.error();
  processes.finishWrite();
  content->shared->written.note(state + " '" + tensor->name + "'",
                                hashBytes({static_cast<const char *>(source), bytes}), *changes);
  return Status::success();
}

Expected<std::vector<std::string>> Trainer::gatherText(const std::string &mine) const {
  return content->ranks.areAll() ? Expected<std::vector<std::string>>({mine}) : agreement().gather(mine);
}

Expected<int64_t> Trainer::largestOfAll(int64_t value) const {
  if (content->ranks.areAll())
    return value;
  CommunicatorFactory &processes = *content->shared->processes;
  std::vector<int64_t> all(static_cast<size_t>(processes.numProcesses()));
  if (Status status = processes.gather(&value, sizeof value, all.data(), content->shared->abort, patience());
      !status.ok())
    return status;
  return *std::max_element(all.begin(), all.end());
}
