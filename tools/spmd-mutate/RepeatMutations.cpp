//===- RepeatMutations.cpp - What iterations that are left out are --------===//
//
// Of a loop that has one iteration for those behind it, in the commands and in the table of values
// (docs/artifact-format.md, "Repeats"). Other classes change one of the two iterations that a file has, which are then
// no longer alike.
//
//===----------------------------------------------------------------------===//

#include "Mutation.h"

#include <utility>

using namespace spmd::mutation;
using Done = std::optional<std::string>;

/// Those of commands or of values; null where there are none.
static Json *findRepeats(Program &program, Random &random) {
  Json &file = random.below(2) ? program.plan : program.manifest;
  return file.contains("repeats") ? &file["repeats"] : nullptr;
}

static Done changeCount(Program &program, Random &random) {
  Json *repeats = findRepeats(program, random);
  if (!repeats)
    return std::nullopt;
  int64_t more = (*repeats)["more"];
  std::vector<int64_t> counts = {0, more - 1, more + 1, 2 * more};
  return "repeats " + setField(*repeats, "more", random.pick(counts));
}

static Done shiftRange(Program &program, Random &random) {
  Json *repeats = findRepeats(program, random);
  if (!repeats)
    return std::nullopt;
  int64_t begin = (*repeats)["begin"], end = (*repeats)["end"];
  std::vector<int64_t> steps = {begin - end, -2, -1, 1, 2, end - begin};
  int64_t by = random.pick(steps);
  if (begin + by < 0)
    return std::nullopt;
  return "repeats " + setField(*repeats, "begin", begin + by) + ", " + setField(*repeats, "end", end + by);
}

static Done resizeRange(Program &program, Random &random) {
  Json *repeats = findRepeats(program, random);
  if (!repeats)
    return std::nullopt;
  int64_t begin = (*repeats)["begin"], end = (*repeats)["end"];
  std::vector<int64_t> begins = {begin - 1, begin + 1, 2 * begin - end, (begin + end) / 2};
  return "repeats " + setField(*repeats, "begin", random.pick(begins));
}

static Done exchangeFed(Program &program, Random &random) {
  Json *repeats = findRepeats(program, random);
  if (!repeats || (*repeats)["fed"].empty())
    return std::nullopt;
  Json &list = random.pick((*repeats)["fed"]);
  size_t a = random.below(list.size()), b = random.below(list.size());
  if (a == b)
    return std::nullopt;
  std::swap(list[a], list[b]);
  return "repeats fed " + std::to_string(a) + " and " + std::to_string(b) + " exchange places: " + list.dump();
}

static Done dropFed(Program &program, Random &random) {
  Json *repeats = findRepeats(program, random);
  if (!repeats || (*repeats)["fed"].empty())
    return std::nullopt;
  Json &list = random.pick((*repeats)["fed"]);
  size_t at = random.below(list.size());
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
  return "repeats fed " + std::to_string(at) + " is dropped: " + list.dump();
}

/// A reference has the buffer of another one of its command, in both iterations alike.
static Done changeIterations(Program &program, Random &random) {
  if (!program.plan.contains("repeats"))
    return std::nullopt;
  size_t begin = program.plan["repeats"]["begin"], end = program.plan["repeats"]["end"];
  struct Choice {
    size_t command, to, from;
  };
  std::vector<Choice> choices;
  for (size_t command = begin; command < end; ++command) {
    std::vector<RefPlace> refs = refsOf(program, command);
    for (size_t to = 0; to < refs.size(); ++to)
      for (size_t from = 0; from < refs.size(); ++from)
        if ((*refs[to].ref)["buffer"] != (*refs[from].ref)["buffer"])
          choices.push_back({command, to, from});
  }
  if (choices.empty())
    return std::nullopt;
  auto [command, to, from] = random.pick(choices);
  std::vector<RefPlace> before = refsOf(program, command - (end - begin)), refs = refsOf(program, command);
  setField(*before[to].ref, "buffer", (*before[from].ref)["buffer"]);
  return nameCommand(program, command) + ", and that in the iteration before, " + refs[to].name + " " +
         setField(*refs[to].ref, "buffer", (*refs[from].ref)["buffer"]);
}

const std::vector<MutationClass> &spmd::mutation::repeatMutations() {
  static const char *const alike = "another iteration of the same loop stands for those that are left out";
  static const char *const own = "iterations that the file has say themselves what they are fed";
  static const std::vector<MutationClass> list = {
      {"repeat-count", "a loop has another number of iterations", nullptr, changeCount},
      {"repeat-range", "other commands or values are the iteration", alike, shiftRange},
      {"repeat-length", "an iteration begins elsewhere", nullptr, resizeRange},
      {"repeat-fed-swap", "two iterations are fed what the other is", own, exchangeFed},
      {"repeat-fed-drop", "iterations are fed one thing less", own, dropFed},
      {"repeat-alike", "all iterations use another buffer", nullptr, changeIterations},
  };
  return list;
}
