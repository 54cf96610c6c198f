//===- BackgroundSave.cpp -------------------------------------------------===//

#include "spmd/Runtime/Run/BackgroundSave.h"

#include <chrono>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace spmd::runtime;

/// Behind the threads that compute, where there are no more cores than these: of this thread alone.
static void stepBack() { (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 10); }

BackgroundSave::BackgroundSave(const Trainer &trainer)
    : trainer(trainer), snapshot(trainer.ranks(), trainer.manifest().stateBytes) {}

BackgroundSave::~BackgroundSave() {
  if (isPending() && trainer.ranks().areAll())
    (void)finish(/*waits=*/true);
}

Status BackgroundSave::start(const CheckpointFolder &target, RunState run, CheckpointOptions options) {
  if (Expected<std::string> before = finish(/*waits=*/true); !before)
    return before.error();
  if (options.kind == CheckpointKind::Full && !trainer.ranks().areAll())
    return Status::badInput(
        "a checkpoint that is written beside the run by several processes has a file for each rank\n"
        "  hint: kind sharded (spmd-run: --save-kind=sharded); or wait for it (--save-mode=wait)");
  if (Status status = trainer.gatherSums(); !status.ok())
    return status;
  if (Status status = trainer.agreeOn(trainer.takeSnapshot(snapshot)); !status.ok())
    return status;
  options.from = &snapshot;
  Expected<CheckpointFolder::Saving> begun = target.begin(trainer, std::move(run), std::move(options));
  if (!begun)
    return begun.error();
  folder = target;
  saving = std::move(*begun);
  writing = std::async(std::launch::async, [this] {
    stepBack();
    return CheckpointFolder::write(trainer, saving);
  });
  return Status::success();
}

Expected<std::string> BackgroundSave::finish(bool waits) {
  if (!isPending())
    return std::string();
  if (!waits) {
    bool isWritten = writing.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    Expected<std::vector<std::string>> all = trainer.gatherText(isWritten ? "written" : "");
    if (!all)
      return all.error();
    for (const std::string &one : *all)
      if (one.empty())
        return std::string();
  }
  return folder->complete(trainer, saving, writing.get());
}
