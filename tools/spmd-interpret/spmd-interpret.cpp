//===- spmd-interpret.cpp - Runs training steps for N ranks, and compares -===//

#include "spmd/InitAll.h"
#include "spmd/Interpreter/Compare.h"
#include "spmd/Interpreter/Evaluator.h"
#include "spmd/Interpreter/RuleOracle.h"
#include "spmd/Pipelines/CrashMessage.h"
#include "spmd/Runtime/Core/Externals.h"

#include "dialects/Spmd/Spmd.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <cmath>

using namespace mlir;
using namespace spmd::interp;

namespace cl = llvm::cl;

enum ExitCode { kDone = 0, kWrongResult = 1, kBadInput = 2, kFailed = 3 };

static cl::OptionCategory category("spmd-interpret options");
static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<program.mlir>"), cl::cat(category));
static cl::opt<std::string> baseFile("compare", cl::value_desc("base.mlir"),
                                     cl::desc("also run this program and compare everything"), cl::cat(category));
static cl::opt<bool> withReference("reference",
                                   cl::desc("compare with the losses and final tensors that PyTorch recorded "
                                            "in the step package of --weights"),
                                   cl::cat(category));
static cl::opt<std::string> weights("weights", cl::value_desc("name.step"),
                                    cl::desc("step package with weights and batches; without it all inputs are "
                                             "pseudo-random"),
                                    cl::cat(category));
static cl::opt<Precision>
    precision("dtype", cl::desc("arithmetic"), cl::init(Precision::f64),
              cl::values(clEnumValN(Precision::f64, "f64", "doubles throughout"),
                         clEnumValN(Precision::program, "program", "results rounded to the program's types")),
              cl::cat(category));
static cl::opt<int64_t> numRanks("ranks", cl::desc("number of ranks the program must be for"), cl::init(0),
                                 cl::cat(category));
static cl::opt<int64_t> numSteps("steps", cl::init(0), cl::cat(category),
                                 cl::desc("training steps (default: one, or all that the step "
                                          "package recorded with --reference)"));
static cl::opt<uint64_t> seed("seed", cl::init(0), cl::cat(category), cl::desc("of pseudo-random inputs"));
static cl::opt<double> tolerance("rtol", cl::init(0), cl::cat(category),
                                 cl::desc("largest relative difference per tensor (default: 1e-12 for --compare; for "
                                          "--reference 16 epsilons of the program's coarsest float type per step)"));
static cl::opt<std::string> saveFile("save", cl::value_desc("file.safetensors"), cl::cat(category),
                                     cl::desc("write losses, outputs and final state"));
static cl::opt<std::string> callsFile("calls", cl::value_desc("file.safetensors"), cl::cat(category),
                                      cl::desc("run every function once instead of @step, on one rank: argument i "
                                               "of @f is the tensor 'f/i'"));
static cl::opt<std::string> resultsFile("results", cl::value_desc("file.safetensors"), cl::cat(category),
                                        cl::desc("with --calls: where result i of @f goes, as 'f/i'"));

static cl::opt<bool> checkRules("check-rules", cl::cat(category),
                                cl::desc("check the sharding rule of every aten op in the program by execution "
                                         "on random operands, instead of running @step"));
static cl::list<std::string> plugins("load-dialect-plugin", cl::cat(category), cl::value_desc("file"),
                                     cl::desc("shared library with further ops"));
static cl::opt<std::string> libraries("libraries", cl::cat(category), cl::value_desc("folder"),
                                      cl::desc("where shared libraries of operators are (default: in --weights)"));
static cl::opt<bool> listOps("list-ops", cl::cat(category),
                             cl::desc("print the ops that can be run, and which by their scalar bodies, and stop"));

static int exitCode(Failure failure) {
  switch (failure) {
  case Failure::input:
    return kBadInput;
  case Failure::wrong:
    return kWrongResult;
  case Failure::running:
    return kFailed;
  }
  return kFailed;
}

/// A source manager each: parsing reads the first buffer of the one it is given.
static OwningOpRef<ModuleOp> parse(llvm::StringRef path, MLIRContext &context) {
  std::string message;
  auto file = openInputFile(path, &message);
  if (!file) {
    llvm::errs() << "spmd-interpret: " << message << "\n";
    return nullptr;
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

/// --calls: every function once.
static int runCalls(ModuleOp module) {
  FailureOr<Values> arguments = readTensors(module.getLoc(), callsFile);
  if (failed(arguments))
    return kBadInput;
  std::vector<std::pair<std::string, Tensor>> saved;
  for (auto function : module.getOps<func::FuncOp>()) {
    std::string name = function.getName().str();
    SmallVector<Tensor> values;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      std::string key = name + "/" + std::to_string(i);
      auto it = arguments->find(key);
      if (it == arguments->end()) {
        function.emitError() << callsFile << " has no tensor '" << key << "'";
        return kBadInput;
      }
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      values.push_back(it->second.converted(*getDType(type.getElementType())));
    }
    Failure failure;
    auto results = callFunction(function, values, {precision}, failure);
    if (failed(results))
      return exitCode(failure);
    for (auto [i, result] : llvm::enumerate(*results))
      saved.push_back({name + "/" + std::to_string(i), result});
  }
  bool wide = precision == Precision::f64;
  return succeeded(writeTensors(module.getLoc(), resultsFile, saved, wide)) ? kDone : kFailed;
}

/// The epsilon of the program's coarsest float type.
static double coarsestEpsilon(ModuleOp module) {
  double epsilon = std::ldexp(1.0, -23);
  for (BlockArgument argument : findStep(module).getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType()).getElementType();
    if (type.isBF16())
      epsilon = std::max(epsilon, std::ldexp(1.0, -7));
    else if (type.isF16())
      epsilon = std::max(epsilon, std::ldexp(1.0, -10));
  }
  return epsilon;
}

/// Rounding of a sum that is zero, in epsilons of the largest gradient.
static constexpr double kNoise = 4;

static int compareWithReference(ModuleOp module, const Results &results) {
  FailureOr<Reference> reference = readReference(module, weights);
  if (failed(reference))
    return kBadInput;
  int64_t steps = results.steps.size();
  double epsilon = coarsestEpsilon(module);
  // Rounding errors of one step are a small multiple of epsilon; every step adds its own and hands on those of the
  // steps before.
  double bound = tolerance > 0 ? tolerance : 16 * epsilon * steps;
  // The reference in the form of a run, as far as it was recorded.
  Results expected;
  expected.steps.resize(steps);
  for (int64_t i = 0; i < steps; ++i)
    for (const auto &[key, result] : results.steps[i])
      if (result.kind == "loss" && i < static_cast<int64_t>(reference->losses.size()))
        expected.steps[i][key] = {"loss", Tensor::scalar(DType::f64, reference->losses[i])};
  Results ours;
  ours.steps = results.steps;
  bool isLast = steps == static_cast<int64_t>(reference->losses.size());
  for (const auto &[key, result] : results.state) {
    auto it = reference->state.find(key);
    if (!isLast || it == reference->state.end())
      continue;
    ours.state[key] = result;
    expected.state[key] = {result.kind, it->second};
  }
  auto differences = compareResults(module, ours, expected, getZeroGradient(module), kNoise * epsilon / bound);
  if (failed(differences))
    return kBadInput;
  double largest = printDifferences(*differences, llvm::outs());
  llvm::outs() << llvm::format("%lld steps against PyTorch, allowed %.2e\n", static_cast<long long>(steps), bound);
  return largest <= bound ? kDone : kWrongResult;
}

static LogicalResult save(ModuleOp module, const Results &results) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (auto [i, step] : llvm::enumerate(results.steps))
    for (const auto &[key, result] : step)
      tensors.push_back({std::to_string(i) + "/" + key, result.value});
  for (const auto &[key, result] : results.state)
    tensors.push_back({"final/" + key, result.value});
  return writeTensors(module.getLoc(), saveFile, tensors, precision == Precision::f64);
}

/// --check-rules: one line per op name.
static int runRuleChecks(ModuleOp module) {
  auto reports = checkShardingRules(module, seed);
  if (failed(reports))
    return kWrongResult;
  llvm::MapVector<std::string, RuleCheck, std::map<std::string, unsigned>> byName;
  for (const RuleCheck &report : *reports) {
    RuleCheck &sum = byName[report.op];
    sum.hasRule |= report.hasRule;
    sum.factors += report.factors;
    sum.comparisons += report.comparisons;
  }
  for (const auto &[name, sum] : byName) {
    llvm::outs() << name << ": ";
    if (sum.hasRule)
      llvm::outs() << sum.factors << " factors, " << sum.comparisons << " comparisons\n";
    else
      llvm::outs() << "no rule\n";
  }
  return kDone;
}

/// A line per op: its name and, if that is what is run, "(scalar body)".
static int printOps(MLIRContext &context) {
  context.loadAllAvailableDialects();
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    // An op is asked, not its name: an empty one of its kind answers.
    Operation *op = Operation::create(OperationState(UnknownLoc::get(&context), name));
    if (Evaluator evaluator = findEvaluator(op))
      llvm::outs() << name << (evaluator == &evaluateScalarBody ? " (scalar body)" : "") << "\n";
    op->destroy();
  }
  return kDone;
}

static int run(MLIRContext &context) {
  if (listOps)
    return printOps(context);
  if (inputFile.empty()) {
    llvm::errs() << "spmd-interpret: no program given\n";
    return kBadInput;
  }
  OwningOpRef<ModuleOp> module = parse(inputFile, context);
  if (!module)
    return kBadInput;
  setLibraryFolder(libraries.empty() && !weights.empty() ? weights + "/" + spmd::runtime::kLibraryFolder : libraries);
  if (checkRules)
    return runRuleChecks(*module);
  if (!callsFile.empty()) {
    if (resultsFile.empty()) {
      llvm::errs() << "spmd-interpret: --calls needs --results\n";
      return kBadInput;
    }
    return runCalls(*module);
  }
  if (withReference && weights.empty()) {
    llvm::errs() << "spmd-interpret: --reference needs --weights\n";
    return kBadInput;
  }
  OwningOpRef<ModuleOp> base;
  if (!baseFile.empty() && !(base = parse(baseFile, context)))
    return kBadInput;

  func::FuncOp step = findStep(*module);
  func::FuncOp describing = base ? findStep(*base) : step;
  FailureOr<Mesh> mesh = Mesh::of(*module);
  if (!step || !describing || failed(mesh))
    return kBadInput;
  int64_t ranks = isPartitioned(step) ? mesh->numRanks() : 1;
  if (numRanks != 0 && numRanks != ranks) {
    step.emitError() << "the program is for " << ranks << " ranks, --ranks is " << int64_t(numRanks);
    return kBadInput;
  }
  if (numSteps < 0) {
    llvm::errs() << "spmd-interpret: --steps must not be negative\n";
    return kBadInput;
  }
  int64_t steps = numSteps == 0 && !withReference ? 1 : int64_t(numSteps);
  FailureOr<Inputs> inputs =
      weights.empty() ? makeRandomInputs(describing, steps, seed) : readStepPackage(describing, weights, steps, seed);
  if (failed(inputs))
    return kBadInput;

  Options options{precision};
  Failure failure;
  FailureOr<Results> results = interpret(*module, *inputs, options, failure);
  if (failed(results))
    return exitCode(failure);
  for (const auto &[i, outputs] : llvm::enumerate(results->steps))
    for (const auto &[key, result] : outputs)
      if (result.kind == "loss")
        llvm::outs() << llvm::format("step %zu %s %.9g\n", i, key.c_str(), result.value.at(0));
  printStatistics(results->statistics, llvm::outs());
  if (!saveFile.empty() && failed(save(*module, *results)))
    return kFailed;

  if (withReference)
    if (int code = compareWithReference(*module, *results))
      return code;
  if (!base)
    return kDone;
  FailureOr<Results> expected = interpret(*base, *inputs, options, failure);
  if (failed(expected))
    return exitCode(failure);
  double bound = tolerance > 0 ? tolerance : 1e-12;
  double epsilon = precision == Precision::f64 ? std::ldexp(1.0, -52) : coarsestEpsilon(*base);
  auto differences = compareResults(*module, *results, *expected, getZeroGradient(*base), kNoise * epsilon / bound);
  if (failed(differences))
    return kWrongResult;
  double largest = printDifferences(*differences, llvm::outs());
  if (largest <= bound)
    return kDone;
  llvm::errs() << llvm::format("spmd-interpret: the programs differ by %.2e, allowed are %.2e\n", largest, bound);
  return kWrongResult;
}

int main(int argc, char **argv) {
  spmd::explainCrashes(argc, argv);
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv,
                                   "runs a training step for all its ranks in lockstep\n\n"
                                   "exit codes: 0 done, 1 wrong result, 2 usage or input, 3 failure while running\n",
                                   &llvm::errs()))
    return kBadInput;
  DialectRegistry registry;
  spmd::registerAllDialects(registry);
  if (std::string problem = spmd::loadDialectPlugins(plugins, registry); !problem.empty()) {
    llvm::errs() << "error: " << problem << '\n';
    return kBadInput;
  }
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // An error names its place; a whole program printed behind it hides it.
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  return run(context);
}
