//===- Evaluation.h - Losses of another step on the same model ---*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMDRUN_EVALUATION_H
#define SPMD_TOOLS_SPMDRUN_EVALUATION_H

#include "spmd/Runtime/Run/DataSet.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <memory>
#include <string>

namespace spmd::runtime {

/// Index of the step's loss among its outputs.
Expected<size_t> findLoss(const Manifest &manifest);
/// The loss of the step `ago` before the latest.
Expected<double> readLoss(const Trainer &trainer, size_t index, int64_t ago = 0);

/// A captured step that evaluates: an artifact of its own, which gets the parameters and buffers of the one that trains.
class Evaluation {
public:
  /// `steps`: batches of an evaluation; 0: all of the data, in order.
  static Expected<Evaluation> load(const std::string &artifact, const std::string &data, const std::string &tokenType,
                                   int64_t steps, const Trainer &trained, TrainerOptions options);

  /// The mean loss with the parameters as they are.
  Expected<double> run(const Trainer &trained);

private:
  Evaluation(std::unique_ptr<Trainer> trainer, DataSet data) : trainer(std::move(trainer)), data(std::move(data)) {}
  Status copyParameters(const Trainer &trained);

  std::unique_ptr<Trainer> trainer;
  DataSet data;
  int64_t steps = 0;
  size_t loss = 0;
};

} // namespace spmd::runtime

#endif // SPMD_TOOLS_SPMDRUN_EVALUATION_H
