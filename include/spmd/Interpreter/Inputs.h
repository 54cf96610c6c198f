//===- Inputs.h - where a run's tensors come from ---------------*- C++ -*-===//
#ifndef SPMD_INTERPRETER_INPUTS_H
#define SPMD_INTERPRETER_INPUTS_H

#include "spmd/Interpreter/Interpreter.h"
#include "spmd/Runtime/Core/DType.h"

namespace spmd::interp {

/// What a step does with an integer input: values are row numbers in [0, bound),
/// or `ignored` where that is a legal target.
struct IndexUse {
  std::optional<int64_t> bound, ignored;
};

/// Follows an argument through ops that move elements to embeddings, row lookups
/// and losses. Nothing found: no bound.
IndexUse findIndexUse(mlir::BlockArgument argument);

/// Values that depend on the tensors' names and the seed only, so that a program
/// and its partitioned form get the same. Integer inputs respect their use; with
/// a loss that ignores some targets, every eighth is such a one.
mlir::FailureOr<Inputs> makeRandomInputs(mlir::func::FuncOp step, int64_t numSteps, uint64_t seed);

/// State from weights.safetensors of a step package, batches and
/// hyper-parameters from its reference.safetensors if it has one, else as in
/// `makeRandomInputs`. `numSteps` 0: as many as the reference has, or one.
mlir::FailureOr<Inputs> readStepPackage(mlir::func::FuncOp step, llvm::StringRef folder, int64_t numSteps,
                                        uint64_t seed);

/// What PyTorch recorded in reference.safetensors.
struct Reference {
  std::vector<double> losses;
  /// `final/` tensors, by the keys of GlobalTensor.
  Values state;
};
mlir::FailureOr<Reference> readReference(mlir::ModuleOp module, llvm::StringRef folder);

/// As files and memory have it.
runtime::DType toRuntime(DType dtype);

/// The elements of a tensor as memory of that type has them, and back.
void storeElements(const Tensor &tensor, runtime::DType dtype, void *data);
void loadElements(Tensor &tensor, runtime::DType dtype, const void *data);

/// All tensors of a safetensors file.
mlir::FailureOr<Values> readTensors(mlir::Location where, llvm::StringRef path);
/// Writes tensors in the order given, floats as F64 if `wide`, else in their
/// element types.
mlir::LogicalResult writeTensors(mlir::Location where, llvm::StringRef path,
                                 llvm::ArrayRef<std::pair<std::string, Tensor>> tensors, bool wide);

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_INPUTS_H
