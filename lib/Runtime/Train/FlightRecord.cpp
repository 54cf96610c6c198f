//===- FlightRecord.cpp ---------------------------------------------------===//

#include "spmd/Runtime/Train/FlightRecord.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <utility>

using namespace spmd::runtime;
using Json = nlohmann::ordered_json;

/// How many commands of a stream, and collectives of a communicator, are listed on each side of where it stands.
static constexpr int64_t kListed = 8;

static std::string formatNow() {
  std::time_t now = std::time(nullptr);
  std::tm parts = {};
  char text[32];
  ::gmtime_r(&now, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

namespace {

/// The commands of one stream, and where it stands among them.
struct StreamView {
  StreamView(const Plan &plan, size_t stream, const StreamPosition &position)
      : name(plan.streams[stream]), position(position) {
    for (size_t id = 0; id < plan.commands.size(); ++id)
      if (static_cast<size_t>(plan.commands[id].stream) == stream)
        commands.push_back(static_cast<int32_t>(id));
  }

  int64_t count() const { return static_cast<int64_t>(commands.size()); }
  /// The command after those that are done, if it was issued; else -1.
  int32_t next() const {
    return position.finished < position.issued ? commands[static_cast<size_t>(position.finished)] : -1;
  }

  const std::string &name;
  const StreamPosition &position;
  std::vector<int32_t> commands;
};

} // namespace

/// "all_gather of h.0 (command 4, at h.0, gpt2.py:42)"; of a wait, what for.
static std::string describe(const Plan &plan, int32_t id) {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  std::string text = command.describe(), where = "command " + std::to_string(id);
  if (const auto *wait = command.as<WaitCommand>())
    text += ", " + plan.commands[static_cast<size_t>(wait->awaited)].describe();
  if (!command.location.empty())
    where += ", at " + command.location;
  return text + " (" + where + ")";
}

static std::string formatStream(const Plan &plan, const StreamView &stream) {
  const StreamPosition &at = stream.position;
  std::string text = stream.name + (at.isExact ? ": " : ": at least ") + formatCount(at.finished) + " of " +
                     formatCount(stream.count()) + " done";
  if (int32_t next = stream.next(); next >= 0 && at.isExact)
    text += ", in " + describe(plan, next);
  return text;
}

std::string FlightRecord::formatText() const {
  std::string text;
  if (!artifact)
    return text;
  const Plan &plan = artifact->plan;
  for (const RankPosition &rank : ranks) {
    text += "rank " + std::to_string(rank.rank) + ", step " + formatCount(rank.step) + ": ";
    bool isFirst = true;
    for (size_t stream = 0; stream < rank.streams.size(); ++stream)
      if (StreamView view(plan, stream, rank.streams[stream]); view.count())
        text += (std::exchange(isFirst, false) ? "" : "; ") + formatStream(plan, view);
    text += "\n";
  }
  return text;
}

static Json toJson(const Plan &plan, int32_t id) {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  Json entry = {{"command", id}, {"what", command.describe()}};
  if (!command.location.empty())
    entry["loc"] = command.location;
  return entry;
}

static Json toJson(const Plan &plan, const StreamView &stream) {
  const StreamPosition &at = stream.position;
  Json entry = {{"stream", stream.name},      {"commands", stream.count()}, {"finished", at.finished},
                {"issued", at.issued},        {"is_exact", at.isExact},     {"last_finished", Json::array()},
                {"unfinished", Json::array()}};
  for (int64_t i = std::max<int64_t>(0, at.finished - kListed); i < at.finished; ++i)
    entry["last_finished"].push_back(toJson(plan, stream.commands[static_cast<size_t>(i)]));
  for (int64_t i = at.finished; i < std::min(at.issued, at.finished + kListed); ++i)
    entry["unfinished"].push_back(toJson(plan, stream.commands[static_cast<size_t>(i)]));
  return entry;
}

/// The collectives of a stream next to where it stands.
static void addCollectives(const Plan &plan, const StreamView &stream, Json &list) {
  const StreamPosition &at = stream.position;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < stream.count(); ++i)
    if (plan.commands[static_cast<size_t>(stream.commands[static_cast<size_t>(i)])].is<CollectiveCommand>())
      places.push_back(i);
  auto first = std::lower_bound(places.begin(), places.end(), at.finished);
  auto begin = first - std::min<int64_t>(kListed, first - places.begin());
  auto end = first + std::min<int64_t>(kListed, places.end() - first);
  for (auto place = begin; place < end; ++place) {
    int32_t id = stream.commands[static_cast<size_t>(*place)];
    const Command &command = plan.commands[static_cast<size_t>(id)];
    const auto &collective = *command.as<CollectiveCommand>();
    Json entry = {{"command", id},
                  {"communicator", plan.communicators[static_cast<size_t>(collective.communicator)]},
                  {"op", nameOf(collective.kind)},
                  {"unit", collective.unit},
                  {"dtype", nameOf(collective.dtype)},
                  {"counts", collective.counts},
                  {"state", *place < at.finished                                             ? "finished"
                            : *place == at.finished && at.issued > at.finished && at.isExact ? "running"
                            : *place < at.issued                                             ? "issued"
                                                                                             : "not issued"}};
    if (!command.location.empty())
      entry["loc"] = command.location;
    list.push_back(std::move(entry));
  }
}

std::string FlightRecord::formatJson(const RankPosition &rank, const RanksHere &here, const Status &error) const {
  const Plan &plan = artifact->plan;
  Json streams = Json::array(), collectives = Json::array();
  for (size_t stream = 0; stream < rank.streams.size(); ++stream)
    if (StreamView view(plan, stream, rank.streams[stream]); view.count()) {
      streams.push_back(toJson(plan, view));
      addCollectives(plan, view, collectives);
    }
  Json failed = {{"message", error.message}, {"rank", error.rank}, {"command", error.command}};
  if (!error.location.empty())
    failed["loc"] = error.location;
  Json record = {{"format", "spmd-flight-record"},
                 {"version", 1},
                 {"rank", rank.rank},
                 {"ranks", here.total},
                 {"artifact", artifact->manifest.step},
                 {"time", time},
                 {"step", rank.step},
                 {"error", failed},
                 {"streams", streams},
                 {"collectives", collectives}};
  // Names come from users' files, and need not be UTF-8.
  return record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

static std::string pathOf(const std::string &folder, int64_t rank) {
  return folder + "/rank-" + std::to_string(rank) + ".json";
}

Status spmd::runtime::prepareFlightRecords(const std::string &folder, const RanksHere &here) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return Status::badInput("cannot make the folder of flight records '" + folder + "': " + std::strerror(errno));
  for (int64_t rank = here.first; rank < here.end(); ++rank)
    if (Expected<AtomicFile> file = AtomicFile::create(pathOf(folder, rank)); !file)
      return file.error();
  return Status::success();
}

void FlightRecorder::setFolder(std::string given, const RanksHere &ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  folder = std::move(given);
  here = ranks;
}

void FlightRecorder::follow(const Executor &given, const Artifact &of, int64_t number, int64_t counted) {
  std::lock_guard<std::mutex> lock(mutex);
  executor = &given;
  artifact = &of;
  step = number;
  index = counted;
}

void FlightRecorder::forget(const Executor &given) {
  std::lock_guard<std::mutex> lock(mutex);
  if (executor != &given)
    return;
  executor = nullptr;
  noted = {};
}

void FlightRecorder::noteLocked() {
  if (!executor || noted.artifact)
    return;
  noted = {artifact, formatNow(), executor->positions()};
  for (RankPosition &rank : noted.ranks)
    rank.step = rank.step < 0 ? step : step - (index - rank.step); // only those of one executor are in flight together
}

void FlightRecorder::note() {
  std::lock_guard<std::mutex> lock(mutex);
  noteLocked();
}

Status FlightRecorder::report(Status error) {
  std::lock_guard<std::mutex> lock(mutex);
  noteLocked();
  if (!noted.artifact || noted.ranks.empty() || std::exchange(isReported, true))
    return error;
  reported = noted.formatText();
  if (folder.empty())
    return error;
  Status status;
  for (const RankPosition &rank : noted.ranks)
    if (status.ok())
      status = writeFile(pathOf(folder, rank.rank), noted.formatJson(rank, here, error));
  error.message += status.ok() ? "; what each rank did last is in '" + folder + "'"
                               : "; what its ranks did last is lost: " + status.message;
  return error;
}

std::string FlightRecorder::text() {
  std::lock_guard<std::mutex> lock(mutex);
  return reported;
}
