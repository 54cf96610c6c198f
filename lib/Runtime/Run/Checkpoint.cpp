//===- Checkpoint.cpp -----------------------------------------------------===//

#include "spmd/Runtime/Run/Checkpoint.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/MappedFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace spmd::runtime;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static constexpr char kPrefix[] = "step-";
static constexpr char kUnfinished[] = ".saving-";
static constexpr int64_t kVersion = 1;

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

static std::string formatTime() {
  std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

/// Of everything but the hash itself.
static std::string hashOf(Json json) {
  json.erase("hash");
  return formatHash(hashBytes(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

static Expected<std::string> formatRun(const Trainer &trainer, const RunState &run, const std::string &weights) {
  Expected<MappedFile> file = MappedFile::open(weights);
  if (!file)
    return file.error();
  Json json;
  json["format"] = "spmd-checkpoint";
  json["version"] = kVersion;
  json["step"] = run.step;
  json["program"] = trainer.manifest().step;
  json["ranks"] = trainer.manifest().ranks;
  json["time"] = formatTime();
  json["data"] = {{"files", run.data.files},
                  {"order", run.data.order},
                  {"token_dtype", run.data.tokenType},
                  {"seed", run.data.seed}};
  json["schedule"] = run.schedule;
  json["files"]["state.safetensors"] = {
      {"bytes", file->size()}, {"hash", formatHash(hashBytes({file->data(), file->size()}))}};
  json["hash"] = hashOf(json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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

static Status publish(const std::string &temporary, const std::string &folder, const std::string &target) {
  std::error_code error;
  if (Status status = syncFolder(temporary); !status.ok())
    return status;
  fs::remove_all(target, error); // of a run that began anew
  fs::rename(temporary, target, error);
  if (error)
    return Status::failed("cannot rename '" + temporary + "': " + error.message());
  return syncFolder(folder);
}

Expected<std::string> CheckpointFolder::save(const Trainer &trainer, const RunState &run, int64_t keep) const {
  bool writes = trainer.ranks().has(0);
  std::string target = path + "/" + folderNameOf(run.step), temporary = path + "/" + kUnfinished + folderNameOf(run.step);
  std::error_code error;
  if (writes) {
    for (const fs::path &leftover : list(path, kUnfinished)) // of a run that was killed
      fs::remove_all(leftover, error);
    fs::create_directory(temporary, error);
  }
  Status status = trainer.save(temporary + "/state.safetensors", /*withOptimizer=*/true);
  if (status.ok() && writes) {
    Expected<std::string> text = formatRun(trainer, run, temporary + "/state.safetensors");
    status = text ? writeFile(temporary + "/run.json", *text) : text.error();
    if (status.ok())
      status = publish(temporary, path, target);
  }
  if (!status.ok()) {
    if (writes)
      fs::remove_all(temporary, error);
    return status;
  }
  if (writes && keep > 0) {
    std::vector<fs::path> all = listCheckpoints(path);
    for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i)
      fs::remove_all(all[i], error);
  }
  return target;
}

/// Reads a checkpoint, whose files must be what its run.json says.
static Expected<Checkpoint> readCheckpoint(const std::string &folder) {
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  std::string path = folder + "/run.json";
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  JsonDocument document(path, *text);
  JsonValue root = document.root();
  if (std::string format = root["format"].asString(); format != "spmd-checkpoint")
    root["format"].fail("expected \"spmd-checkpoint\", found \"" + format + "\"");
  if (int64_t version = root["version"].asInt(); version < 1 || version > kVersion)
    root["version"].fail("expected version 1, found " + std::to_string(version));
  checkpoint.run.step = root["step"].asSize();
  JsonValue data = root["data"];
  checkpoint.run.data = {data["files"].asString(), data["order"].asString(), data["token_dtype"].asString(),
                         static_cast<uint64_t>(data["seed"].asInt())};
  checkpoint.run.schedule = root["schedule"].asString();
  JsonValue state = root["files"]["state.safetensors"];
  int64_t bytes = state["bytes"].asInt();
  std::string hash = state["hash"].asString();
  std::string own = root["hash"].asString();
  if (document.status().ok() && own != hashOf(Json::parse(*text, nullptr, /*allow_exceptions=*/false)))
    root["hash"].fail("is not that of the rest of the file, which was changed");
  if (!document.status().ok())
    return document.status();
  Expected<MappedFile> file = MappedFile::open(checkpoint.weights());
  if (!file)
    return file.error();
  if (static_cast<int64_t>(file->size()) != bytes)
    return Status::badInput("'" + checkpoint.weights() + "' has " + std::to_string(file->size()) + " bytes, not " +
                            std::to_string(bytes));
  if (Status status = checkHash(checkpoint.weights(), {file->data(), file->size()}, hash); !status.ok())
    return status;
  return checkpoint;
}

Expected<Checkpoint> CheckpointFolder::findLatest(const std::string &path) {
  if (fs::exists(path + "/run.json"))
    return readCheckpoint(path);
  std::vector<fs::path> all = listCheckpoints(path);
  std::vector<std::string> notices;
  for (size_t i = all.size(); i-- > 0;) {
    Expected<Checkpoint> checkpoint = readCheckpoint(all[i].string());
    if (checkpoint) {
      checkpoint->notices = std::move(notices);
      return checkpoint;
    }
    notices.push_back("checkpoint '" + all[i].string() + "' is damaged: " + checkpoint.error().message);
  }
  std::string why = notices.empty() ? "no checkpoint is in '" + path + "'" : notices.front();
  return Status::badInput(why);
}
