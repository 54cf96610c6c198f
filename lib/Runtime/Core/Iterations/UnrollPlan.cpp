//===- UnrollPlan.cpp - A plan with all its iterations --------------------===//
//
// Of the two iterations that a file has, one behind the other, it is seen which buffers they share, which they are fed,
// and which each has for itself: a buffer that the first has where the second has another one at the same bytes is a
// new one in every iteration that is put in. Behind the loop these mean those of its last iteration.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Core/Plan.h"

using namespace spmd::runtime;

namespace {

class PlanUnroller {
public:
  explicit PlanUnroller(PlanFile file)
      : plan(std::move(file.plan)), repeats(std::move(*file.repeats)), fed(repeats), next(plan.buffers.size(), -1),
        isShared(plan.buffers.size()), isOwn(plan.buffers.size()) {}

  Expected<Plan> unroll();

private:
  Status compare();
  Status compare(size_t id, const Command &before, const Command &command);
  Status compare(size_t id, int32_t before, int32_t buffer);
  /// What the iteration `by` later has instead of `buffer`; -1 if it is fed nothing.
  int32_t later(int32_t buffer, int64_t by);
  int32_t addLater(int32_t buffer);
  /// Moves a command `by` iterations on, but for the references that `isSame` says.
  template <typename IsSame>
  Status move(size_t id, Command &command, int64_t by, IsSame isSame);
  /// Whether a command is in one of the two iterations, or behind them.
  bool isInLoop(int64_t id) const { return id >= repeats.begin - repeats.period(); }

  static Status fail(size_t id, const std::string &what) {
    return Status::badInput("repeats: command " + std::to_string(id) + " " + what);
  }

  Plan plan;
  Repeats repeats;
  FedNumbers fed;
  std::vector<int32_t> next;  ///< of a buffer that an iteration has for itself, that of the one behind it
  std::vector<bool> isShared; ///< by all iterations
  std::vector<bool> isOwn;    ///< of an iteration
};

} // namespace

Status PlanUnroller::compare(size_t id, int32_t before, int32_t buffer) {
  auto from = static_cast<size_t>(before), to = static_cast<size_t>(buffer);
  if (before == buffer) {
    isShared[from] = true;
    return Status::success();
  }
  if (fed.contains(before))
    return fed.later(before, 1) == buffer ? Status::success() : fail(id, "is fed out of turn");
  const Buffer &a = plan.buffers[from], &b = plan.buffers[to];
  if (fed.contains(buffer) || a.state || b.state || a.offset != b.offset || a.bytes != b.bytes ||
      a.alignment != b.alignment || a.memoryClass != b.memoryClass)
    return fail(id, "has other bytes than in the iteration before");
  if (next[from] >= 0 && next[from] != buffer)
    return fail(id, "has other buffers than in the iteration before");
  next[from] = buffer;
  isOwn[from] = isOwn[to] = true;
  return Status::success();
}

Status PlanUnroller::compare(size_t id, const Command &before, const Command &command) {
  bool isAlike = before.stream == command.stream && before.action.index() == command.action.index() &&
                 before.refs.size() == command.refs.size();
  for (size_t i = 0; isAlike && i < command.refs.size(); ++i) {
    const Ref &a = before.refs[i], &b = command.refs[i];
    isAlike = a.offset == b.offset && a.coord == b.coord && a.bytes == b.bytes && a.access == b.access;
  }
  if (!isAlike)
    return fail(id, "is another one in the iteration before");
  for (size_t i = 0; i < command.refs.size(); ++i)
    if (Status status = compare(id, before.refs[i].buffer, command.refs[i].buffer); !status.ok())
      return status;
  const auto *wait = command.as<WaitCommand>();
  if (!wait)
    return Status::success();
  int64_t awaited = before.as<WaitCommand>()->awaited;
  bool isOutside = wait->awaited == awaited && !isInLoop(awaited);
  bool isLater = wait->awaited == awaited + repeats.period() && isInLoop(wait->awaited);
  return isOutside || isLater ? Status::success() : fail(id, "waits for something else than in the iteration before");
}

Status PlanUnroller::compare() {
  auto begin = static_cast<size_t>(repeats.begin), period = static_cast<size_t>(repeats.period());
  for (size_t id = begin; id < begin + period; ++id)
    if (Status status = compare(id, plan.commands[id - period], plan.commands[id]); !status.ok())
      return status;
  std::vector<bool> isNext(next.size());
  for (size_t i = 0; i < next.size(); ++i) {
    if (isOwn[i] && isShared[i])
      return Status::badInput("repeats: iterations share buffer " + std::to_string(i) + ", and have one each");
    if (next[i] < 0)
      continue;
    if (isNext[static_cast<size_t>(next[i])])
      return Status::badInput("repeats: two buffers become buffer " + std::to_string(next[i]));
    isNext[static_cast<size_t>(next[i])] = true;
  }
  return Status::success();
}

int32_t PlanUnroller::addLater(int32_t buffer) {
  auto added = static_cast<int32_t>(plan.buffers.size());
  plan.buffers.push_back(plan.buffers[static_cast<size_t>(buffer)]);
  plan.buffers.back().id = added;
  next[static_cast<size_t>(buffer)] = added;
  next.push_back(-1);
  isShared.push_back(false);
  isOwn.push_back(true);
  return added;
}

int32_t PlanUnroller::later(int32_t buffer, int64_t by) {
  if (fed.contains(buffer))
    return fed.later(buffer, by);
  for (; by > 0 && isOwn[static_cast<size_t>(buffer)]; --by)
    buffer = next[static_cast<size_t>(buffer)] >= 0 ? next[static_cast<size_t>(buffer)] : addLater(buffer);
  return buffer;
}

template <typename IsSame>
Status PlanUnroller::move(size_t id, Command &command, int64_t by, IsSame isSame) {
  for (size_t i = 0; i < command.refs.size(); ++i) {
    Ref &ref = command.refs[i];
    if (isSame(i))
      continue;
    ref.buffer = later(ref.buffer, by);
    if (ref.buffer < 0)
      return fail(id, "is not fed so often");
  }
  auto *wait = command.as<WaitCommand>();
  if (!wait || !isInLoop(wait->awaited))
    return Status::success();
  if (wait->awaited >= static_cast<int64_t>(id))
    return fail(id, "waits for a later one");
  wait->awaited += static_cast<int32_t>(by * repeats.period());
  return Status::success();
}

Expected<Plan> PlanUnroller::unroll() {
  if (Status status = checkRepeats(repeats, static_cast<int64_t>(plan.commands.size())); !status.ok())
    return status;
  for (const std::vector<int32_t> &list : repeats.fed)
    for (int32_t buffer : list)
      if (static_cast<size_t>(buffer) >= plan.buffers.size())
        return Status::badInput("repeats: there is no buffer " + std::to_string(buffer));
  size_t parts = 0;
  for (int64_t id = repeats.begin; id < repeats.end; ++id)
    parts += plan.commands[static_cast<size_t>(id)].refs.size() +
             plan.commands[static_cast<size_t>(id)].location.size() / 64;
  if (Status status = checkParts(repeats, parts); !status.ok())
    return status;
  if (Status status = compare(); !status.ok())
    return status;
  auto begin = static_cast<size_t>(repeats.begin), end = static_cast<size_t>(repeats.end);
  size_t added = static_cast<size_t>(repeats.more) * (end - begin);
  std::vector<Command> behind(std::make_move_iterator(plan.commands.begin() + repeats.end),
                              std::make_move_iterator(plan.commands.end()));
  plan.commands.resize(end);
  plan.commands.reserve(end + added + behind.size());
  // In program order, so that new buffers have their numbers by the first command that has them. What a command has in
  // both iterations it has in all, whatever else its buffer is fed for.
  size_t period = end - begin;
  for (size_t id = end; id < end + added; ++id) {
    plan.commands.push_back(plan.commands[id - period]);
    size_t known = begin + (id - end) % period;
    auto isSame = [&](size_t ref) {
      return plan.commands[known].refs[ref].buffer == plan.commands[known - period].refs[ref].buffer;
    };
    if (Status status = move(id, plan.commands.back(), 1, isSame); !status.ok())
      return status;
  }
  for (Command &command : behind) {
    auto isSame = [&](size_t ref) { return isShared[static_cast<size_t>(command.refs[ref].buffer)]; };
    if (Status status = move(plan.commands.size(), command, repeats.more, isSame); !status.ok())
      return status;
    plan.commands.push_back(std::move(command));
  }
  return std::move(plan);
}

Expected<Plan> spmd::runtime::unroll(PlanFile file) {
  if (!file.repeats)
    return std::move(file.plan);
  return PlanUnroller(std::move(file)).unroll();
}
