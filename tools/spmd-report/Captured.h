//===- Captured.h - spmd-report captured ------------------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMD_REPORT_CAPTURED_H
#define SPMD_TOOLS_SPMD_REPORT_CAPTURED_H

/// `spmd-report captured STEP [--json]`: prints the Python values that the
/// graph of a step package has as constants. Exit codes as spmd-report's.
int reportCaptured(int argc, char **argv);

#endif // SPMD_TOOLS_SPMD_REPORT_CAPTURED_H
