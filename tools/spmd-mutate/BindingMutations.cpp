//===- BindingMutations.cpp - Buffers, and what names are bound to --------===//

#include "Mutation.h"

#include <algorithm>

using namespace spmd::mutation;
using Done = std::optional<std::string>;

//===----------------------------------------------------------------------===//
// Buffers of the plan
//===----------------------------------------------------------------------===//

static std::string nameBuffer(Json &buffer) {
  return "buffer " + buffer["id"].dump() + " (" + buffer["name"].get<std::string>() + ")";
}

static Done shiftBuffer(Program &program, Random &random) {
  Json &buffer = random.pick(program.buffers());
  std::vector<int64_t> steps = {-4096, -64, 64, 4096, buffer["bytes"]};
  int64_t to = buffer["offset"].get<int64_t>() + random.pick(steps);
  if (to < 0)
    return std::nullopt;
  return nameBuffer(buffer) + " " + setField(buffer, "offset", to);
}

static Done swapBuffers(Program &program, Random &random) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < program.buffers().size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (program.buffers()[i]["bytes"] == program.buffers()[j]["bytes"] &&
          program.buffers()[i]["offset"] != program.buffers()[j]["offset"])
        pairs.emplace_back(j, i);
  if (pairs.empty())
    return std::nullopt;
  auto [a, b] = random.pick(pairs);
  Json &first = program.buffers()[a], &second = program.buffers()[b];
  std::swap(first["offset"], second["offset"]);
  return nameBuffer(first) + " and " + nameBuffer(second) + " exchange places";
}

static Done resizeBuffer(Program &program, Random &random) {
  Json &buffer = random.pick(program.buffers());
  int64_t bytes = buffer["bytes"];
  std::vector<int64_t> sizes = {bytes + 64, bytes * 2, bytes / 2, bytes - std::min<int64_t>(bytes, 4)};
  return nameBuffer(buffer) + " " + setField(buffer, "bytes", random.pick(sizes));
}

static Done changePersistence(Program &program, Random &random) {
  Json &buffer = random.pick(program.buffers());
  return nameBuffer(buffer) + " " + setField(buffer, "state", !buffer["state"].get<bool>());
}

static Done changeClass(Program &program, Random &random) {
  Json &buffer = random.pick(program.buffers());
  std::vector<std::string> classes = {"parameters", "gradients", "optimizer state", "activations", "gathered", "io"};
  classes.erase(std::remove(classes.begin(), classes.end(), buffer["class"].get<std::string>()), classes.end());
  return nameBuffer(buffer) + " " + setField(buffer, "class", random.pick(classes));
}

static Done changeLabel(Program &program, Random &random) {
  if (random.below(2)) {
    Json &buffer = random.pick(program.buffers());
    return nameBuffer(buffer) + " " + setField(buffer, "name", program.buffers()[0]["name"]);
  }
  size_t command = random.below(program.commands().size());
  return nameCommand(program, command) + " " + setField(program.commands()[command], "loc", "elsewhere");
}

//===----------------------------------------------------------------------===//
// What the manifest binds
//===----------------------------------------------------------------------===//

static std::string nameEntry(Json &entry) {
  std::string name;
  for (const char *key : {"unit", "name", "path", "state", "group"})
    if (entry.contains(key))
      name += (name.empty() ? "" : " ") + (entry[key].is_string() ? entry[key].get<std::string>() : entry[key].dump());
  return name;
}

/// Two entries of a table exchange what `keys` say; `fits` says which may.
template <typename Fits>
static Done exchangeEntries(Json &table, Random &random, const std::vector<const char *> &keys, Fits fits) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < table.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (fits(table[j], table[i]))
        pairs.emplace_back(j, i);
  if (pairs.empty())
    return std::nullopt;
  auto [a, b] = random.pick(pairs);
  std::string done = nameEntry(table[a]) + " and " + nameEntry(table[b]) + " exchange";
  for (const char *key : keys) {
    std::swap(table[a][key], table[b][key]);
    done += std::string(" ") + key;
  }
  return done;
}

static bool sameSize(Json &a, Json &b) {
  for (const char *key : {"dtype", "numel", "shape", "local_shape"})
    if (a.value(key, Json()) != b.value(key, Json()))
      return false;
  return a["offset"] != b["offset"];
}

static Done exchangePlaces(Json &table, Random &random) {
  return exchangeEntries(table, random, {"offset", "buffer"}, sameSize);
}
static Done exchangeStates(Program &program, Random &random) {
  return exchangePlaces(program.manifest["state"], random);
}
static Done exchangeBatch(Program &program, Random &random) {
  return exchangePlaces(program.manifest["batch"], random);
}
static Done exchangeHyper(Program &program, Random &random) {
  return exchangePlaces(program.manifest["hyper"], random);
}
static Done exchangeOutputs(Program &program, Random &random) {
  return exchangePlaces(program.manifest["outputs"], random);
}

static Done shiftBinding(Program &program, Random &random) {
  std::vector<Json *> entries;
  for (const char *table : {"state", "batch", "hyper", "outputs"})
    for (Json &entry : program.manifest[table])
      entries.push_back(&entry);
  Json &entry = *random.pick(entries);
  std::vector<int64_t> steps = {-64, -8, -4, 4, 8, 64};
  int64_t to = entry["offset"].get<int64_t>() + random.pick(steps);
  if (to < 0)
    return std::nullopt;
  return nameEntry(entry) + " " + setField(entry, "offset", to);
}

/// Names of two parameters of the same shape; of one unit.
static Done exchangeSegments(Program &program, Random &random) {
  Json &unit = random.pick(program.manifest["units"]);
  return exchangeEntries(unit["segments"], random, {"name"}, [](Json &a, Json &b) { return a["shape"] == b["shape"]; });
}

static Done exchangeUnits(Program &program, Random &random) {
  return exchangeEntries(program.manifest["units"], random, {"segments"},
                         [](Json &a, Json &b) { return a["padded"] == b["padded"] && a["chunk"] == b["chunk"]; });
}

static Done exchangeNames(Program &program, Random &random) {
  std::vector<const char *> tables = {"batch", "hyper", "state"};
  const char *table = random.pick(tables);
  std::vector<const char *> keys = {"name"};
  if (std::string(table) == "hyper")
    keys.push_back("group");
  if (std::string(table) == "state")
    keys = {"state"};
  auto fits = [&](Json &a, Json &b) {
    bool differs = false;
    for (const char *key : keys)
      differs |= a[key] != b[key];
    return differs && sameSize(a, b) && a.value("kind", Json()) == b.value("kind", Json());
  };
  return exchangeEntries(program.manifest[table], random, keys, fits);
}

const std::vector<MutationClass> &spmd::mutation::bindingMutations() {
  static const char *const place = "the arena's layout stays valid: where bytes lie changes no bit";
  static const char *const people = "labels and classes are for people";
  static const std::vector<MutationClass> list = {
      {"buffer-offset", "a buffer lies elsewhere", place, shiftBuffer},
      {"buffer-swap", "two buffers exchange places", place, swapBuffers},
      {"buffer-bytes", "a buffer has another size", place, resizeBuffer},
      {"buffer-state", "a buffer persists, or does not", nullptr, changePersistence},
      {"buffer-class", "a buffer is of another class", people, changeClass},
      {"label", "names and locations", people, changeLabel},
      {"state-binding", "two states exchange places", nullptr, exchangeStates},
      {"batch-binding", "two batch inputs exchange places", nullptr, exchangeBatch},
      {"hyper-binding", "two hyper-parameters exchange places", nullptr, exchangeHyper},
      {"output-binding", "two outputs exchange places", nullptr, exchangeOutputs},
      {"binding-shift", "something bound lies elsewhere", nullptr, shiftBinding},
      {"segment-names", "two parameters of a unit exchange names", nullptr, exchangeSegments},
      {"unit-segments", "two units exchange parameters", nullptr, exchangeUnits},
      {"binding-names", "two bound things exchange names", nullptr, exchangeNames},
  };
  return list;
}
