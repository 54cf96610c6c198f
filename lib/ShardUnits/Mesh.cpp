//===- Mesh.cpp - how the ranks are arranged ------------------------------===//

#include "spmd/ShardUnits/Mesh.h"

#include <charconv>
#include <sstream>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::Status;

std::string Mesh::describe() const {
  if (replicate == 1 && tensor == 1)
    return std::to_string(shard) + (shard == 1 ? " rank" : " ranks");
  return (replicate == 1 ? "" : "replicate:" + std::to_string(replicate) + ",") + "shard:" + std::to_string(shard) +
         (tensor == 1 ? "" : ",tensor:" + std::to_string(tensor));
}

Expected<Mesh> units::parseMesh(const std::string &text) {
  constexpr int64_t most = 1 << 20; // so many places of ranks are listed where groups of them meet
  Mesh mesh{0, 0, 0, false};
  std::istringstream axes(text);
  for (std::string axis; std::getline(axes, axis, ',');) {
    size_t colon = axis.find(':');
    std::string name = axis.substr(0, colon);
    // In the order of the axes.
    int64_t *size = name == "tensor"                                     ? &mesh.tensor
                    : name == "shard" && !mesh.tensor                    ? &mesh.shard
                    : name == "replicate" && !mesh.shard && !mesh.tensor ? &mesh.replicate
                                                                         : nullptr;
    if (!size || *size || colon == std::string::npos)
      return Status::badInput("'" + axis + "': expected " + kMeshForm);
    const char *end = axis.data() + axis.size();
    auto [stop, problem] = std::from_chars(axis.data() + colon + 1, end, *size);
    if (problem != std::errc() || stop != end || *size < 1 || *size > most)
      return Status::badInput("'" + axis + "': expected a number of ranks from 1 to " + std::to_string(most));
  }
  if (!mesh.shard && !mesh.replicate && mesh.tensor)
    mesh.shard = 1;
  mesh.namesTensor = mesh.tensor > 0;
  mesh.tensor = std::max<int64_t>(mesh.tensor, 1);
  if (!mesh.shard)
    return Status::badInput(std::string("expected ") + kMeshForm +
                            "; to replicate only, pass a number of ranks and the mode replicate");
  mesh.replicate = std::max<int64_t>(mesh.replicate, 1);
  if (mesh.shard == 1 && mesh.replicate > 1)
    return Status::badInput("nothing is cut over an axis shard of 1 rank; " + std::to_string(mesh.replicate) +
                            " ranks that each have everything are ranks=" + std::to_string(mesh.replicate) +
                            " with the mode replicate");
  if (mesh.ranks() > most)
    return Status::badInput("has " + std::to_string(mesh.ranks()) + " ranks, expected no more than " +
                            std::to_string(most));
  return mesh;
}

Expected<Mesh> units::chooseMesh(int64_t ranks, const std::string &text) {
  if (text.empty())
    return Mesh::of(ranks == kRanksNotSaid ? 1 : ranks);
  Expected<Mesh> mesh = parseMesh(text);
  if (mesh && ranks != kRanksNotSaid && ranks != mesh->ranks())
    return Status::badInput("has " + std::to_string(mesh->ranks()) + " ranks, and ranks is " + std::to_string(ranks) +
                            "; leave ranks out, or make them equal");
  return mesh;
}
