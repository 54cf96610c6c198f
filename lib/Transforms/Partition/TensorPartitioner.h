//===- TensorPartitioner.h - one rank of the tensor axis --------*- C++ -*-===//
//
// [Note: the tensor axis]
// Along the tensor axis ranks have the same rows of the batch, and parts of the parameters that are placed so. What
// follows for activations, gradients and optimizer state is propagated from there by the rules of the ops, as the batch
// is along the other axes (Propagate.h): a product whose weight is cut in its outputs gives cut activations, one whose
// weight is cut in its inputs partial sums, which are reduced where they must be whole, forward and backward alike.
//
// It is done first, axis after axis: what comes out is again a step on the whole batch, of smaller parameters and with
// collectives along the tensor axis in it, and all that follows (units, partition over the batch) sees that step. An
// all-reduce or a slice along the tensor axis is an op like any other there: it changes no state on the data axes.
//
// Where a dimension that an op's rule wants whole is cut, some ops are taken apart first: softmax and means over it
// (TensorSplits.h). Others look up rows of it by number, as embeddings and the losses over classes do: each rank looks
// up those that are its own, and gives 0 for the rest (TensorLookups.cpp).
//
// Nothing that is cut is gathered. An op that needs it whole is an error, and so are a gradient or an update that are
// cut where the parameter is not: both cost more than they are worth, and there is a placement that avoids them.
// Chunks have no padding: a dimension that the axis does not divide is an error.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_TENSORPARTITIONER_H
#define SPMD_LIB_TRANSFORMS_PARTITION_TENSORPARTITIONER_H

#include "Propagate.h"
#include "States.h"
#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"

namespace spmd::partition {

class TensorPartitioner {
public:
  /// Replaces @step by that of one rank along the tensor axis of the mesh. `arguments` are the states of arguments that
  /// are cut. On failure an error is out and @step has no other meaning than before.
  static mlir::LogicalResult run(mlir::func::FuncOp step, MeshOp mesh,
                                 const llvm::DenseMap<mlir::Value, AxisState> &arguments);

private:
  TensorPartitioner(mlir::func::FuncOp step, MeshOp mesh, const llvm::DenseMap<mlir::Value, AxisState> &arguments);

  void createFunction();
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult emitGeneric(mlir::Operation *op);
  mlir::LogicalResult emitList(aten::ListOpInterface list);
  mlir::LogicalResult emitReturn();
  /// The state in which a list op runs at a position; an error where its operands do not fit.
  mlir::FailureOr<AxisState> chooseAt(aten::ListOpInterface list, size_t position);
  void reduceNorms(aten::ListOpInterface list);

  /// Numbers of rows of a dimension that is cut, as a rank sees them: whether a row is its own, and its number there.
  struct OwnRows {
    mlir::Value areHere, numbers;
  };
  /// Emits an op that looks up rows of a dimension that is cut (TensorLookups.cpp); nothing where it is none.
  std::optional<mlir::LogicalResult> emitLookup(mlir::Operation *op);
  mlir::LogicalResult emitEmbedding(aten::EmbeddingOp op);
  mlir::LogicalResult emitEmbeddingBackward(aten::EmbeddingDenseBackwardOp op, AxisState table);
  std::optional<AxisState> findTable(aten::EmbeddingDenseBackwardOp op) const;
  mlir::LogicalResult emitNllLoss(aten::NllLossForwardOp op);
  mlir::LogicalResult emitNllLossBackward(aten::NllLossBackwardOp op);
  mlir::FailureOr<OwnRows> findOwnRows(mlir::OpOperand &numbers, int64_t rows, std::optional<int64_t> ignored,
                                       int64_t elsewhere);
  /// `value` where the row is the rank's own, else 0.
  mlir::Value keepOwn(mlir::Value value, mlir::Value areHere);
  template <typename Op, typename... Args>
  Op create(Args &&...args) {
    auto op = Op::create(builder, current->getLoc(), std::forward<Args>(args)...);
    tag(op);
    return op;
  }

  /// The type of what a rank has; which state that is, no type says here.
  static mlir::RankedTensorType getPartType(mlir::RankedTensorType global, const AxisState &state);
  AxisState getState(mlir::Value value) const { return states.lookup(value); }
  void setLocal(mlir::Value value, AxisState state, mlir::Value local);
  /// The value in this state, for operand `operand` of the op that is emitted.
  mlir::FailureOr<mlir::Value> get(mlir::Value value, AxisState want, unsigned operand);
  mlir::Value slice(mlir::Value local, mlir::RankedTensorType global, AxisState to);
  void tag(mlir::Operation *op);
  mlir::LogicalResult failWhole(mlir::Value value, unsigned operand, AxisState want);
  mlir::LogicalResult failParameter(mlir::StringRef name, AxisState own, mlir::Value value);

  mlir::func::FuncOp step;
  MeshOp mesh;
  int64_t ranks;
  const llvm::DenseMap<mlir::Value, AxisState> &arguments;
  mlir::OpBuilder builder;
  mlir::func::FuncOp made;
  /// The op that is emitted.
  mlir::Operation *current = nullptr;
  llvm::DenseMap<mlir::Value, AxisState> states;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<AxisState, mlir::Value>>> locals;
};

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_TENSORPARTITIONER_H
