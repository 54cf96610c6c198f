//===- CrashMessage.h - What a tool says when it dies ---------------------===//

#ifndef SPMD_PIPELINES_CRASHMESSAGE_H
#define SPMD_PIPELINES_CRASHMESSAGE_H

namespace spmd {

/// Makes a tool that dies (a signal, an assertion, a fatal error of LLVM) say so in words of its own, with its command
/// line and what a report of it needs, before the stack. The exit code stays the signal's: 128 + its number in a shell.
/// To be called first in main().
void explainCrashes(int argc, char **argv);

} // namespace spmd

#endif // SPMD_PIPELINES_CRASHMESSAGE_H
