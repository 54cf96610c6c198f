//===- Mpi.h - Messages between hosts by MPI --------------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_MPI_H
#define SPMD_LIB_RUNTIME_PROCESS_MPI_H

#include "../Mpi/MpiPlugin.h"
#include "HostLink.h"
#include "Meeting.h"
#include "spmd/Runtime/Process/Launch.h"

#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// An MPI library, through the plug-in that was compiled for it. All processes of the job start it.
class Mpi final : public HostLink {
public:
  /// Loads the plug-in for the launcher's MPI: that of $SPMD_MPI ("openmpi", "mpich", or a file), else of the launcher.
  static Expected<std::shared_ptr<Mpi>> start(const Launch &launch);
  int64_t rank() const { return table->rank(); }
  int64_t size() const { return table->size(); }
  std::string describe() const;

  Expected<int32_t> open() override;
  Status send(int32_t space, const void *bytes, int64_t count, int64_t to, int32_t tag, Request &request) override;
  Status receive(int32_t space, void *bytes, int64_t count, int64_t from, int32_t tag, Request &request) override;
  Expected<bool> test(Request &request) override;
  void cancel(Request &request) override;
  Expected<int64_t> probe(int32_t space, int32_t tag, int64_t &from) override;
  bool isForArenas() const override { return true; }

  Expected<std::vector<std::string>> gather(int32_t space, const std::string &mine);

private:
  class Use;
  Mpi(const spmd_mpi *table) : table(table) {}
  const spmd_mpi *table;
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
