//===- Check.h - Comparing a run with its reference ---------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMDRUN_CHECK_H
#define SPMD_TOOLS_SPMDRUN_CHECK_H

#include "Reference.h"

#include <optional>
#include <string>
#include <vector>

namespace spmd::runtime {

/// Where nothing is given: 1e-4 and 1e-3, or 2 and 8 epsilons of the coarsest
/// type that the program keeps parameters or multiplies matrices in.
struct Tolerances {
  std::optional<double> loss, parameters;
};

/// Compares the losses of all steps, and, when the run has as many steps as the
/// reference, every final parameter as ‖a−b‖/‖b‖. A parameter whose gradient is
/// analytically zero (manifest "zero_gradient") only holds amplified rounding
/// errors; its optimizer state is compared instead, and may differ by four
/// epsilons of the largest norm of that kind of state, whatever its own norm:
/// so much is the rounding of a sum that is zero. Where the reference has none
/// of its state (an optimizer without) the same goes for its value. Prints what
/// was found; returns WrongResult when a tolerance is exceeded or something is
/// missing.
Status checkRun(const Trainer &trainer, const Reference &reference, const std::vector<double> &losses,
                const Tolerances &tolerances);

} // namespace spmd::runtime

#endif // SPMD_TOOLS_SPMDRUN_CHECK_H
