//===- Mutation.cpp - What all classes of mutations use -------------------===//

#include "Mutation.h"

using namespace spmd::mutation;

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

const std::vector<MutationClass> &spmd::mutation::mutationClasses() {
  static const std::vector<MutationClass> all = [] {
    std::vector<MutationClass> list;
    for (const auto *part : {&referenceMutations(), &orderMutations(), &operationMutations(), &bindingMutations(),
                             &repeatMutations()})
      list.insert(list.end(), part->begin(), part->end());
    return list;
  }();
  return all;
}

std::vector<RefPlace> spmd::mutation::refsOf(Program &program, size_t command) {
  std::vector<RefPlace> places;
  for (auto &[key, value] : program.commands()[command].items()) {
    if (value.is_object() && value.contains("buffer"))
      places.push_back({command, key, &value});
    if (value.is_array())
      for (size_t i = 0; i < value.size(); ++i)
        if (value[i].is_object() && value[i].contains("buffer"))
          places.push_back({command, key + "/" + std::to_string(i), &value[i]});
  }
  return places;
}

std::vector<RefPlace> spmd::mutation::allRefs(Program &program) {
  std::vector<RefPlace> places;
  for (size_t command = 0; command < program.commands().size(); ++command)
    for (RefPlace &place : refsOf(program, command))
      places.push_back(std::move(place));
  return places;
}

std::vector<size_t> spmd::mutation::commandsOf(Program &program, const std::string &op) {
  std::vector<size_t> found;
  for (size_t command = 0; command < program.commands().size(); ++command)
    if (program.commands()[command]["op"] == op)
      found.push_back(command);
  return found;
}

/// The positions of the commands that have `key`.
static std::vector<size_t> commandsWith(Program &program, const std::string &key) {
  std::vector<size_t> found;
  for (size_t command = 0; command < program.commands().size(); ++command)
    if (program.commands()[command].contains(key))
      found.push_back(command);
  return found;
}

std::vector<size_t> spmd::mutation::launchesOf(Program &program) { return commandsWith(program, "kernel"); }
std::vector<size_t> spmd::mutation::collectivesOf(Program &program) { return commandsWith(program, "comm"); }

std::string spmd::mutation::nameCommand(Program &program, size_t command) {
  Json &json = program.commands()[command];
  std::string kernel = json.contains("kernel") ? " " + json["kernel"].get<std::string>() : "";
  return "command " + std::to_string(command) + " (" + json["op"].get<std::string>() + kernel + ")";
}

std::string spmd::mutation::setField(Json &object, const std::string &key, Json value) {
  std::string before = object.contains(key) ? object[key].dump() : "nothing";
  object[key] = std::move(value);
  return key + ": " + before + " becomes " + object[key].dump();
}
