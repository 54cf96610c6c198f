//===- AsmFormat.h - pieces of the dialect's assembly -----------*- C++ -*-===//
//
// Parsers and printers that `custom<...>` in the .td files refers to.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_DIALECTS_SPMD_ASMFORMAT_H
#define SPMD_DIALECTS_SPMD_ASMFORMAT_H

#include "dialects/Spmd/Spmd.h"

namespace spmd {

// `, trainable` or nothing.
mlir::ParseResult parseTrainable(mlir::AsmParser &parser, bool &trainable);
void printTrainable(mlir::AsmPrinter &printer, bool trainable);

// [1, 2, 3]
mlir::ParseResult parseIntList(mlir::AsmParser &parser, llvm::SmallVector<int64_t> &values);
void printIntList(mlir::AsmPrinter &printer, llvm::ArrayRef<int64_t> values);

// [#spmd.segment<...>, ...]
mlir::ParseResult parseSegments(mlir::AsmParser &parser, llvm::SmallVector<SegmentAttr> &segments);
void printSegments(mlir::AsmPrinter &printer, llvm::ArrayRef<SegmentAttr> segments);

// [replicated, shard<0, 1, 4>, partial<sum>, owned]
/// A dimension, or `none`, which is -1.
mlir::ParseResult parseBatchDim(mlir::AsmParser &parser, int64_t &dim);
void printBatchDim(mlir::AsmPrinter &printer, int64_t dim);

mlir::ParseResult parseStates(mlir::AsmParser &parser, llvm::SmallVector<AxisState> &states);
void printStates(mlir::AsmPrinter &printer, llvm::ArrayRef<AxisState> states);

// ["data" = 4, "model" = 2]
mlir::ParseResult parseMeshAxes(mlir::OpAsmParser &parser, mlir::ArrayAttr &names, mlir::DenseI64ArrayAttr &sizes);
void printMeshAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr names,
                   mlir::DenseI64ArrayAttr sizes);

// sum
mlir::ParseResult parseKind(mlir::OpAsmParser &parser, ReduceKindAttr &kind);
void printKind(mlir::OpAsmPrinter &printer, mlir::Operation *op, ReduceKindAttr kind);

// [sum, max]
mlir::ParseResult parseKinds(mlir::OpAsmParser &parser, mlir::ArrayAttr &kinds);
void printKinds(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr kinds);

// fully_shard
mlir::ParseResult parseMode(mlir::OpAsmParser &parser, UnitModeAttr &mode);
void printMode(mlir::OpAsmPrinter &printer, mlir::Operation *op, UnitModeAttr mode);

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_ASMFORMAT_H
