//===- FuzzLoop.h - Runs a reader on many damaged packages ------*- C++ -*-===//
#ifndef SPMD_TEST_FUZZ_FUZZLOOP_H
#define SPMD_TEST_FUZZ_FUZZLOOP_H

#include <functional>
#include <string>
#include <vector>

namespace spmd::fuzz {

/// What a reader made of a damaged package.
enum class Verdict {
  accepted, ///< the damage does not matter
  refused,  ///< with an error
  mute,     ///< refused without a message: a failure
};

struct Target {
  /// Files of the package that are damaged, one per case.
  std::vector<std::string> files;
  /// Reads the package at this path, whose file `damaged` is, and uses it if it can.
  std::function<Verdict(const std::string &path, const std::string &damaged)> read;
};

/// The main function of a fuzzer:
///
///     PROGRAM PACKAGE --work=DIR [--count=N] [--first=I] [--seed=S]
///
/// Copies the package to DIR and damages one file per case. Cases run in a child process, so that a crash is one
/// failure and not the end. A case fails when it dies, takes more than 5 seconds of CPU time (20 under sanitizers) or
/// 20 times that of waiting, asks for more than 64 MiB at once, opens a file outside of the package, or is refused
/// without a message. Prints the counts, and for each failure what reproduces it. Exits with 1 when a case failed, and
/// with 2 on wrong usage.
int runFuzzer(int argc, char **argv, const Target &target);

} // namespace spmd::fuzz

#endif // SPMD_TEST_FUZZ_FUZZLOOP_H
