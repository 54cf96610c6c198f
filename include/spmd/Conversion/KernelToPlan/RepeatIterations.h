//===- RepeatIterations.h - More iterations of a loop's kernels -*- C++ -*-===//
//
// [Note: iterations] A step of 40 equal microbatches takes the passes 40 times as long as one. So a few iterations are
// imported, and go through all passes up to the kernels; what one more of them is, is seen in the middle of the
// program, where the ops of one iteration follow those of the one before, the same op for op: with the same operands,
// with those of one iteration later, or with the next of the values that the loop is fed. There further ones are put
// in.
//
// That the middle repeats does not prove that the rest is the same for any number of iterations: five additions of one
// may have become one cluster behind the loop. So the program with one iteration more, which has been through the
// passes as well, must be this one with one put in (completeIterations). Else all iterations are imported.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_CONVERSION_KERNELTOPLAN_REPEATITERATIONS_H
#define SPMD_CONVERSION_KERNELTOPLAN_REPEATITERATIONS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace spmd {

/// Puts `extra` iterations into the step of `module`, which has `spmd.iterations` and is in kernels; without missing
/// ones it has that no more. Fails without a diagnostic, and before anything is changed, where its ops are not such a
/// loop or the loop is not fed so often; `why` says what is different.
llvm::LogicalResult repeatIterations(mlir::ModuleOp module, int64_t extra, std::string &why);

/// Puts iterations into `few`, which has `spmd.iterations`, in kernels, until it has `kept`, or all. `more` is what the
/// same passes made of one iteration more. Fails as repeatIterations does, and where `more` is not `few` with one put
/// in. What ranks have whole is said of all iterations.
llvm::LogicalResult completeIterations(mlir::ModuleOp few, mlir::ModuleOp more, int64_t kept, std::string &why);

} // namespace spmd

#endif // SPMD_CONVERSION_KERNELTOPLAN_REPEATITERATIONS_H
