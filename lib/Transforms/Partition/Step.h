//===- Step.h - what @step's roles say --------------------------*- C++ -*-===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_STEP_H
#define SPMD_LIB_TRANSFORMS_PARTITION_STEP_H

#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace spmd::partition {

/// A flat buffer of a unit that is an argument of the partitioned step: the
/// parameters or one optimizer state, as a chunk, or as a table when the state is
/// one number per parameter.
struct UnitArgument {
  llvm::StringRef state;
  bool isTable = false;
  mlir::Type dtype;
  mlir::FloatAttr init;
  /// Argument of the captured step for each segment; null where a parameter of
  /// the unit lacks this state.
  llvm::SmallVector<mlir::BlockArgument> members;
};

struct Unit {
  ShardUnitOp op;
  FlatAttr layout;
  /// Each rank owns a chunk; otherwise each has the whole buffer.
  bool sharded = false;
  /// Of a sharded unit: each rank has all parameters, and a chunk of everything else.
  bool hasWholeParameters = false;
  /// In which gradients are added up over the ranks, where it is not the parameters' type; else null.
  mlir::FloatType reduceType;
  /// Parameters first, then the states in the order of the arguments.
  llvm::SmallVector<UnitArgument> arguments;

  int64_t numSegments() const { return layout.getSegments().size(); }
};

/// A parameter's place: unit and segment by number.
struct Place {
  int64_t unit = -1, segment = -1;
  bool operator==(const Place &o) const { return unit == o.unit && segment == o.segment; }
  bool operator!=(const Place &o) const { return !(*this == o); }
};

/// What the roles of the captured @step say, ready to ask.
class Step {
public:
  /// Reads mesh, units and roles; errors name what is missing or inconsistent.
  static mlir::FailureOr<Step> read(mlir::func::FuncOp func, bool accumulatesUnsharded);

  mlir::func::FuncOp func;
  MeshOp mesh;
  /// Those over which the batch is cut: of the data axes, as all ranks and axes here are.
  int64_t ranks = 1;
  /// Along which units are cut: the last data axis of the mesh, or all of them; and how many ranks these have.
  mlir::ArrayAttr shardAxes;
  int64_t shardRanks = 1;
  /// The axes before it, if there are any: along them ranks have the same chunks.
  mlir::ArrayAttr replicateAxes;
  /// The captured step is one rank's; see [Note: local view].
  bool isLocalView = false;
  /// What its gradients are divided by, once they are added up.
  double gradientDivideFactor = 1;
  /// Gradients which outlive the step are sums across the axes before the shard axis; see [Note: sums across].
  bool scattersSums = false;
  /// Arguments that are gradients which outlive the step, and of which each rank has a summand; see [Note: gradients].
  llvm::DenseSet<mlir::Value> summands;
  llvm::SmallVector<Unit> units;
  /// Of the arguments that are parameters or their state.
  llvm::DenseMap<mlir::Value, Place> places;
  /// Those of them that a table holds.
  llvm::DenseSet<mlir::Value> tableArguments;

  /// An error where a unit's precision is not that of the captured step: of types, only that in which gradients are
  /// reduced can be chosen after the capture.
  mlir::LogicalResult checkPrecision() const;

  mlir::FlatSymbolRefAttr meshRef() const;
  mlir::ArrayAttr axes() const { return MeshOp(mesh).getDataAxes(); }
  /// Those on which a value is in this state, and not in the one that it has on the axes before.
  mlir::ArrayAttr axesOf(const AxisState &state) const {
    return state.outer == AxisState::Outer::same ? axes() : shardAxes;
  }
  /// Of a chunk, or of what ranks have computed from theirs.
  AxisState onShardAxis(AxisState state) const {
    return replicateAxes ? state.within(AxisState::Outer::replicated) : state;
  }

private:
  mlir::LogicalResult readUnits(mlir::ModuleOp module);
  mlir::LogicalResult readArguments(bool accumulatesUnsharded);
};

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_STEP_H
