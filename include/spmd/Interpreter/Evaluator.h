//===- Evaluator.h - how one op is executed by one rank ---------*- C++ -*-===//
//
// An evaluator computes an op's results from its operands for one rank. It reads
// everything by PyTorch's schema name, so that it looks like the definition of
// the op, and takes result element types (never shapes) from the IR: shapes are
// computed, and the driver checks them against the IR's, which finds wrong type
// inference and size attributes that were not localized.
//===----------------------------------------------------------------------===//
#ifndef SPMD_INTERPRETER_EVALUATOR_H
#define SPMD_INTERPRETER_EVALUATOR_H

#include "mlir/IR/Operation.h"
#include "spmd/Interpreter/Tensor.h"
#include "llvm/ADT/StringMap.h"

namespace spmd::interp {

/// One tensor or tensor-list argument of an op's schema.
struct OperandGroup {
  std::string name;
  /// A list or an optional tensor: any number of operands.
  bool isVariable;
};

/// The operand groups of an op, in order. The same for all ops of one name.
struct OperandGroups {
  llvm::SmallVector<OperandGroup> groups;
};

/// Where a rank stands in the mesh.
struct RankContext {
  int64_t rank = 0;
  llvm::SmallVector<int64_t> coordinates; // one per mesh axis
};

/// One op, its operands on one rank, and the place for its results.
class OpCall {
public:
  OpCall(mlir::Operation *op, const OperandGroups &groups, llvm::ArrayRef<Tensor> operands, const RankContext &context);

  mlir::Operation *op;
  const RankContext &context;
  llvm::SmallVector<Tensor, 4> results;

  /// The tensor argument `name`; an absent tensor when it is optional and not
  /// given.
  const Tensor &tensor(llvm::StringRef name) const;
  /// All tensors of the list argument `name`.
  llvm::ArrayRef<Tensor> tensors(llvm::StringRef name) const;
  /// All operands, in order.
  llvm::ArrayRef<Tensor> operands() const { return values; }

  /// Attributes by schema name.
  bool has(llvm::StringRef name) const;
  int64_t integer(llvm::StringRef name) const;
  /// An int, float or bool (PyTorch's Scalar) as a double.
  double number(llvm::StringRef name) const;
  double number(llvm::StringRef name, double otherwise) const;
  bool flag(llvm::StringRef name) const;
  llvm::StringRef string(llvm::StringRef name) const;
  llvm::ArrayRef<int64_t> integers(llvm::StringRef name) const;
  llvm::SmallVector<double> numbers(llvm::StringRef name) const;
  llvm::SmallVector<bool> flags(llvm::StringRef name) const;
  DType resultType(unsigned i = 0) const;
  void result(Tensor tensor) { results.push_back(std::move(tensor)); }

  /// An error at the op, prefixed with its name.
  mlir::InFlightDiagnostic error() const;

private:
  std::pair<unsigned, unsigned> group(llvm::StringRef name) const;

  const OperandGroups &groups;
  llvm::ArrayRef<Tensor> values;
};

/// A tensor of the type of result `i`, all zero.
Tensor emptyResult(OpCall &call, unsigned i);

/// NaN in every element of a result of which some are not written, so that reading one of these shows; -1 in integers.
void fillUnwritten(Tensor &result);

using Evaluator = mlir::LogicalResult (*)(OpCall &);

/// Evaluators of the ops that a rank executes alone and that have no scalar body, by op name.
class EvaluatorRegistry {
public:
  /// The registry with every family of ops.
  static const EvaluatorRegistry &get();

  void add(llvm::StringRef name, Evaluator evaluator);
  /// Null when the op has no evaluator.
  Evaluator lookup(llvm::StringRef name) const;
  const llvm::StringMap<Evaluator> &all() const { return evaluators; }

private:
  llvm::StringMap<Evaluator> evaluators;
};

/// How `op` is evaluated: by its scalar body, if it has one, and only else by its entry in the registry. Null when it
/// has neither.
Evaluator findEvaluator(mlir::Operation *op);

/// Evaluates any op that has a scalar body, in float64 and in whole integers, by running the body for every element.
mlir::LogicalResult evaluateScalarBody(OpCall &call);

/// The operand groups of `op` (cached by the caller per op name).
OperandGroups getOperandGroups(mlir::Operation *op);

/// Where the libraries of operators are, whose functions custom calls run.
void setLibraryFolder(std::string folder);


} // namespace spmd::interp

#endif // SPMD_INTERPRETER_EVALUATOR_H
