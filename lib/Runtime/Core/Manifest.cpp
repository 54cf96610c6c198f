//===- Manifest.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Core/Manifest.h"

#include <algorithm>

using namespace spmd::runtime;

bool Unit::isTrainable() const {
  return std::any_of(segments.begin(), segments.end(), [](const Segment &s) { return s.trainable; });
}

const Unit *Manifest::findUnit(const std::string &name) const {
  for (const Unit &unit : units)
    if (unit.name == name)
      return &unit;
  return nullptr;
}

const KernelLaunch *Manifest::findLaunch(const std::string &kernel, const std::string &chip) const {
  for (const KernelLaunch &launch : launches)
    if (launch.kernel == kernel && launch.chip == chip)
      return &launch;
  return nullptr;
}

std::vector<int64_t> Manifest::coordinatesOf(int64_t rank) const {
  std::vector<int64_t> coordinates(mesh.size());
  for (size_t axis = mesh.size(); axis-- > 0;) {
    coordinates[axis] = rank % mesh[axis].size;
    rank /= mesh[axis].size;
  }
  return coordinates;
}

const char *spmd::runtime::nameOf(StateEntry::Kind kind) {
  switch (kind) {
  case StateEntry::Kind::Shard:
    return "shard";
  case StateEntry::Kind::Table:
    return "table";
  case StateEntry::Kind::Replicated:
    return "replicated";
  }
  return "";
}

std::string spmd::runtime::bindingName(const StateEntry &entry) {
  std::string owner = entry.kind == StateEntry::Kind::Replicated ? entry.name : entry.unit;
  const char *kind = entry.kind == StateEntry::Kind::Shard   ? "shard "
                     : entry.kind == StateEntry::Kind::Table ? "table "
                                                             : "";
  return kind + entry.state + " of " + owner + " " + nameOf(entry.dtype);
}

std::string spmd::runtime::bindingName(const BatchInput &input) {
  return "batch " + input.name + " " + nameOf(input.dtype);
}

std::string spmd::runtime::bindingName(const HyperParameter &hyper) {
  return "hyper " + hyper.name + " " + std::to_string(hyper.group) + " " + nameOf(hyper.dtype);
}

std::string spmd::runtime::bindingName(const Output &output) {
  return output.kind + " " + output.path + " " + nameOf(output.dtype);
}
