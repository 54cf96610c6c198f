//===- Registry.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Train/Registry.h"

#include <algorithm>
#include <mutex>

using namespace spmd::runtime;

namespace {
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::shared_ptr<const Backend>>> backends;
  std::vector<std::pair<std::string, CommunicatorMaker>> communicators;

  static Registry &get() {
    static Registry registry;
    return registry;
  }
};

template <typename Entries>
auto findNamed(Entries &entries, const std::string &name) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto &entry) { return entry.first == name; });
}
} // namespace

void spmd::runtime::registerBackend(std::shared_ptr<const Backend> backend) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const std::string &target : backend->targets())
    if (findNamed(registry.backends, target) == registry.backends.end())
      registry.backends.emplace_back(target, backend);
}

std::shared_ptr<const Backend> spmd::runtime::findBackend(const std::string &target) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto found = findNamed(registry.backends, target);
  return found == registry.backends.end() ? nullptr : found->second;
}

std::vector<std::string> spmd::runtime::registeredTargets() {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  std::vector<std::string> targets;
  for (const auto &entry : registry.backends)
    targets.push_back(entry.first);
  return targets;
}

void spmd::runtime::registerCommunicators(const std::string &name, CommunicatorMaker maker) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  if (findNamed(registry.communicators, name) == registry.communicators.end())
    registry.communicators.emplace_back(name, std::move(maker));
}

Expected<std::shared_ptr<CommunicatorFactory>>
spmd::runtime::makeCommunicators(const std::string &name, std::chrono::steady_clock::duration timeout) {
  CommunicatorMaker maker;
  std::string known;
  {
    Registry &registry = Registry::get();
    std::lock_guard<std::mutex> lock(registry.mutex);
    if (auto found = findNamed(registry.communicators, name); found != registry.communicators.end())
      maker = found->second;
    for (const auto &entry : registry.communicators)
      known += (known.empty() ? "'" : ", '") + entry.first + "'";
  }
  if (!maker)
    return Status::badInput("no communicators are named '" + name + "'; this program has " +
                            (known.empty() ? "none" : known));
  return maker(timeout);
}
