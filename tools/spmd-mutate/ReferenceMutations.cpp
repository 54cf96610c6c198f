//===- ReferenceMutations.cpp - Commands that touch other bytes -----------===//

#include "Mutation.h"

using namespace spmd::mutation;
using Done = std::optional<std::string>;

static std::string nameRef(Program &program, const RefPlace &place) {
  return nameCommand(program, place.command) + " " + place.name;
}

/// Where the bytes are; access and size stay with the command.
static void setPlace(Json &ref, const Json &place) {
  ref["buffer"] = place["buffer"];
  ref["offset"] = place["offset"];
  if (place.contains("coord"))
    ref["coord"] = place["coord"];
  else
    ref.erase("coord");
}

static bool samePlace(const Json &a, const Json &b) { return a["buffer"] == b["buffer"] && a["offset"] == b["offset"]; }

static void exchange(Json &a, Json &b) {
  Json first = a, second = b;
  setPlace(a, second);
  setPlace(b, first);
}

/// Two references of as many bytes, of one command or of any two.
static Done swapRefs(Program &program, Random &random, bool ofOneCommand) {
  std::vector<RefPlace> places = allRefs(program);
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if ((places[i].command == places[j].command) == ofOneCommand && !samePlace(*places[i].ref, *places[j].ref) &&
          (*places[i].ref)["bytes"] == (*places[j].ref)["bytes"])
        pairs.emplace_back(j, i);
  if (pairs.empty())
    return std::nullopt;
  auto [a, b] = random.pick(pairs);
  exchange(*places[a].ref, *places[b].ref);
  return nameRef(program, places[a]) + " and " + nameRef(program, places[b]) + " exchange places";
}

static Done swapRefsOfCommand(Program &program, Random &random) { return swapRefs(program, random, true); }
static Done swapRefsOfCommands(Program &program, Random &random) { return swapRefs(program, random, false); }

/// The bytes that another command reads or writes; among them those of collectives when `ofCollective`.
static Done replaceRef(Program &program, Random &random, bool ofCollective) {
  std::vector<RefPlace> places = allRefs(program);
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < places.size(); ++i)
    if (!ofCollective || program.commands()[places[i].command].contains("comm"))
      for (size_t j = 0; j < places.size(); ++j)
        if (!samePlace(*places[i].ref, *places[j].ref) && (*places[i].ref)["bytes"] == (*places[j].ref)["bytes"])
          pairs.emplace_back(i, j);
  if (pairs.empty())
    return std::nullopt;
  auto [a, b] = random.pick(pairs);
  setPlace(*places[a].ref, *places[b].ref);
  return nameRef(program, places[a]) + " becomes " + nameRef(program, places[b]);
}

static Done replaceAnyRef(Program &program, Random &random) { return replaceRef(program, random, false); }
static Done replaceCollectiveRef(Program &program, Random &random) { return replaceRef(program, random, true); }

static Done moveToOtherBuffer(Program &program, Random &random) {
  std::vector<RefPlace> places = allRefs(program);
  const RefPlace &place = random.pick(places);
  int64_t end = (*place.ref)["offset"].get<int64_t>() + (*place.ref)["bytes"].get<int64_t>();
  std::vector<size_t> fitting;
  for (size_t buffer = 0; buffer < program.buffers().size(); ++buffer)
    if (buffer != (*place.ref)["buffer"] && program.buffers()[buffer]["bytes"] >= end)
      fitting.push_back(buffer);
  if (fitting.empty())
    return std::nullopt;
  return nameRef(program, place) + " " + setField(*place.ref, "buffer", random.pick(fitting));
}

static Done shiftRef(Program &program, Random &random) {
  std::vector<RefPlace> places;
  for (RefPlace &place : allRefs(program))
    if ((*place.ref)["bytes"] < program.buffers()[(*place.ref)["buffer"].get<size_t>()]["bytes"])
      places.push_back(place);
  if (places.empty())
    return std::nullopt;
  const RefPlace &place = random.pick(places);
  int64_t offset = (*place.ref)["offset"], size = program.buffers()[(*place.ref)["buffer"].get<size_t>()]["bytes"];
  int64_t room = size - (*place.ref)["bytes"].get<int64_t>();
  std::vector<int64_t> targets;
  for (int64_t by : {-64, -16, -4, 4, 16, 64})
    if (offset + by >= 0 && offset + by <= room)
      targets.push_back(offset + by);
  for (int64_t to : {int64_t(0), room})
    if (to != offset)
      targets.push_back(to);
  if (targets.empty())
    return std::nullopt;
  return nameRef(program, place) + " " + setField(*place.ref, "offset", random.pick(targets));
}

static Done resizeRef(Program &program, Random &random) {
  std::vector<RefPlace> places = allRefs(program);
  const RefPlace &place = random.pick(places);
  int64_t bytes = (*place.ref)["bytes"];
  std::vector<int64_t> sizes = {bytes + 4, bytes * 2};
  if (bytes > 4)
    sizes.insert(sizes.end(), {bytes - 4, bytes / 2, 0});
  return nameRef(program, place) + " " + setField(*place.ref, "bytes", random.pick(sizes));
}

static Done changeAccess(Program &program, Random &random) {
  std::vector<RefPlace> places;
  for (size_t command : commandsOf(program, "kernel"))
    for (RefPlace &place : refsOf(program, command))
      places.push_back(place);
  if (places.empty())
    return std::nullopt;
  const RefPlace &place = random.pick(places);
  std::vector<std::string> others;
  for (const char *access : {"r", "w", "rw"})
    if ((*place.ref)["access"] != access)
      others.push_back(access);
  return nameRef(program, place) + " " + setField(*place.ref, "access", random.pick(others));
}

static Done addCoordinate(Program &program, Random &random) {
  std::vector<RefPlace> places = allRefs(program);
  const RefPlace &place = random.pick(places);
  std::vector<int64_t> strides = {4, 64, -4, (*place.ref)["bytes"]};
  // The last rank keeps its place, or the first does.
  return nameRef(program, place) + " " + setField(*place.ref, "coord", Json::array({random.pick(strides)}));
}

const std::vector<MutationClass> &spmd::mutation::referenceMutations() {
  static const char *const unread = "only bytes that nothing reads have moved, or bytes that hold the same value";
  static const std::vector<MutationClass> list = {
      {"ref-swap", "two references of a command exchange places", unread, swapRefsOfCommand},
      {"ref-swap-commands", "references of two commands exchange places", unread, swapRefsOfCommands},
      {"ref-replace", "a reference becomes another of as many bytes", unread, replaceAnyRef},
      {"ref-collective", "a collective takes another command's bytes", unread, replaceCollectiveRef},
      {"ref-buffer", "a reference goes to another buffer", unread, moveToOtherBuffer},
      {"ref-offset", "a reference is shifted inside its buffer", unread, shiftRef},
      {"ref-bytes", "a reference has another size", nullptr, resizeRef},
      {"ref-access", "a kernel's argument has another access", nullptr, changeAccess},
      {"ref-coord", "a reference depends on the rank", "with one rank, every coordinate is 0", addCoordinate},
  };
  return list;
}
