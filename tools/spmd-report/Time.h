//===- Time.h - spmd-report time --------------------------------*- C++ -*-===//

#ifndef SPMD_TOOLS_SPMD_REPORT_TIME_H
#define SPMD_TOOLS_SPMD_REPORT_TIME_H

/// `spmd-report time ARTIFACT [--machine=NAME|FILE] [--network=NAME|FILE] [--json]`: prints what a step takes by the
/// cost model. Exit codes as spmd-report's.
int reportTime(int argc, char **argv);

#endif // SPMD_TOOLS_SPMD_REPORT_TIME_H
