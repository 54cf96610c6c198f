//===- Compare.h - how far two runs of a step are apart ---------*- C++ -*-===//
#ifndef SPMD_INTERPRETER_COMPARE_H
#define SPMD_INTERPRETER_COMPARE_H

#include "spmd/Interpreter/Inputs.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace spmd::interp {

/// Differences of the tensors of one kind (loss, parameters, exp_avg, …).
struct KindDifference {
  int64_t count = 0;
  /// The largest relative difference and the tensor that has it.
  double largest = 0;
  std::string worst;
};
using Differences = llvm::MapVector<std::string, KindDifference, std::map<std::string, unsigned>>;

/// ‖a - b‖ / ‖b‖, or / `floor` where that is larger. Equal infinities and NaNs
/// at equal places do not differ; any other nonfinite element is infinitely far.
double relativeDifference(const Tensor &a, const Tensor &b, double floor = 0);

/// Compares `ours` with `expected`, tensor by tensor: losses and outputs of every
/// step, state after the last.
///
/// A parameter in `zeroGradient` has an analytically zero gradient; an adaptive
/// optimizer divides rounding noise by rounding noise there. It is compared
/// through its optimizer state, relative to at least `noise` of the largest norm
/// of the same state; only if it has none, by its value, in the same way.
///
/// Fails with a diagnostic at `module` if the two do not have the same tensors.
mlir::FailureOr<Differences> compareResults(mlir::ModuleOp module, const Results &ours, const Results &expected,
                                            const llvm::StringSet<> &zeroGradient, double noise);

/// Names in the module attribute `spmd.zero_gradient`.
llvm::StringSet<> getZeroGradient(mlir::ModuleOp module);

/// One line per kind; returns the largest difference of all.
double printDifferences(const Differences &differences, llvm::raw_ostream &os);

/// What ran: collectives by kind, replicated share of matrix products.
void printStatistics(const Statistics &statistics, llvm::raw_ostream &os);

} // namespace spmd::interp

#endif // SPMD_INTERPRETER_COMPARE_H
