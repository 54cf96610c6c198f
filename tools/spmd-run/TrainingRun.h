//===- TrainingRun.h - The steps of a run, and what is around them -*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMDRUN_TRAININGRUN_H
#define SPMD_TOOLS_SPMDRUN_TRAININGRUN_H

#include "Evaluation.h"
#include "Options.h"
#include "Reference.h"
#include "spmd/Runtime/Run/BackgroundSave.h"
#include "spmd/Runtime/Run/RunLog.h"
#include "spmd/Runtime/Run/Schedule.h"

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

namespace spmd::runtime {

/// Tokens (or rows, when the first input holds no ids) of a global batch.
int64_t itemsPerStep(const Manifest &manifest, const char *&unit);

class TrainingRun {
public:
  /// Opens data, schedule, log and checkpoint folder. `resumed`: what the run goes on from, or null.
  static Expected<TrainingRun> create(const Arguments &arguments, const Checkpoint *resumed, Trainer &trainer);

  /// Trains until the last step, or until SIGTERM where checkpoints are saved.
  Status train();

  const std::optional<Reference> &recorded() const { return reference; }
  const std::vector<double> &losses() const { return all; }
  /// What is known of the data, for people; empty for recorded batches.
  std::string describeData() const;
  /// Tokens or rows a second of all steps but the first, which warms up; 0 without any.
  double itemsPerSecond() const;
  int64_t numSteps() const { return steps; }

private:
  TrainingRun(const Arguments &arguments, Trainer &trainer) : arguments(&arguments), trainer(&trainer) {}
  Status openData();
  Status openReference();
  Status openAround(bool writes);
  /// How many steps may be issued whose losses are not read yet: a GPU does not wait for the host then.
  size_t behind() const;
  Status issue(int64_t number);
  /// Reads losses until `most` are left to be read.
  Status finish(size_t most);
  /// Those that are known when a step has failed.
  Status finishBefore(Status failure);
  Status evaluate(int64_t number);
  Status save();
  /// Of the checkpoint that is written beside the run: if it is written, or when it is.
  Status finishSave(bool waits);
  void print(const RunRecord &record, std::optional<double> eager) const;
  void showProgress(int64_t number) const;

  const Arguments *arguments;
  Trainer *trainer;
  RunState state;
  std::optional<Reference> reference;
  std::optional<DataSet> data;
  ScheduledRates rates;
  RunLog log;
  std::optional<CheckpointFolder> folder;
  std::unique_ptr<BackgroundSave> beside; ///< with --save-mode=beside
  std::optional<Evaluation> evaluation;
  size_t loss = 0;
  int64_t first = 0, steps = 0, savedAt = -1;
  int64_t items = 0;
  const char *unit = "";
  /// A step whose loss is not read yet.
  struct Issued {
    int64_t number = 0;
    std::optional<double> rate;
    std::chrono::steady_clock::time_point begin;
  };
  std::deque<Issued> issued;
  std::chrono::steady_clock::time_point lastRead;
  std::vector<double> all;
  std::vector<HostTensor> batch;
  double seconds = 0; ///< of all steps but the first
  double flops = 0;   ///< of the products of a step, of all ranks
  bool shows = false;
};

} // namespace spmd::runtime

#endif // SPMD_TOOLS_SPMDRUN_TRAININGRUN_H
