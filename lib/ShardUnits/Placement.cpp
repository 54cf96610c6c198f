//===- Placement.cpp - parameters on the tensor axis ----------------------===//

#include "spmd/ShardUnits/Placement.h"

#include <charconv>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::JsonValue;
using runtime::Status;

/// Whether a name is what a pattern with * and ? says.
static bool matchesFrom(const char *pattern, const char *name) {
  for (; *pattern; ++pattern, ++name) {
    if (*pattern == '*') {
      for (;; ++name) {
        if (matchesFrom(pattern + 1, name))
          return true;
        if (!*name)
          return false;
      }
    }
    if (!*name || (*pattern != '?' && *pattern != *name))
      return false;
  }
  return !*name;
}

bool Placement::matches(const std::string &name) const { return matchesFrom(pattern.c_str(), name.c_str()); }

std::string Placement::describe() const {
  if (!dim)
    return "replicate";
  return "shard(" + std::to_string(*dim) + (parts == 1 ? "" : "," + std::to_string(parts)) + ")";
}

/// Reads a whole number; nothing when the text is none.
static std::optional<int64_t> readNumber(const std::string &text) {
  int64_t number = 0;
  auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && stop == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Reads "replicate", "shard(0)" or "shard(0,3)" into `placement`.
static bool readPlacement(const std::string &text, Placement &placement) {
  const std::string shard = "shard(";
  if (text == "replicate")
    return true;
  if (text.rfind(shard, 0) != 0 || text.back() != ')')
    return false;
  std::string inside = text.substr(shard.size(), text.size() - shard.size() - 1);
  size_t comma = inside.find(',');
  placement.dim = readNumber(inside.substr(0, comma));
  if (comma != std::string::npos)
    placement.parts = readNumber(inside.substr(comma + 1)).value_or(0);
  return placement.dim && placement.parts >= 1;
}

static std::string expectedForm(const std::string &text) { return "'" + text + "': expected " + kPlacementForm; }

/// The text up to the next comma that is in no parentheses.
static std::string takeEntry(const std::string &text, size_t &at) {
  size_t begin = at;
  for (int depth = 0; at < text.size() && (depth > 0 || text[at] != ','); ++at)
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
  return text.substr(begin, at++ - begin);
}

Expected<std::vector<Placement>> units::parsePlacements(const std::string &text) {
  std::vector<Placement> placements;
  for (size_t at = 0; at < text.size();) {
    std::string entry = takeEntry(text, at);
    size_t equal = entry.find('=');
    if (equal == std::string::npos || equal == 0)
      return Status::badInput("'" + entry + "': expected PATTERN=PLACEMENT, such as blocks.*.mlp.fc1.weight=shard(0)");
    Placement placement;
    placement.pattern = entry.substr(0, equal);
    if (std::string value = entry.substr(equal + 1); !readPlacement(value, placement))
      return Status::badInput(expectedForm(value));
    placements.push_back(placement);
  }
  return placements;
}

std::vector<Placement> units::readPlacements(JsonValue json) {
  std::vector<Placement> placements;
  json.forEach([&](JsonValue value) {
    value.forEachMember([&](const std::string &key, JsonValue member) {
      if (key != "parameter" && key != "placement")
        member.fail("unknown member of a placement; allowed: parameter, placement");
    });
    Placement placement;
    placement.pattern = value["parameter"].asString();
    if (std::string text = value["placement"].asString(); !readPlacement(text, placement))
      value["placement"].fail(expectedForm(text));
    placements.push_back(placement);
  });
  return placements;
}
