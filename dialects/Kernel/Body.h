//===- Body.h - what cluster-like ops share ---------------------*- C++ -*-===//

#ifndef SPMD_DIALECTS_KERNEL_BODY_H
#define SPMD_DIALECTS_KERNEL_BODY_H

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace spmd::kernel {

/// Operands bound to body arguments, as they are parsed and printed:
/// `keyword(%arg = %operand (at map)? (guarded)? : type, ...)`.
struct BoundOperands {
  llvm::SmallVector<mlir::OpAsmParser::Argument> arguments;
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::AffineMap> maps;
  llvm::SmallVector<int64_t> guarded;
};

/// Parses an optional `keyword(...)`; maps are wanted or not allowed.
mlir::ParseResult parseBoundOperands(mlir::OpAsmParser &parser, llvm::StringRef keyword, bool withMaps,
                                     BoundOperands &out);

/// The mask of an attention: `mask(%arg = %operand at map : type, ...) { ... }`, or nothing.
mlir::ParseResult parseMask(mlir::OpAsmParser &parser,
                            llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &inputs,
                            llvm::SmallVectorImpl<mlir::Type> &types, mlir::ArrayAttr &maps, mlir::Region &mask);
void printMask(mlir::OpAsmPrinter &p, mlir::Operation *op, mlir::OperandRange inputs, mlir::TypeRange types,
               mlir::ArrayAttr maps, mlir::Region &mask);

/// What a GEMM gives beside its result, of which there is at most one: `, pre_activation TYPE` or `, bias_gradient
/// TYPE`.
mlir::ParseResult parseSideResult(mlir::OpAsmParser &parser, mlir::Type &preActivation, mlir::Type &biasGradient);
void printSideResult(mlir::OpAsmPrinter &p, mlir::Operation *op, mlir::Type preActivation, mlir::Type biasGradient);

/// Dims along which each body value varies. `argumentDims` says it for the
/// arguments.
llvm::DenseMap<mlir::Value, llvm::SmallBitVector> getVaryingDims(mlir::Block &body, unsigned numDims,
                                                                 llvm::ArrayRef<llvm::SmallBitVector> argumentDims);

/// Scalar operations of the body that count as work.
int64_t countBodyFlops(mlir::Block &body);

/// Checks that the body holds only scalar ops and that it yields `outputs`'
/// element types and has `inputs`' as arguments.
mlir::LogicalResult verifyBody(mlir::Operation *op, mlir::Block &body, mlir::TypeRange inputs, mlir::TypeRange outputs);

/// Elements of a tensor type.
inline int64_t getNumElements(mlir::Type type) { return mlir::cast<mlir::RankedTensorType>(type).getNumElements(); }

/// Bytes one element takes in memory (i1 takes one).
inline int64_t getElementBytes(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
}

/// Bytes of all operands and results of `op`.
int64_t getTensorBytes(mlir::Operation *op);

/// Iterations of a parallel loop of `iterations` that together are worth a task, when one
/// iteration costs `work` (about scalar operations).
int64_t getGrainFor(int64_t iterations, double work);

} // namespace spmd::kernel

#endif // SPMD_DIALECTS_KERNEL_BODY_H
