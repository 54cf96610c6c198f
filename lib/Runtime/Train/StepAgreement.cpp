//===- StepAgreement.cpp --------------------------------------------------===//

#include "spmd/Runtime/Train/StepAgreement.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cstring>
#include <sstream>

using namespace spmd::runtime;

namespace {
/// What is compared at every step.
struct Summary {
  uint64_t program, hyper, inputs, writes;
  int32_t code, hasExpectedRows;
};
} // namespace

template <typename Value>
static uint64_t hashOf(const std::vector<Value> &values) {
  return hashBytes({reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Value)});
}

void WrittenTensors::note(const std::string &what, uint64_t hash, bool changes) {
  Written &written = all[what];
  written = {hash, written.changes || changes};
}

Expected<std::vector<std::string>> StepAgreement::gather(const std::string &bytes) {
  auto count = static_cast<size_t>(processes.numProcesses());
  auto size = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> sizes(count);
  if (Status status = processes.gather(&size, sizeof size, sizes.data(), abort, patience); !status.ok())
    return status;
  int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::string mine = bytes, all(static_cast<size_t>(longest) * count, 0);
  mine.resize(static_cast<size_t>(longest));
  if (Status status = processes.gather(mine.data(), longest, all.data(), abort, patience); !status.ok())
    return status;
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(all.substr(i * static_cast<size_t>(longest), static_cast<size_t>(sizes[i])));
  return parts;
}

Status StepAgreement::share(const Status &problem) {
  std::string text = problem.ok() ? "" : std::to_string(static_cast<int>(problem.code)) + " " + problem.message;
  Expected<std::vector<std::string>> all = gather(text);
  if (!all)
    return all.error();
  for (size_t process = 0; process < all->size(); ++process) {
    const std::string &found = (*all)[process];
    if (found.empty())
      continue;
    if (!problem.ok() && found == text)
      return problem;
    size_t space = found.find(' ');
    Status status{static_cast<StatusCode>(std::atoi(found.c_str())),
                  ranks.describe(static_cast<int64_t>(process)) + ": " + found.substr(space + 1),
                  static_cast<int32_t>(static_cast<int64_t>(process) * ranks.count), -1, ""};
    status.isElsewhere = true;
    return status;
  }
  return Status::success();
}

Status StepAgreement::compareHyper(const StepNote &note) {
  size_t count = note.hyper.size();
  std::vector<double> all(count * static_cast<size_t>(processes.numProcesses()));
  if (Status status = processes.gather(note.hyper.data(), static_cast<int64_t>(count * sizeof(double)), all.data(),
                                       abort, patience);
      !status.ok())
    return status;
  for (size_t i = count; i < all.size(); ++i)
    if (std::memcmp(&all[i], &all[i % count], sizeof(double)) != 0) {
      const HyperParameter &hyper = manifest.hyper[i % count];
      return Status::badInput(ranks.describe(static_cast<int64_t>(i / count)) + " and " + ranks.describe(0) +
                              " take the step with different values of " + hyper.name + " of group " +
                              std::to_string(hyper.group) + ": " + formatNumber(all[i]) + " and " +
                              formatNumber(all[i % count]) + "; every process must set the same");
    }
  return Status::success();
}

/// Who has changed a tensor must not be alone: the others wrote the same, though it may have been theirs already.
Status StepAgreement::compareWrites(const WrittenTensors &written) {
  std::ostringstream changed;
  for (const auto &[what, value] : written.all)
    if (value.changes)
      changed << value.hash << ' ' << what << '\n';
  Expected<std::vector<std::string>> all = gather(changed.str());
  if (!all)
    return all.error();
  Status problem;
  for (size_t process = 0; process < all->size() && problem.ok(); ++process) {
    std::istringstream lines((*all)[process]);
    uint64_t hash;
    for (std::string what; problem.ok() && lines >> hash && std::getline(lines.ignore(), what);) {
      auto own = written.all.find(what);
      if (own == written.all.end() || own->second.hash != hash)
        problem = Status::badInput(ranks.describe(static_cast<int64_t>(process)) + " wrote " + what + ", this process " +
                                   (own == written.all.end() ? "did not" : "another value") +
                                   "; every process must write the same, as each keeps a part of it");
    }
  }
  return share(problem);
}

Expected<bool> StepAgreement::meet(const StepNote &note, const WrittenTensors &written) {
  uint64_t writes = 0;
  for (const auto &[what, value] : written.all)
    if (value.changes)
      writes = (writes * 31 + hashBytes(what)) * 31 + value.hash;
  Summary mine{note.program,
               hashOf(note.hyper),
               hashOf(note.inputs),
               writes,
               static_cast<int32_t>(note.problem.code),
               note.hasExpectedRows};
  std::vector<Summary> all(static_cast<size_t>(processes.numProcesses()));
  if (Status status = processes.gather(&mine, sizeof mine, all.data(), abort, patience); !status.ok())
    return status;
  auto differs = [&](auto member) {
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].*member != all[0].*member)
        return static_cast<int64_t>(i);
    return int64_t(0);
  };
  if (std::any_of(all.begin(), all.end(), [](const Summary &summary) { return summary.code != 0; }))
    return share(note.problem);
  if (int64_t process = differs(&Summary::program))
    return Status::badInput(ranks.describe(process) + " and " + ranks.describe(0) +
                            " take steps of different programs; every process must make the same calls");
  Status status;
  if (differs(&Summary::hyper))
    status = compareHyper(note);
  if (status.ok() && differs(&Summary::writes))
    status = compareWrites(written);
  if (!status.ok())
    return status;
  if (int64_t process = differs(&Summary::inputs)) {
    std::vector<uint64_t> hashes(note.inputs.size() * all.size());
    auto bytes = static_cast<int64_t>(note.inputs.size() * sizeof(uint64_t));
    status = processes.gather(note.inputs.data(), bytes, hashes.data(), abort, patience);
    size_t input = 0;
    while (input + 1 < note.inputs.size() &&
           hashes[static_cast<size_t>(process) * note.inputs.size() + input] == hashes[input])
      ++input;
    return status.ok() ? Status::badInput(ranks.describe(process) + " and " + ranks.describe(0) +
                                          " give different values of input '" + manifest.batch[input].name +
                                          "', which must be the same in every process")
                       : status;
  }
  return !differs(&Summary::hasExpectedRows) && note.hasExpectedRows;
}
