//===- OrderMutations.cpp - Commands that are missing or elsewhere --------===//

#include "Mutation.h"

#include <algorithm>
#include <map>

using namespace spmd::mutation;
using Done = std::optional<std::string>;

namespace {
/// Commands with the numbers that they had, so that waits can be told their new ones.
class Renumbering {
public:
  explicit Renumbering(Program &program) : program(program) {
    for (Json &command : program.commands())
      list.emplace_back(list.size(), command);
  }

  std::vector<std::pair<size_t, Json>> list;

  /// Writes the list back. A wait for a command that is gone waits for the one before it on its stream, or goes too.
  void finish() {
    std::map<size_t, size_t> before;
    std::map<std::string, size_t> last;
    Json &old = program.commands();
    for (size_t i = 0; i < old.size(); ++i) {
      std::string stream = old[i]["stream"];
      if (auto found = last.find(stream); found != last.end())
        before[i] = found->second;
      last[stream] = i;
    }
    for (bool again = true; again;) {
      again = false;
      std::map<size_t, size_t> position;
      for (size_t i = 0; i < list.size(); ++i)
        position.emplace(list[i].first, i);
      for (size_t i = 0; i < list.size() && !again; ++i) {
        if (list[i].second["op"] != "wait")
          continue;
        size_t target = waits.emplace(list[i].first, list[i].second["for"].get<size_t>()).first->second;
        while (!position.count(target) && before.count(target))
          target = before[target];
        again = !position.count(target);
        if (again)
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        else
          list[i].second["for"] = position[target];
      }
    }
    Json commands = Json::array();
    for (auto &[number, command] : list)
      commands.push_back(std::move(command));
    program.commands() = std::move(commands);
  }

private:
  Program &program;
  std::map<size_t, size_t> waits; ///< what each wait waited for, in old numbers
};
} // namespace

static std::vector<size_t> commandsThat(Program &program, bool wait) {
  std::vector<size_t> found;
  for (size_t i = 0; i < program.commands().size(); ++i)
    if ((program.commands()[i]["op"] == "wait") == wait)
      found.push_back(i);
  return found;
}

static Done drop(Program &program, Random &random, bool wait) {
  std::vector<size_t> candidates = commandsThat(program, wait);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  std::string done = nameCommand(program, command) + " is dropped";
  Renumbering commands(program);
  commands.list.erase(commands.list.begin() + static_cast<std::ptrdiff_t>(command));
  commands.finish();
  return done;
}
static Done dropCommand(Program &program, Random &random) { return drop(program, random, false); }
static Done dropWait(Program &program, Random &random) { return drop(program, random, true); }

static Done duplicate(Program &program, Random &random) {
  std::vector<size_t> candidates = commandsThat(program, false);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  Renumbering commands(program);
  // Right behind, or anywhere later.
  size_t later = commands.list.size() - command;
  size_t at = command + 1 + (random.below(2) ? random.below(later) : 0);
  std::string done = nameCommand(program, command) + " again before command " + std::to_string(at);
  std::pair<size_t, Json> copy = {commands.list.size() + 1, commands.list[command].second};
  commands.list.insert(commands.list.begin() + static_cast<std::ptrdiff_t>(at), std::move(copy));
  commands.finish();
  return done;
}

static Done moveCommand(Program &program, Random &random, size_t command, size_t to) {
  if (command == to)
    return std::nullopt;
  std::string done = nameCommand(program, command) + " goes to position " + std::to_string(to);
  Renumbering commands(program);
  std::pair<size_t, Json> moved = commands.list[command];
  commands.list.erase(commands.list.begin() + static_cast<std::ptrdiff_t>(command));
  commands.list.insert(commands.list.begin() + static_cast<std::ptrdiff_t>(to), std::move(moved));
  commands.finish();
  (void)random;
  return done;
}

static Done swapNeighbours(Program &program, Random &random) {
  size_t count = program.commands().size();
  if (count < 2)
    return std::nullopt;
  size_t first = random.below(count - 1);
  return moveCommand(program, random, first, first + 1);
}

static Done moveAnywhere(Program &program, Random &random) {
  size_t count = program.commands().size();
  return moveCommand(program, random, random.below(count), random.below(count));
}

static Done changeStream(Program &program, Random &random) {
  std::vector<std::string> streams = program.plan["streams"];
  size_t command = random.below(program.commands().size());
  Json &json = program.commands()[command];
  streams.erase(std::find(streams.begin(), streams.end(), json["stream"].get<std::string>()));
  if (streams.empty())
    return std::nullopt;
  return nameCommand(program, command) + " " + setField(json, "stream", random.pick(streams));
}

static Done changeWait(Program &program, Random &random) {
  std::vector<size_t> candidates = commandsThat(program, true);
  if (candidates.empty())
    return std::nullopt;
  size_t command = random.pick(candidates);
  std::vector<size_t> others;
  for (size_t i = 0; i < command; ++i)
    if (program.commands()[i]["stream"] != program.commands()[command]["stream"] &&
        program.commands()[command]["for"] != i)
      others.push_back(i);
  if (others.empty())
    return std::nullopt;
  return nameCommand(program, command) + " " + setField(program.commands()[command], "for", random.pick(others));
}

const std::vector<MutationClass> &spmd::mutation::orderMutations() {
  static const char *const order = "independent commands are reordered";
  static const std::vector<MutationClass> list = {
      {"command-drop", "a command is missing", "a copy or fill of bytes that nothing reads, or of what they hold",
       dropCommand},
      {"command-duplicate", "a command runs twice", "it computes the same value again into the same bytes", duplicate},
      {"command-swap", "two neighbours exchange places", order, swapNeighbours},
      {"command-move", "a command goes elsewhere", order, moveAnywhere},
      {"command-stream", "a command runs on another stream", "waits and the new stream's order imply what it needs",
       changeStream},
      {"wait-drop", "a wait is missing", "other waits imply it", dropWait},
      {"wait-for", "a wait is for another command", "it and other waits imply what it was for", changeWait},
  };
  return list;
}
