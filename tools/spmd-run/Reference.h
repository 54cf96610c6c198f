//===- Reference.h - Recorded batches, losses and results --------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMDRUN_REFERENCE_H
#define SPMD_TOOLS_SPMDRUN_REFERENCE_H

#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <optional>
#include <string>
#include <vector>

namespace spmd::runtime {

/// reference.safetensors of a step package: what eager PyTorch computed.
class Reference {
public:
  /// Opens the file and checks that it has whole steps for `manifest`.
  static Expected<Reference> open(const std::string &path, const Manifest &manifest);

  int64_t steps() const { return numSteps; }

  /// The batch of a step, as Trainer::step takes it.
  std::vector<HostTensor> batch(int64_t step) const;

  /// The loss that eager PyTorch computed in this step, if recorded.
  std::optional<double> loss(int64_t step) const;

  /// How far this loss, or a tensor after the last step (the norm), moves when eager PyTorch begins with parameters that
  /// are rounded; 0 if not recorded.
  double movedLoss(int64_t step) const;
  double moved(const std::string &key) const;
  bool hasMovement() const;

  /// Sets the hyper-parameters that were in effect in this step.
  Status applyHyper(int64_t step, Trainer &trainer) const;

  /// A tensor after the last step: "NAME" or "optimizer/STATE/NAME".
  const TensorView * final(const std::string &key) const;

private:
  Reference(SafetensorsFile file, const Manifest &manifest) : file(std::move(file)), manifest(&manifest) {}

  SafetensorsFile file;
  const Manifest *manifest;
  int64_t numSteps = 0;
};

} // namespace spmd::runtime

#endif // SPMD_TOOLS_SPMDRUN_REFERENCE_H
