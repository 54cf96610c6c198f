//===- Units.h - spmd-report units ------------------------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMD_REPORT_UNITS_H
#define SPMD_TOOLS_SPMD_REPORT_UNITS_H

/// `spmd-report units STEP [--policy=P] [--json]`: prints the shard units of a step package. Exit codes as
/// spmd-report's.
int reportUnits(int argc, char **argv);

#endif // SPMD_TOOLS_SPMD_REPORT_UNITS_H
