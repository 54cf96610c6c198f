//===- Options.h - Command line of spmd-compile -----------------*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMD_COMPILE_OPTIONS_H
#define SPMD_TOOLS_SPMD_COMPILE_OPTIONS_H

#include "spmd/Kernels/Cubin.h"
#include "spmd/Kernels/Target.h"
#include "spmd/Pipelines/Pipeline.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the user asked for, checked.
struct Options {
  std::string input, output;
  spmd::PipelineOptions pipeline;
  spmd::kernel::Target target;
  std::vector<std::string> cpus, plugins;
  spmd::kernel::CudaOptions cuda;
  bool emulation = false; ///< beside cubins
  std::vector<std::pair<std::string, int64_t>> batchDims; // -1: none
  spmd::Phase from = spmd::Phase::import, to = spmd::Phase::artifact;
  /// True when the input is IR (--compile-from), not a step package.
  bool resumes = false;
  std::string dumpFolder;
  bool timing = false, quiet = false, remarks = false, printPipeline = false;
  std::optional<int64_t> memoryBudget;
  /// The file for the report as JSON; - is standard output, in the place of the tables.
  std::optional<std::string> json;
};

/// Parses the command line. Prints what is wrong with it and returns nothing when it cannot be used.
std::optional<Options> parseOptions(int argc, char **argv);

#endif // SPMD_TOOLS_SPMD_COMPILE_OPTIONS_H
