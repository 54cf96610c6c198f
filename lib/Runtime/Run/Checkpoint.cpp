//===- Checkpoint.cpp - The checkpoints of a folder -----------------------===//

#include "spmd/Runtime/Run/Checkpoint.h"
#include "CheckpointFiles.h"
#include "spmd/Runtime/Core/AtomicFile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sstream>
#include <unistd.h>

using namespace spmd::runtime;
namespace fs = std::filesystem;

static constexpr char kPrefix[] = "step-";
static constexpr char kUnfinished[] = ".saving-";

static std::string folderNameOf(int64_t step) {
  std::string digits = std::to_string(step);
  return kPrefix + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

static std::vector<fs::path> list(const fs::path &folder, const std::string &prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().rfind(prefix, 0) == 0)
      found.push_back(entry.path());
  return found;
}

/// The checkpoints in a folder, oldest first.
static std::vector<fs::path> listCheckpoints(const fs::path &folder) {
  std::vector<fs::path> found = list(folder, kPrefix);
  auto key = [](const fs::path &path) { return std::pair(path.filename().string().size(), path.filename().string()); };
  std::sort(found.begin(), found.end(), [&](const fs::path &a, const fs::path &b) { return key(a) < key(b); });
  return found;
}

Expected<CheckpointFolder> CheckpointFolder::create(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path))
    return Status::badInput("cannot make folder '" + path + "': " + (error ? error.message() : "it is a file"));
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    return Status::badInput("cannot write into '" + path + "': " + std::strerror(errno));
  return CheckpointFolder(path);
}

int64_t CheckpointFolder::latestStep() const {
  std::vector<fs::path> all = listCheckpoints(path);
  if (all.empty())
    return -1;
  std::string digits = all.back().filename().string().substr(sizeof kPrefix - 1);
  bool isNumber = !digits.empty() && digits.size() < 19 && digits.find_first_not_of("0123456789") == std::string::npos;
  return isNumber ? std::stoll(digits) : -1;
}

/// A rename is on the disk once its folder is.
static Status syncFolder(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool good = descriptor >= 0 && ::fsync(descriptor) == 0;
  Status status = good ? Status::success() : Status::failed("cannot sync '" + path + "': " + std::strerror(errno));
  if (descriptor >= 0)
    ::close(descriptor);
  return status;
}

/// Gives `temporary` the name `target`. What had it is then in `temporary`'s place, so that there is no moment without.
static Status publish(const std::string &temporary, const std::string &folder, const std::string &target) {
  if (Status status = syncFolder(temporary); !status.ok())
    return status;
  bool replaces = fs::exists(target);
  int failed = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), replaces ? RENAME_EXCHANGE : 0);
  if (failed && replaces && errno == EINVAL) { // a file system without exchange
    std::error_code error;
    fs::remove_all(target, error);
    failed = ::rename(temporary.c_str(), target.c_str());
  }
  if (failed)
    return Status::failed("cannot rename '" + temporary + "': " + std::strerror(errno));
  return syncFolder(folder);
}

/// Removes a checkpoint that nobody takes for a whole one meanwhile.
static void removeOld(const fs::path &checkpoint) {
  std::error_code error;
  fs::path away = checkpoint.parent_path() / (kUnfinished + checkpoint.filename().string() + ".old");
  fs::rename(checkpoint, away, error);
  fs::remove_all(away, error);
}

static void removeUnfinished(const fs::path &folder) {
  std::error_code error;
  for (const fs::path &leftover : list(folder, kUnfinished)) // of a run that was killed, too
    fs::remove_all(leftover, error);
}

Expected<std::string> CheckpointFolder::write(const Trainer &trainer, const Saving &saving) {
  const std::string &folder = saving.temporary;
  const CheckpointOptions &options = saving.options;
  std::vector<std::string> names;
  Status status;
  if (options.kind == CheckpointKind::Full) {
    status = trainer.save(folder + "/" + stateFileName(), /*withOptimizer=*/true, options.from);
    if (trainer.ranks().has(0))
      names.push_back(stateFileName());
  } else {
    for (int64_t rank = trainer.ranks().first; rank < trainer.ranks().end() && status.ok(); ++rank) {
      names.push_back(rankFileName(rank));
      status = trainer.saveRank(rank, folder + "/" + names.back(), options.from);
    }
  }
  for (const auto &[name, content] : options.files) {
    names.push_back(name);
    if (status.ok())
      status = writeFile(folder + "/" + name, content);
  }
  std::string text;
  for (const std::string &name : names) {
    Expected<CheckpointFile> file = status.ok() ? CheckpointFile::of(folder, name) : status;
    if (!file)
      return file.error();
    text += file->format();
  }
  return text;
}

/// Once all have written their files: the process of rank 0 says in the checkpoint what they are.
static Status describeAll(const Trainer &trainer, const CheckpointFolder::Saving &saving,
                          const Expected<std::string> &own) {
  if (Status status = trainer.agreeOn(own ? Status::success() : own.error()); !status.ok())
    return status;
  Expected<std::vector<std::string>> everyones = trainer.gatherText(*own);
  if (!everyones)
    return everyones.error();
  if (!trainer.ranks().has(0))
    return Status::success();
  std::vector<CheckpointFile> files;
  for (const std::string &text : *everyones)
    for (CheckpointFile &file : CheckpointFile::parse(text))
      files.push_back(std::move(file));
  return describeCheckpoint(&trainer, saving.run, saving.options, std::move(files), saving.temporary);
}

Expected<CheckpointFolder::Saving> CheckpointFolder::begin(const Trainer &trainer, RunState run,
                                                           CheckpointOptions options) const {
  Status status = options.from ? Status::success() : trainer.settle();
  if (status.ok() && !options.from)
    status = trainer.gatherSums();
  run.rates.clear(); // of the run that was resumed
  const std::vector<HyperParameter> &hyper = trainer.manifest().hyper;
  for (size_t i = 0; i < hyper.size(); ++i)
    run.rates.push_back({hyper[i].name, hyper[i].group, options.from ? options.from->hyper[i] : trainer.hyperValue(i)});
  std::string name = folderNameOf(run.step);
  Saving saving{std::move(run), std::move(options), path + "/" + name, path + "/" + kUnfinished + name};
  if (trainer.ranks().has(0) && status.ok()) {
    std::error_code error;
    removeUnfinished(path);
    fs::create_directory(saving.temporary, error);
    if (error)
      status = Status::badInput("cannot make folder '" + saving.temporary + "': " + error.message());
  }
  if (status = trainer.agreeOn(status); !status.ok()) {
    std::error_code ignored;
    if (trainer.ranks().has(0))
      fs::remove_all(saving.temporary, ignored);
    return status;
  }
  return saving;
}

Expected<std::string> CheckpointFolder::complete(const Trainer &trainer, const Saving &saving,
                                                 const Expected<std::string> &own) const {
  bool leads = trainer.ranks().has(0);
  std::error_code error;
  Status status = describeAll(trainer, saving, own);
  if (leads && status.ok())
    status = publish(saving.temporary, path, saving.target);
  if (leads)
    fs::remove_all(saving.temporary, error);
  if (status = trainer.agreeOn(status); !status.ok())
    return status;
  if (leads && saving.options.keep > 0) {
    std::vector<fs::path> all = listCheckpoints(path);
    for (size_t i = 0; i + static_cast<size_t>(saving.options.keep) < all.size(); ++i)
      removeOld(all[i]);
  }
  return saving.target;
}

Expected<std::string> CheckpointFolder::save(const Trainer &trainer, RunState run,
                                             const CheckpointOptions &options) const {
  Expected<Saving> saving = begin(trainer, std::move(run), options);
  return saving ? complete(trainer, *saving, write(trainer, *saving)) : saving.error();
}

Expected<std::string> CheckpointFolder::import(const std::string &weights, const RunState &run) const {
  std::string target = path + "/" + folderNameOf(run.step);
  std::string temporary = path + "/" + kUnfinished + folderNameOf(run.step);
  std::error_code error;
  removeUnfinished(path);
  fs::create_directory(temporary, error);
  if (!error)
    fs::create_hard_link(weights, temporary + "/" + stateFileName(), error);
  if (error)
    fs::copy_file(weights, temporary + "/" + stateFileName(), error);
  Status status = error ? Status::badInput("cannot copy '" + weights + "' to '" + temporary + "': " + error.message())
                        : Status::success();
  if (status.ok()) {
    Expected<CheckpointFile> file = CheckpointFile::of(temporary, stateFileName());
    status = file ? describeCheckpoint(nullptr, run, {}, {*file}, temporary) : file.error();
  }
  if (status.ok())
    status = publish(temporary, path, target);
  fs::remove_all(temporary, error);
  return status.ok() ? Expected<std::string>(target) : status;
}

/// Those to look at, the newest first.
static std::vector<std::string> findCandidates(const std::string &path) {
  if (fs::exists(path + "/run.json"))
    return {path};
  std::vector<std::string> names;
  std::vector<fs::path> all = listCheckpoints(path);
  for (size_t i = all.size(); i-- > 0;)
    names.push_back(all[i].string());
  return names;
}

static Status noneIn(const std::string &path, const std::vector<std::string> &notices) {
  if (notices.empty() && fs::exists(path + "/.metadata"))
    return Status::badInput("'" + path +
                            "' is a checkpoint of torch.distributed.checkpoint\n  hint: in Python, "
                            "spmd.checkpoint.from_dcp(\"" +
                            path + "\", FOLDER), which makes one of this format of it");
  if (notices.empty() && fs::is_regular_file(path))
    return Status::badInput("'" + path + "' is a file, and no folder of checkpoints\n  hint: in Python, " +
                            "spmd.checkpoint.Checkpoint.make(\"" + path +
                            "\", FOLDER), which makes one of a file of torch.save or of safetensors");
  return Status::badInput(notices.empty() ? "no checkpoint is in '" + path + "'" : notices.front());
}

static std::string sayDamaged(const std::string &folder, const Status &status) {
  return "checkpoint '" + folder + "' is damaged: " + status.message;
}

Expected<Checkpoint> CheckpointFolder::findLatest(const std::string &path) {
  std::vector<std::string> notices;
  for (const std::string &candidate : findCandidates(path)) {
    Expected<Checkpoint> checkpoint = openCheckpoint(candidate);
    Status status = checkpoint ? checkpoint->state->checkAll() : checkpoint.error();
    if (status.ok()) {
      checkpoint->notices = std::move(notices);
      return checkpoint;
    }
    notices.push_back(sayDamaged(candidate, status));
  }
  return noneIn(path, notices);
}

/// A checkpoint of another program does not say how many steps have drawn random numbers: they go on as if all had.
static Status followSteps(const Checkpoint &checkpoint, Trainer &trainer) {
  const StateTensor *step = trainer.state().find("rng", "step");
  if (!step || checkpoint.state->find(step->fileKey(step->name)))
    return Status::success();
  return trainer.writeTensor("rng", "step", &checkpoint.run.step, sizeof checkpoint.run.step);
}

/// Whether the bytes are whole that the ranks here take, and this process's share of the rest.
static Status checkOwn(const Checkpoint &checkpoint, const Trainer &trainer) {
  if (Status status = trainer.checkState(*checkpoint.state); !status.ok())
    return status;
  const RanksHere &ranks = trainer.ranks();
  return checkpoint.state->checkRest(ranks.processOf(ranks.first), ranks.processes());
}

Expected<Checkpoint> CheckpointFolder::restore(const std::string &path, Trainer &trainer, bool strict) {
  if (Status status = trainer.agreeOn(trainer.settle()); !status.ok())
    return status;
  std::string mine;
  for (const std::string &candidate : findCandidates(path))
    mine += candidate + "\n";
  Expected<std::vector<std::string>> candidates = trainer.gatherText(mine); // rank 0 says which
  if (!candidates)
    return candidates.error();
  std::vector<std::string> notices;
  std::istringstream lines(candidates->front());
  for (std::string candidate; std::getline(lines, candidate);) {
    Expected<Checkpoint> checkpoint = openCheckpoint(candidate);
    Status opened = trainer.agreeOn(checkpoint ? Status::success() : checkpoint.error());
    if (opened.ok()) {
      std::string hash = std::to_string(checkpoint->state->fingerprint());
      Expected<std::vector<std::string>> hashes = trainer.gatherText(hash);
      if (!hashes)
        return hashes.error();
      Status fits = hash == hashes->front()
                        ? trainer.compareState(*checkpoint->state, strict)
                        : Status::badInput("'" + candidate + "' is another checkpoint than that of " +
                                           trainer.ranks().describe(0));
      if (fits = trainer.agreeOn(fits); !fits.ok())
        return fits;
      opened = trainer.agreeOn(checkOwn(*checkpoint, trainer));
    }
    if (!opened.ok()) {
      notices.push_back(sayDamaged(candidate, opened));
      continue;
    }
    Status loaded = trainer.agreeOn(trainer.loadState(*checkpoint->state));
    if (loaded.ok())
      loaded = followSteps(*checkpoint, trainer);
    if (!loaded.ok())
      return loaded;
    checkpoint->notices = std::move(notices);
    return checkpoint;
  }
  return noneIn(path, notices);
}
