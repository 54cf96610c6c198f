//===- MutateIR.cpp - Are broken programs refused? ------------------------===//
//
// spmd-mutate-ir PROGRAM.mlir [--count=N] [--seed=S] [--class=NAME]: makes mistakes in a partitioned or scheduled step
// that its verifier accepts, and says of each whether the verifier refuses it, whether it is harmless (the interpreter
// gives the same bits for all ranks, and must for a reason that is named), or whether it gets through. Exit code 1 if
// any gets through.
//
//===----------------------------------------------------------------------===//

#include "MutateProgram.h"
#include "Mutation.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "spmd/InitAll.h"
#include "spmd/Interpreter/Compare.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::fuzz;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<program.mlir>"), cl::Required);
static cl::opt<int64_t> count("count", cl::desc("mutants to make (default: all)"), cl::init(-1));
static cl::opt<uint64_t> seed("seed", cl::desc("which, if not all"), cl::init(0));
static cl::opt<std::string> onlyClass("class", cl::desc("of this class only"));
static cl::opt<bool> verbose("verbose", cl::desc("one line for every mutant, with the verifier's message"));

namespace {

enum class Outcome { refused, same, survived };

class Judge {
public:
  explicit Judge(ModuleOp module) : module(module), context(module.getContext()) {
    bool isScheduled = false;
    module.walk([&](WaitOp) { isScheduled = true; });
    verifier = isScheduled ? "spmd-verify-schedule" : "spmd-verify-partition";
  }

  bool accepts(ModuleOp program, std::string *message = nullptr) {
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      if (message && message->empty())
        *message = diagnostic.str();
      return success();
    });
    if (failed(verify(program)))
      return false;
    PassManager pm(context);
    auto error = [](const Twine &) { return failure(); };
    return succeeded(PassInfo::lookup(verifier)->addToPipeline(pm, "", error)) && succeeded(pm.run(program));
  }

  /// True if two steps from random state give the same bits.
  bool isSame(ModuleOp program, std::string &message) {
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      if (message.empty())
        message = diagnostic.str();
      return success();
    });
    interp::Failure failure;
    if (!inputs) {
      FailureOr<interp::Inputs> made = interp::makeRandomInputs(getStep(module), /*numSteps=*/2, /*seed=*/1);
      if (failed(made))
        return false;
      inputs = std::move(*made);
      FailureOr<interp::Results> results = interpret(module, *inputs, {interp::Precision::program}, failure);
      if (failed(results))
        return false;
      expected = std::move(*results);
    }
    FailureOr<interp::Results> results = interpret(program, *inputs, {interp::Precision::program}, failure);
    if (failed(results))
      return false;
    auto differences = interp::compareResults(program, *results, *expected, {}, 0);
    if (failed(differences))
      return false;
    for (const auto &[kind, difference] : *differences)
      if (difference.largest != 0) {
        message = kind + " differ";
        return false;
      }
    return true;
  }

private:
  ModuleOp module;
  MLIRContext *context;
  std::string verifier;
  std::optional<interp::Inputs> inputs;
  std::optional<interp::Results> expected;
};

/// `number` mutants, of every class alike as far as it has as many.
std::vector<Mutant> choose(std::vector<Mutant> all, int64_t number, Random &random) {
  if (number < 0 || number >= static_cast<int64_t>(all.size()))
    return all;
  llvm::MapVector<llvm::StringRef, std::vector<size_t>> classes;
  for (size_t i = 0; i != all.size(); ++i)
    classes[all[i].className].push_back(i);
  std::vector<Mutant> chosen;
  while (static_cast<int64_t>(chosen.size()) != number)
    for (auto &[name, members] : classes) {
      if (members.empty() || static_cast<int64_t>(chosen.size()) == number)
        continue;
      size_t at = random.below(members.size());
      chosen.push_back(all[members[at]]);
      members.erase(members.begin() + at);
    }
  return chosen;
}

} // namespace

static int run(MLIRContext &context) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, &context);
  func::FuncOp step = module ? getStep(*module) : func::FuncOp();
  if (!step)
    return 2;
  Judge judge(*module);
  std::string message;
  if (!judge.accepts(*module, &message)) {
    llvm::errs() << "the program itself is refused: " << message << "\n";
    return 2;
  }
  std::vector<Mutant> mutants = findMutants(step);
  if (!onlyClass.empty())
    llvm::erase_if(mutants, [](const Mutant &mutant) { return mutant.className != onlyClass; });
  Random random(seed);
  struct Count {
    int64_t refused = 0, harmless = 0, survived = 0;
  };
  llvm::MapVector<std::string, Count, std::map<std::string, unsigned>> counts;
  Count total;
  for (const Mutant &mutant : choose(std::move(mutants), count, random)) {
    OwningOpRef<ModuleOp> clone = module->clone();
    mutant.apply(getStep(*clone));
    message.clear();
    Count &here = counts[mutant.className];
    if (!judge.accepts(*clone, &message)) {
      ++here.refused;
      ++total.refused;
      if (verbose)
        llvm::outs() << "refused  " << mutant.className << ", " << mutant.what << ": " << message << "\n";
    } else if (std::string reason = getHarmlessReason(mutant); judge.isSame(*clone, message) && !reason.empty()) {
      ++here.harmless;
      ++total.harmless;
      llvm::outs() << "harmless " << mutant.className << ", " << mutant.what << ": the same bits; " << reason << "\n";
    } else {
      if (message.empty())
        message = "the same bits, for no reason that is known";
      ++here.survived;
      ++total.survived;
      llvm::outs() << "SURVIVED " << mutant.className << ", " << mutant.what << ": " << message << "\n";
    }
  }
  for (const auto &[name, each] : counts)
    llvm::outs() << name << ": " << each.refused << " refused, " << each.harmless << " harmless, " << each.survived
                 << " survived\n";
  llvm::outs() << "mutants: " << total.refused << " refused, " << total.harmless << " harmless, " << total.survived
               << " survived\n";
  return total.survived == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "makes mistakes in a rank's program and says which the verifier refuses\n");
  DialectRegistry registry;
  spmd::registerAllDialects(registry);
  spmd::registerAllPasses();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  return run(context);
}
