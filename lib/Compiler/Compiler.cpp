//===- Compiler.cpp - From a step package to an artifact ------------------===//

#include "spmd/Compiler/Compiler.h"
#include "FittingOptions.h"
#include "KeptUnits.h"
#include "RecomputedValues.h"
#include "Report.h"
#include "dialects/Spmd/Iterations.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/KernelToPlan/RepeatIterations.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Import/Import.h"
#include "spmd/InitAll.h"
#include "spmd/Pipelines/BatchDims.h"
#include "spmd/Pipelines/Packaging.h"
#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Externals.h"
#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Core/Text.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/thread.h"
#include <mutex>
#include <thread>

using namespace mlir;
using namespace spmd;
using runtime::StatusCode;

namespace {

/// Of a loop with many iterations so many go through the passes. Two of them, or of what is like them before the loop,
/// must be alike.
constexpr int64_t kFewIterations = 3;
/// So many are planned: the first, the last, and what is between them and behind streams that run ahead.
constexpr int64_t kPlannedIterations = 6;

/// Remembers which pass failed.
class FailedPass : public PassInstrumentation {
public:
  struct Found {
    std::string name;
    bool isVerifier = false; ///< of the pipeline's
  };
  FailedPass(Found &found, const PipelineOptions &options) : found(found), options(options) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    found = {pass->getArgument().str(), isVerifier(*pass, options)};
  }

private:
  Found &found;
  const PipelineOptions &options;
};

/// Compiles one step; the state is what the phases share.
class Compiler {
public:
  Compiler(const CompilerOptions &options, const CompilerListener &listener, MLIRContext &context)
      : options(options), listener(listener), context(context) {}
  Compiler(const CompilerOptions &options, CompilerListener &&listener, MLIRContext &context) = delete;

  StatusCode run();

private:
  LogicalResult read(int64_t kept = 0);
  LogicalResult readAgain(int64_t kept, TimingScope &timing) {
    TimingScope scope = timing.nest("read");
    return read(kept);
  }
  LogicalResult checkTensors(StringRef name);
  LogicalResult runAll();
  LogicalResult runPhase(Phase phase, TimingScope &timing);
  bool mayLeaveOutIterations() const;
  bool mayTradeMemory() const;
  LogicalResult runToKernels(TimingScope &timing);
  LogicalResult compileFewIterations(std::optional<Phase> &reached, TimingScope &timing);
  LogicalResult planFewIterations(std::optional<Phase> &reached, TimingScope &timing);
  LogicalResult runPasses(Phase phase, bool onlyVerifiers, TimingScope &timing);
  LogicalResult writeIR(StringRef path);
  LogicalResult dump(Phase phase);
  LogicalResult writeJson(const runtime::PlanReport &report);
  LogicalResult checkBudget(const runtime::PlanReport &report, int64_t budget);
  LogicalResult writeArtifact(TimingScope &timing);
  std::string getLibraries() const;
  FailureOr<OwningOpRef<ModuleOp>> planFirstStep();
  LogicalResult finish(TimingScope &timing);
  void showProgress(StringRef text) {
    if (listener.progress && !options.quiet)
      listener.progress(text);
  }
  void say(const DiagnosticRecord &record) { said ? said->push_back(record) : listener.diagnose(record); }
  LogicalResult error(const Twine &message) { return emitError(UnknownLoc::get(&context), message); }

  const CompilerOptions &options;
  const CompilerListener &listener;
  MLIRContext &context;
  /// The failure is none of the step's or of the options'.
  bool isInternal = false;
  OwningOpRef<ModuleOp> module;
  /// With a memory budget: the module after phase `import`, to plan it with other options.
  OwningOpRef<ModuleOp> imported;
  /// With a memory budget that no recomputation meets: the plan that recomputes all it can.
  std::optional<RecomputedPlan> fullyRecomputed;
  /// While it is not yet known whether few iterations stand for all: what would be said.
  std::vector<DiagnosticRecord> *said = nullptr;
};

} // namespace

/// A file that was cut short is found out here, not by whoever runs the artifact.
LogicalResult Compiler::checkTensors(StringRef name) {
  SmallString<256> path(options.input);
  llvm::sys::path::append(path, name);
  if (!llvm::sys::fs::exists(path))
    return success();
  auto file = runtime::SafetensorsFile::open(path.str().str());
  return file ? success() : error(file.error().message);
}

/// `kept`: of a loop only so many iterations, if they can stand for all.
LogicalResult Compiler::read(int64_t kept) {
  if (options.resumes) {
    module = parseSourceFile<ModuleOp>(options.input, &context);
    return success(static_cast<bool>(module));
  }
  module = kept ? importIterations(options.input, kept, &context) : importStep(options.input, &context);
  if (!module || failed(setBatchDims(*module, options.batchDims)) || failed(checkTensors("weights.safetensors")) ||
      failed(checkTensors("reference.safetensors")))
    return failure();
  // What the artifact's manifest says of how it was compiled; no pass reads it.
  Builder builder(&context);
  auto text = [&](StringRef key, StringRef value) { return builder.getNamedAttr(key, builder.getStringAttr(value)); };
  const PipelineOptions &pipeline = options.pipeline;
  std::string policy =
      pipeline.policyFile.empty() ? pipeline.policy : ("file " + llvm::sys::path::filename(pipeline.policyFile)).str();
  (*module)->setAttr("spmd.compile", builder.getDictionaryAttr({text("mode", pipeline.mode), text("policy", policy),
                                                                text("target", options.target->getName()),
                                                                text("view", pipeline.view)}));
  return success();
}

LogicalResult Compiler::runPhase(Phase phase, TimingScope &timing) {
  if (failed(runPasses(phase, /*onlyVerifiers=*/false, timing)))
    return failure();
  if (phase == Phase::units && failed(chooseKeptUnits(*module, options.pipeline, options.memoryBudget)))
    return failure();
  if (phase == Phase::decompose && options.memoryBudget && options.to >= Phase::plan)
    fullyRecomputed = chooseRecomputedValues(*module, options.pipeline, *options.memoryBudget);
  if (phase == Phase::decompose && mayTradeMemory())
    tradeRecomputedValues(*module, options.pipeline);
  return dump(phase);
}

LogicalResult Compiler::runPasses(Phase phase, bool onlyVerifiers, TimingScope &timing) {
  showProgress(getPhaseName(phase));
  TimingScope scope = timing.nest(getPhaseName(phase));
  PassManager pm(&context);
  pm.enableTiming(scope);
  FailedPass::Found failedPass;
  pm.addInstrumentation(std::make_unique<FailedPass>(failedPass, options.pipeline));
  std::string problem;
  llvm::raw_string_ostream os(problem);
  PipelineOptions pipeline = options.pipeline;
  pipeline.readsPlanBack = options.to != Phase::artifact || options.resumes || !pipeline.after.empty();
  if (onlyVerifiers) {
    addVerifiers(pm, phase, pipeline);
  } else if (failed(addPhase(pm, phase, pipeline, os))) {
    isInternal = true;
    return error(StringRef(problem).rtrim());
  }
  if (succeeded(pm.run(*module)))
    return success();
  // Our own passes gave what our own verifier refuses; IR that was given with --compile-from is the user's.
  auto isHere = [phase](const auto &after) { return after.first == phase; };
  if (llvm::any_of(options.pipeline.after, isHere)) {
    say(DiagnosticRecord::note(failedPass.name + " found this; the passes of --pipeline-after=" +
                               getPhaseName(phase).str() + " run in this phase"));
  } else if (failedPass.isVerifier && !options.resumes && phase != Phase::import) {
    isInternal = true;
    say(DiagnosticRecord::note(
        failedPass.name +
        " found this; it is a mistake of spmd-compile, not of the step; --dump-ir writes the IR before it"));
  }
  return failure();
}

LogicalResult Compiler::writeIR(StringRef path) {
  std::string problem;
  auto file = openOutputFile(path, &problem);
  if (!file)
    return error(problem);
  // Locations are part of the IR: errors of later phases are told by them.
  module->print(file->os(), OpPrintingFlags().enableDebugInfo());
  file->os() << '\n';
  file->os().flush();
  if (std::error_code code = file->os().error()) {
    file->os().clear_error(); // else its destructor ends the process
    isInternal = true;
    return error("cannot write '" + path + "': " + code.message());
  }
  file->keep();
  return success();
}

LogicalResult Compiler::dump(Phase phase) {
  if (options.dumpFolder.empty())
    return success();
  if (std::error_code code = llvm::sys::fs::create_directories(options.dumpFolder))
    return error("cannot create '" + options.dumpFolder + "': " + code.message());
  SmallString<256> path(options.dumpFolder);
  llvm::sys::path::append(path,
                          llvm::formatv("{0:02}-{1}.mlir", static_cast<unsigned>(phase), getPhaseName(phase)).str());
  return writeIR(path);
}

LogicalResult Compiler::writeJson(const runtime::PlanReport &report) {
  if (!options.json)
    return success();
  std::string problem;
  auto file = openOutputFile(*options.json, &problem);
  if (!file)
    return error(problem);
  file->os() << planReportJson(report);
  file->keep();
  return success();
}

LogicalResult Compiler::checkBudget(const runtime::PlanReport &report, int64_t budget) {
  if (report.arenaBytes <= budget)
    return success();
  if (failed(writeJson(report)))
    return failure();
  showProgress("over budget, planning with other options");
  auto record = DiagnosticRecord::error(formatExcess(report, budget));
  record.code = "memory-budget";
  FittingOptions other = imported ? findFittingOptions(*imported, options.pipeline, budget) : FittingOptions();
  if (fullyRecomputed)
    other.rows.insert(other.rows.begin(),
                      {"all " + std::to_string(fullyRecomputed->values) + " saved values recomputed",
                       runtime::formatCount(fullyRecomputed->bytes),
                       runtime::formatCount(fullyRecomputed->bytes - budget) + " too many"});
  if (!other.rows.empty())
    record.message += "planned again with\n" + runtime::formatTable(other.rows);
  record.message = StringRef(record.message).rtrim().str();
  record.hint = llvm::join(other.fitting, ", or ");
  showProgress("");
  listener.diagnose(record);
  return failure();
}

/// Writes what was asked for, the artifact or the IR of a phase, and reports.
LogicalResult Compiler::finish(TimingScope &timing) {
  if (options.to < Phase::plan)
    return writeIR(options.output.empty() ? "-" : options.output);
  FailureOr<runtime::PlanReport> report = makeReport(*module, *options.target);
  if (failed(report) || (options.memoryBudget && failed(checkBudget(*report, *options.memoryBudget))))
    return failure();
  bool isPlanned = options.to == Phase::plan;
  if (isPlanned && !options.output.empty() && failed(writeIR(options.output)))
    return failure();
  if (!isPlanned && failed(writeArtifact(timing)))
    return failure();
  showProgress("");
  bool isTaken = options.json == "-" || (isPlanned && options.output == "-");
  if (listener.report && !options.quiet && !isTaken)
    printReport(*report, isPlanned, *listener.report);
  return writeJson(*report);
}

LogicalResult Compiler::writeArtifact(TimingScope &timing) {
  showProgress("artifact");
  TimingScope scope = timing.nest("artifact");
  PackagingOptions packaging{options.output, options.resumes ? "" : options.input, options.target, options.code};
  packaging.code.libraries = getLibraries();
  FailureOr<OwningOpRef<ModuleOp>> firstStep = planFirstStep();
  if (failed(firstStep))
    return failure();
  packaging.firstStep = firstStep->get();
  return spmd::writeArtifact(*module, packaging, isInternal);
}

std::string Compiler::getLibraries() const {
  if (!options.code.libraries.empty() || options.resumes)
    return options.code.libraries;
  SmallString<256> folder(options.input);
  llvm::sys::path::append(folder, runtime::kLibraryFolder);
  return folder.str().str();
}

/// A step whose first call differs has a package of that call inside: a program of its own on the same state. Null
/// where there is none.
FailureOr<OwningOpRef<ModuleOp>> Compiler::planFirstStep() {
  SmallString<256> step(options.input);
  llvm::sys::path::append(step, runtime::kFirstStep);
  if (options.resumes || !llvm::sys::fs::exists(step + "/step.json"))
    return OwningOpRef<ModuleOp>();
  CompilerOptions first = options;
  first.input = step.str().str();
  first.to = Phase::plan;
  first.output.clear();
  first.quiet = true;
  first.json.reset();
  first.dumpFolder.clear();
  Compiler compiler(first, listener, context);
  if (compiler.run() != StatusCode::Ok) {
    isInternal = compiler.isInternal;
    return failure();
  }
  getProgram(*compiler.module).setSymName(runtime::kFirstStep);
  return std::move(compiler.module);
}

StatusCode Compiler::run() {
  if (succeeded(runAll()))
    return StatusCode::Ok;
  return isInternal ? StatusCode::Failed : StatusCode::BadInput;
}

/// Whether nobody looks at what passes make of single iterations.
bool Compiler::mayLeaveOutIterations() const {
  return !options.resumes && options.to >= Phase::kernels && !options.memoryBudget && options.dumpFolder.empty() &&
         options.pipeline.after.empty();
}

static bool hasSeveralBackwardPasses(ModuleOp module) {
  auto phases = module->getAttrOfType<ArrayAttr>(kPhasesAttr);
  return phases && llvm::count(phases.getAsValueRange<StringAttr>(), "backward") > 1;
}

/// Whether the compiler may choose what backward recomputes. Programs of few and of more iterations of a loop, which are
/// compiled apart, could get different choices; whether iterations are left out must not matter.
bool Compiler::mayTradeMemory() const {
  return !options.noBudgetTrades && !options.memoryBudget && options.pipeline.recompute == 0 &&
         !(*module)->hasAttr(kIterationsAttr) && !hasSeveralBackwardPasses(*module);
}

/// Of a module that has been read, all phases up to kernels.
LogicalResult Compiler::runToKernels(TimingScope &timing) {
  for (Phase phase : getPhases())
    if (phase <= Phase::kernels && failed(runPhase(phase, timing)))
      return failure();
  return success();
}

/// Compiles a loop over microbatches, of which `module` has a few iterations, by these (RepeatIterations.h): it becomes
/// the step in kernels, whole or, where there is to be a plan, with as many iterations as are planned. Where that
/// cannot be, it becomes the whole step as it is read. `reached` is the phase that it has been through.
LogicalResult Compiler::compileFewIterations(std::optional<Phase> &reached, TimingScope &timing) {
  std::vector<DiagnosticRecord> records, unused;
  std::string why = "the step with few iterations cannot be compiled";
  bool isInKernels = false;
  {
    // The program of one iteration more, beside this one; nobody is told of it.
    CompilerListener nobody;
    Compiler more(options, nobody, context);
    more.said = &unused;
    LogicalResult areMoreCompiled = failure();
    auto isHere = [thread = std::this_thread::get_id()] { return std::this_thread::get_id() == thread; };
    RecordDiagnostics collect(&context, options.remarks, [&](const DiagnosticRecord &record) {
      if (isHere())
        say(record);
    });
    llvm::thread beside([&] {
      areMoreCompiled =
          success(succeeded(more.readAgain(kFewIterations + 1, timing)) && succeeded(more.runToKernels(timing)));
    });
    said = &records;
    LogicalResult areFewCompiled = runToKernels(timing);
    beside.join();
    said = &unused;
    int64_t kept = options.to > Phase::kernels ? kPlannedIterations : INT64_MAX;
    isInKernels = succeeded(areFewCompiled) && succeeded(areMoreCompiled) &&
                  succeeded(completeIterations(*module, *more.module, kept, why));
    if (isInKernels) {
      why = "the step with all iterations is none that the passes would give";
      isInKernels = succeeded(runPasses(Phase::kernels, /*onlyVerifiers=*/true, timing));
    }
  }
  said = nullptr;
  isInternal = false;
  if (isInKernels) {
    llvm::for_each(records, listener.diagnose);
    reached = Phase::kernels;
    return (*module)->hasAttr(kIterationsAttr) ? planFewIterations(reached, timing) : success();
  }
  emitRemark(UnknownLoc::get(&context)) << "all iterations of the loop go through all passes: " << why;
  return readAgain(0, timing);
}

/// Plans a loop in kernels, of which `module` has a few iterations, by these; where that cannot be, it becomes the
/// whole step in kernels.
LogicalResult Compiler::planFewIterations(std::optional<Phase> &reached, TimingScope &timing) {
  OwningOpRef<ModuleOp> kernels = module->clone();
  std::vector<DiagnosticRecord> records;
  bool isPlanned;
  {
    RecordDiagnostics collect(&context, options.remarks, [&](const DiagnosticRecord &record) { say(record); });
    said = &records;
    isPlanned = succeeded(runPhase(Phase::plan, timing));
  }
  said = nullptr;
  isInternal = false;
  if (isPlanned) {
    llvm::for_each(records, listener.diagnose);
    reached = Phase::plan;
    return success();
  }
  auto first = llvm::find_if(records, [](auto &record) { return record.severity == DiagnosticSeverity::Error; });
  emitRemark(UnknownLoc::get(&context)) << "all iterations of the loop are planned"
                                        << (first == records.end() ? "" : ": " + first->message);
  module = std::move(kernels);
  std::string why;
  if (failed(repeatIterations(*module, FewIterations::of(*module)->missing(), why))) {
    isInternal = true;
    return error("no iteration can be put in: " + why);
  }
  return runPasses(Phase::kernels, /*onlyVerifiers=*/true, timing);
}

LogicalResult Compiler::runAll() {
  DefaultTimingManager manager;
  manager.setEnabled(options.timing);
  TimingScope timing = manager.getRootScope();
  {
    showProgress("import");
    TimingScope scope = timing.nest("read");
    if (failed(read(mayLeaveOutIterations() ? kFewIterations : 0)))
      return failure();
  }
  std::optional<Phase> reached;
  if (!options.resumes && (*module)->hasAttr(kIterationsAttr) && failed(compileFewIterations(reached, timing)))
    return failure();
  if (options.resumes && failed(runPasses(options.from, /*onlyVerifiers=*/true, timing)))
    return failure();
  for (Phase phase : getPhases()) {
    bool isNeeded = phase != Phase::artifact && phase <= options.to && (!options.resumes || phase > options.from) &&
                    (!reached || phase > *reached);
    if (isNeeded && failed(runPhase(phase, timing)))
      return failure();
    if (isNeeded && phase == Phase::import && options.memoryBudget)
      imported = module->clone();
  }
  return finish(timing);
}

StatusCode spmd::compile(const CompilerOptions &options, const CompilerListener &listener) {
  // Code generation sets up LLVM's targets for the whole process.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  registerAllPasses();
  DialectRegistry registry;
  registerAllDialects(registry);
  if (std::string problem = loadDialectPlugins(options.plugins, registry); !problem.empty()) {
    listener.diagnose(DiagnosticRecord::error(problem));
    return StatusCode::BadInput;
  }
  std::string problem = loadPassPlugins(options.passPlugins);
  if (problem.empty())
    if (std::string bad = findBadPasses(options.pipeline); !bad.empty())
      problem = "--" + bad;
  if (!problem.empty()) {
    listener.diagnose(DiagnosticRecord::error(problem));
    return StatusCode::BadInput;
  }
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  RecordDiagnostics diagnostics(&context, options.remarks, listener.diagnose);
  return Compiler(options, listener, context).run();
}
