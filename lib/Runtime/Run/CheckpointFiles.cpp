//===- CheckpointFiles.cpp ------------------------------------------------===//

#include "CheckpointFiles.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Safetensors.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <ctime>

using namespace spmd::runtime;
using Json = nlohmann::ordered_json;

/// 1: state.safetensors alone, with one hash of all. 2: blocks with a hash by FNV-1a. 4: pieces with a stride, where there
/// are any, else 3.
static constexpr int64_t kVersion = 4;

const char *spmd::runtime::nameOf(CheckpointKind kind) { return kind == CheckpointKind::Full ? "full" : "sharded"; }

std::optional<CheckpointKind> spmd::runtime::parseCheckpointKind(const std::string &name) {
  for (CheckpointKind kind : {CheckpointKind::Full, CheckpointKind::Sharded})
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

std::string spmd::runtime::rankFileName(int64_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "rank-%05lld.safetensors", static_cast<long long>(rank));
  return name;
}

void RunState::applyRates(Trainer &trainer) const {
  for (const Rate &rate : rates)
    for (const HyperParameter &input : trainer.manifest().hyper)
      if (input.name == rate.name && input.group == rate.group)
        (void)trainer.setHyper(rate.name, rate.group, rate.value); // it is there
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

static size_t findFile(const std::vector<CheckpointFile> &files, const std::string &name) {
  size_t number = 0;
  while (number < files.size() && files[number].name != name)
    ++number;
  return number;
}

/// Adds the tensors of a file that has them whole.
static Status addWhole(CheckpointIndex &index, size_t number, const std::string &path) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.error();
  for (const auto &[key, tensor] : file->tensors()) {
    index.tensors[key] = {tensor.dtype, tensor.shape};
    index.pieces[key] = {{number, {0, numElements(tensor.shape)}, file->offsetOf(tensor)}};
  }
  return Status::success();
}

/// Adds the pieces that each rank has written, under all names of their tensors.
static Status addPieces(CheckpointIndex &index, const Trainer &trainer, const StateSnapshot *from,
                        const std::string &folder) {
  for (int64_t rank = 0; rank < trainer.manifest().ranks; ++rank) {
    std::string path = folder + "/" + rankFileName(rank);
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file)
      return file.error();
    size_t number = findFile(index.files, rankFileName(rank));
    for (const StatePiece &piece : trainer.piecesToSave(rank, from)) {
      const StateTensor &tensor = *piece.tensor;
      const TensorView *stored = file->find(tensor.fileKey(tensor.name));
      if (!stored)
        return Status::failed("'" + path + "' lacks '" + tensor.fileKey(tensor.name) + "', which was written");
      auto add = [&](const std::string &name) {
        index.tensors[tensor.fileKey(name)] = {tensor.dtype, tensor.shape};
        int64_t offset = file->offsetOf(*stored);
        for (const ElementRuns &runs : piece.runs) {
          index.pieces[tensor.fileKey(name)].push_back({number, runs, offset});
          offset += bytesOf(runs.total(), tensor.dtype);
        }
      };
      add(tensor.name);
      for (const std::string &alias : tensor.aliases)
        add(alias);
    }
  }
  return Status::success();
}

Status spmd::runtime::describeCheckpoint(const Trainer *trainer, const RunState &run, const CheckpointOptions &options,
                                         std::vector<CheckpointFile> files, const std::string &folder) {
  CheckpointIndex index;
  index.files = std::move(files);
  Status status = options.kind == CheckpointKind::Full
                      ? addWhole(index, findFile(index.files, stateFileName()), folder + "/" + stateFileName())
                      : addPieces(index, *trainer, options.from, folder);
  if (!status.ok())
    return status;
  std::string text = index.format();
  if (status = writeFile(folder + "/index.json", text); !status.ok())
    return status;
  Json notes = Json::parse(run.notes, nullptr, /*allow_exceptions=*/false);
  if (notes.is_discarded())
    return Status::badInput("the notes of a checkpoint are no JSON");
  Json json;
  json["format"] = "spmd-checkpoint";
  json["version"] = index.hasStrides() ? kVersion : kVersion - 1;
  json["kind"] = nameOf(options.kind);
  json["step"] = run.step;
  if (trainer) {
    json["program"] = trainer->manifest().step;
    json["compiler"] = trainer->manifest().compiler;
    json["artifact"] = formatHash(trainer->artifact().hash);
    json["ranks"] = trainer->manifest().ranks;
  }
  json["time"] = formatTime();
  json["data"] = {{"files", run.data.files},
                  {"order", run.data.order},
                  {"token_dtype", run.data.tokenType},
                  {"seed", run.data.seed}};
  json["schedule"] = run.schedule;
  json["hyper"] = Json::array();
  for (const RunState::Rate &rate : run.rates)
    json["hyper"].push_back({{"name", rate.name}, {"group", rate.group}, {"value", rate.value}});
  json["notes"] = std::move(notes);
  json["index"] = {{"bytes", text.size()}, {"hash", formatHash(hashBytes(text))}};
  json["hash"] = hashOf(json);
  return writeFile(folder + "/run.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

static RunState readRun(JsonValue root, int64_t version) {
  RunState run;
  run.step = root["step"].asSize();
  JsonValue data = root["data"];
  run.data = {data["files"].asString(), data["order"].asString(), data["token_dtype"].asString(),
              static_cast<uint64_t>(data["seed"].asInt())};
  run.schedule = root["schedule"].asString();
  if (version > 1)
    root["hyper"].forEach([&](JsonValue value) {
      run.rates.push_back({value["name"].asString(), value["group"].asInt(), value["value"].asDouble()});
    });
  return run;
}

/// Of version 1, whose file is read for it.
static Expected<CheckpointIndex> indexWhole(const std::string &folder, int64_t bytes, const std::string &hash) {
  std::string path = folder + "/" + stateFileName();
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  if (static_cast<int64_t>(file->size()) != bytes)
    return Status::badInput("'" + path + "' has " + std::to_string(file->size()) + " bytes, not " +
                            std::to_string(bytes));
  if (Status status = checkHash(path, {file->data(), file->size()}, hash); !status.ok())
    return status;
  CheckpointIndex index;
  Expected<CheckpointFile> entry = CheckpointFile::of(folder, stateFileName());
  if (!entry)
    return entry.error();
  index.files.push_back(*entry);
  if (Status status = addWhole(index, 0, path); !status.ok())
    return status;
  return index;
}

static Expected<CheckpointIndex> readIndex(const std::string &folder, int64_t bytes, const std::string &hash) {
  std::string path = folder + "/index.json";
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.error();
  if (static_cast<int64_t>(text->size()) != bytes || formatHash(hashBytes(*text)) != hash)
    return Status::badInput("'" + path + "' has " + std::to_string(text->size()) + " bytes with the hash " +
                            formatHash(hashBytes(*text)) + ", run.json says " + std::to_string(bytes) + " with " +
                            hash);
  return CheckpointIndex::parse(path, *text);
}

Expected<Checkpoint> spmd::runtime::openCheckpoint(const std::string &folder) {
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
  int64_t version = root["version"].asInt();
  if (version < 1 || version > kVersion)
    root["version"].fail("expected a version from 1 to " + std::to_string(kVersion) + ", found " +
                         std::to_string(version));
  checkpoint.run = readRun(root, version);
  std::optional<CheckpointKind> kind = parseCheckpointKind(version > 1 ? root["kind"].asString() : "full");
  if (!kind)
    root["kind"].fail("expected \"full\" or \"sharded\"");
  JsonValue file = version > 1 ? root["index"] : root["files"]["state.safetensors"];
  int64_t bytes = file["bytes"].asInt();
  std::string hash = file["hash"].asString(), own = root["hash"].asString();
  Json parsed = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (document.status().ok() && own != hashOf(parsed))
    root["hash"].fail("is not that of the rest of the file, which was changed");
  if (!document.status().ok())
    return document.status();
  if (version > 1)
    checkpoint.run.notes = parsed["notes"].dump();
  checkpoint.kind = *kind;
  checkpoint.text = std::move(*text);
  Expected<CheckpointIndex> index = version > 1 ? readIndex(folder, bytes, hash) : indexWhole(folder, bytes, hash);
  if (!index)
    return index.error();
  checkpoint.state = std::make_shared<CheckpointState>(folder, std::move(*index), hashBytes(checkpoint.text));
  return checkpoint;
}
