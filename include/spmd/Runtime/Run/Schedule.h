//===- Schedule.h - Learning rates by step -----------------------*- C++ -*-===//
//
// Schedules of hyper-parameters with the semantics, the arguments and the arithmetic of torch/optim/lr_scheduler.py, a
// step of the schedule after each step of the training:
//
//   constant:factor=0.3,total_iters=5                   ConstantLR
//   linear:start_factor=0.01,total_iters=100            LinearLR
//   warmup:total_iters=100                              LinearLR from 1/total_iters
//   step:step_size=30,gamma=0.1                         StepLR
//   multistep:milestones=30+80,gamma=0.1                MultiStepLR
//   exponential:gamma=0.99                              ExponentialLR
//   polynomial:total_iters=1000,power=2                 PolynomialLR
//   cosine:T_max=1000,eta_min=1e-5                      CosineAnnealingLR
//   restarts:T_0=100,T_mult=2,eta_min=1e-5              CosineAnnealingWarmRestarts
//   onecycle:max_lr=0.01,total_steps=1000,...           OneCycleLR, which moves momentum or beta1, too
//   sequential(warmup:total_iters=100;100;cosine:...)   SequentialLR: schedules, and steps where they change
//   chained(A;B)                                        ChainedScheduler
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_RUN_SCHEDULE_H
#define SPMD_RUNTIME_RUN_SCHEDULE_H

#include "spmd/Runtime/Train/Trainer.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// A learning rate of a param group: that of the step, and what the group began with.
struct Rate {
  double value, initial;
};

/// A rule that moves a learning rate from step to step; torch's object of lr_scheduler.py, function by function.
class Schedule {
public:
  virtual ~Schedule() = default;
  /// What making the object does: the rate of the first step.
  virtual void begin(Rate &rate) = 0;
  /// step(): the rate of the next.
  virtual void step(Rate &rate) = 0;
  /// _update_lr(0): the rate when a sequence comes to this schedule.
  virtual void enter(Rate &rate) = 0;
  /// _initial_step(): as the first of a sequence, once all of it has been undone.
  virtual void beginAgain(Rate &rate) = 0;
  /// recursive_undo(): its count of steps, by one.
  virtual void undo() = 0;
  /// How many steps it has, where PyTorch refuses a further one.
  virtual std::optional<int64_t> steps() const { return std::nullopt; }
  /// The value of momentum, or of the first beta, for the step; nothing: it is left alone.
  virtual std::optional<double> momentum() const { return std::nullopt; }
};

/// Reads a schedule; an error names the part that is wrong and what is allowed there.
Expected<std::unique_ptr<Schedule>> parseSchedule(const std::string &text);

/// Sets the hyper-parameters of a trainer by a schedule.
class ScheduledRates {
public:
  /// Empty text: they stay as they are. An error when the artifact has no learning rate, or no momentum for a schedule
  /// that moves it, or when the schedule has fewer than `steps` steps, those of the run from its first.
  static Expected<ScheduledRates> create(const std::string &text, const Trainer &trainer, int64_t steps);

  /// Sets those of a step, counted from the run's first; steps are asked for in order.
  Status apply(int64_t step, Trainer &trainer);

private:
  struct Group {
    int64_t number;
    Rate rate;
    std::string momentum; ///< the hyper-parameter's name, or empty
    std::unique_ptr<Schedule> schedule;
  };
  std::vector<Group> groups;
  int64_t at = -1;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_SCHEDULE_H
