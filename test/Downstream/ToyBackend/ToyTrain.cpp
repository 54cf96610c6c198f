//===- ToyTrain.cpp - Trains an artifact on the toy -----------------------===//
//
// spmd-toy-train ARTIFACT RANKS SAVED: trains the recorded steps with a process
// per rank, compares with eager PyTorch, and saves the final parameters. The
// process of rank 0 prints.
//
//===----------------------------------------------------------------------===//

#include "ToyBackend.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Train/Trainer.h"
#include "tools/spmd-run/Check.h"

#include <cstdio>
#include <cstdlib>

using namespace spmd::runtime;

static Status train(const char *artifact, const char *saved) {
  Expected<std::unique_ptr<Trainer>> loaded = Trainer::load(artifact, {});
  if (!loaded)
    return loaded.error();
  Trainer &trainer = **loaded;
  Expected<Reference> reference =
      Reference::open(trainer.artifact().pathOf("reference.safetensors"), trainer.manifest());
  if (!reference)
    return reference.error();
  std::vector<double> losses;
  for (int64_t step = 0; step < reference->steps(); ++step) {
    if (Status status = reference->applyHyper(step, trainer); !status.ok())
      return status;
    std::vector<HostTensor> batch = reference->batch(step);
    if (Status status = trainer.step(batch.data(), batch.size()); !status.ok())
      return status;
    float loss;
    if (Status status = trainer.readOutput(0, &loss, sizeof loss); !status.ok())
      return status;
    losses.push_back(loss);
  }
  if (Status status = trainer.save(saved, true); !status.ok())
    return status;
  return checkRun(trainer, *reference, losses, {});
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: spmd-toy-train ARTIFACT RANKS SAVED\n");
    return 2;
  }
  bool good = toy::runProcesses(std::atoll(argv[2]), [&](std::shared_ptr<toy::Mail> mail) {
    if (mail->rank() != 0 && !std::freopen("/dev/null", "w", stdout))
      return 3;
    registerHost();
    toy::registerToy(mail);
    Status status = train(argv[1], argv[3]);
    if (!status.ok())
      std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(mail->rank()), status.message.c_str());
    return static_cast<int>(status.code);
  });
  return good ? 0 : 1;
}
