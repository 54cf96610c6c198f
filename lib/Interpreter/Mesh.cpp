//===- Mesh.cpp - the ranks that the interpreter runs ---------------------===//

#include "spmd/Interpreter/Mesh.h"
#include "dialects/Spmd/Spmd.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace spmd::interp {

FailureOr<Mesh> Mesh::of(ModuleOp module) {
  Mesh mesh;
  MeshOp found;
  for (MeshOp op : module.getOps<MeshOp>()) {
    if (found) {
      InFlightDiagnostic diag = op.emitError() << "programs with more than one mesh cannot be run";
      diag.attachNote(found.getLoc()) << "the first mesh";
      return failure();
    }
    found = op;
    for (Attribute name : op.getAxisNames())
      mesh.axes.push_back(cast<StringAttr>(name).str());
    mesh.hasTensorAxis = op.getTensorAxis().has_value();
    mesh.sizes.assign(op.getAxisSizes().begin(), op.getAxisSizes().end());
  }
  return mesh;
}

int64_t Mesh::numRanks() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

SmallVector<int64_t> Mesh::coordinates(int64_t rank) const {
  SmallVector<int64_t> result(sizes.size());
  for (int64_t i = sizes.size(); i-- > 0;) {
    result[i] = rank % sizes[i];
    rank /= sizes[i];
  }
  return result;
}

SmallVector<SmallVector<int64_t>> Mesh::groups(ArrayRef<int64_t> over) const {
  // Coordinates off the axes name the group; those on them sort its ranks.
  std::map<SmallVector<int64_t>, std::map<SmallVector<int64_t>, int64_t>> groups;
  for (int64_t rank = 0, e = numRanks(); rank < e; ++rank) {
    SmallVector<int64_t> outside = coordinates(rank), inside;
    for (int64_t axis : over) {
      inside.push_back(outside[axis]);
      outside[axis] = 0;
    }
    groups[outside][inside] = rank;
  }
  SmallVector<SmallVector<int64_t>> result;
  for (const auto &group : groups) {
    result.emplace_back();
    for (const auto &member : group.second)
      result.back().push_back(member.second);
  }
  return result;
}

SmallVector<SmallVector<int64_t>> Mesh::groups(ArrayAttr over) const {
  SmallVector<int64_t> indices;
  for (Attribute name : over)
    indices.push_back(llvm::find(axes, cast<StringAttr>(name).getValue()) - axes.begin());
  return groups(indices);
}

SmallVector<SmallVector<int64_t>> Mesh::groupsOfState(int64_t index, size_t count) const {
  int64_t end = index + 1 == static_cast<int64_t>(count) ? numDataAxes() : index + 1;
  return groups(llvm::to_vector(llvm::seq<int64_t>(index, end)));
}

SmallVector<SmallVector<int64_t>> Mesh::groups(int64_t axis) const { return groups(ArrayRef<int64_t>(axis)); }

} // namespace spmd::interp
