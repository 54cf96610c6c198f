//===- spmd-translate.cpp - Between our files and IR ----------------------===//

#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Import/Import.h"
#include "spmd/InitAll.h"
#include "spmd/Pipelines/CrashMessage.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Hash.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {
struct Options {
  llvm::cl::OptionCategory category{"spmd-translate options"};
  llvm::cl::opt<unsigned> iterations{
      "iterations",
      llvm::cl::desc("With --import-step: import only this number of a loop's iterations (0: all); "
                     "spmd-repeat-iterations adds the others"),
      llvm::cl::init(0), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> importStep{"import-step",
                                        llvm::cl::desc("Reads a step package (NAME.step or its step.json) and "
                                                       "writes its IR"),
                                        llvm::cl::value_desc("path"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> importStableHlo{
      "import-stablehlo",
      llvm::cl::desc("Reads a training step that JAX lowered to StableHLO (generic form), and writes its IR, or its "
                     "step package with -o NAME.step"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> roles{"roles",
                                   llvm::cl::desc("JSON file with the roles of the StableHLO step's arguments and "
                                                  "results (docs/stablehlo.md)"),
                                   llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> planToJson{
      "plan-to-json", llvm::cl::desc("Reads the IR of a plan and writes the plan in the runtime's format"),
      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> planToManifest{"plan-to-manifest",
                                            llvm::cl::desc("Reads the IR of a plan and writes the artifact's manifest"),
                                            llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> printSchemas{"print-aten-schemas",
                                   llvm::cl::desc("Writes, for each op of the aten dialect, its name, its "
                                                  "PyTorch schema and its attributes"),
                                   llvm::cl::cat(category)};
  llvm::cl::opt<std::string> output{"o", llvm::cl::desc("Output file"), llvm::cl::value_desc("file"),
                                    llvm::cl::init("-"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> plugins{"load-dialect-plugin", llvm::cl::desc("Shared library with further ops"),
                                      llvm::cl::value_desc("file"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> noLocations{"no-locations", llvm::cl::desc("Writes IR without locations"),
                                  llvm::cl::cat(category)};
};
} // namespace

/// One line per op: name, tab, schema, tab, attribute names with commas.
static void printSchemas(MLIRContext &context, llvm::raw_ostream &os) {
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("aten")) {
    auto *interface = name.getInterface<spmd::aten::AtenOpInterface>();
    if (!interface)
      continue;
    os << name.getStringRef() << '\t' << interface->getSchema() << '\t';
    llvm::interleave(
        name.getAttributeNames(), os, [&](StringAttr attr) { os << attr.getValue(); }, ",");
    os << '\n';
  }
}

/// Writes one of the JSON files of the plan in the IR file `path`.
static LogicalResult writePlan(const std::string &path, bool manifest, MLIRContext &context, llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  spmd::plan::ProgramOp program = module ? spmd::getProgram(*module) : spmd::plan::ProgramOp();
  if (!program || failed(spmd::checkIterations(program)))
    return failure();
  FailureOr<spmd::runtime::Plan> plan = spmd::translatePlan(program);
  if (failed(plan))
    return failure();
  std::string text = spmd::runtime::writePlan(*plan);
  if (!manifest)
    return os << text, success();
  FailureOr<spmd::runtime::Manifest> described = spmd::translateManifest(*module, program, *plan, {});
  if (failed(described))
    return failure();
  described->programs.front().hash = spmd::runtime::formatHash(spmd::runtime::hashBytes(text));
  return os << spmd::runtime::writeManifest(*described), success();
}

/// Writes the step of a StableHLO file as the package NAME.step; tensors beside its step.json stay.
static LogicalResult writePackage(const Options &options, MLIRContext &context) {
  std::string text;
  if (!spmd::importStableHlo(options.importStableHlo, options.roles, &context, &text))
    return failure();
  std::string folder = llvm::StringRef(options.output).rtrim('/').str();
  if (std::error_code problem = llvm::sys::fs::create_directories(folder)) {
    llvm::errs() << "error: cannot create folder '" << folder << "': " << problem.message() << '\n';
    return failure();
  }
  auto file = spmd::runtime::AtomicFile::create(folder + "/step.json");
  spmd::runtime::Status status = file ? spmd::runtime::Status::success() : file.error();
  if (status.ok()) {
    file->write(text.data(), text.size());
    status = file->commit();
  }
  if (!status.ok())
    llvm::errs() << "error: " << status.message << '\n';
  return success(status.ok());
}

int main(int argc, char **argv) {
  spmd::explainCrashes(argc, argv);
  llvm::InitLLVM init(argc, argv);
  Options options;
  registerAsmPrinterCLOptions();
  llvm::cl::ParseCommandLineOptions(argc, argv, "spmd translation driver\n");
  int actions = options.printSchemas;
  for (auto *path : {&options.importStep, &options.importStableHlo, &options.planToJson, &options.planToManifest})
    actions += !path->empty();
  if (actions != 1) {
    llvm::errs() << "error: give one of --import-step=PATH, --import-stablehlo=FILE, --plan-to-json=FILE, "
                    "--plan-to-manifest=FILE and --print-aten-schemas\n";
    return 2;
  }
  if (options.importStableHlo.empty() != options.roles.empty()) {
    llvm::errs() << "error: --import-stablehlo=FILE and --roles=FILE go together: the roles say which arguments are "
                    "parameters, state and batches (docs/stablehlo.md)\n";
    return 2;
  }

  DialectRegistry registry;
  spmd::registerAllDialects(registry);
  if (std::string problem = spmd::loadDialectPlugins(options.plugins, registry); !problem.empty()) {
    llvm::errs() << "error: " << problem << '\n';
    return 2;
  }
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);

  std::string problem;
  if (llvm::StringRef(options.output).rtrim('/').ends_with(".step")) {
    if (!options.importStableHlo.empty())
      return succeeded(writePackage(options, context)) ? 0 : 2;
    llvm::errs() << "error: -o NAME.step is for --import-stablehlo=FILE\n";
    return 2;
  }
  auto file = openOutputFile(options.output, &problem);
  if (!file) {
    llvm::errs() << "error: " << problem << '\n';
    return 2;
  }
  if (options.printSchemas) {
    printSchemas(context, file->os());
  } else if (options.importStep.empty() && options.importStableHlo.empty()) {
    bool manifest = options.planToJson.empty();
    if (failed(writePlan(manifest ? options.planToManifest : options.planToJson, manifest, context, file->os())))
      return 2;
  } else {
    OwningOpRef<ModuleOp> module =
        options.importStep.empty() ? spmd::importStableHlo(options.importStableHlo, options.roles, &context)
        : options.iterations       ? spmd::importIterations(options.importStep, options.iterations, &context)
                                   : spmd::importStep(options.importStep, &context);
    if (!module)
      return 2;
    OpPrintingFlags flags;
    flags.enableDebugInfo(!options.noLocations);
    module->print(file->os(), flags);
    file->os() << '\n';
  }
  file->keep();
  return 0;
}
