//===- Core.h - Commands, their order, and who touches which bytes -*- C++ -*-===//
//
// [Note: order] A command depends on what is in its stream's frontier when it is
// issued; issuing it makes it the frontier, waiting for an event adds the
// event's. Nothing else orders two commands, so any topological order of that
// graph is one a GPU may choose, and the schedule says which is run.
//
// [Note: races] Every command has a vector clock over lanes (streams, chains of
// graph nodes, the host). It is compared with the last accesses of its bytes
// when it is issued, not when it runs: what is found does not depend on the
// schedule.
//
// [Note: who runs] No thread of its own: commands run in the thread that waits
// for, or asks about, what depends on them. A program that does neither makes no
// progress, and needs a watchdog that asks.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_TEST_STANDIN_CORE_H
#define SPMD_TEST_STANDIN_CORE_H

#include "StandIn.h"

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace standin {

using namespace spmd::runtime::cuda;

/// A vector clock: by lane, the last command of it that is known to be done before.
using Clock = std::vector<uint32_t>;
void join(Clock &into, const Clock &from);

/// What a command does, shared by the instances of a graph.
struct Work {
  std::string name;
  std::function<int(uint64_t)> run;
  std::vector<StandInRange> ranges;
};

struct Command {
  std::shared_ptr<Work> work;
  uint64_t instance = 0, number = 0;
  uint32_t lane = 0, tick = 0, stream = 0;
  uint32_t waits = 0; ///< unfinished commands that it depends on
  uint32_t references = 0;
  bool done = false;
  std::vector<Command *> followers;
};

/// A set of commands, which it keeps.
class Frontier {
public:
  Frontier() = default;
  Frontier(const Frontier &) = delete;
  Frontier &operator=(const Frontier &) = delete;
  ~Frontier() { clear(); }
  void add(Command *command);
  void add(const Frontier &other);
  void assign(const Frontier &other);
  void clear();
  bool isDone() const;
  const std::vector<Command *> &all() const { return commands; }

private:
  std::vector<Command *> commands;
};

struct Node {
  std::shared_ptr<Work> work;
  std::vector<int> after;
  uint32_t stream = 0;
  Event records = nullptr; ///< an event that the node records; such a node does nothing else
};

/// A graph that is being captured, or was.
struct Captured {
  std::vector<Node> nodes;
  std::set<StreamHandle> streams;
  uint64_t number = 0; ///< another may get its memory
  bool invalid = false;
};

/// Whether commands run at all: to see what the host does beside a device that has always finished, they do not.
bool isExecuting();

extern std::recursive_mutex mutex;
extern Clock host; ///< what the host has waited for
uint32_t makeLane();

/// Issues `work` after `after`. `clock`, that of its lane, goes on by one.
Command *issue(std::shared_ptr<Work> work, const std::vector<Command *> &after, Clock &clock, uint32_t lane,
               uint32_t stream, uint64_t instance);
/// Issues to a stream, or adds to the graph that captures it.
Result enqueue(StreamHandle stream, std::shared_ptr<Work> work);
/// An error when the calling thread captures: what synchronizes or allocates may not be called then.
Result forbiddenInCapture();
/// Runs what it can until `isDone`; false when that is as far as it goes for now.
bool runUntil(const std::function<bool()> &isDone);
/// The same, however long it takes.
void waitUntil(const std::function<bool()> &isDone);
/// The host has waited for what `clock` knows.
void hostSees(const Clock &clock);

/// Finds conflicting accesses of a command that nothing orders with others'.
void checkRaces(const std::shared_ptr<Work> &work, uint32_t lane, const Clock &clock);
/// Keeps the host off the pinned bytes of a command until it has waited for it.
void protectPinned(const std::shared_ptr<Work> &work, uint32_t lane, uint32_t tick);
void unprotectPinned();
/// Forgets accesses to bytes that are given back.
void forgetAccesses(uint64_t begin, uint64_t bytes);

bool isDevice(uint64_t address);
bool isPinned(uint64_t address, uint64_t bytes);

} // namespace standin

namespace spmd::runtime::cuda {
struct CUctx_st {
  int device = 0, users = 0;
};
} // namespace spmd::runtime::cuda

#endif // SPMD_TEST_STANDIN_CORE_H
