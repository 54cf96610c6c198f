//===- StepAgreement.h - What processes bring to a step -----------*- C++ -*-===//
//
// Each process of a job takes a step for itself: it gives a batch, sets learning
// rates, writes parameters. Before anything runs they compare what must be the
// same. A difference is one error on all of them, and has changed nothing.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_TRAIN_STEPAGREEMENT_H
#define SPMD_RUNTIME_TRAIN_STEPAGREEMENT_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Train/Abort.h"
#include "spmd/Runtime/Train/Communicator.h"

#include <map>
#include <string>
#include <vector>

namespace spmd::runtime {

/// The tensors of the state that were written since the last step.
class WrittenTensors {
public:
  /// `changes`: the value is another one for the ranks here.
  void note(const std::string &what, uint64_t hash, bool changes);
  void clear() { all.clear(); }

private:
  friend class StepAgreement;
  struct Written {
    uint64_t hash = 0;
    bool changes = false;
  };
  std::map<std::string, Written> all;
};

/// What a process brings. Hashes are of what must be the same everywhere.
struct StepNote {
  uint64_t program = 0;            ///< which one it calls
  Status problem;                  ///< with its batch
  std::vector<double> hyper;       ///< in the manifest's order
  std::vector<uint64_t> inputs;    ///< of each input that must be the same; 0 for others
  bool hasExpectedRows = true;     ///< as many of each input as its ranks take
};

class StepAgreement {
public:
  /// All of them outlive it.
  StepAgreement(const Manifest &manifest, const RanksHere &ranks, CommunicatorFactory &processes,
                const AbortState &abort, std::chrono::steady_clock::duration patience)
      : manifest(manifest), ranks(ranks), processes(processes), abort(abort), patience(patience) {}

  /// Compares the notes of all processes. True: all have the rows that are expected of them.
  Expected<bool> meet(const StepNote &note, const WrittenTensors &written);

  /// Ends on all processes with the first problem that one of them has.
  Status share(const Status &problem);

  /// The bytes of every process, which may have different numbers of them.
  Expected<std::vector<std::string>> gather(const std::string &bytes);

private:
  Status compareHyper(const StepNote &note);
  Status compareWrites(const WrittenTensors &written);

  const Manifest &manifest;
  const RanksHere &ranks;
  CommunicatorFactory &processes;
  const AbortState &abort;
  std::chrono::steady_clock::duration patience;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_STEPAGREEMENT_H
