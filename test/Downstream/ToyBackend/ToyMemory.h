//===- ToyMemory.h - Arenas that the host cannot look at -------------*- C++ -*-===//

#ifndef SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYMEMORY_H
#define SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYMEMORY_H

#include "spmd/Runtime/Host/Arena.h"
#include "spmd/Runtime/Train/Executor.h"
#include "spmd/Runtime/Train/RankMemory.h"

#include <memory>
#include <vector>

namespace toy {

/// Addresses are drawn from a counter and are none of the process: who reads through one is killed. Copies wait for the
/// steps that were issued.
class ToyMemory final : public spmd::runtime::RankMemory {
public:
  using Status = spmd::runtime::Status;

  static spmd::runtime::Expected<std::unique_ptr<RankMemory>> allocate(const spmd::runtime::RanksHere &ranks,
                                                                       int64_t bytes);
  ~ToyMemory() override;

  int64_t bytes() const override { return arenas.front().size(); }
  Status grow(int64_t bytes, int64_t stateBytes) override;
  int64_t generation() const override { return moves; }
  Status copyIn(int64_t rank, int64_t offset, const void *source, int64_t bytes) override;
  Status copyOut(int64_t rank, int64_t offset, void *destination, int64_t bytes) const override;
  Status fill(int64_t rank, int64_t offset, uint8_t value, int64_t bytes) override;
  void *addressOf(int64_t rank, int64_t offset) const override;

  /// The byte behind an address of any memory.
  static void *resolve(const void *address);

  void addUser(spmd::runtime::Executor *executor) { users.push_back(executor); }
  void removeUser(spmd::runtime::Executor *executor);

private:
  explicit ToyMemory(const spmd::runtime::RanksHere &ranks) : RankMemory(ranks) {}
  Status allocateArenas(int64_t bytes, std::vector<spmd::runtime::Arena> &made, std::vector<uint64_t> &places);
  Status drain() const;
  char *at(int64_t rank, int64_t offset) const { return arenas[ranks().indexOf(rank)].data() + offset; }

  std::vector<spmd::runtime::Arena> arenas;
  std::vector<uint64_t> addresses;
  std::vector<spmd::runtime::Executor *> users;
  int64_t moves = 0;
};

} // namespace toy

#endif // SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYMEMORY_H
