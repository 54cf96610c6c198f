//===- CodeBuilder.h - values, memory and loops of a kernel -----*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_CODEBUILDER_H
#define SPMD_LIB_KERNELS_CODEBUILDER_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace spmd::kernel {

/// Builds integers, loads, stores, scalars and loops at the current insertion point of one kernel. What a kernel is as
/// a function (its arguments, where its memory lies) is its target's: Host/KernelBuilder.h, Gpu/GpuBuilder.h. All index
/// arithmetic is in i64.
class CodeBuilder : public mlir::ImplicitLocOpBuilder {
public:
  virtual ~CodeBuilder() = default;

  /// Pointer of operand `i`, or of result `i - operands`.
  mlir::Value getPointer(unsigned i) { return pointers[i]; }
  mlir::Value getResultPointer(unsigned i) { return pointers[numOperands + i]; }
  /// Mesh coordinate of this rank.
  virtual mlir::Value getCoordinate(unsigned axis) = 0;

  // Integers (i64), folding constants.
  mlir::Value i64(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return b ? add(a, i64(b)) : a; }
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b) { return b == 1 ? a : mul(a, i64(b)); }
  /// Quotient rounded down, by a positive constant.
  mlir::Value floorDiv(mlir::Value a, int64_t b);
  /// Remainder of floorDiv: in [0, b).
  mlir::Value mod(mlir::Value a, int64_t b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  /// Value of an affine expression.
  mlir::Value affine(mlir::AffineExpr expr, mlir::ArrayRef<mlir::Value> dims);

  // Memory. An i1 is one byte there.
  /// Address of element `index` of an array of `element`.
  mlir::Value address(mlir::Value pointer, mlir::Type element, mlir::Value index);
  /// Loads `width` elements (a vector when above 1), aligned to `alignment` bytes (0: to one element).
  mlir::Value load(mlir::Value pointer, mlir::Type element, mlir::Value index, int64_t width = 1,
                   int64_t alignment = 0);
  /// Stores a scalar or vector of elements; `pastCaches` where it is not read again soon.
  void store(mlir::Value value, mlir::Value pointer, mlir::Value index, int64_t alignment = 0, bool pastCaches = false);

  // Scalars and vectors.
  mlir::Value constant(mlir::TypedAttr value);
  /// A constant of type `type` (or a splat) with floating-point or integer value.
  mlir::Value number(mlir::Type type, double value);
  /// `value` in all lanes, when `width` is above 1 and it is a scalar.
  mlir::Value broadcast(mlir::Value value, int64_t width);
  /// Joins scalars to a vector (one scalar stays one).
  mlir::Value pack(mlir::ArrayRef<mlir::Value> lanes);
  /// Lane `i` of a vector.
  mlir::Value lane(mlir::Value vector, int64_t i);
  /// Combines two values as kernel.reduce does.
  mlir::Value combine(ReduceKind kind, mlir::Value a, mlir::Value b);
  /// Neutral element of a reduction.
  mlir::Value neutral(ReduceKind kind, mlir::Type type);
  /// Combines the lanes of a vector by halves: a fixed tree.
  mlir::Value reduceLanes(ReduceKind kind, mlir::Value vector);

  // Control.
  using LoopBody = llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  /// `for (i = low; i < high; i += step)` carrying `inits`; returns what is carried out.
  mlir::SmallVector<mlir::Value> loop(mlir::Value low, mlir::Value high, int64_t step, mlir::ValueRange inits,
                                      LoopBody body);
  /// The same, carrying nothing.
  void loop(mlir::Value low, mlir::Value high, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// `then` where `condition` holds.
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  /// `then` where `condition` holds, `otherwise` elsewhere.
  void choose(mlir::Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);
  /// The same, with values.
  using Values = llvm::function_ref<mlir::SmallVector<mlir::Value>()>;
  mlir::SmallVector<mlir::Value> chooseValues(mlir::Value condition, Values then, Values otherwise);

protected:
  CodeBuilder(mlir::Location loc, unsigned numOperands)
      : ImplicitLocOpBuilder(loc, loc.getContext()), numOperands(numOperands) {}

  /// Where constants go: the kernel's first block, which every use can see.
  mlir::Block *entry = nullptr;
  /// One per operand, then per result.
  mlir::SmallVector<mlir::Value> pointers;

private:
  /// Looked up only, never iterated over.
  llvm::DenseMap<int64_t, mlir::Value> integers;
  unsigned numOperands;
};

/// Type of `width` values of `element`; index is i64.
mlir::Type getWideType(mlir::Type element, int64_t width);

/// Type of an element in memory: an i1 is one byte there, an index an i64.
mlir::Type getStoredType(mlir::Type element);

/// Bytes of an element in memory.
int64_t getStoredBytes(mlir::Type element);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_CODEBUILDER_H
