//===- Options.cpp - The command line of spmd-run -------------------------===//

#include "Options.h"
#include "spmd/Runtime/Run/Schedule.h"
#include "spmd/Version.h"
#include "tools/Usage.h"

#include <cstdlib>

using namespace spmd;
using namespace spmd::runtime;

bool Arguments::savesFile() const {
  const std::string end = ".safetensors";
  return save.size() > end.size() && save.compare(save.size() - end.size(), end.size(), end) == 0;
}

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

void spmd::runtime::defineOptions(CLI::App &app, Arguments &arguments) {
  app.failure_message(explainUsage);
  app.set_version_flag("--version", "spmd-run " SPMD_VERSION ", " SPMD_BUILD);
  app.add_option("artifact", arguments.artifact, "folder made by spmd-compile")->required();
  app.add_option("--steps", arguments.steps,
                 "number of steps, including those before --resume (default: one per recorded batch; with --data one "
                 "epoch)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--data", arguments.data.files,
                 "training data: a token file of nanoGPT or llm.c, or INPUT=FILE,... with a .npy or safetensors file "
                 "for each input (default: the batches recorded with the step)");
  app.add_option("--order", arguments.data.order,
                 "order of the data: shuffled in each epoch, by --seed (default for tokens and samples), or "
                 "sequential (default for files of whole batches)")
      ->check(oneOf({"shuffled", "sequential"}));
  app.add_option("--token-dtype", arguments.data.tokenType,
                 "type of token files without a header: uint16 (default) or uint32")
      ->check(oneOf({"uint16", "uint32"}));
  app.add_option("--lr-schedule", arguments.schedule,
                 "learning rate by step, such as cosine:T_max=1000,eta_min=1e-5 or "
                 "sequential(warmup:total_iters=100;100;cosine:T_max=900): docs/training.md");
  app.add_option("--save-kind", arguments.saveKind,
                 "kind of checkpoints: full (default), one file that PyTorch loads; or sharded, a file for each rank")
      ->check(oneOf({"full", "sharded"}));
  app.add_option_function<std::string>(
         "--save-mode", [&](const std::string &text) { arguments.savesBeside = text == "beside"; },
         "wait (default): the run waits while a checkpoint is written; beside: it continues, and a copy of the state "
         "is written, whose size is printed")
      ->check(oneOf({"wait", "beside"}));
  app.add_option("--save-every", arguments.saveEvery, "steps between checkpoints (default: one at the end)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--keep", arguments.keep, "how many checkpoints to keep, the newest (default: all)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--resume", arguments.resume, "continue from the newest checkpoint in this folder");
  app.add_option_function<std::string>(
         "--strict", [&](const std::string &text) { arguments.strict = text == "on"; },
         "with --resume: on (default): missing and additional tensors of the checkpoint are errors; off: missing "
         "tensors keep their initial values, and additional ones are ignored")
      ->check(oneOf({"on", "off"}));
  app.add_option("--log", arguments.log, "also write each step to this file: NAME.jsonl or NAME.csv");
  app.add_option("--eval", arguments.evaluation, "artifact of a step that evaluates the same model");
  app.add_option("--val", arguments.validation, "data of the evaluation, as --data");
  app.add_option("--eval-every", arguments.evalEvery, "steps between evaluations (default: one at the end)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--eval-steps", arguments.evalSteps, "batches of an evaluation (default: all of --val)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--peak-flops", arguments.peakFlops,
                 "peak floating-point operations per second of all ranks together, to print the share that matrix "
                 "products reach (MFU)")
      ->check(number(/*mayBeZero=*/false));
  app.add_flag("--check", arguments.check,
               "compare losses and final parameters with the recorded ones of "
               "eager PyTorch");
  app.add_flag("--check-finite", arguments.checkFinite,
               "stop after the first step with an infinity or NaN in its loss, outputs, parameters or optimizer "
               "state, and print the commands that produced the first ones");
  app.add_option("--rtol-loss", arguments.tolerances.loss,
                 "tolerance of relative loss differences (default 1e-4, or 2 epsilons of a coarser type than f32)")
      ->check(number(/*mayBeZero=*/true));
  app.add_option("--rtol", arguments.tolerances.parameters,
                 "tolerance of |a-b|/|b| of each parameter (default 1e-3, or 8 epsilons of a coarser type than f32)")
      ->check(number(/*mayBeZero=*/true));
  app.add_option("--save", arguments.save, "NAME.safetensors: write parameters, buffers, optimizer state and "
                                           "counters at the end. Any other name is a folder of checkpoints for "
                                           "--resume");
  app.add_option("--weights", arguments.trainer.weights, "start from this safetensors file (default: the artifact's)");
  app.add_option("--seed", arguments.seed,
                 "seed of random numbers such as dropout (default: the captured one, or that of --weights), and of the order "
                 "of --data");
  app.add_option("--threads", arguments.trainer.threads, "threads of all ranks together (default: one per core)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--ranks", arguments.trainer.ranks, "number of ranks; must equal that of the artifact")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--timeout", arguments.trainer.timeoutSeconds,
                 "seconds a rank waits for the others in a collective "
                 "(default 60)")
      ->check(number(/*mayBeZero=*/false));
  app.add_option("--flight-record", arguments.trainer.flightRecord,
                 "folder: if a step fails, write the last actions of each rank to rank-N.json there");
  app.add_option("--cpu", arguments.trainer.device.cpu,
                 "kernels to use, such as x86-64-v3 (default: the best that "
                 "this machine runs)");
  app.add_flag("--profile{-}", arguments.profile,
               "print the time of each command; with =FILE.json also write a trace for ui.perfetto.dev");
  app.add_option_function<std::string>(
         "--graph", [&](const std::string &text) { arguments.trainer.device.graph = text == "on"; },
         "on GPUs: launch steps as one CUDA graph for each rank (on, the default), or command by command (off)")
      ->check(oneOf({"on", "off"}));
  app.add_option_function<std::string>(
      "--cuda-libraries", [](const std::string &folders) { ::setenv("SPMD_CUDA_LIBRARIES", folders.c_str(), 1); },
      "on GPUs: folders, separated by colons, that are searched first for CUDA's driver, cuBLASLt and NCCL (default: "
      "those of SPMD_CUDA_LIBRARIES)");
  app.add_option("--emulation", arguments.trainer.device.emulation,
                 "execution of emulated GPU kernels: plain or checked; forward, reverse, random or warp-greedy; the "
                 "seed of random (default checked,forward)");
  app.add_option("--launcher", arguments.launch.launcher,
                 "launcher whose environment variables identify this process: torchrun, mpirun, mpiexec, srun, "
                 "environment or none (default: detected)");
  app.add_option("--rank", arguments.launch.rank, "number of this process, with --world-size");
  app.add_option("--world-size", arguments.launch.world, "number of processes");
  app.add_option("--address", arguments.launch.address, "HOST:PORT where the processes meet; rank 0 listens there");
  app.add_option("--log-ranks", arguments.logRanks,
                 "ranks whose processes print: 0,3 or all (default 0); errors are always printed");
  app.add_flag("--quiet", arguments.quiet, "print no line per step");
  app.add_option("--inject-fault", arguments.trainer.fault,
                 "for tests: exit:RANK:COMMAND, stall:RANK:COMMAND or "
                 "skip:RANK:COMMAND");
}

Status spmd::runtime::checkOptions(const Arguments &a) {
  auto excludes = [](const std::string &one, const std::string &other) {
    return Status::badInput(one + " and " + other + " exclude each other");
  };
  auto needs = [](const std::string &one, const std::string &other) {
    return Status::badInput(one + " needs " + other);
  };
  if (a.check && !a.data.files.empty())
    return excludes("--check, which compares the recorded batches,", "--data");
  if (a.check && !a.schedule.empty())
    return excludes("--check, which compares with the recorded learning rates,", "--lr-schedule");
  if (!a.resume.empty() && !a.trainer.weights.empty())
    return excludes("--resume", "--weights");
  if (a.check && !a.resume.empty())
    return excludes("--check", "--resume");
  if (a.data.files.empty() && a.resume.empty() && !a.data.order.empty())
    return needs("--order", "--data");
  if (a.savesBeside && !a.savesCheckpoints())
    return needs("--save-mode=beside", "--save=FOLDER");
  if ((a.saveEvery || a.keep || !a.saveKind.empty()) && !a.savesCheckpoints())
    return needs(a.saveEvery ? "--save-every" : a.keep ? "--keep" : "--save-kind", "--save=FOLDER");
  if (!a.strict && a.resume.empty())
    return needs("--strict=off", "--resume");
  if (a.evaluation.empty() != a.validation.empty())
    return needs(a.evaluation.empty() ? "--val" : "--eval",
                 a.evaluation.empty() ? "--eval=ARTIFACT, a captured step that evaluates" : "--val=DATA");
  if (a.evaluation.empty() && (a.evalEvery || a.evalSteps))
    return needs(a.evalEvery ? "--eval-every" : "--eval-steps", "--eval=ARTIFACT");
  if (!a.schedule.empty())
    if (Expected<std::unique_ptr<Schedule>> schedule = parseSchedule(a.schedule); !schedule)
      return schedule.error();
  return Status::success();
}
