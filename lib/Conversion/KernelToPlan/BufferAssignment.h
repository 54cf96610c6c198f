//===- BufferAssignment.h - Which bytes hold which value --------*- C++ -*-===//
//
// Gives every tensor of @step a range of a buffer. Offsets of the buffers in the arena come later (PlaceBuffers.h).
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_BUFFERASSIGNMENT_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_BUFFERASSIGNMENT_H

#include "dialects/Plan/Plan.h"
#include "dialects/Spmd/Spmd.h"
#include "dialects/Spmd/TensorBytes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd {

/// Bytes of a tensor.
int64_t getBytes(mlir::Type tensorType);

/// A range of a buffer.
struct Slot {
  unsigned buffer = 0;
  int64_t offset = 0;
  int64_t bytes = 0;

  bool operator==(const Slot &other) const {
    return buffer == other.buffer && offset == other.offset && bytes == other.bytes;
  }
  bool operator!=(const Slot &other) const { return !(*this == other); }
  bool overlaps(const Slot &other) const {
    return buffer == other.buffer && offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

/// What is known of a buffer before it has an offset.
struct BufferInfo {
  plan::BufferClass bufferClass;
  int64_t bytes;
  mlir::Location loc;
  std::string label;
  /// An argument of the step: written by the runtime before the first command.
  bool isArgument = false;
  /// Persists between steps.
  bool isState = false;
  /// Ranges that no value of a packed buffer covers; zeros.
  llvm::SmallVector<Slot> gaps;
  /// What its offset must be a multiple of; 0: what any buffer's is.
  int64_t alignment = 0;
};

/// A copy behind the last command: of a result to where it must lie, or of bytes that another copy overwrites first.
struct ResultCopy {
  Slot from, to;
  mlir::Location loc;
  std::string what;
};

/// The assignment of one function.
class BufferAssignment {
public:
  /// Assigns all values of `step`, or says which op cannot be planned. A GEMM gets a workspace of `gemmWorkspace`
  /// bytes.
  static mlir::FailureOr<BufferAssignment> compute(mlir::func::FuncOp step, int64_t gemmWorkspace);

  llvm::ArrayRef<BufferInfo> getBuffers() const { return buffers; }
  /// Where `value` lies.
  Slot getSlot(mlir::Value value) const { return slots.at(value); }
  /// Where segment `name` of the packed buffer `flat` lies.
  static Slot getSegmentSlot(Slot flat, FlatAttr layout, llvm::StringRef name);
  /// Where result number `result` of the step must lie in the end.
  Slot getResultSlot(unsigned result) const { return resultSlots[result]; }
  /// What brings results there, in an order in which none reads what an earlier one has written.
  llvm::ArrayRef<ResultCopy> getResultCopies() const { return resultCopies; }
  /// Where operand `operand` of an all-reduce must lie while it is reduced.
  Slot getReducedSlot(mlir::OpOperand &operand) const { return reducedSlots.at(&operand); }
  /// What the library of a GEMM may use while it runs, if anything.
  std::optional<Slot> getWorkspace(mlir::Operation *gemm) const {
    auto it = workspaces.find(gemm);
    return it == workspaces.end() ? std::nullopt : std::optional(it->second);
  }

private:
  friend class Assigner;
  llvm::SmallVector<BufferInfo> buffers;
  llvm::DenseMap<mlir::Value, Slot> slots;
  llvm::DenseMap<mlir::OpOperand *, Slot> reducedSlots;
  llvm::DenseMap<mlir::Operation *, Slot> workspaces;
  llvm::SmallVector<Slot> resultSlots;
  llvm::SmallVector<ResultCopy> resultCopies;
};

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_BUFFERASSIGNMENT_H
