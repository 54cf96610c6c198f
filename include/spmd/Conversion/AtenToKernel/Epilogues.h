//===- Epilogues.h - names of what GEMMs may take over ----------*- C++ -*-===//

#ifndef SPMD_CONVERSION_ATENTOKERNEL_EPILOGUES_H
#define SPMD_CONVERSION_ATENTOKERNEL_EPILOGUES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace spmd {

/// What is wrong with a value of the option `epilogues` of spmd-fuse-gemm-epilogues, as "expected none, or some of
/// bias, ..."; empty when nothing.
std::string findBadEpilogue(llvm::StringRef epilogues);

} // namespace spmd

#endif // SPMD_CONVERSION_ATENTOKERNEL_EPILOGUES_H
