//===- Kernels.h - spmd-report kernels --------------------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMD_REPORT_KERNELS_H
#define SPMD_TOOLS_SPMD_REPORT_KERNELS_H

/// `spmd-report kernels ARTIFACT`: prints the generated kernels of an artifact. Exit codes as spmd-report's.
int reportKernels(int argc, char **argv);

#endif // SPMD_TOOLS_SPMD_REPORT_KERNELS_H
