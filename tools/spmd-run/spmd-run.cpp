//===- spmd-run.cpp - Trains an artifact ----------------------------------===//
//
// Exit codes: 0 done, 1 wrong result, 2 usage or input, 3 failure while
// running.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Options.h"
#include "Processes.h"
#include "TrainingRun.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Cuda/CudaBackend.h"
#include "spmd/Runtime/Host/HostBackend.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

using namespace spmd::runtime;

/// The processes of rank 0 and of those that print say what went wrong anywhere, the others what went wrong in them.
static bool saysAll = true;

static int fail(const Status &status) {
  std::fflush(stdout);
  if (status.isElsewhere && !saysAll)
    return status.exitCode();
  std::fprintf(stderr, "spmd-run: error: %s\n", status.message.c_str());
  // Collectives already say where they come from.
  if (!status.location.empty() && status.message.find(status.location) == std::string::npos)
    std::fprintf(stderr, "  at %s\n", status.location.c_str());
  return status.exitCode();
}

/// Of a step, with what the ranks of this process did.
static int fail(const Status &status, const Trainer &trainer) {
  int code = fail(status);
  std::string text = trainer.describeFlight();
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    std::fprintf(stderr, "  %s\n", text.substr(at, end - at).c_str());
  }
  return code;
}

static void warn(const std::string &text) {
  std::fflush(stdout);
  std::fprintf(stderr, "spmd-run: warning: %s\n", text.c_str());
}

static void printCollectives(const Plan &plan) {
  struct Total {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Total> totals;
  for (const Command &command : plan.commands)
    if (command.is<CollectiveCommand>()) {
      Total &total = totals[nameOf(command)];
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

static void printSummary(const Trainer &trainer, const TrainingRun &run) {
  const char *unit;
  (void)itemsPerStep(trainer.manifest(), unit);
  std::printf("%s %s/s\n", formatCount(std::llround(run.itemsPerSecond())).c_str(), unit);
  std::printf("arena: %s bytes per rank\n", formatCount(trainer.manifest().arenaBytes).c_str());
  printCollectives(trainer.artifact().plan);
  std::fputs(trainer.device().formatRun().c_str(), stdout);
}

static void printNextSteps(const Arguments &arguments, bool hasReference) {
  std::printf("try next:\n");
  if (!arguments.check && hasReference)
    std::printf("  spmd-run %s --check          compare with eager PyTorch\n", arguments.artifact.c_str());
  if (arguments.save.empty())
    std::printf("  spmd-run %s --save=final.safetensors\n", arguments.artifact.c_str());
  std::printf("  spmd-report %s               memory and collectives\n", arguments.artifact.c_str());
}

static Status setSeed(Trainer &trainer, const Arguments &arguments) {
  if (!arguments.seed)
    return Status::success();
  const StateTensor *seed = trainer.state().find("rng", "seed");
  if (!seed && !arguments.data.files.empty())
    return Status::success(); // It orders the data.
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
  if (Status status = checkOptions(arguments); !status.ok())
    return fail(status);
  bool isLogged = true;
  Expected<Launch> launch = enterJob(arguments.launch, arguments.logRanks, arguments.trainer, isLogged);
  if (!launch)
    return fail(launch.error());
  saysAll = isLogged || launch->rank == 0;
  for (const std::string &path : {writesTrace ? arguments.profile : "", arguments.savesFile() ? arguments.save : ""})
    if (!path.empty() && launch->rank == 0)
      if (Status status = checkWritable(path); !status.ok())
        return fail(status);
  arguments.trainer.isLoadedNext = !arguments.resume.empty();
  arguments.trainer.profile = !arguments.profile.empty();
  arguments.trainer.checkFinite = arguments.checkFinite;
  // A data set reads no others; a resumed run may have one.
  if (!arguments.data.files.empty() || !arguments.resume.empty())
    arguments.trainer.batch = BatchOf::JobRows;
  Expected<std::unique_ptr<Trainer>> loaded = Trainer::load(arguments.artifact, arguments.trainer);
  if (!loaded)
    return fail(loaded.error());
  Trainer &trainer = **loaded;
  for (const std::string &text : trainer.warnings())
    warn(text);
  std::optional<Checkpoint> resumed;
  if (!arguments.resume.empty()) {
    Expected<Checkpoint> restored = CheckpointFolder::restore(arguments.resume, trainer, arguments.strict);
    if (!restored)
      return fail(restored.error());
    for (const std::string &text : restored->notices)
      warn(text);
    resumed = *restored;
  }
  if (Status status = setSeed(trainer, arguments); !status.ok())
    return fail(status);
  Expected<TrainingRun> run = TrainingRun::create(arguments, resumed ? &*resumed : nullptr, trainer);
  if (!run)
    return fail(run.error());

  printHeader(trainer);
  if (std::string text = run->describeData(); !text.empty())
    std::printf("data: %s\n", text.c_str());
  if (resumed) {
    std::printf("resumed %s: %s steps done\n", resumed->folder.c_str(), formatCount(resumed->run.step).c_str());
    if (resumed->run.step >= run->numSteps())
      return fail(Status::badInput("the run has taken " + formatCount(resumed->run.step) + " steps already; --steps=" +
                                   std::to_string(run->numSteps()) + " counts them"));
    trainer.setStepNumber(resumed->run.step);
  }
  if (Status status = run->train(); !status.ok())
    return fail(status, trainer);
  printSummary(trainer, *run);
  if (const Profile *profile = trainer.profile()) {
    std::fputs(profile->formatSummary().c_str(), stdout);
    if (writesTrace) {
      Expected<std::vector<std::string>> events = trainer.gatherText(profile->formatEvents());
      if (!events)
        return fail(events.error());
      if (launch->rank == 0)
        if (Status status = writeFile(arguments.profile, joinTrace(*events, trainer.readsAlone())); !status.ok())
          return fail(status);
      std::printf("wrote %s; open it in ui.perfetto.dev\n", arguments.profile.c_str());
    }
  }
  if (arguments.savesFile()) {
    if (Status status = trainer.save(arguments.save, /*withOptimizer=*/true); !status.ok())
      return fail(status);
    std::printf("saved %s\n", arguments.save.c_str());
  }
  if (arguments.check)
    if (Status status = checkRun(trainer, *run->recorded(), run->losses(), arguments.tolerances); !status.ok())
      return fail(status);
  printNextSteps(arguments, run->recorded().has_value());
  return 0;
}

int main(int argc, char **argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0); // Whoever reads a log sees each step when it is done.
  registerHost();
  registerCuda();
  CLI::App app("Trains an artifact, on data or on the batches recorded with it.", "spmd-run");
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
