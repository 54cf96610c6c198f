//===- CompilerOptions.h - What a step is compiled to -----------*- C++ -*-===//
//
// Options exist twice: as they are written (OptionTexts, the one list of their names), on the command line or by a
// program, and checked (CompilerOptions).
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_COMPILER_COMPILEROPTIONS_H
#define SPMD_COMPILER_COMPILEROPTIONS_H

#include "spmd/Kernels/Cubin.h"
#include "spmd/Pipelines/Pipeline.h"
#include "spmd/Pipelines/Target.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spmd {

/// Options as they are written.
struct OptionTexts {
  std::string input, output;
  std::vector<std::string> policies;
  std::string policyFile;
  std::vector<std::string> ignoredModules, ignoredParameters;
  bool strictTied = false;
  std::string target = "host";
  std::vector<std::string> batchDims, cpus;
  std::string cuda;
  bool emulation = false;
  std::string kernelCache, libraries;
  std::string to = "artifact", from, dumpFolder, budget;
  bool noBudgetTrades = false, timing = false, quiet = false, remarks = false;
  std::optional<std::string> json;
  std::vector<std::string> plugins, passPlugins, after;
  /// Those that the pipeline has of its own.
  PipelineOptions pipeline;
};

/// What an option is called, and what --help says of it.
struct OptionInfo {
  llvm::StringRef name;
  llvm::StringRef help;
  llvm::StringRef value = "";    ///< what its value is: "folder"
  bool isCommaSeparated = false; ///< several values in one word
  bool mayBeEmpty = false;       ///< an empty text is as if the option was not given
};

/// Calls visit(OptionInfo, value) for every option but the input, which stands by itself. Values are texts, flags
/// (bool), numbers, lists (each time the option is given adds to them), and texts that may be left out (std::optional).
template <typename Visit>
void forEachOption(OptionTexts &texts, const Visit &visit) {
  visit(OptionInfo{"o",
                   "Artifact folder; with --compile-to, IR file (default: - for standard output; a plan is printed "
                   "as a report)",
                   "path"},
        texts.output);
  visit(OptionInfo{"policy",
                   "The modules that are shard units: annotations (default: the model's, or one unit), auto (the "
                   "model's annotations, or modules by their use), none, always, class:A,B, "
                   "size:N[,force-leaf=A+B][,exclude=A+B], name:REGEX, or(P;P); if repeated, a module is a unit if any "
                   "policy selects it",
                   "policy"},
        texts.policies);
  visit(OptionInfo{"policy-file", "Rules and options per shard unit (docs/shard-units.md)", "plan.json"},
        texts.policyFile);
  visit(OptionInfo{"ignored-module",
                   "Path of a module whose parameters stay whole on every rank, outside of shard units; repeatable",
                   "path"},
        texts.ignoredModules);
  visit(OptionInfo{"ignored-parameter", "Name of a parameter that stays whole on every rank; repeatable", "name"}, texts.ignoredParameters);
  visit(OptionInfo{"strict-tied", "A tied parameter with owners in different shard units is an error"},
        texts.strictTied);
  visit(OptionInfo{"target",
                   "Target of the kernels: host (default), cuda:CHIP[,CHIP...], or emulate:CHIP, which runs the "
                   "kernels of that chip on the CPU (docs/cuda.md)",
                   "target"},
        texts.target);
  visit(OptionInfo{"batch-dim", "Batch dimension of an input, or none; repeatable", "NAME=DIM"}, texts.batchDims);
  visit(OptionInfo{"cpu",
                   "Generate kernels only for these CPUs: x86-64-v3 (AVX2), x86-64-v4 (AVX-512), native (the best "
                   "one for this machine). Default: SPMD_CPU, or both; the runtime chooses the best one",
                   "", /*isCommaSeparated=*/true},
        texts.cpus);
  visit(OptionInfo{"cuda", "CUDA toolkit whose ptxas is used (default: searched; docs/cuda.md)", "folder", false,
                   /*mayBeEmpty=*/true},
        texts.cuda);
  visit(OptionInfo{"emulation", "With --target=cuda, also generate emulated kernels. The stand-ins of NVIDIA's "
                                "libraries run them on a machine without a GPU (docs/gpus.md)"},
        texts.emulation);
  visit(OptionInfo{"kernel-cache",
                   "Cache of machine code (default: spmd in the user's cache folder), or none", "folder",
                   false, /*mayBeEmpty=*/true},
        texts.kernelCache);
  visit(OptionInfo{"libraries",
                   "Folder of the operators' shared libraries (default: the step package; docs/custom-kernels.md)",
                   "folder", false, /*mayBeEmpty=*/true},
        texts.libraries);
  visit(OptionInfo{"compile-to", "Stop after this phase and write its IR", "phase"}, texts.to);
  visit(OptionInfo{"compile-from", "The input is IR after this phase; continue from there", "phase"}, texts.from);
  visit(OptionInfo{"dump-ir", "Write the IR after each phase into this folder", "folder", false, /*mayBeEmpty=*/true},
        texts.dumpFolder);
  visit(OptionInfo{"memory-budget",
                   "Largest arena of a rank: bytes, or with kB, MB, GB (powers of 1,000), KiB, MiB, GiB. Backward "
                   "recomputes as few saved values as needed to meet it; a plan that still exceeds it is an error",
                   "size"},
        texts.budget);
  visit(OptionInfo{"no-budget-trades",
                   "Without --memory-budget: keep saved values that backward could rebuild at less than 0.6 % of the "
                   "modelled step (docs/planning.md)"},
        texts.noBudgetTrades);
  visit(OptionInfo{"timing", "Print the time of each phase and pass"}, texts.timing);
  visit(OptionInfo{"quiet", "Print no report and no progress"}, texts.quiet);
  visit(OptionInfo{"json", "Write the report of a plan as JSON (default: instead of the tables)", "file"}, texts.json);
  visit(OptionInfo{"remarks", "Print remarks: copies, and decisions of optimizations"}, texts.remarks);
  visit(OptionInfo{"load-dialect-plugin", "Shared library with additional ops; repeatable", "file"}, texts.plugins);
  visit(OptionInfo{"load-pass-plugin", "Shared library with additional passes; repeatable", "file"}, texts.passPlugins);
  visit(OptionInfo{"pipeline-after",
                   "Additional passes after those of a phase, such as collectives:my-pass{option=1},cse; repeatable",
                   "PHASE:PASSES"},
        texts.after);
  forEachOption(texts.pipeline,
                [&](const char *name, const char *help, auto &value) { visit(OptionInfo{name, help}, value); });
}

/// Options that fit each other.
struct CompilerOptions {
  std::string input, output;
  PipelineOptions pipeline;
  std::shared_ptr<const Target> target;
  CodeOptions code;
  std::vector<std::string> plugins, passPlugins;
  std::vector<std::pair<std::string, int64_t>> batchDims; // -1: none
  Phase from = Phase::import, to = Phase::artifact;
  /// True when the input is IR (--compile-from), not a step package.
  bool resumes = false;
  std::string dumpFolder;
  bool timing = false, quiet = false, remarks = false;
  std::optional<int64_t> memoryBudget;
  /// Without a budget: memory that costs little time is not saved (tradeRecomputedValues).
  bool noBudgetTrades = false;
  /// The file for the report as JSON; - is standard output, in the place of the tables.
  std::optional<std::string> json;
};

/// Sets one option by a word as it stands on a command line: "--ranks=4", "--quiet". Nothing, or what is wrong with it.
std::optional<std::string> setOption(OptionTexts &texts, llvm::StringRef word);

/// The options of the pipeline, as far as target and policy decide them. Nothing, or the first thing that is wrong.
std::optional<std::string> checkPipelineOptions(const OptionTexts &texts, CompilerOptions &options);

/// All options. Nothing, or the first thing that is wrong, with the option and what it may be.
std::optional<std::string> checkOptions(const OptionTexts &texts, CompilerOptions &options);

} // namespace spmd

#endif // SPMD_COMPILER_COMPILEROPTIONS_H
