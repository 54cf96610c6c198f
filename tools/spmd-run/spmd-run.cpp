//===- spmd-run.cpp - Trains an artifact on its recorded batches ----------===//
//
// Exit codes: 0 done, 1 wrong result, 2 usage or input, 3 failure while
// running.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "CheckFinite.h"
#include "Processes.h"
#include "Reference.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Host/HostBackend.h"
#include "spmd/Runtime/Train/Trainer.h"
#include "spmd/Version.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <unistd.h>

using namespace spmd::runtime;

namespace {
struct Arguments {
  std::string artifact;
  int64_t steps = 0; ///< 0: as many as the reference has
  bool check = false, checkFinite = false, quiet = false;
  Tolerances tolerances;
  std::string save;
  std::optional<int64_t> seed;
  std::string profile; ///< empty: none; "-": the table; else a file for the trace too
  TrainerOptions trainer;
  LaunchOptions launch;
  std::string logRanks = "0";
};
} // namespace

/// CLI11's own checks of numbers answer with the largest double.
static CLI::Validator number(bool mayBeZero) {
  return CLI::Validator(
      [mayBeZero](std::string &text) {
        double value;
        bool good = CLI::detail::lexical_cast(text, value) && (value > 0 || (mayBeZero && value == 0));
        return good ? ""
                    : "expected a number " + std::string(mayBeZero ? "of at least" : "above") + " 0, found " + text;
      },
      "");
}

/// Adds everything spmd-run understands to `app`.
static void defineOptions(CLI::App &app, Arguments &arguments) {
  app.set_version_flag("--version", "spmd-run " SPMD_VERSION ", " SPMD_BUILD);
  app.add_option("artifact", arguments.artifact, "folder made by spmd-compile")->required();
  app.add_option("--steps", arguments.steps, "steps to train (default: one per recorded batch)")
      ->check(number(/*mayBeZero=*/false));
  app.add_flag("--check", arguments.check,
               "compare losses and final parameters with the recorded ones of "
               "eager PyTorch");
  app.add_flag("--check-finite", arguments.checkFinite,
               "stop after the first step whose loss, outputs, parameters or optimizer state have an infinity or a "
               "not-a-number, and name it");
  app.add_option("--rtol-loss", arguments.tolerances.loss,
                 "tolerance of relative loss differences (default 1e-4, or 2 epsilons of a coarser type than f32)")
      ->check(number(/*mayBeZero=*/true));
  app.add_option("--rtol", arguments.tolerances.parameters,
                 "tolerance of |a-b|/|b| of each parameter (default 1e-3, or 8 epsilons of a coarser type than f32)")
      ->check(number(/*mayBeZero=*/true));
  app.add_option("--save", arguments.save, "write the final parameters and buffers, without optimizer state, to this safetensors file");
  app.add_option("--weights", arguments.trainer.weights, "start from this safetensors file (default: the artifact's)");
  app.add_option("--seed", arguments.seed,
                 "seed of random numbers such as dropout (default: the captured one, or that of --weights)");
  app.add_option("--threads", arguments.trainer.threads, "threads of all ranks together (default: one per core)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--ranks", arguments.trainer.ranks, "must be what the artifact was compiled for")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--timeout", arguments.trainer.timeoutSeconds,
                 "seconds a rank waits for the others in a collective "
                 "(default 60)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--cpu", arguments.trainer.device.cpu,
                 "kernels to use, such as x86-64-v3 (default: the best that "
                 "this machine runs)");
  app.add_flag("--profile{-}", arguments.profile,
               "print where the time goes, command by command; with =FILE.json also write a trace for "
               "ui.perfetto.dev");
  app.add_option("--emulation", arguments.trainer.device.emulation,
                 "how kernels of an emulated GPU run: plain or checked, forward, reverse, random or warp-greedy, and "
                 "the seed of random (default checked,forward)");
  app.add_option("--launcher", arguments.launch.launcher,
                 "whose variables say which of several processes this is: torchrun, mpirun, mpiexec, srun, environment "
                 "or none (default: whoever started it)");
  app.add_option("--rank", arguments.launch.rank, "which process this is, with --world-size");
  app.add_option("--world-size", arguments.launch.world, "how many processes there are");
  app.add_option("--address", arguments.launch.address, "HOST:PORT where the processes meet; rank 0 listens there");
  app.add_option("--log-ranks", arguments.logRanks,
                 "which processes print, by rank: 0,3 or all (default 0); errors are always printed");
  app.add_flag("--quiet", arguments.quiet, "no line per step");
  app.add_option("--inject-fault", arguments.trainer.fault,
                 "for tests: exit:RANK:COMMAND, stall:RANK:COMMAND or "
                 "skip:RANK:COMMAND");
}

/// The process of rank 0 says what went wrong anywhere, the others what went wrong in them.
static bool saysAll = true;

static int fail(const Status &status) {
  std::fflush(stdout);
  if (status.isElsewhere && !saysAll)
    return static_cast<int>(status.code);
  std::fprintf(stderr, "spmd-run: error: %s\n", status.message.c_str());
  // Collectives already say where they come from.
  if (!status.location.empty() && status.message.find(status.location) == std::string::npos)
    std::fprintf(stderr, "  at %s\n", status.location.c_str());
  return static_cast<int>(status.code);
}

static void warn(const std::string &text) {
  std::fflush(stdout);
  std::fprintf(stderr, "spmd-run: warning: %s\n", text.c_str());
}

/// What a run from the saved file begins anew.
static void warnOfUnsaved(const Trainer &trainer, const std::string &path) {
  std::string kinds;
  for (const std::string &kind : trainer.unsavedState())
    kinds += (kinds.empty() ? "" : ", ") + kind;
  if (!kinds.empty())
    warn("'" + path + "' has parameters and buffers only, not " + kinds +
         ": training from it starts these anew; in Python, save_parameters(path, with_optimizer=True) saves them");
}

/// Tokens (or rows, when the first input holds no ids) of a global batch.
static int64_t itemsPerStep(const Manifest &manifest, const char *&unit) {
  unit = "rows";
  if (manifest.batch.empty() || manifest.batch[0].shape.empty())
    return 1;
  const BatchInput &first = manifest.batch[0];
  bool isIds = first.dtype == DType::I64 || first.dtype == DType::I32;
  if (!isIds || first.shape.size() < 2)
    return first.shape[0];
  unit = "tokens";
  return first.shape[0] * first.shape[1];
}

static void printCollectives(const Plan &plan) {
  struct Total {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Total> totals;
  for (const Command &command : plan.commands)
    if (command.isCollective()) {
      Total &total = totals[nameOf(command.kind)];
      ++total.count;
      total.bytes += command.sentBytes();
    }
  std::printf("collectives per step, bytes each rank contributes:%s\n", totals.empty() ? " none" : "");
  std::vector<std::vector<std::string>> rows;
  for (const auto &[name, total] : totals)
    rows.push_back({name, formatCount(total.count), formatCount(total.bytes) + " bytes"});
  std::fputs(formatTable(rows).c_str(), stdout);
}

static void printHeader(const Trainer &trainer) {
  const Manifest &manifest = trainer.manifest();
  std::printf("%s: %s ranks, %s threads, %s kernels, %s, policy %s\n", manifest.step.c_str(),
              formatCount(manifest.ranks).c_str(), formatCount(trainer.threads()).c_str(),
              trainer.device().kernels().c_str(), manifest.mode.c_str(), manifest.policy.c_str());
}

/// What trains one artifact, and what came out.
namespace {
struct Run {
  std::vector<double> losses;
  double seconds = 0; ///< of all steps but the first, which warms up
};
} // namespace

static Status train(const Arguments &arguments, int64_t steps, const Reference &reference, Trainer &trainer, Run &run) {
  const std::vector<Output> &outputs = trainer.manifest().outputs;
  auto lossOutput = std::find_if(outputs.begin(), outputs.end(), [](const Output &o) { return o.kind == "loss"; });
  if (lossOutput == outputs.end() || numElements(lossOutput->shape) != 1)
    return Status::badInput("the artifact has no scalar loss output");
  auto lossIndex = static_cast<size_t>(lossOutput - outputs.begin());
  bool progress = ::isatty(STDERR_FILENO) && (arguments.quiet || !::isatty(STDOUT_FILENO));

  if (!arguments.quiet)
    std::printf("%6s  %12s  %12s  %10s\n", "step", "loss", "eager", "difference");
  if (arguments.checkFinite)
    if (Status status = checkFinite(trainer, "before the first step", /*withOutputs=*/false); !status.ok())
      return status;
  for (int64_t step = 0; step < steps; ++step) {
    int64_t recorded = step % reference.steps();
    if (Status status = reference.applyHyper(recorded, trainer); !status.ok())
      return status;
    std::vector<HostTensor> batch = reference.batch(recorded);
    auto begin = std::chrono::steady_clock::now();
    if (Status status = trainer.step(batch.data(), batch.size()); !status.ok())
      return status;
    if (step > 0 || steps == 1)
      run.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    alignas(8) char value[8];
    if (Status status = trainer.readOutput(lossIndex, value, static_cast<size_t>(sizeOf(lossOutput->dtype)));
        !status.ok())
      return status;
    double loss = loadAsDouble(value, lossOutput->dtype, 0);
    run.losses.push_back(loss);
    // Past the recorded steps batches repeat, but eager losses do not.
    std::optional<double> eager;
    if (step < reference.steps())
      eager = reference.loss(step);
    if (!arguments.quiet && eager)
      std::printf("%6lld  %12.6f  %12.6f  %10.1e\n", static_cast<long long>(step), loss, *eager, loss - *eager);
    else if (!arguments.quiet)
      std::printf("%6lld  %12.6f  %12s  %10s\n", static_cast<long long>(step), loss, "-", "-");
    if (arguments.checkFinite)
      if (Status status = checkFinite(trainer, "after step " + std::to_string(step), /*withOutputs=*/true); !status.ok())
        return status;
    if (progress)
      std::fprintf(stderr, "\rstep %lld of %lld", static_cast<long long>(step + 1), static_cast<long long>(steps));
  }
  if (progress)
    std::fputs("\r\033[K", stderr);
  return Status::success();
}

static void printSummary(const Trainer &trainer, const Run &run) {
  const char *unit;
  int64_t items = itemsPerStep(trainer.manifest(), unit);
  auto timed = std::max<size_t>(1, run.losses.size() - 1);
  double perSecond = static_cast<double>(items) * static_cast<double>(timed) / run.seconds;
  std::printf("%s %s/s\n", formatCount(std::llround(perSecond)).c_str(), unit);
  std::printf("arena: %s bytes per rank\n", formatCount(trainer.manifest().arenaBytes).c_str());
  printCollectives(trainer.artifact().plan);
  std::fputs(trainer.device().formatRun().c_str(), stdout);
}

static void printNextSteps(const Arguments &arguments) {
  std::printf("try next:\n");
  if (!arguments.check)
    std::printf("  spmd-run %s --check          compare with eager PyTorch\n", arguments.artifact.c_str());
  if (arguments.save.empty())
    std::printf("  spmd-run %s --save=final.safetensors\n", arguments.artifact.c_str());
  std::printf("  spmd-report %s               memory and collectives\n", arguments.artifact.c_str());
}

static Status setSeed(Trainer &trainer, const Arguments &arguments) {
  if (!arguments.seed)
    return Status::success();
  const StateTensor *seed = trainer.state().find("rng", "seed");
  if (!seed)
    return Status::badInput("the artifact draws no random numbers: --seed has nothing to set");
  int64_t before = 0;
  if (Status status = trainer.readTensor("rng", "seed", &before, sizeof before); !status.ok())
    return status;
  if (arguments.check && before != *arguments.seed)
    return Status::badInput("--check compares with eager PyTorch's run, which drew with seed " +
                            std::to_string(before) + "; leave out --seed");
  return trainer.writeTensor("rng", "seed", &*arguments.seed, sizeof(int64_t));
}

/// A path that cannot be written is better known before the training. Leaves nothing.
static Status checkWritable(const std::string &path) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  return file ? Status::success() : file.error();
}

static int runTool(Arguments arguments) {
  bool writesTrace = !arguments.profile.empty() && arguments.profile != "-";
  Expected<Launch> launch = enterJob(arguments.launch, arguments.logRanks, arguments.trainer);
  if (!launch)
    return fail(launch.error());
  saysAll = launch->rank == 0;
  if (writesTrace && !launch->isAlone())
    return fail(Status::badInput("--profile=FILE shows the ranks of one process, and there are " +
                                 std::to_string(launch->world) + "; trace a run of one process, or use --profile"));
  for (const std::string &path : {writesTrace ? arguments.profile : "", arguments.save})
    if (!path.empty() && launch->rank == 0)
      if (Status status = checkWritable(path); !status.ok())
        return fail(status);
  arguments.trainer.profile = !arguments.profile.empty();
  Expected<std::unique_ptr<Trainer>> loaded = Trainer::load(arguments.artifact, arguments.trainer);
  if (!loaded)
    return fail(loaded.error());
  Trainer &trainer = **loaded;
  for (const std::string &text : trainer.warnings())
    warn(text);
  if (Status status = setSeed(trainer, arguments); !status.ok())
    return fail(status);
  Expected<Reference> reference =
      Reference::open(trainer.artifact().pathOf("reference.safetensors"), trainer.manifest());
  if (!reference)
    return fail(reference.error());
  int64_t steps = arguments.steps ? arguments.steps : reference->steps();
  if (arguments.check && steps > reference->steps())
    return fail({StatusCode::WrongResult,
                 "cannot check " + std::to_string(steps) + " steps: the reference has batches for " +
                     std::to_string(reference->steps()),
                 -1, -1, ""});

  printHeader(trainer);
  Run run;
  if (Status status = train(arguments, steps, *reference, trainer, run); !status.ok())
    return fail(status);
  printSummary(trainer, run);
  if (const Profile *profile = trainer.profile()) {
    std::fputs(profile->formatSummary().c_str(), stdout);
    if (writesTrace) {
      if (Status status = writeFile(arguments.profile, profile->formatTrace()); !status.ok())
        return fail(status);
      std::printf("wrote %s; open it in ui.perfetto.dev\n", arguments.profile.c_str());
    }
  }
  if (!arguments.save.empty()) {
    if (Status status = trainer.save(arguments.save, false); !status.ok())
      return fail(status);
    std::printf("saved %s\n", arguments.save.c_str());
    warnOfUnsaved(trainer, arguments.save);
  }
  if (arguments.check)
    if (Status status = checkRun(trainer, *reference, run.losses, arguments.tolerances); !status.ok())
      return fail(status);
  printNextSteps(arguments);
  return 0;
}

int main(int argc, char **argv) {
  registerHost();
  CLI::App app("Trains an artifact on the batches recorded with it.", "spmd-run");
  Arguments arguments;
  try {
    defineOptions(app, arguments);
    app.parse(argc, argv);
    return runTool(arguments);
  } catch (const CLI::ParseError &problem) {
    // Help is no error; everything else is a mistake in the usage.
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const std::exception &problem) {
    return fail(Status::failed(problem.what()));
  }
}
