//===- GemmBF16Units.h - Ways to multiply bf16 -------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_HOST_GEMMBF16UNITS_H
#define SPMD_RUNTIME_HOST_GEMMBF16UNITS_H

#include "GemmBF16.h"

namespace spmd::runtime {

/// Whether the processor has AMX for bf16 and the kernel lends it to this process, which asks for it.
bool hasAMX();
/// Has the kernel make room for the calling thread's tiles.
void prepareThreadAMX();
/// Runs a GEMM on the calling thread, with its workspace of kBF16WorkspaceBytes.
void runGemmAMX(const GemmProblemBF16 &gemm, char *workspace);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_HOST_GEMMBF16UNITS_H
