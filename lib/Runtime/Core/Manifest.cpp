//===- Manifest.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Core/Manifest.h"

#include <algorithm>

using namespace spmd::runtime;

std::string spmd::runtime::toText(LibraryVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

bool Unit::isTrainable() const {
  return std::any_of(segments.begin(), segments.end(), [](const Segment &s) { return s.trainable; });
}

const Unit *Manifest::findUnit(const std::string &name) const {
  for (const Unit &unit : units)
    if (unit.name == name)
      return &unit;
  return nullptr;
}

bool Manifest::keepsSums(const Unit &unit) const {
  return std::any_of(state.begin(), state.end(), [&](const StateEntry &entry) {
    return entry.kind == StateEntry::Kind::Shard && entry.isSum && entry.unit == unit.name;
  });
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

Binding spmd::runtime::bindingOf(const StateEntry &entry) {
  bool isWhole = entry.kind == StateEntry::Kind::Replicated;
  Binding::Kind kind = isWhole                                 ? Binding::Kind::Replicated
                       : entry.kind == StateEntry::Kind::Shard ? Binding::Kind::Shard
                                                               : Binding::Kind::Table;
  return {kind, isWhole ? entry.name : entry.unit, entry.state, 0, entry.dtype};
}

Binding spmd::runtime::bindingOf(const BatchInput &input) {
  return {Binding::Kind::Batch, input.name, "", 0, input.dtype};
}

Binding spmd::runtime::bindingOf(const HyperParameter &hyper) {
  return {Binding::Kind::Hyper, hyper.name, "", hyper.group, hyper.dtype};
}

Binding spmd::runtime::bindingOf(const Output &output) { return {output.kind, output.path, "", 0, output.dtype}; }
