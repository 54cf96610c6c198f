//===- KernelBuilder.h - builds one kernel function for CPUs ----*- C++ -*-===//
//
// A kernel is `void SYMBOL(ptr args, ptr coords, i64 begin, i64 end)`: `args` points to one pointer per operand, then
// per result, `coords` to the mesh coordinates of the rank. Its attribute `spmd.moved_bytes` says what all its
// iterations move between the second-level cache and memory ([Note: bytes moved on CPUs]).
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_HOST_KERNELBUILDER_H
#define SPMD_LIB_KERNELS_HOST_KERNELBUILDER_H

#include "../CodeBuilder.h"
#include "Cpu.h"

namespace spmd::kernel {

/// Lanes of every explicit vector: one AVX-512 register or two AVX2 registers of f32. Part of the shape of reductions,
/// so it is the same for all CPUs.
inline constexpr int64_t kLanes = 16;

/// Bytes of a line of the cache.
inline constexpr int64_t kLineBytes = 64;

/// Memory of so many bytes no cache holds: it is written by non-temporal stores, where it is not read soon. A store
/// that first reads the line it overwrites costs twice as much.
inline constexpr int64_t kPastCachesBytes = 32 << 20;

/// Builds the body of one kernel function for CPUs.
class KernelBuilder : public CodeBuilder {
public:
  /// Starts the function `symbol` in `module` for `op` and puts the insertion point into it.
  KernelBuilder(mlir::ModuleOp module, mlir::StringRef symbol, mlir::Operation *op, const Cpu &cpu);

  int64_t getAccumulators() const { return cpu.accumulators; }
  int64_t getCacheBytes() const { return cpu.cacheBytes; }
  /// Says that the kernel moves (more) `bytes`.
  void addMovedBytes(int64_t bytes) { movedBytes += bytes; }

  /// Ends the function.
  void finish();

  /// Bounds of the range of parallel iterations.
  mlir::Value getBegin() { return begin; }
  mlir::Value getEnd() { return end; }
  mlir::Value getCoordinate(unsigned axis) override;

  /// Stack memory of `count` elements, 64-byte aligned, made at the function's entry.
  mlir::Value stack(mlir::Type element, int64_t count);
  /// Address of a constant array in the object.
  mlir::Value table(mlir::DenseElementsAttr values);
  /// Bytes of stack asked for.
  int64_t getStackBytes() const { return stackBytes; }

  // Non-temporal stores.
  /// Whether `pointer` is where a line begins.
  mlir::Value isLineAligned(mlir::Value pointer);
  /// Stores a vector, aligned to its size or to a line, without reading the line.
  void storePastCaches(mlir::Value vector, mlir::Value pointer, mlir::Value index);
  /// A fence: whatever comes after sees what non-temporal stores wrote.
  void finishPastCaches();

private:
  mlir::LLVM::LLVMFuncOp function;
  mlir::SmallVector<mlir::Value> coordinates;
  mlir::Value coords, begin, end;
  const Cpu &cpu;
  int64_t stackBytes = 0, movedBytes = 0;
  unsigned numTables = 0;
};

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_HOST_KERNELBUILDER_H
