//===- Mesh.h - how the ranks are arranged ----------------------*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_MESH_H
#define SPMD_SHARDUNITS_MESH_H

#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <limits>
#include <string>

namespace spmd::units {

/// The ranks in rows of `shard` of them: a sharded unit is cut along the row, and each row has it all. One row is a
/// plain number of ranks. Rank numbers run along the rows, as those of PyTorch's 2-D DeviceMesh do. Each place of a row
/// is `tensor` ranks, which have the same rows of the batch and parts of the parameters that are placed so.
struct Mesh {
  int64_t replicate = 1, shard = 1, tensor = 1;
  bool namesTensor = false; ///< a tensor axis was written, if only of one rank

  static Mesh of(int64_t ranks) { return {1, ranks, 1, false}; }
  int64_t ranks() const { return replicate * shard * tensor; }
  /// Over how many of them the batch is cut.
  int64_t dataRanks() const { return replicate * shard; }
  /// The same without the tensor axis.
  Mesh withoutTensor() const { return {replicate, shard, 1, false}; }
  /// The batch is cut over two axes.
  bool hasTwoAxes() const { return replicate > 1 && shard > 1; }
  bool operator==(const Mesh &o) const { return replicate == o.replicate && shard == o.shard && tensor == o.tensor; }
  bool operator!=(const Mesh &o) const { return !(*this == o); }
  /// "replicate:4,shard:8", or "8 ranks" of one row.
  std::string describe() const;
};

/// What a mesh looks like where it is written, for errors.
constexpr char kMeshForm[] = "replicate:N,shard:M or shard:M, and tensor:T behind it or alone";

/// Reads "replicate:4,shard:8", "shard:8", "shard:8,tensor:2" or "tensor:2". Sizes are at least 1, and a row of one
/// rank shards nothing: that is mode replicate, and an error that says so.
runtime::Expected<Mesh> parseMesh(const std::string &text);

/// An error of what shows units alone: which parts of parameters they have on a tensor axis, a compilation finds.
constexpr char kNoTensorHere[] = "units are shown of a mesh without a tensor axis; leave it out";

/// The option `ranks` where nobody gave it: 1 without a mesh, else the ranks of the mesh.
constexpr int64_t kRanksNotSaid = std::numeric_limits<int64_t>::min();

/// The mesh of the options `ranks` (kRanksNotSaid: not said) and `mesh` (empty: not said).
runtime::Expected<Mesh> chooseMesh(int64_t ranks, const std::string &mesh);

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_MESH_H
