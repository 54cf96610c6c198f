//===- Mpi.h - Messages between hosts ---------------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_MPI_H
#define SPMD_LIB_RUNTIME_PROCESS_MPI_H

#include "../Mpi/MpiPlugin.h"
#include "Meeting.h"
#include "spmd/Runtime/Host/Progress.h"
#include "spmd/Runtime/Process/Launch.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// An MPI library, through the plug-in that was compiled for it. All processes of the job start it.
class Mpi {
public:
  /// Loads the plug-in for the launcher's MPI: that of $SPMD_MPI ("openmpi", "mpich", or a file), else of the launcher.
  static Expected<std::shared_ptr<Mpi>> start(const Launch &launch);
  int64_t rank() const { return table->rank(); }
  int64_t size() const { return table->size(); }
  std::string describe() const;

  /// A space of messages of its own. All processes open the same ones, one at a time.
  Expected<int32_t> open();

  Expected<std::vector<std::string>> gather(int32_t space, const std::string &mine);

private:
  friend class Messages;
  class Use;
  Mpi(const spmd_mpi *table) : table(table) {}
  const spmd_mpi *table;
};

/// Messages under way, of one thread. Their bytes stay where they are until wait() has come back.
class Messages {
public:
  Messages(std::shared_ptr<Mpi> mpi, int32_t space) : mpi(std::move(mpi)), space(space) {}

  /// To or from a process; `of` says whose message it is, for missing().
  void send(const void *bytes, int64_t count, int64_t to, int32_t tag);
  void receive(void *bytes, int64_t count, int64_t from, int32_t tag, int64_t of = -1);

  /// Waits for all. What the library said of one is in error().
  WaitResult wait(const AbortState &abort, Clock::time_point deadline);
  const Status &error() const { return failure; }
  /// Whose messages had not come when wait() ended; each once, in order.
  const std::vector<int64_t> &missing() const { return late; }

  /// Takes a message with `tag` that has come from anybody; false: there is none.
  bool take(int32_t tag, std::string &bytes);

private:
  void note(int code, const spmd_mpi_error &error);
  void noteEnd();
  bool test(size_t first, size_t count);
  void giveUp();

  std::shared_ptr<Mpi> mpi;
  int32_t space;
  std::vector<spmd_mpi_request> requests;
  std::vector<int64_t> owners; ///< of the requests; -1: of a message that is sent
  std::vector<int64_t> late;
  Status failure;
};

/// Processes that meet through MPI: those of mpirun on several hosts, where no address is given.
class MpiMeeting final : public Meeting {
public:
  static Expected<std::unique_ptr<Meeting>> meet(std::shared_ptr<Mpi> mpi);

  int64_t rank() const override { return mpi->rank(); }
  int64_t world() const override { return mpi->size(); }
  Expected<std::vector<std::string>> exchange(const std::string &name, const std::string &value) override {
    return mpi->gather(space, value);
  }

private:
  MpiMeeting(std::shared_ptr<Mpi> mpi, int32_t space) : mpi(std::move(mpi)), space(space) {}
  std::shared_ptr<Mpi> mpi;
  int32_t space;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_MPI_H
