//===- Registry.h - The backends and communicators of a program ---*- C++ -*-===//
//
// Programs register what they link (registerHost), and programs of other trees theirs. What
// is registered under a name first stays.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_TRAIN_REGISTRY_H
#define SPMD_RUNTIME_TRAIN_REGISTRY_H

#include "spmd/Runtime/Train/Backend.h"

#include <functional>

namespace spmd::runtime {

void registerBackend(std::shared_ptr<const Backend> backend);

/// The backend that runs artifacts of `target`, or null.
std::shared_ptr<const Backend> findBackend(const std::string &target);

/// All targets that can be run, in the order of registration.
std::vector<std::string> registeredTargets();

/// Joins the job that this process is part of. `timeout` is how long the others are waited for.
using CommunicatorMaker =
    std::function<Expected<std::shared_ptr<CommunicatorFactory>>(std::chrono::steady_clock::duration timeout)>;

void registerCommunicators(const std::string &name, CommunicatorMaker maker);

/// An error that says what there is when nothing has this name.
Expected<std::shared_ptr<CommunicatorFactory>> makeCommunicators(const std::string &name,
                                                                 std::chrono::steady_clock::duration timeout);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_REGISTRY_H
