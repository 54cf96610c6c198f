//===- ProcessFactory.cpp - Memory that processes share -------------------===//

#include "ProcessFactory.h"
#include "SharedMemory.h"

#include <algorithm>
#include <sstream>

namespace spmd::runtime {

Expected<RanksHere> ProcessFactory::ranksHere(int64_t total) const {
  int64_t world = numProcesses();
  if (total % world != 0)
    return Status::badInput("the artifact has " + std::to_string(total) + (total == 1 ? " rank" : " ranks") +
                            ", which " + std::to_string(world) +
                            " processes do not share evenly; compile for a multiple of the processes, or start as many "
                            "as divide the ranks");
  return RanksHere{total, process() * (total / world), total / world};
}

int64_t ProcessFactory::localProcess() const {
  std::vector<int64_t> here = job->processesHere();
  return std::find(here.begin(), here.end(), process()) - here.begin();
}

Expected<std::shared_ptr<char>> ProcessFactory::makeBlock(int64_t bytes) {
  Descriptor file;
  bool makes = process() == job->leader();
  if (makes) {
    Expected<Descriptor> made = makeSharedFile(bytes);
    if (!made)
      return made.error();
    file = std::move(*made);
  }
  std::string name = job->nextName();
  Expected<std::vector<std::string>> all = job->met->exchange(name, makes ? getSharedName(file) : "-");
  if (!all)
    return all.error();
  if (!makes) {
    Expected<Descriptor> opened = openSharedFile((*all)[static_cast<size_t>(job->leader())]);
    if (!opened)
      return opened.error();
    file = std::move(*opened);
  }
  Expected<std::shared_ptr<char>> memory = mapSharedFile(file, bytes);
  if (!memory)
    return memory;
  // Until all have opened it, the file stays open where it was made.
  Expected<std::vector<std::string>> opened = job->met->exchange(name + "/opened", "");
  return opened ? memory : Expected<std::shared_ptr<char>>(opened.error());
}

Status ProcessFactory::makeFirstError() {
  Expected<std::shared_ptr<char>> memory = makeBlock(sizeof(SharedError));
  if (!memory)
    return memory.error();
  firstError = std::shared_ptr<SharedError>(*memory, reinterpret_cast<SharedError *>(memory->get()));
  return Status::success();
}

Expected<std::shared_ptr<char>> ProcessFactory::allocateArena(int64_t rank, int64_t bytes) {
  Expected<Descriptor> file = makeSharedFile(bytes);
  if (!file)
    return file.error();
  Expected<std::shared_ptr<char>> memory = mapSharedFile(*file, bytes);
  if (memory)
    own[rank] = {std::move(*file), *memory, bytes};
  return memory;
}

/// The arena of any rank of this host, from the line of its process: for each of its ranks "PID:FD BYTES".
Expected<std::shared_ptr<char>> ProcessFactory::mapArena(int64_t rank, const std::string &line,
                                                         const RanksHere &ranks) {
  if (ranks.has(rank))
    return own[rank].memory.lock();
  std::istringstream words(line);
  std::string name;
  int64_t bytes = 0;
  for (int64_t i = 0; i <= rank % ranks.count; ++i)
    words >> name >> bytes;
  Expected<Descriptor> file = openSharedFile(name);
  if (!file)
    return file.error();
  return mapSharedFile(*file, bytes);
}

Status ProcessFactory::shareArenas(const RanksHere &ranks) {
  std::string mine;
  for (int64_t rank = ranks.first; rank < ranks.end(); ++rank)
    mine += getSharedName(own[rank].file) + " " + std::to_string(own[rank].bytes) + " ";
  std::string exchange = job->nextName();
  Expected<std::vector<std::string>> lines = job->met->exchange(exchange, mine);
  if (!lines)
    return lines.error();
  arenas.assign(static_cast<size_t>(ranks.total), nullptr);
  for (int64_t rank = 0; rank < ranks.total; ++rank) {
    if (!job->isHere(ranks.processOf(rank)))
      continue;
    Expected<std::shared_ptr<char>> arena =
        mapArena(rank, (*lines)[static_cast<size_t>(ranks.processOf(rank))], ranks);
    if (!arena)
      return arena.error();
    arenas[static_cast<size_t>(rank)] = std::move(*arena);
  }
  // Until all have mapped them, the files stay open.
  Expected<std::vector<std::string>> mapped = job->met->exchange(exchange + "/mapped", "");
  return mapped ? Status::success() : mapped.error();
}

Status ProcessFactory::findEnded(const RanksHere &ranks) const {
  int64_t ended = job->peers->findEnded();
  return ended < 0 ? Status::success() : endedWithoutAWord(ranks, ended, job->peers->getId(static_cast<size_t>(ended)));
}

Expected<std::vector<std::unique_ptr<HostRanks>>>
ProcessFactory::makeHostRanks(const std::string &name, const RanksHere &ranks, const RankGroups &groups,
                              AbortState &abort, const CommunicatorOptions &options) {
  // Threads of all processes share the cores of this host.
  int spins = spinsFor(options.threads * static_cast<int64_t>(job->processesHere().size()));
  std::vector<std::unique_ptr<HostRanks>> hosts;
  for (size_t group = 0; group < groups.count(); ++group) {
    // All processes make all blocks, and keep those of their ranks.
    Expected<std::shared_ptr<char>> memory = makeBlock(Control::sizeFor(ranks.total));
    if (!memory)
      return memory.error();
    std::vector<int64_t> members;
    for (int64_t rank : groups.membersOf(group))
      if (job->isHere(ranks.processOf(rank)))
        members.push_back(rank);
    hosts.emplace_back();
    if (std::none_of(members.begin(), members.end(), [&](int64_t rank) { return ranks.has(rank); }))
      continue;
    auto control =
        std::make_shared<Control>(std::move(*memory), firstError, ranks.total, members, ranks.count, job->peers);
    hosts.back() = std::make_unique<HostRanks>(name, ranks, std::move(members), std::move(control), arenas, abort,
                                               options.timeout, spins);
  }
  return std::move(hosts);
}

} // namespace spmd::runtime
