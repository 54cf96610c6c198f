//===- Interpreter.h - run a training step for N ranks ----------*- C++ -*-===//
//
// Runs a `func.func @step`, from the imported program to scheduled collectives,
// for all ranks of its mesh in lockstep: every rank executes op k before any
// executes op k + 1. It knows nothing of sharding rules or of how a program was
// partitioned; it reads what ops and roles say, so it can judge the partitioner.
//===----------------------------------------------------------------------===//
#ifndef SPMD_INTERPRETER_INTERPRETER_H
#define SPMD_INTERPRETER_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "spmd/Interpreter/Mesh.h"
#include "spmd/Interpreter/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace spmd::interp {

enum class Precision {
  /// Floating values are doubles throughout; nothing is rounded.
  f64,
  /// Every op's result is rounded to its element type; inside an op, arithmetic
  /// is in double (sums extended) and in row-major order, and collectives
  /// accumulate in the element type in rank order.
  program
};

/// One value per rank.
using PerRank = llvm::SmallVector<Tensor>;

/// A global tensor that a program reads or writes.
struct GlobalTensor {
  /// Its name: as in weights.safetensors for what persists (`fc.weight`,
  /// `optimizer/exp_avg/fc.weight`, `constant/c`), `batch/x`, `hyper/lr/0`,
  /// `loss/0`, `output/1`.
  std::string key;
  /// What differences are reported by: parameters, buffers, constants, an
  /// optimizer state's name, batch, hyper, loss, outputs.
  std::string kind;
  Shape shape;
  DType dtype = DType::f32;
  /// Before the first step, when no weights give the tensor.
  std::optional<double> init;
  /// Only a place in a unit's optimizer state: of a parameter that is frozen, or in no optimizer. Nobody has to give
  /// it, it is zero, and no result.
  bool isPlace = false;
  /// The key of another tensor, whose value it has before the first step when nobody gives one.
  std::string beginsAs = {};
};

/// The global tensors behind the arguments of `step`, in argument order. Fails
/// with a diagnostic on an argument without role.
mlir::FailureOr<llvm::SmallVector<GlobalTensor>> describeArguments(mlir::func::FuncOp step);

/// Global values by key.
using Values = llvm::StringMap<Tensor>;

struct Inputs {
  /// What persists, before the first step.
  Values state;
  /// Batches and hyper-parameters of each step.
  llvm::SmallVector<Values> steps;
};

/// A value that a step gave or that is left at the end.
struct Result {
  std::string kind;
  Tensor value;
};
using NamedResults = llvm::MapVector<std::string, Result, std::map<std::string, unsigned>>;

struct CollectiveCount {
  int64_t calls = 0;
  /// Handed in by each rank.
  int64_t bytes = 0;
};

/// What one run of the step did.
struct Statistics {
  std::map<std::string, CollectiveCount> collectives;
  /// Of all ranks together; `replicated`: in products whose operands were the
  /// same on all ranks.
  double matmulFlops = 0, replicatedMatmulFlops = 0;
};

struct Results {
  /// Loss and outputs of each step.
  llvm::SmallVector<NamedResults> steps;
  /// Parameters, buffers and optimizer state after the last step.
  NamedResults state;
  Statistics statistics;
};

/// Why a run gave no results; each is reported as a diagnostic.
enum class Failure {
  /// The program or its inputs: no evaluator, no role, a missing tensor.
  input,
  /// The program is wrong: replicas differ, results have other shapes.
  wrong,
  /// While evaluating: an index out of range, shapes that do not fit.
  running
};

struct Options {
  Precision precision = Precision::f64;
};

/// The public function @step of a module, or null with a diagnostic.
mlir::func::FuncOp findStep(mlir::ModuleOp module);

/// Whether a step is one rank's program (some argument is sharded or has a state
/// on the mesh) or the global one.
bool isPartitioned(mlir::func::FuncOp step);

/// Runs @step once per entry of `inputs.steps`, feeding updates back.
mlir::FailureOr<Results> interpret(mlir::ModuleOp module, const Inputs &inputs, const Options &options,
                                   Failure &failure);

/// Runs any single-block function once on one rank.
mlir::FailureOr<llvm::SmallVector<Tensor>> callFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments,
                                                        const Options &options, Failure &failure);

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_INTERPRETER_H
