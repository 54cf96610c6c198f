//===- KernelBuilder.h - builds the body of one kernel function -*- C++ -*-===//
//
// A kernel is `void SYMBOL(ptr args, ptr coords, i64 begin, i64 end)`: `args` points to one pointer per operand, then
// per result, `coords` to the mesh coordinates of the rank. All index arithmetic is in i64.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_KERNELS_KERNELBUILDER_H
#define SPMD_LIB_KERNELS_KERNELBUILDER_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace spmd::kernel {

/// Lanes of every explicit vector: one AVX-512 register or two AVX2 registers of f32. Part of the shape of reductions,
/// so it is the same for all CPUs.
inline constexpr int64_t kLanes = 16;

/// Builds LLVM-level loads, stores and loops at the current insertion point of one kernel function.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  /// Starts the function `symbol` in `module` for `op` and puts the insertion point into it. `accumulators` is the
  /// number of 16-lane f32 vectors that registers hold beside the operands of a product: a matter of speed, not of
  /// bits.
  KernelBuilder(mlir::ModuleOp module, mlir::StringRef symbol, mlir::Operation *op, int64_t accumulators);

  int64_t getAccumulators() const { return accumulators; }

  /// Ends the function.
  void finish();

  /// Pointer of operand `i`, or of result `i - operands`.
  mlir::Value getPointer(unsigned i) { return pointers[i]; }
  mlir::Value getResultPointer(unsigned i) { return pointers[numOperands + i]; }
  /// Bounds of the range of parallel trips.
  mlir::Value getBegin() { return begin; }
  mlir::Value getEnd() { return end; }
  /// Mesh coordinate of this rank.
  mlir::Value getCoordinate(unsigned axis);

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
  /// Loads `width` elements (a vector when above 1).
  mlir::Value load(mlir::Value pointer, mlir::Type element, mlir::Value index, int64_t width = 1);
  /// Stores a scalar or vector of elements.
  void store(mlir::Value value, mlir::Value pointer, mlir::Value index);
  /// Stack memory of `count` elements, 64-byte aligned, made at the function's entry.
  mlir::Value stack(mlir::Type element, int64_t count);
  /// Address of a constant array in the object.
  mlir::Value table(mlir::DenseElementsAttr values);
  /// Bytes of stack asked for.
  int64_t getStackBytes() const { return stackBytes; }

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

private:
  mlir::LLVM::LLVMFuncOp function;
  mlir::SmallVector<mlir::Value> pointers;
  mlir::SmallVector<mlir::Value> coordinates;
  mlir::Value coords, begin, end;
  /// Looked up only, never iterated over.
  llvm::DenseMap<int64_t, mlir::Value> integers;
  unsigned numOperands;
  int64_t accumulators;
  int64_t stackBytes = 0;
  unsigned numTables = 0;
};

/// Type of `width` values of `element`; index is i64.
mlir::Type getWideType(mlir::Type element, int64_t width);

} // namespace spmd::kernel

#endif // SPMD_LIB_KERNELS_KERNELBUILDER_H
