//===- CudaExecutor.cpp ---------------------------------------------------===//
//
// [Note: graphs] The first step is issued command by command, so that whatever
// libraries load or connect when they are first used is there. The second one is
// captured as a graph for each rank, collectives inside (two graphs where there are
// any, [Note: watched]), and from then on a step is the copies of its inputs and one
// launch.
//
//===----------------------------------------------------------------------===//

#include "CudaExecutor.h"
#include "RankProgram.h"
#include "RankThreads.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <utility>

namespace spmd::runtime::cuda {

namespace {

using Clock = std::chrono::steady_clock;

class CudaExecutor final : public Executor {
public:
  CudaExecutor(const CudaCode &code, CudaMemory &memory, CommunicatorFactory &processes, AbortState &abort,
               const ExecutorOptions &options)
      : code(code), memory(memory), processes(processes), abort(abort), options(options), here(memory.ranks()),
        useGraph(code.useGraph && !options.profile && !options.finite && options.fault.kind == Fault::Kind::None) {}
  ~CudaExecutor() override;

  Status prepare();
  /// The first error of any rank is everybody's, in all processes.
  Status fail(const Status &status);
  Status step() override;
  Status wait() override;
  int64_t keptSteps() const override;
  Status readBack(int64_t step, int64_t rank, int64_t offset, void *destination, int64_t bytes) override;
  std::vector<RankPosition> positions() const override;
  bool shutdown() override;

private:
  Status connect();
  Status issueStep();
  /// Waits for one of the last steps.
  Status waitFor(uint64_t step);
  /// Of the last step.
  Result query(const RankProgram &program) const { return program.query(steps - 1); }
  /// The first step that a rank is not through with; what `begun` is where there is none.
  uint64_t stepOf(const RankProgram &program) const;
  /// Before a step fails that cannot be issued: ending everybody's collectives ends those of steps that still run.
  void awaitEarlier() const;
  /// Whether a step was over before a failure ended all that runs.
  bool isSound(uint64_t step) const;
  /// What the watchdog looks at.
  void watch();
  void look();
  /// How many steps have ended on all ranks here, as their events say.
  uint64_t countEnded() const;
  Status noProgress() const;
  Status timedOut(const RankProgram &program, int32_t id) const;
  /// A collective that a rank here is in, and its rank's program.
  std::optional<std::pair<const RankProgram *, int32_t>> findRunning() const;
  Status findEnded() const;
  Status explain(const Status &found) const;
  NcclGroup &group(size_t i) { return static_cast<NcclGroup &>(*groups[i]); }

  CudaCode code;
  CudaMemory &memory;
  CommunicatorFactory &processes;
  AbortState &abort;
  ExecutorOptions options;
  RanksHere here;
  bool useGraph, checksIndices = false;
  uint64_t mostInFlight = StepRing::kSteps;
  std::vector<Collective> calls; ///< by command
  std::vector<std::unique_ptr<CommunicatorGroup>> groups;
  std::vector<std::unique_ptr<RankProgram>> programs;
  bool isCaptured = false;
  std::atomic<uint64_t> steps{0}, done{0};
  std::atomic<uint64_t> begun{0};  ///< steps of which something may have been issued
  std::atomic<uint64_t> closed{0}; ///< steps that were issued to their end, which an event says
  std::atomic<bool> isIssuing{false};
  std::atomic<int64_t> sound{-1}; ///< steps that were over when a failure ended the others; -1: none has

  std::thread watchdog;
  std::mutex mutex;
  std::condition_variable changed;
  bool isClosing = false;
  uint64_t lastProgress = 0;
  Clock::time_point lastChange;
  /// Of a rank here: the step that it was in, and since when collectives of that run; the epoch: one does not.
  struct Watched {
    uint64_t step = 0;
    std::vector<Clock::time_point> runningSince;
  };
  std::vector<Watched> watched;
};

Status CudaExecutor::connect() {
  const Plan &plan = code.artifact.plan;
  CommunicatorOptions wanted;
  wanted.timeout = std::chrono::duration_cast<Clock::duration>(options.timeout);
  wanted.threads = here.count;
  std::vector<bool> isUsed(plan.communicators.size());
  for (const Command &command : plan.commands)
    if (const auto *collective = command.as<CollectiveCommand>())
      isUsed[static_cast<size_t>(collective->communicator)] = true;
  groups.resize(plan.communicators.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!isUsed[i])
      continue;
    wanted.maxBlocks = plan.maxBlocksOf(static_cast<int32_t>(i));
    RankGroups along = code.artifact.manifest.groupsAlong(plan.axesOf(static_cast<int32_t>(i)));
    Expected<std::unique_ptr<CommunicatorGroup>> made =
        processes.make(plan.communicators[i], here, along, abort, wanted);
    if (!made)
      return made.error();
    groups[i] = std::move(*made);
    if (Status status = group(i).addArenas(memory); !status.ok())
      return status;
  }
  calls = collectivesOf(plan, code.artifact.traceHash);
  return Status::success();
}

Status CudaExecutor::prepare() {
  if (Status status = connect(); !status.ok())
    return status;
  for (int64_t rank = here.first; rank < here.end(); ++rank) {
    Expected<std::unique_ptr<RankProgram>> program =
        RankProgram::make(code, memory, rank, calls, groups, options.profile != nullptr);
    if (!program) {
      Status status = program.error();
      status.message = "rank " + std::to_string(rank) + ": " + status.message;
      status.rank = static_cast<int32_t>(rank);
      return status;
    }
    checksIndices |= (*program)->checksIndices();
    mostInFlight = (*program)->mostInFlight();
    if (options.finite) {
      options.finite->setKernels(code.kernels[here.indexOf(rank)]->table());
      if (Status status = (*program)->watch(*options.finite); !status.ok())
        return status;
    }
    programs.push_back(std::move(*program));
  }
  watched.resize(programs.size());
  lastChange = Clock::now();
  watchdog = std::thread([this] { watch(); });
  return Status::success();
}

Status CudaExecutor::fail(const Status &status) {
  auto used = std::find_if(groups.begin(), groups.end(), [](const auto &group) { return group != nullptr; });
  if (abort.isRaised() || used == groups.end() || !(*used)->failEverywhere(status))
    abort.fail(status);
  return abort.status();
}

void CudaExecutor::awaitEarlier() const {
  for (const std::unique_ptr<RankProgram> &program : programs)
    while (steps > 0 && !abort.isRaised() && program->query(steps - 1) == kNotReady)
      std::this_thread::sleep_for(std::chrono::microseconds(50)); // the watchdog looks whether it goes on
}

bool CudaExecutor::isSound(uint64_t step) const {
  while (abort.isRaised() && sound < 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the watchdog says soon
  return !abort.isRaised() || static_cast<int64_t>(step) < sound;
}

Status CudaExecutor::issueStep() {
  for (std::unique_ptr<RankProgram> &program : programs)
    if (Status status = memory.flush(program->rank()); !status.ok())
      return status;
  auto each = [&](auto body) {
    return forEachRank(here, [&](int64_t rank) {
      Status status = body(*programs[here.indexOf(rank)]);
      if (status.ok())
        return status;
      awaitEarlier();
      return fail(status); // the others may wait for this one
    });
  };
  if (!useGraph || steps == 0)
    return each([&](RankProgram &program) { return program.issue(steps, options.fault, abort); });
  if (!isCaptured) {
    if (Status status = each([](RankProgram &program) { return program.capture(); }); !status.ok())
      return status;
    isCaptured = true;
  }
  for (std::unique_ptr<RankProgram> &program : programs)
    if (Status status = program->launch(steps); !status.ok())
      return status;
  return Status::success();
}

Status CudaExecutor::step() {
  if (abort.isRaised())
    return abort.status();
  int64_t begin = options.profile ? Profile::now() : 0;
  Status status;
  if (checksIndices && done != steps)
    status = wait(); // what the last step has looked at is overwritten by this one
  else if (steps - done >= mostInFlight)
    status = waitFor(steps - mostInFlight); // whose events and memory are this one's
  if (status.ok() && abort.isRaised())      // what was waited for may have been ended by that
    status = abort.status();
  if (!status.ok())
    return status;
  isIssuing = true;
  begun = steps + 1;
  status = issueStep();
  for (size_t i = 0; i < programs.size() && status.ok(); ++i)
    status = programs[i]->end(steps);
  if (status.ok())
    closed = steps + 1;
  else
    awaitEarlier();
  ++steps;
  isIssuing = false;
  if (!status.ok())
    return fail(status);
  if (!options.profile)
    return Status::success();
  if (status = wait(); !status.ok())
    return status;
  for (std::unique_ptr<RankProgram> &program : programs)
    if (status = program->record(*options.profile, begin); !status.ok())
      return status;
  return Status::success();
}

Status CudaExecutor::waitFor(uint64_t step) {
  // A rank that hangs is found by the watchdog; what it ends comes to an end soon.
  auto patience = std::chrono::seconds(2);
  Clock::time_point end = Clock::time_point::max();
  for (std::unique_ptr<RankProgram> &program : programs) {
    for (int round = 0;; ++round) {
      Result result = program->query(step);
      if (result == kSuccess)
        break;
      if (result != kNotReady)
        return fail(program->checkIndices(Status::failed("rank " + std::to_string(program->rank()) + ": " +
                                                             program->gpu().driver().check(result, "a step").message,
                                                         static_cast<int32_t>(program->rank()))));
      if (abort.isRaised()) {
        if (end == Clock::time_point::max())
          end = Clock::now() + patience;
        if (Clock::now() > end)
          return abort.status();
      }
      if (round > 100)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return Status::success();
}

Status CudaExecutor::wait() {
  if (Status status = steps == 0 ? Status::success() : waitFor(steps - 1); !status.ok())
    return status;
  if (checksIndices && done != steps && !abort.isRaised())
    for (std::unique_ptr<RankProgram> &program : programs)
      if (Status status = program->checkIndices(Status::success()); !status.ok()) {
        // Other processes have not seen it, and are about to go on.
        if (here.count != here.total)
          return fail(status);
        done = steps.load();
        status.code = StatusCode::BadInput; // nothing has changed, and the next step may come
        return status;
      }
  done = steps.load();
  return abort.isRaised() ? abort.status() : Status::success();
}

int64_t CudaExecutor::keptSteps() const {
  bool keeps =
      std::all_of(programs.begin(), programs.end(), [](const auto &program) { return program->keepsOutputs(); });
  return keeps ? std::clamp<int64_t>(static_cast<int64_t>(steps.load()), 1, StepRing::kSteps) : 1;
}

Status CudaExecutor::readBack(int64_t step, int64_t rank, int64_t offset, void *destination, int64_t bytes) {
  auto number = static_cast<uint64_t>(step);
  if (number + StepRing::kSteps < steps) // one that has failed is in its place
    return Status::badInput("what a step gave is overwritten by one that was issued later");
  Status status = waitFor(number);
  if (status.ok() && !isSound(number))
    status = abort.status();
  return status.ok() ? programs[here.indexOf(rank)]->readBack(number, offset, destination, bytes) : status;
}

void CudaExecutor::watch() {
  ::pthread_setname_np(::pthread_self(), "watchdog");
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, std::chrono::milliseconds(20), [this] { return isClosing; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

uint64_t CudaExecutor::stepOf(const RankProgram &program) const {
  // What may have lost its event to a later step had ended by then.
  uint64_t last = begun, step = last > mostInFlight ? last - mostInFlight : 0;
  while (step < last && step < closed && program.query(step) == kSuccess)
    ++step;
  return step;
}

uint64_t CudaExecutor::countEnded() const {
  uint64_t ended = begun;
  for (const std::unique_ptr<RankProgram> &program : programs)
    ended = std::min(ended, stepOf(*program));
  return ended;
}

void CudaExecutor::look() {
  if (!abort.isRaised())
    for (size_t i = 0; i < groups.size(); ++i)
      if (Status status = groups[i] ? group(i).poll() : Status::success(); !status.ok())
        (void)fail(explain(status));
  if (abort.isRaised()) {
    if (sound < 0)
      sound = static_cast<int64_t>(countEnded());
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i])
        group(i).abortAll();
    return;
  }
  auto timeout = std::chrono::duration_cast<Clock::duration>(options.timeout);
  // A rank whose own host is stuck says so before those that wait for it.
  Clock::duration patience = timeout + timeout / 4 + std::chrono::milliseconds(200);
  Clock::time_point now = Clock::now();
  bool isRunning = isIssuing;
  uint64_t progress = begun;
  for (size_t i = 0; i < programs.size(); ++i) {
    RankProgram &program = *programs[i];
    uint64_t step = stepOf(program);
    isRunning |= step < closed;
    progress = (progress * 31 + step) * 31 + static_cast<uint64_t>(program.issuing() + 1);
    // Of a step that a rank has just come to nothing was seen yet.
    if (std::exchange(watched[i].step, step) != step)
      watched[i].runningSince.clear();
    if (step == begun)
      continue;
    std::vector<RankProgram::CollectiveState> states = program.collectives(step);
    watched[i].runningSince.resize(states.size());
    for (size_t j = 0; j < states.size(); ++j) {
      progress = progress * 31 + static_cast<uint64_t>(states[j].reached);
      Clock::time_point &since = watched[i].runningSince[j];
      if (states[j].reached != RankProgram::Reached::Begin)
        since = {};
      else if (since == Clock::time_point())
        since = now;
      else if (now - since > patience)
        return void(fail(timedOut(program, states[j].id)));
    }
  }
  if (!isRunning || progress != lastProgress) {
    lastProgress = progress;
    lastChange = now;
    return;
  }
  auto idle = now - lastChange;
  if (idle > std::chrono::seconds(1))
    if (Status status = findEnded(); !status.ok())
      return void(fail(status));
  bool isStuckHere = false;
  for (std::unique_ptr<RankProgram> &program : programs)
    isStuckHere |= program->issuing() >= 0;
  if (idle > (isStuckHere ? timeout : patience))
    (void)fail(noProgress());
}

/// That a rank is in a collective for longer than it may be.
Status CudaExecutor::timedOut(const RankProgram &program, int32_t id) const {
  const Plan &plan = code.artifact.plan;
  const Command &command = plan.commands[static_cast<size_t>(id)];
  auto communicator = static_cast<size_t>(command.as<CollectiveCommand>()->communicator);
  return Status::failed("time-out after " + formatNumber(options.timeout.count(), 6) + " s on communicator '" +
                            plan.communicators[communicator] + "': rank " + std::to_string(program.rank()) +
                            " waits in " + calls[static_cast<size_t>(id)].describe() + kMoreTime,
                        static_cast<int32_t>(program.rank()), id, command.location);
}

/// Which rank is stuck, or the collective that ranks wait in.
Status CudaExecutor::noProgress() const {
  double seconds = options.timeout.count();
  for (const std::unique_ptr<RankProgram> &program : programs)
    if (int32_t id = program->issuing(); id >= 0)
      return madeNoProgress(here, seconds, program->rank(), id, &code.artifact.plan.commands[static_cast<size_t>(id)]);
  if (auto running = findRunning())
    return timedOut(*running->first, running->second);
  return madeNoProgress(here, seconds, -1, -1, nullptr);
}

std::optional<std::pair<const RankProgram *, int32_t>> CudaExecutor::findRunning() const {
  for (const std::unique_ptr<RankProgram> &program : programs)
    if (uint64_t step = stepOf(*program); step < begun)
      for (const RankProgram::CollectiveState &state : program->collectives(step))
        if (state.reached == RankProgram::Reached::Begin)
          return std::pair(program.get(), state.id);
  return std::nullopt;
}

/// That another process of this host has ended, with the collective that a rank here waits in.
Status CudaExecutor::findEnded() const {
  Status status = processes.findEnded(here);
  auto running = status.ok() ? std::nullopt : findRunning();
  if (!running)
    return status;
  auto [program, id] = *running;
  const Plan &plan = code.artifact.plan;
  const Command &command = plan.commands[static_cast<size_t>(id)];
  auto communicator = static_cast<size_t>(command.as<CollectiveCommand>()->communicator);
  status.message += "; on communicator '" + plan.communicators[communicator] + "' rank " +
                    std::to_string(program->rank()) + " waits in " + calls[static_cast<size_t>(id)].describe();
  status.command = id;
  status.location = command.location;
  return status;
}

/// Why a communicator has failed: another process may have, or be gone, which is seen a little later than what it had
/// open is closed.
Status CudaExecutor::explain(const Status &found) const {
  if (here.count == here.total)
    return found;
  for (Clock::time_point end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
    if (abort.isRaised())
      return abort.status();
    if (Status ended = findEnded(); !ended.ok())
      return ended;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return found;
}

std::vector<RankPosition> CudaExecutor::positions() const {
  std::vector<RankPosition> all;
  for (const std::unique_ptr<RankProgram> &program : programs) {
    uint64_t last = begun, step = std::min(last, stepOf(*program));
    all.push_back(step < last ? program->position(step, /*isOver=*/false)
                              : program->position(last ? last - 1 : 0, /*isOver=*/true));
  }
  return all;
}

bool CudaExecutor::shutdown() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isClosing = true;
  }
  changed.notify_all();
  if (watchdog.joinable())
    watchdog.join();
  if (abort.isRaised())
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i])
        group(i).abortAll();
  if (steps == 0 || done == steps)
    return true;
  Clock::time_point end = Clock::now() + std::chrono::seconds(2);
  // One that could not be issued has not said where it ends; the one before it has.
  auto isRunning = [&](const RankProgram &program) {
    return query(program) == kNotReady || (steps > 1 && program.query(steps - 2) == kNotReady);
  };
  for (std::unique_ptr<RankProgram> &program : programs)
    while (isRunning(*program)) {
      // Steps that were issued and are fine are waited for.
      if (abort.isRaised() && Clock::now() > end)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  return true;
}

CudaExecutor::~CudaExecutor() { (void)shutdown(); }

} // namespace

Expected<std::unique_ptr<Executor>> makeCudaExecutor(const CudaCode &code, CudaMemory &memory,
                                                     CommunicatorFactory &communicators, AbortState &abort,
                                                     const ExecutorOptions &options) {
  auto executor = std::make_unique<CudaExecutor>(code, memory, communicators, abort, options);
  // Communicators that were made are ended, not finished: the others do not come to that.
  if (Status status = executor->prepare(); !status.ok())
    return executor->fail(status);
  return std::unique_ptr<Executor>(std::move(executor));
}

} // namespace spmd::runtime::cuda
