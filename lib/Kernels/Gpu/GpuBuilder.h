//===- GpuBuilder.h - builds one kernel for GPUs ----------------*- C++ -*-===//
//
// [Note: a kernel for GPUs]
// A kernel is a `gpu.func @SYMBOL` whose arguments are one pointer into global memory per operand, then per result
// (each aligned to 16 bytes), then one i64 per mesh axis up to the last that it uses: the rank's coordinates. Its
// attributes say all there is to launch it:
//
//   known_block_size, known_grid_size   threads and blocks, in one dimension
//   spmd.shared_bytes                   dynamic shared memory, which is `@SYMBOL_shared`
//   spmd.resident_blocks                if there: blocks for which registers are to last on an SM
//   spmd.arguments                      bytes behind each pointer
//   spmd.operands                       how many of the pointers are operands
//   spmd.moved_bytes                    global memory read and written, what is read again counted again; not there
//                                       where it depends on caches or data (attention, scatter, sort)
//
// Nothing in it depends on the order in which blocks and warps run: no atomics; what threads tell each other goes
// through shuffles of whole warps, and through shared memory with a barrier between. A result may lie exactly where an
// operand does, so an element is read before it is written, by the thread that writes it.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_GPU_GPUBUILDER_H
#define SPMD_LIB_KERNELS_GPU_GPUBUILDER_H

#include "../CodeBuilder.h"
#include "Device.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace spmd::kernel {

/// Bytes of the widest load and store.
inline constexpr int64_t kWideBytes = 16;
/// Alignment of what a pointer argument points to.
inline constexpr int64_t kArgumentAlignment = 16;

/// Builds the body of one kernel for GPUs.
class GpuBuilder : public CodeBuilder {
public:
  /// Starts the kernel `symbol` at the end of `module` for `op` and puts the insertion point into it.
  GpuBuilder(mlir::gpu::GPUModuleOp module, llvm::StringRef symbol, mlir::Operation *op);

  /// Ends the kernel: `grid` blocks of `block` threads.
  void finish(int64_t block, int64_t grid);
  /// Registers are to last for `blocks` on an SM at once, and need not for more. Without it the assembler weighs one
  /// against the other, which is right for kernels that wait for memory, and spills a little now and then.
  void setResidentBlocks(int64_t blocks);

  mlir::Value getCoordinate(unsigned axis) override;
  /// Number of the thread in its block, and of the block in the grid (i64).
  mlir::Value getThread() { return thread; }
  mlir::Value getBlock() { return block; }

  /// `count` elements of the block's shared memory, aligned to 16 bytes; their contents are undefined.
  mlir::Value shared(mlir::Type element, int64_t count);
  int64_t getSharedBytes() const { return sharedBytes; }
  /// Says that the kernel reads and writes (more) `bytes` of global memory.
  void addMovedBytes(int64_t bytes) { movedBytes += bytes; }
  /// `count` elements of the thread's own: registers, as long as every index is a constant.
  mlir::Value local(mlir::Type element, int64_t count);
  /// A constant array in global memory.
  mlir::Value table(mlir::DenseElementsAttr values);

  /// Every thread of the block waits for all others.
  void barrier();
  /// `value` (a scalar) of the lane whose number is this one's exclusive-or `mask`; all lanes of the warp take part.
  mlir::Value shuffleXor(mlir::Value value, int64_t mask);
  /// `value` of lane `lane` (i32), the same for all.
  mlir::Value shuffleIndex(mlir::Value value, mlir::Value lane);
  /// Combines a scalar over the `lanes` (a power of two up to 32) neighbours that a thread belongs to; all of them get
  /// the result, by a fixed tree.
  mlir::Value reduceWarp(ReduceKind kind, mlir::Value value, int64_t lanes = kWarpSize);

  /// Quotient and remainder of `a`, which is in [0, bound), by a positive constant; below 2^31 with half the
  /// instructions of a division in i64.
  std::pair<mlir::Value, mlir::Value> divide(mlir::Value a, int64_t divisor, int64_t bound);
  /// Comparisons of i64.
  mlir::Value isLess(mlir::Value a, mlir::Value b);
  mlir::Value isEqual(mlir::Value a, mlir::Value b);

private:
  mlir::Value shuffle(mlir::Value value, mlir::Value by, mlir::gpu::ShuffleMode mode);

  mlir::gpu::GPUFuncOp function;
  mlir::Value thread, block, sharedMemory;
  int64_t sharedBytes = 0, movedBytes = 0;
  unsigned numPointers, numTables = 0;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_GPU_GPUBUILDER_H
