//===- WriteStep.h - step.json from memory ----------------------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_PACKAGE_WRITESTEP_H
#define SPMD_LIB_IMPORT_PACKAGE_WRITESTEP_H

#include "StepPackage.h"

#include "llvm/Support/raw_ostream.h"

namespace spmd::step {

/// Writes `step` as docs/step-format.md says, version 1: a step without units, precision and first step, as importers
/// of other forms make it. What it writes, readStep reads as the same step.
void writeStep(const Step &step, llvm::raw_ostream &os);

} // namespace spmd::step

#endif // SPMD_LIB_IMPORT_PACKAGE_WRITESTEP_H
