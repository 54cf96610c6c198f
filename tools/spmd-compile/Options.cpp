//===- Options.cpp - Command line of spmd-compile -------------------------===//

#include "Options.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/ShardUnits/Policy.h"
#include "spmd/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using spmd::Phase;

namespace {

/// The options as text. They live in parseOptions, not in globals, so that no other code can read them.
struct RawOptions {
  cl::OptionCategory category{"spmd-compile options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("STEP: folder NAME.step, or IR with --compile-from"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o",
                              cl::desc("Artifact folder; with --compile-to, IR file (- is standard output, "
                                       "the default but for plan, which is reported)"),
                              cl::value_desc("path"), cl::cat(category)};
  cl::list<std::string> policies{
      "policy",
      cl::desc("Which modules are shard units: auto (default: the model's annotations, or one unit), none, always, "
               "class:A,B, size:N[,force-leaf=A+B][,exclude=A+B], name:REGEX, or(P;P); several are or-ed"),
      cl::value_desc("policy"), cl::cat(category)};
  cl::opt<std::string> policyFile{"policy-file", cl::desc("Rules and options per shard unit (docs/shard-units.md)"),
                                  cl::value_desc("plan.json"), cl::cat(category)};
  cl::list<std::string> ignoredModules{"ignored-module",
                                       cl::desc("Path of a module whose parameters are in no shard unit, but whole on "
                                                "every rank; repeatable"),
                                       cl::value_desc("path"), cl::cat(category)};
  cl::list<std::string> ignoredParameters{"ignored-parameter", cl::desc("Name of such a parameter; repeatable"),
                                          cl::value_desc("name"), cl::cat(category)};
  cl::opt<bool> strictTied{"strict-tied", cl::desc("A tied parameter with owners in different shard units is an error"),
                           cl::cat(category)};
  cl::opt<std::string> target{"target",
                              cl::desc("What kernels are generated for: host (default), cuda:CHIP[,CHIP...], or "
                                       "emulate:CHIP, the kernels of that chip on the CPU (docs/cuda.md)"),
                              cl::value_desc("target"), cl::init("host"), cl::cat(category)};
  cl::list<std::string> batchDims{"batch-dim", cl::desc("Batch dimension of an input, or none; repeatable"),
                                  cl::value_desc("NAME=DIM"), cl::cat(category)};
  cl::list<std::string> cpus{"cpu",
                             cl::desc("Generate kernels for these CPUs only: x86-64-v3 (AVX2), x86-64-v4 (AVX-512); "
                                      "default both, of which the runtime takes the best"),
                             cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> cuda{"cuda", cl::desc("CUDA toolkit whose ptxas is used; by default one is looked for"),
                            cl::value_desc("folder"), cl::cat(category)};
  cl::opt<bool> emulation{"emulation",
                          cl::desc("With --target=cuda also the same kernels emulated, which stand-ins of NVIDIA's "
                                   "libraries run on a machine without a GPU (docs/cuda.md)"),
                          cl::cat(category)};
  cl::opt<std::string> kernelCache{"kernel-cache",
                                   cl::desc("Machine code made before, by content (default: spmd in the user's cache "
                                            "folder), or none"),
                                   cl::value_desc("folder"), cl::cat(category)};
  cl::opt<std::string> to{"compile-to", cl::desc("Stop after this phase and write its IR"), cl::value_desc("phase"),
                          cl::init("artifact"), cl::cat(category)};
  cl::opt<std::string> from{"compile-from", cl::desc("The input is IR that has been through this phase"),
                            cl::value_desc("phase"), cl::cat(category)};
  cl::opt<std::string> dump{"dump-ir", cl::desc("Write the IR after each phase into this folder"),
                            cl::value_desc("folder"), cl::cat(category)};
  cl::opt<std::string> budget{"memory-budget",
                              cl::desc("Largest arena of a rank: bytes, or with kB, MB, GB (powers of 1,000), "
                                       "KiB, MiB, GiB; exceeding it is an error"),
                              cl::value_desc("size"), cl::cat(category)};
  cl::opt<bool> timing{"timing", cl::desc("Print the time of each phase and pass"), cl::cat(category)};
  cl::opt<bool> quiet{"quiet", cl::desc("No report and no progress"), cl::cat(category)};
  cl::opt<std::string> json{"json", cl::desc("Write the report of a plan as JSON (default: instead of the tables)"),
                            cl::value_desc("file"), cl::ValueOptional, cl::cat(category)};
  cl::opt<bool> remarks{"remarks", cl::desc("Print remarks: copies, and what optimizations decided"),
                        cl::cat(category)};
  cl::list<std::string> plugins{"load-dialect-plugin", cl::desc("Shared library with further ops; repeatable"),
                                cl::value_desc("file"), cl::cat(category)};
  /// Those of the pipeline, which write into it.
  std::vector<std::unique_ptr<cl::Option>> ofPipeline;
  cl::opt<bool> printPipeline{"print-pipeline", cl::desc("Print every pass and why it is there, and exit"),
                              cl::cat(category)};

  explicit RawOptions(spmd::PipelineOptions &pipeline) {
    spmd::forEachOption(pipeline, [&](StringRef name, StringRef help, auto &value) {
      using T = std::decay_t<decltype(value)>;
      auto option = std::make_unique<cl::opt<T, /*ExternalStorage=*/true>>(name, cl::desc(help), cl::location(value),
                                                                           cl::init(T(value)), cl::cat(category));
      ofPipeline.push_back(std::move(option));
    });
  }
};

/// Collects the first problem; everything after it is not looked at.
class Checker {
public:
  bool fail(const Twine &message) {
    errs() << "spmd-compile: error: " << message << '\n';
    return false;
  }
  bool oneOf(StringRef option, StringRef value, ArrayRef<StringRef> allowed) {
    if (is_contained(allowed, value))
      return true;
    return fail("--" + option + "=" + value + ": expected " + join(allowed, ", "));
  }
  bool phase(StringRef option, StringRef value, Phase &phase) {
    SmallVector<StringRef> names;
    for (Phase known : spmd::getPhases())
      names.push_back(spmd::getPhaseName(known));
    if (!oneOf(option, value, names))
      return false;
    phase = *spmd::findPhase(value);
    return true;
  }
  bool target(StringRef text, spmd::kernel::Target &target);
  bool policy(ArrayRef<std::string> values, std::string &policy);
  bool batchDim(StringRef text, std::vector<std::pair<std::string, int64_t>> &dims);
  bool size(StringRef text, std::optional<int64_t> &bytes);
};

} // namespace

bool Checker::target(StringRef text, spmd::kernel::Target &target) {
  std::string problem;
  std::optional<spmd::kernel::Target> parsed = spmd::kernel::parseTarget(text, problem);
  if (!parsed)
    return fail("--target=" + text + ": " + problem);
  target = *parsed;
  return true;
}

bool Checker::policy(ArrayRef<std::string> values, std::string &policy) {
  if (values.empty())
    return true;
  // Each by itself first, so that a position counts from its beginning.
  for (const std::string &value : values)
    if (auto parsed = spmd::units::parsePolicy(value); !parsed)
      return fail("--policy: " + parsed.error().message);
  policy = values.size() == 1 ? values.front() : "or(" + join(values, ";") + ")";
  if (auto parsed = spmd::units::parsePolicy(policy); !parsed)
    return fail("--policy: " + parsed.error().message);
  return true;
}

bool Checker::batchDim(StringRef text, std::vector<std::pair<std::string, int64_t>> &dims) {
  auto [name, number] = text.split('=');
  int64_t dim = -1;
  if (name.empty() || (number != "none" && (number.getAsInteger(10, dim) || dim < 0)))
    return fail("--batch-dim=" + text + ": expected NAME=DIM, such as x=0, or x=none");
  dims.emplace_back(name.str(), dim);
  return true;
}

bool Checker::size(StringRef text, std::optional<int64_t> &bytes) {
  static constexpr std::pair<StringLiteral, int64_t> units[] = {
      {"kB", 1000},     {"MB", 1000000},  {"GB", 1000000000}, {"KiB", int64_t(1) << 10},
      {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1},           {"", 1}};
  double number;
  for (auto [unit, factor] : units) {
    StringRef digits = text;
    if (digits.consume_back(unit) && !digits.rtrim().getAsDouble(number) && number >= 0 && number < 1e18 / factor) {
      bytes = static_cast<int64_t>(number * factor);
      return true;
    }
  }
  return fail("--memory-budget=" + text + ": expected bytes, such as 2000000000, 2GB or 1.5GiB");
}

std::optional<Options> parseOptions(int argc, char **argv) {
  Options options;
  RawOptions raw(options.pipeline);
  cl::HideUnrelatedOptions(raw.category);
  cl::SetVersionPrinter([](raw_ostream &out) {
    out << "spmd-compile " SPMD_VERSION ", " SPMD_BUILD ", LLVM " LLVM_VERSION_STRING "\n";
  });
  std::string problems;
  raw_string_ostream stream(problems);
  if (!cl::ParseCommandLineOptions(argc, argv,
                                   "Compiles a captured training step for N ranks.\n\n"
                                   "  spmd-compile gpt2.step -o gpt2.spmd --ranks=4 --policy=class:Block\n",
                                   &stream)) {
    errs() << problems;
    return std::nullopt;
  }

  Checker check;
  options.printPipeline = raw.printPipeline;
  options.input = raw.input;
  options.output = raw.output;
  options.cuda.toolkit = raw.cuda;
  options.emulation = raw.emulation;
  if (raw.kernelCache != "none")
    options.cuda.cache = raw.kernelCache.empty() ? spmd::kernel::getUserKernelCache() : raw.kernelCache;
  options.dumpFolder = raw.dump;
  options.timing = raw.timing;
  options.quiet = raw.quiet;
  options.plugins = raw.plugins;
  if (raw.json.getNumOccurrences() > 0)
    options.json = raw.json.empty() ? "-" : raw.json.getValue();
  options.remarks = raw.remarks;
  options.resumes = !raw.from.empty();
  spmd::PipelineOptions &pipeline = options.pipeline;
  pipeline.policyFile = raw.policyFile;
  pipeline.ignoredModules = raw.ignoredModules;
  pipeline.ignoredParameters = raw.ignoredParameters;
  pipeline.strictTied = raw.strictTied;
  if (!check.policy(raw.policies, pipeline.policy) || !check.target(raw.target, options.target))
    return std::nullopt;
  spmd::kernel::GemmEpilogues available = spmd::kernel::getGemmEpilogues(options.target.kind);
  pipeline.targetEpilogues = available.epilogues.str();
  pipeline.epilogueDtypes = available.dtypes.str();
  pipeline.reductionBlocks = spmd::kernel::getReductionBlocks(options.target);
  pipeline.sumNorms = pipeline.clampIndices = options.target.kind != spmd::kernel::Target::Kind::host;
  if (options.printPipeline)
    return options;

  for (StringRef dim : raw.batchDims)
    if (!check.batchDim(dim, options.batchDims))
      return std::nullopt;
  for (StringRef cpu : raw.cpus) {
    if (!check.oneOf("cpu", cpu, spmd::kernel::getKernelCpus()))
      return std::nullopt;
    options.cpus.push_back(cpu.str());
  }
  if (std::string bad = spmd::findBadOption(pipeline); !bad.empty())
    return check.fail("--" + bad), std::nullopt;
  bool valid = check.phase("compile-to", raw.to, options.to) &&
               (!options.resumes || check.phase("compile-from", raw.from, options.from)) &&
               (raw.budget.empty() || check.size(raw.budget, options.memoryBudget));
  if (!valid)
    return std::nullopt;
  if (!options.cpus.empty() && options.target.kind == spmd::kernel::Target::Kind::cuda)
    return check.fail("--cpu chooses code of targets host and emulate, not of --target=" + raw.target), std::nullopt;
  if (options.emulation && options.target.kind != spmd::kernel::Target::Kind::cuda)
    return check.fail("--emulation is for --target=cuda:CHIP, not for --target=" + raw.target), std::nullopt;
  if (options.target.kind == spmd::kernel::Target::Kind::cuda && options.to == Phase::artifact)
    if (std::string problem = spmd::kernel::findCudaProblem(options.cuda); !problem.empty())
      return check.fail("--target=" + raw.target + ": " + problem), std::nullopt;
  if (!raw.policies.empty() && !raw.policyFile.empty())
    return check.fail("--policy and --policy-file exclude each other"), std::nullopt;
  if (options.input.empty())
    return check.fail("no step package given; usage: spmd-compile STEP -o ARTIFACT [options]"), std::nullopt;
  if (options.to == Phase::artifact && options.output.empty())
    return check.fail("no -o ARTIFACT given"), std::nullopt;
  if (options.json && options.to < Phase::plan)
    return check.fail("--json is the report of a plan; --compile-to=" + raw.to + " has none"), std::nullopt;
  if (options.resumes && options.from >= options.to)
    return check.fail("--compile-from=" + raw.from + " is not before --compile-to=" + raw.to), std::nullopt;
  return options;
}
