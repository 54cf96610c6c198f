//===- Functionalize.h - In-place programs as values ------------*- C++ -*-===//
//
// A captured program works on tensors that share memory. Here each captured
// tensor is a *handle*: a root with a value of its own, or a view of another
// handle. A write to a handle rebinds it and, through the inverse of each view
// on the way, its root; every other view of that root is stale from then on,
// and reading it computes it again from the root's new value. Order of the
// program is all that is used; nothing is compared by memory address.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_FUNCTIONALIZE_H
#define SPMD_LIB_IMPORT_FUNCTIONALIZE_H

#include "Emitter.h"

#include "llvm/ADT/DenseMap.h"

namespace spmd {

class Functionalizer {
public:
  explicit Functionalizer(Emitter &emitter) : emitter(emitter) {}

  /// A root handle that is `value` from the start.
  void bindInput(int64_t id, mlir::Value value);

  /// Emits one captured op.
  llvm::LogicalResult emitNode(const step::Node &node);

  /// What the handle means now; null after an error.
  mlir::Value read(int64_t id);

private:
  struct Handle {
    mlir::Value value;
    mlir::RankedTensorType type;
    int64_t root = -1;
    /// The root's generation that `value` belongs to.
    int64_t generation = 0;
    /// For a view: the op that makes it from `parent`; its result number.
    int64_t parent = -1;
    const step::Node *maker = nullptr;
    unsigned result = 0;
  };

  Call bind(const step::Node &node, const step::Node *replayOf = nullptr);
  mlir::Value replay(const Handle &view, mlir::Value parent);
  /// The parent's value after `value` was written to the view.
  mlir::Value writeThrough(const Handle &view, mlir::Value parent, mlir::Value value);
  llvm::LogicalResult write(int64_t id, mlir::Value value);
  llvm::LogicalResult emitWrites(const step::Node &node, Call &call);
  void bindResult(const step::Node &node, unsigned index, mlir::Value value);

  Emitter &emitter;
  llvm::DenseMap<int64_t, Handle> handles;
  llvm::DenseMap<int64_t, int64_t> generations; ///< of each root
};

} // namespace spmd

#endif // SPMD_LIB_IMPORT_FUNCTIONALIZE_H
