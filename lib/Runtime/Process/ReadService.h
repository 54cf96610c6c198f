//===- ReadService.h - Bytes of arenas that cannot be mapped ----*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_READSERVICE_H
#define SPMD_LIB_RUNTIME_PROCESS_READSERVICE_H

#include "Control.h"
#include "spmd/Runtime/Train/Communicator.h"

#include <thread>

namespace spmd::runtime {

/// The processes of a host read each other's arenas, which are in the memory of devices: each has a thread that reads for
/// the others, through a box of shared memory. Who reads needs nobody's main thread.
class ReadService {
public:
  /// Bytes of the shared memory.
  static int64_t sizeFor(int64_t processes);

  /// `memory`, zeroed at first, is the same in all processes. `read` is called by a thread of its own until stop().
  ReadService(std::shared_ptr<char> memory, const RanksHere &ranks, int64_t self, std::shared_ptr<Peers> peers,
              CommunicatorFactory::Reader read);
  ~ReadService();

  /// Reads from the arena of a rank of another process. An error where that has ended, or `abort` is raised.
  Status read(int64_t rank, int64_t offset, void *destination, int64_t bytes, const AbortState &abort);

  /// Serves on until all other processes have stopped, too, or ended, or for `patience`.
  void stop(Clock::duration patience);

private:
  struct Box;
  Box &boxOf(int64_t process) const;
  void serve();
  Status readPart(Box &box, int64_t rank, int64_t offset, char *destination, int64_t bytes, const AbortState &abort);

  std::shared_ptr<char> memory;
  RanksHere ranks;
  int64_t self;
  std::shared_ptr<Peers> peers;
  CommunicatorFactory::Reader reader;
  std::atomic<bool> isClosing{false};
  std::thread server;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_READSERVICE_H
