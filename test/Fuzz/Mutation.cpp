//===- Mutation.cpp -------------------------------------------------------===//

#include "Mutation.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

using namespace spmd::fuzz;
// Ordered: a field mutation must not also sort the keys.
using Json = nlohmann::ordered_json;

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static std::string mutateBytes(std::string &content, Random &random) {
  if (content.empty())
    content = " ";
  size_t at = random.below(content.size());
  size_t length = 1 + random.below(16);
  std::string where = "byte " + std::to_string(at) + ": ";
  switch (random.below(6)) {
  case 0: {
    uint64_t bit = random.below(8);
    content[at] = static_cast<char>(content[at] ^ (1 << bit));
    return where + "flip bit " + std::to_string(bit);
  }
  case 1:
    content[at] = static_cast<char>(random.below(256));
    return where + "set to " + std::to_string(static_cast<unsigned char>(content[at]));
  case 2: {
    std::string inserted;
    for (size_t i = 0; i < length; ++i)
      inserted += static_cast<char>(random.below(256));
    content.insert(at, inserted);
    return where + "insert " + std::to_string(length) + " bytes";
  }
  case 3:
    content.erase(at, length);
    return where + "erase " + std::to_string(length) + " bytes";
  case 4:
    content.resize(at);
    return where + "truncate";
  default: {
    // A piece of the file at another place: brackets and quotes where none were.
    std::string piece = content.substr(random.below(content.size()), 1 + random.below(200));
    content.insert(at, piece);
    return where + "insert a copy of " + std::to_string(piece.size()) + " bytes";
  }
  }
}

namespace {
/// A value of the document and what holds it; pointers into the document until it changes.
struct Place {
  std::string pointer;
  Json *value, *parent; ///< no parent: the root
  std::string key;      ///< in an object
  std::ptrdiff_t index; ///< in an array
};
} // namespace

static void collect(const Place &place, std::vector<Place> &places) {
  places.push_back(place);
  Json &json = *place.value;
  if (json.is_object())
    for (auto &[key, member] : json.items())
      collect({place.pointer + "/" + key, &member, &json, key, 0}, places);
  else if (json.is_array())
    for (size_t i = 0; i < json.size(); ++i)
      collect({place.pointer + "/" + std::to_string(i), &json[i], &json, "", static_cast<std::ptrdiff_t>(i)}, places);
}

static Json randomNumber(const Json &old, Random &random) {
  static const int64_t kEdges[] = {0,          1,          -1,        2,         3,         127,       INT32_MAX,
                                   INT32_MIN,  1ll << 32,  1ll << 40, 1ll << 50, 1ll << 53, 1ll << 62, INT64_MAX,
                                   INT64_MIN,  -(1ll << 40)};
  int64_t value = old.is_number_integer() ? old.get<int64_t>() : 7;
  auto shifted = [&](uint64_t by) { return static_cast<int64_t>(static_cast<uint64_t>(value) + by); };
  switch (random.below(6)) {
  case 0:
    return shifted(1);
  case 1:
    return shifted(~uint64_t(0));
  case 2:
    return static_cast<int64_t>(static_cast<uint64_t>(value) * 2);
  case 3:
    return static_cast<int64_t>(-static_cast<uint64_t>(value));
  case 4:
    return random.below(2) ? Json(1e308) : Json(0.5);
  default:
    return kEdges[random.below(std::size(kEdges))];
  }
}

static Json randomValue(const Json &old, const std::vector<Place> &places, Random &random) {
  // Half of the time the type stays: otherwise most cases end at "expected an integer".
  if (old.is_number() && random.below(2))
    return randomNumber(old, random);
  if (old.is_string() && random.below(4) == 0)
    return kBait;
  switch (random.below(10)) {
  case 0:
    return nullptr;
  case 1:
    return random.below(2) == 0;
  case 2:
    return randomNumber(old, random);
  case 3:
    return "";
  case 4:
    return random.below(2) ? kBait : "/etc/passwd";
  case 5:
    return std::string(1 + random.below(100000), 'x');
  case 6:
    return Json::array();
  case 7:
    return Json::object();
  case 8: {
    Json deep = 1;
    for (uint64_t depth = random.below(20000); depth > 0; --depth)
      deep = Json::array({std::move(deep)});
    return deep;
  }
  default:
    return *places[random.below(places.size())].value;
  }
}

static std::string mutateFields(Json &root, Random &random) {
  std::vector<Place> places;
  collect({"", &root, nullptr, "", 0}, places);
  // What stands for iterations that a file does not have is little of it.
  std::vector<Place> repeats;
  if (root.is_object() && root.contains("repeats") && random.below(4) == 0)
    collect({"/repeats", &root["repeats"], &root, "repeats", 0}, repeats);
  const std::vector<Place> &some = repeats.empty() ? places : repeats;
  const Place &place = some[random.below(some.size())];
  std::string where = place.pointer + ": ";
  // A copy first: what replaces a value may be taken from inside it.
  Json replacement = randomValue(*place.value, places, random);
  if (!place.parent) {
    root = std::move(replacement);
    return "another document";
  }
  Json &parent = *place.parent;
  switch (random.below(8)) {
  case 0:
    if (parent.is_object())
      parent.erase(place.key);
    else
      parent.erase(parent.begin() + place.index);
    return where + "erased";
  case 1: {
    Json copy = *place.value;
    if (parent.is_array())
      parent.insert(parent.begin() + place.index, std::move(copy));
    else
      parent["another " + place.key] = std::move(copy);
    return where + "twice";
  }
  case 2: {
    const Place &other = places[random.below(places.size())];
    Json theirs = *other.value;
    *place.value = std::move(theirs);
    return where + "what is at " + other.pointer;
  }
  default:
    *place.value = std::move(replacement);
    const Json &value = *place.value;
    return where + (value.is_structured() && !value.empty() ? "a structure" : value.dump().substr(0, 60));
  }
}

std::string spmd::fuzz::mutate(std::string &content, bool isSafetensors, Random &random) {
  uint64_t headerSize = 0;
  if (isSafetensors && content.size() >= 8)
    std::memcpy(&headerSize, content.data(), 8);
  size_t begin = isSafetensors ? 8 : 0;
  size_t end = isSafetensors ? 8 + headerSize : content.size();
  // Half of the byte mutations of a safetensors file fall into its size and header, not its data.
  if (random.below(3) == 0 || end > content.size()) {
    if (!isSafetensors || end > content.size() || random.below(2))
      return mutateBytes(content, random);
    std::string head = content.substr(0, end), data = content.substr(end);
    std::string done = mutateBytes(head, random);
    content = head + data;
    return done;
  }
  Json root = Json::parse(content.begin() + static_cast<std::ptrdiff_t>(begin),
                          content.begin() + static_cast<std::ptrdiff_t>(end));
  std::string done = mutateFields(root, random);
  std::string text = root.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (isSafetensors) {
    uint64_t size = text.size();
    content = std::string(reinterpret_cast<const char *>(&size), 8) + text + content.substr(end);
  } else {
    content = text;
  }
  return done;
}
