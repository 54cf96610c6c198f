//===- RunMutants.cpp - No broken plan computes something else ------------===//
//
//     spmd-run-mutants ARTIFACT... --work=DIR [--count=N] [--first=I] [--seed=S] [--steps=3] [--verbose]
//
// Makes N mutants (tools/spmd-mutate), in turn of each artifact, and of its first step where it has one of its own. A
// mutant must be refused when it is loaded, or train to the same bits of every output and every state; then its class
// must say why that may be. Everything else is an escape: exit code 1, and the command that makes the mutant again.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Train/Trainer.h"
#include "tools/spmd-mutate/Mutant.h"
#include "tools/spmd-run/Reference.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spmd::runtime;
using spmd::mutation::MutationClass;
namespace fs = std::filesystem;

namespace {

struct Arguments {
  std::vector<std::string> artifacts;
  std::string work, className;
  int64_t count = 100, first = 0, steps = 3;
  uint64_t seed = 1;
  bool verbose = false;
};

enum class Verdict : int { refused, same, escaped, none };

/// What a child tells its parent, in shared memory.
struct Board {
  Verdict verdict;
  size_t mutationClass; ///< its position in the list
  char done[400], message[600];
};

/// A program that is mutated.
struct Subject {
  std::string artifact;
  size_t program = 0; ///< its place in the manifest
  uint64_t bits = 0;  ///< of what the artifact as compiled computes
};

void note(char (&to)[400], const std::string &text) { std::snprintf(to, sizeof to, "%s", text.c_str()); }
void note(char (&to)[600], const std::string &text) { std::snprintf(to, sizeof to, "%s", text.c_str()); }

/// Hash of all outputs of every step and of the state after the last.
Expected<uint64_t> trainedBits(Trainer &trainer, int64_t steps) {
  Expected<Reference> reference =
      Reference::open(trainer.artifact().pathOf("reference.safetensors"), trainer.manifest());
  if (!reference)
    return reference.error();
  std::string bits;
  auto append = [&](int64_t bytes, auto read) -> Status {
    size_t at = bits.size();
    bits.resize(at + static_cast<size_t>(bytes));
    return read(bits.data() + at, static_cast<size_t>(bytes));
  };
  for (int64_t step = 0; step < steps; ++step) {
    int64_t recorded = step % reference->steps();
    if (Status status = reference->applyHyper(recorded, trainer); !status.ok())
      return status;
    std::vector<HostTensor> batch = reference->batch(recorded);
    if (Status status = trainer.step(batch.data(), batch.size()); !status.ok())
      return status;
    for (size_t i = 0; i < trainer.manifest().outputs.size(); ++i) {
      const Output &output = trainer.manifest().outputs[i];
      Status status = append(numElements(output.shape) * sizeOf(output.dtype),
                             [&](char *to, size_t bytes) { return trainer.readOutput(i, to, bytes); });
      if (!status.ok())
        return status;
    }
  }
  for (const StateTensor &tensor : trainer.state().tensors()) {
    Status status = append(tensor.bytes(), [&](char *to, size_t bytes) {
      return trainer.readTensor(tensor.state, tensor.name, to, bytes);
    });
    if (!status.ok())
      return status;
  }
  return hashBytes(bits);
}

Expected<std::unique_ptr<Trainer>> loadArtifactAt(const std::string &path) {
  TrainerOptions options;
  options.threads = 2;
  options.timeoutSeconds = 5;
  return Trainer::load(path, options);
}

/// Links to everything of the artifact that the mutant has unchanged.
void linkUnchanged(const fs::path &from, const fs::path &to) {
  fs::create_directories(to);
  for (const fs::directory_entry &entry : fs::directory_iterator(from))
    if (entry.is_directory())
      linkUnchanged(entry.path(), to / entry.path().filename());
    else
      fs::create_symlink(fs::absolute(entry.path()), to / entry.path().filename());
}

/// In a child process: makes the mutant, loads it, trains it.
void judge(const Arguments &arguments, const Subject &subject, uint64_t seed, Board &board) {
  std::string folder = arguments.work + "/mutant";
  fs::remove_all(folder);
  linkUnchanged(subject.artifact, folder);
  const char *plan = subject.program ? "/first_step.plan.json" : "/train_step.plan.json";
  for (const char *file : {"/manifest.json", plan})
    fs::remove(folder + file);
  Expected<spmd::mutation::Mutant> mutant =
      spmd::mutation::writeMutant(subject.artifact, folder, subject.program, arguments.className, seed);
  if (!mutant) {
    board.verdict = Verdict::none;
    return note(board.message, mutant.error().message);
  }
  board.mutationClass = static_cast<size_t>(mutant->mutationClass - spmd::mutation::mutationClasses().data());
  note(board.done, mutant->done);
  note(board.message, "died");
  board.verdict = Verdict::escaped;
  Expected<std::unique_ptr<Trainer>> trainer = loadArtifactAt(folder);
  if (!trainer) {
    std::string message = trainer.error().message;
    // The file says nothing that the command does not.
    note(board.message, message.substr(std::min(message.size(), message.find("': ") + 3)));
    board.verdict = message.empty() ? Verdict::escaped : Verdict::refused;
    return;
  }
  Expected<uint64_t> bits = trainedBits(**trainer, arguments.steps);
  if (!bits)
    return note(board.message, "fails while it runs: " + bits.error().message);
  bool same = *bits == subject.bits;
  board.verdict = same && mutant->mutationClass->harmless ? Verdict::same : Verdict::escaped;
  note(board.message,
       same ? mutant->mutationClass->harmless ? "" : "runs to the same bits, but its class has no reason for it"
            : "computes something else");
}

void judgeInChild(const Arguments &arguments, const Subject &subject, uint64_t seed, Board &board) {
  std::memset(static_cast<void *>(&board), 0, sizeof board);
  std::fflush(stdout);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    judge(arguments, subject, seed, board);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    board.verdict = Verdict::escaped;
    note(board.message, std::string("died: ") + ::strsignal(WTERMSIG(status)));
  }
}

Expected<std::vector<Subject>> findSubjects(const Arguments &arguments) {
  std::vector<Subject> subjects;
  for (const std::string &artifact : arguments.artifacts) {
    Expected<std::unique_ptr<Trainer>> trainer = loadArtifactAt(artifact);
    if (!trainer)
      return trainer.error();
    Expected<uint64_t> bits = trainedBits(**trainer, arguments.steps);
    if (!bits)
      return bits.error();
    for (size_t program = 0; program < (*trainer)->artifact().manifest.programs.size(); ++program)
      subjects.push_back({artifact, program, *bits});
  }
  return subjects;
}

/// "certificate rule 8", "/commands/3/k": what refused.
std::string ruleOf(const std::string &message) {
  size_t colon = message.find(": ");
  return message.rfind("certificate", 0) == 0 ? message.substr(0, colon) : "reader";
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Trains mutants of artifacts; none may compute something else.", "spmd-run-mutants");
  Arguments arguments;
  app.add_option("artifacts", arguments.artifacts)->required();
  app.add_option("--work", arguments.work, "folder for the mutants")->required();
  app.add_option("--class", arguments.className, "only this class");
  app.add_option("--count", arguments.count, "number of mutants");
  app.add_option("--first", arguments.first, "number of the first");
  app.add_option("--seed", arguments.seed, "another seed is another set of mutants");
  app.add_option("--steps", arguments.steps, "steps that each is trained");
  app.add_flag("--verbose", arguments.verbose, "a line per mutant");
  CLI11_PARSE(app, argc, argv);
  registerHost();

  fs::create_directories(arguments.work);
  Expected<std::vector<Subject>> subjects = findSubjects(arguments);
  if (!subjects) {
    std::fprintf(stderr, "spmd-run-mutants: error: %s\n", subjects.error().message.c_str());
    return 2;
  }
  void *shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 2;
  Board &board = *static_cast<Board *>(shared);

  int64_t made = 0, refused = 0, harmless = 0, escaped = 0;
  std::map<std::string, int64_t> rules, reasons;
  std::map<std::string, std::array<int64_t, 3>> classes;
  for (int64_t number = arguments.first; number < arguments.first + arguments.count; ++number) {
    const Subject &subject = (*subjects)[static_cast<size_t>(number) % subjects->size()];
    uint64_t seed = arguments.seed * 1000003 + static_cast<uint64_t>(number);
    judgeInChild(arguments, subject, seed, board);
    if (board.verdict == Verdict::none)
      continue;
    ++made;
    const MutationClass &mutationClass = spmd::mutation::mutationClasses()[board.mutationClass];
    const char *name = mutationClass.name;
    ++classes[name][static_cast<size_t>(board.verdict)];
    const char *word = "ESCAPED";
    if (board.verdict == Verdict::refused) {
      word = "refused";
      ++refused;
      ++rules[ruleOf(board.message)];
    } else if (board.verdict == Verdict::same) {
      word = "harmless";
      ++harmless;
      ++reasons[std::string(name) + ": " + mutationClass.harmless];
    } else {
      ++escaped;
    }
    if (!arguments.verbose && board.verdict != Verdict::escaped)
      continue;
    std::printf("%s %s: %s\n  %s\n  again: spmd-mutate %s%s --class=%s --seed=%llu -o mutant.spmd\n", word, name,
                board.done, board.message, subject.artifact.c_str(), subject.program ? " --first-step" : "", name,
                static_cast<unsigned long long>(seed));
  }
  fs::remove_all(arguments.work + "/mutant");

  std::vector<std::vector<std::string>> rows = {{"class", "refused", "harmless", "escaped"}};
  for (auto &[name, counts] : classes)
    rows.push_back({name, formatCount(counts[0]), formatCount(counts[1]), formatCount(counts[2])});
  std::fputs(formatTable(rows).c_str(), stdout);
  std::printf("refused by\n");
  for (auto &[rule, count] : rules)
    std::printf("%8lld %s\n", static_cast<long long>(count), rule.c_str());
  std::printf("harmless\n");
  for (auto &[reason, count] : reasons)
    std::printf("%8lld %s\n", static_cast<long long>(count), reason.c_str());
  std::printf("%lld mutants: %lld refused, %lld harmless, %lld escaped\n", static_cast<long long>(made),
              static_cast<long long>(refused), static_cast<long long>(harmless), static_cast<long long>(escaped));
  return escaped ? 1 : 0;
}
