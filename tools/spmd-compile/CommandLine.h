//===- CommandLine.h - Command line of spmd-compile -------------*- C++ -*-===//
#ifndef SPMD_TOOLS_SPMD_COMPILE_COMMANDLINE_H
#define SPMD_TOOLS_SPMD_COMPILE_COMMANDLINE_H

#include "spmd/Compiler/CompilerOptions.h"

/// The words of a command line, not checked.
struct CommandLine {
  spmd::OptionTexts texts;
  bool printPipeline = false;
  /// Diagnostics as lines of JSON on this descriptor, not as text; without it, as text on standard error.
  std::string diagnostics = "text";
  int diagnosticsDescriptor = 2;
  /// What cannot be parsed, as it is to be said; empty when all can.
  std::string problem;
  /// What is wrong with the value of an option, if something is.
  std::optional<std::string> badValue;
};

CommandLine parseCommandLine(int argc, char **argv);

#endif // SPMD_TOOLS_SPMD_COMPILE_COMMANDLINE_H
