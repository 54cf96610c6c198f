//===- FuzzArtifact.cpp - Damaged artifacts -------------------------------===//
//
// Loads each damaged artifact, with the certificate, and what loads trains one step on its recorded batch: also where a
// damaged plan still passes, since the certificate proves that it computes the same.
//
//===----------------------------------------------------------------------===//

#include "FuzzLoop.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Train/Trainer.h"
#include "tools/spmd-run/Reference.h"

using namespace spmd::runtime;
using spmd::fuzz::Verdict;

static Verdict refuse(const Status &status) { return status.message.empty() ? Verdict::mute : Verdict::refused; }

static Verdict train(const std::string &path, const std::string &) {
  TrainerOptions options;
  options.threads = 1;
  options.timeoutSeconds = 2;
  Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(path, options);
  if (!trainer)
    return refuse(trainer.error());
  Expected<Reference> reference =
      Reference::open((*trainer)->artifact().pathOf("reference.safetensors"), (*trainer)->manifest());
  if (!reference)
    return refuse(reference.error());
  if (Status status = reference->applyHyper(0, **trainer); !status.ok())
    return refuse(status);
  std::vector<HostTensor> batch = reference->batch(0);
  Status status = (*trainer)->step(batch.data(), batch.size());
  return status.ok() ? Verdict::accepted : refuse(status);
}

int main(int argc, char **argv) {
  registerHost();
  return spmd::fuzz::runFuzzer(argc, argv,
                               {{"manifest.json", "train_step.plan.json", "weights.safetensors", "reference.safetensors"}, train});
}
