//===- TrainingRun.cpp ----------------------------------------------------===//

#include "TrainingRun.h"
#include "CheckFinite.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace spmd::runtime;

/// Set by SIGTERM: the run is to save and to end.
static volatile std::sig_atomic_t isAskedToEnd = 0;

int64_t spmd::runtime::itemsPerStep(const Manifest &manifest, const char *&unit) {
  unit = "rows";
  if (manifest.batch.empty() || manifest.batch[0].shape.empty())
    return 1;
  const BatchInput &first = manifest.batch[0];
  bool isIds = first.dtype == DType::I64 || first.dtype == DType::I32;
  if (!isIds || first.shape.size() < 2)
    return first.shape[0];
  unit = "tokens";
  return first.shape[0] * first.shape[1];
}

Status TrainingRun::openData() {
  Expected<DataSet> opened = DataSet::open(state.data, trainer->manifest(), trainer->ranks());
  if (!opened)
    return opened.error();
  data = std::move(*opened);
  steps = arguments->steps ? arguments->steps : data->stepsPerEpoch();
  return Status::success();
}

static Status withoutBatches(const Manifest &manifest) {
  std::string inputs, example;
  for (const BatchInput &input : manifest.batch) {
    inputs += (inputs.empty() ? "" : ", ") + input.name + " (" + nameOf(input.dtype) + formatShape(input.shape) + ")";
    example += (example.empty() ? "" : ",") + input.name + "=" + input.name + ".npy";
  }
  return Status::badInput("there is nothing to train on: the step was captured without reference=, which records batches\n"
                          "  hint: --data=" + example + ", a file for each input: " + inputs +
                          "; or --data=train.bin, a file of tokens");
}

Status TrainingRun::openReference() {
  std::string path = trainer->artifact().pathOf("reference.safetensors");
  if (!std::filesystem::exists(path))
    return arguments->check ? Status::badInput("--check compares with what eager PyTorch computed, and the step was "
                                               "captured without reference=, which records it")
                            : withoutBatches(trainer->manifest());
  Expected<Reference> opened = Reference::open(path, trainer->manifest());
  if (!opened)
    return opened.error();
  reference = std::move(*opened);
  steps = arguments->steps ? arguments->steps : reference->steps();
  if (arguments->check && steps > reference->steps())
    return {StatusCode::WrongResult,
            "cannot check " + std::to_string(steps) + " steps: the reference has batches for " +
                std::to_string(reference->steps()),
            -1, -1, ""};
  return Status::success();
}

/// Schedule, evaluation, and what is written; one process of a job writes.
Status TrainingRun::openAround(bool writes) {
  Expected<ScheduledRates> scheduled = ScheduledRates::create(state.schedule, *trainer, steps);
  if (!scheduled)
    return scheduled.error();
  rates = std::move(*scheduled);
  if (!arguments->evaluation.empty()) {
    Expected<Evaluation> loaded = Evaluation::load(arguments->evaluation, arguments->validation, state.data.tokenType,
                                                   arguments->evalSteps, *trainer, arguments->trainer);
    if (!loaded)
      return loaded.error();
    evaluation = std::move(*loaded);
  }
  if (writes && !arguments->log.empty()) {
    Expected<RunLog> opened = RunLog::open(arguments->log);
    if (!opened)
      return opened.error();
    log = *opened;
  }
  if (arguments->savesCheckpoints()) {
    Expected<CheckpointFolder> made = CheckpointFolder::create(arguments->save);
    if (!made)
      return made.error();
    folder = *made;
    if (arguments->savesBeside) {
      if (!trainer->ranks().areAll() && parseCheckpointKind(arguments->saveKind) != CheckpointKind::Sharded)
        return Status::badInput("--save-mode=beside in several processes is for checkpoints with a file for each rank\n"
                                "  hint: --save-kind=sharded; or --save-mode=wait");
      beside = std::make_unique<BackgroundSave>(*trainer);
      std::printf("checkpoints are written beside the run, from a copy of the state: %s bytes of memory\n",
                  formatCount(beside->bytes()).c_str());
    }
    // Otherwise a later --resume would go on from what another run has left.
    if (int64_t latest = folder->latestStep(); latest > first)
      return Status::badInput("'" + arguments->save + "' has a checkpoint of step " + std::to_string(latest) +
                              ", and this run begins at step " + std::to_string(first) + "\n  hint: --resume=" +
                              arguments->save + " goes on from it; or save elsewhere, or remove it");
  }
  return Status::success();
}

Expected<TrainingRun> TrainingRun::create(const Arguments &arguments, const Checkpoint *resumed, Trainer &trainer) {
  TrainingRun run(arguments, trainer);
  if (resumed)
    run.state = resumed->run;
  if (!arguments.data.files.empty())
    run.state.data.files = arguments.data.files;
  if (!resumed || !arguments.data.order.empty())
    run.state.data.order = arguments.data.order;
  if (!resumed)
    run.state.data.tokenType = arguments.data.tokenType;
  if (arguments.seed)
    run.state.data.seed = static_cast<uint64_t>(*arguments.seed);
  if (!arguments.schedule.empty())
    run.state.schedule = arguments.schedule;
  run.first = run.state.step;
  if (run.state.schedule.empty()) // which begins with those of the artifact
    run.state.applyRates(trainer);
  Expected<size_t> loss = findLoss(trainer.manifest());
  if (!loss)
    return loss.error();
  run.loss = *loss;
  run.items = itemsPerStep(trainer.manifest(), run.unit);
  for (const Command &command : trainer.artifact().plan.commands)
    run.flops += flopsOf(command) * static_cast<double>(trainer.manifest().ranks);
  run.shows = ::isatty(STDERR_FILENO) && (arguments.quiet || !::isatty(STDOUT_FILENO));
  if (Status status = run.state.data.files.empty() ? run.openReference() : run.openData(); !status.ok())
    return status;
  if (Status status = run.openAround(trainer.ranks().has(0)); !status.ok())
    return status;
  return run;
}

std::string TrainingRun::describeData() const {
  if (!data)
    return "";
  return data->describe() + ", " + formatCount(data->stepsPerEpoch()) + " steps per epoch";
}

double TrainingRun::itemsPerSecond() const {
  auto count = static_cast<double>(all.size() > 1 ? all.size() - 1 : all.size());
  return seconds > 0 ? static_cast<double>(items) * count / seconds : 0;
}

void TrainingRun::print(const RunRecord &record, std::optional<double> eager) const {
  if (arguments->quiet)
    return;
  auto number = static_cast<long long>(record.step);
  if (reference && eager) {
    std::printf("%6lld  %12.6f  %12.6f  %10.1e\n", number, record.loss, *eager, record.loss - *eager);
  } else if (reference) {
    std::printf("%6lld  %12.6f  %12s  %10s\n", number, record.loss, "-", "-");
  } else {
    std::printf("%6lld  %12.6f  %12.4e  %12s", number, record.loss, record.rate.value_or(NAN),
                formatCount(std::llround(record.itemsPerSecond)).c_str());
    if (arguments->peakFlops)
      std::printf("  %5.1f", 100 * flops / record.seconds / *arguments->peakFlops);
    std::printf("\n");
  }
}

void TrainingRun::showProgress(int64_t number) const {
  if (!shows)
    return;
  auto done = static_cast<double>(all.size()), left = static_cast<double>(steps - number - 1);
  std::fprintf(stderr, "\rstep %lld of %lld, %.0f s left ", static_cast<long long>(number + 1),
               static_cast<long long>(steps), left * seconds / std::max(1.0, done - 1));
}

Status TrainingRun::evaluate(int64_t number) {
  Expected<double> value = evaluation->run(*trainer);
  if (!value)
    return value.error();
  if (!arguments->quiet)
    std::printf("after step %lld: validation loss %.6f\n", static_cast<long long>(number), *value);
  RunRecord record;
  record.step = number;
  record.loss = *value;
  record.isEvaluation = true;
  return log.write(record);
}

static Status announce(const Expected<std::string> &saved) {
  if (!saved)
    return saved.error();
  if (!saved->empty())
    std::printf("saved %s\n", saved->c_str());
  return Status::success();
}

Status TrainingRun::save() {
  CheckpointOptions options;
  options.kind = parseCheckpointKind(arguments->saveKind).value_or(CheckpointKind::Full);
  options.keep = arguments->keep;
  savedAt = state.step;
  if (!beside)
    return announce(folder->save(*trainer, state, options));
  if (Status status = finishSave(/*waits=*/true); !status.ok())
    return status;
  return beside->start(*folder, state, options);
}

Status TrainingRun::finishSave(bool waits) { return beside ? announce(beside->finish(waits)) : Status::success(); }

size_t TrainingRun::behind() const {
  constexpr int64_t kMost = 4; // of which the device has enough to do
  const std::vector<Command> &commands = trainer->artifact().plan.commands;
  // A row number that is bad is an error of the step that has it.
  bool isLookedAt = arguments->checkFinite || std::any_of(commands.begin(), commands.end(), [](const Command &command) {
                      return command.is<CheckIndexCommand>();
                    });
  return isLookedAt ? 0 : static_cast<size_t>(std::min(kMost, trainer->stepsKept(loss) - 1));
}

Status TrainingRun::issue(int64_t number) {
  int64_t recorded = reference ? number % reference->steps() : 0;
  if (reference)
    batch = reference->batch(recorded);
  Status status = reference && state.schedule.empty() ? reference->applyHyper(recorded, *trainer)
                                                      : rates.apply(number, *trainer);
  if (status.ok() && data)
    status = data->batch(number, batch);
  if (!status.ok())
    return status;
  Issued step;
  step.number = number;
  step.begin = std::chrono::steady_clock::now();
  if (status = trainer->step(batch.data(), batch.size()); !status.ok())
    return status;
  for (size_t i = 0; i < trainer->manifest().hyper.size() && !step.rate; ++i)
    if (trainer->manifest().hyper[i].name == "lr")
      step.rate = trainer->hyperValue(i);
  issued.push_back(step);
  return Status::success();
}

Status TrainingRun::finish(size_t most) {
  while (issued.size() > most) {
    Expected<double> value = readLoss(*trainer, loss, static_cast<int64_t>(issued.size()) - 1);
    if (!value)
      return value.error();
    Issued step = issued.front();
    issued.pop_front();
    auto now = std::chrono::steady_clock::now();
    RunRecord record;
    record.step = step.number;
    record.loss = *value;
    record.rate = step.rate;
    record.seconds = std::chrono::duration<double>(now - std::max(step.begin, lastRead)).count();
    record.itemsPerSecond = static_cast<double>(items) / record.seconds;
    lastRead = now;
    if (!all.empty() || steps == step.number + 1)
      seconds += record.seconds;
    all.push_back(record.loss);
    state.step = step.number + 1;
    // Past the recorded steps batches repeat, but eager losses do not.
    print(record, reference && step.number < reference->steps() ? reference->loss(step.number) : std::nullopt);
    showProgress(step.number);
    if (Status status = log.write(record); !status.ok())
      return status;
  }
  return Status::success();
}

Status TrainingRun::finishBefore(Status failure) {
  (void)finish(0); // ends at the first that has no loss
  return failure;
}

Status TrainingRun::train() {
  if (!arguments->quiet && reference)
    std::printf("%6s  %12s  %12s  %10s\n", "step", "loss", "eager", "difference");
  else if (!arguments->quiet)
    std::printf("%6s  %12s  %12s  %12s%s\n", "step", "loss", "lr", (std::string(unit) + "/s").c_str(),
                arguments->peakFlops ? "  MFU %" : "");
  if (arguments->checkFinite)
    if (Status status = checkFinite(*trainer, "before the first step", /*withOutputs=*/false); !status.ok())
      return status;
  if (folder)
    std::signal(SIGTERM, [](int) { isAskedToEnd = 1; });
  for (int64_t number = first; number < steps; ++number) {
    if (Status status = issue(number); !status.ok())
      return finishBefore(std::move(status));
    bool isLast = number + 1 == steps;
    auto isDue = [&](int64_t every) { return isLast || (every && (number + 1) % every == 0); };
    bool evaluates = evaluation && isDue(arguments->evalEvery);
    if (Status status = finish(isLast || evaluates ? 0 : behind()); !status.ok())
      return status;
    if (arguments->checkFinite)
      if (Status status = checkFinite(*trainer, "after step " + std::to_string(number), /*withOutputs=*/true);
          !status.ok())
        return status;
    if (evaluates)
      if (Status status = evaluate(number); !status.ok())
        return status;
    if (!folder)
      continue;
    Expected<int64_t> ends = trainer->largestOfAll(isAskedToEnd);
    if (!ends)
      return ends.error();
    if (Status status = finishSave(/*waits=*/false); !status.ok())
      return status;
    if (!*ends && !isDue(arguments->saveEvery))
      continue;
    if (Status status = finish(0); !status.ok())
      return status;
    if (Status status = save(); !status.ok())
      return status;
    if (*ends)
      break;
  }
  if (Status status = finishSave(/*waits=*/true); !status.ok())
    return status;
  if (folder)
    std::signal(SIGTERM, SIG_DFL);
  if (shows)
    std::fputs("\r\033[K", stderr);
  return Status::success();
}
