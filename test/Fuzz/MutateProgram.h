//===- MutateProgram.h - Mistakes in a rank's program -----------*- C++ -*-===//
//
// The mistakes that passes which place, merge and move collectives can make: a reduction lost or done twice, another
// unit, another state, a wait or a mask gone, a buffer released too early. Each is a change to IR that its verifier has
// accepted.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_TEST_FUZZ_MUTATEPROGRAM_H
#define SPMD_TEST_FUZZ_MUTATEPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <functional>
#include <string>
#include <vector>

namespace spmd::fuzz {

/// A place where a mistake can be made. Places refer to ops by number, so that they can be used on a clone.
struct Mutant {
  std::string className;
  /// What is done, and where: "unit1's gather sends %arg4".
  std::string what;
  std::function<void(mlir::func::FuncOp)> apply;
  /// Where an operand becomes another value: the op, the operand and the other value, in the program that has no mistake.
  mlir::Operation *at = nullptr;
  mlir::Value before, after;
};

/// All mutants of a partitioned step, synchronous or scheduled, by class, in program order.
std::vector<Mutant> findMutants(mlir::func::FuncOp step);

/// Why this mutant computes the same bits for every input, or nothing if it need not: equal bits are then an accident of
/// these inputs, and the verifier should have refused it.
std::string getHarmlessReason(const Mutant &mutant);

} // namespace spmd::fuzz

#endif // SPMD_TEST_FUZZ_MUTATEPROGRAM_H
