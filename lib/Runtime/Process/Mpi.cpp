//===- Mpi.cpp - Messages between hosts by MPI ----------------------------===//

#include "Mpi.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <sys/auxv.h>

namespace spmd::runtime {

/// The library that the launcher's processes speak.
static std::string findName(const Launch &launch) {
  if (const char *chosen = std::getenv("SPMD_MPI"); chosen && *chosen)
    return chosen;
  // srun starts processes of either.
  bool isOpenMpi = launch.launcher == Launcher::OpenMpi || std::getenv("PMIX_RANK");
  return isOpenMpi ? "openmpi" : "mpich";
}

/// The file that this code is in: a library, or the program. A program's name in Dl_info is argv[0], which says nothing
/// when a shell or launcher found it in PATH.
static std::filesystem::path findOwnFile() {
  Dl_info own = {}, program = {};
  if (::dladdr(reinterpret_cast<void *>(&findOwnFile), &own) == 0 || !own.dli_fname)
    return {};
  bool isProgram =
      ::dladdr(reinterpret_cast<void *>(::getauxval(AT_ENTRY)), &program) != 0 && program.dli_fbase == own.dli_fbase;
  std::error_code error;
  return std::filesystem::canonical(isProgram ? "/proc/self/exe" : own.dli_fname, error);
}

/// Plug-ins lie beside the runtime, or in the library folder next to the program's.
static std::vector<std::string> findFiles(const std::string &name) {
  if (name.find('/') != std::string::npos)
    return {name};
  std::vector<std::string> files;
  std::filesystem::path folder = findOwnFile().parent_path();
  if (folder.empty())
    return files;
  for (const char *relative : {".", "../lib", "../" SPMD_INSTALL_LIBDIR})
    files.push_back((folder / relative / ("spmd_mpi_" + name + ".so")).lexically_normal().string());
  return files;
}

static Expected<const spmd_mpi *> loadPlugin(const Launch &launch) {
  std::string name = findName(launch), reasons;
  for (const std::string &file : findFiles(name)) {
    // Open MPI's own plug-ins look for its symbols.
    void *library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    void *symbol = library ? ::dlsym(library, "spmd_mpi_table") : nullptr;
    const spmd_mpi *table = symbol ? reinterpret_cast<const spmd_mpi *(*)()>(symbol)() : nullptr;
    if (table && table->version == SPMD_MPI_VERSION)
      return table;
    reasons += "\n  " + (table ? "'" + file + "' is of another version" : std::string(::dlerror()));
  }
  return Status::badInput("the processes are on several hosts, which reach each other through MPI, and there is no plug-in "
                          "for '" + name + "'; install its development package and build again, or name another with "
                          "SPMD_MPI (openmpi, mpich, or a file)" + reasons);
}

// [Note: the end of MPI] All processes must end MPI before they exit, also where somebody still holds a communicator, as
// Python's modules do. So exit() ends it, and whoever still wants something is told: the threads that listen go on then.
static std::shared_mutex inUse;
static const spmd_mpi *started; ///< null: not yet, or it has ended

static void endMpi() {
  std::unique_lock<std::shared_mutex> lock(inUse);
  if (started)
    started->finish();
  started = nullptr;
}

/// While it lives, MPI does not end.
class Mpi::Use {
public:
  bool isOver() const { return !started; }

private:
  std::shared_lock<std::shared_mutex> lock{inUse};
};

Expected<std::shared_ptr<Mpi>> Mpi::start(const Launch &launch) {
  Expected<const spmd_mpi *> table = loadPlugin(launch);
  if (!table)
    return table.error();
  spmd_mpi_error error = {};
  if ((*table)->start(&error) != 0)
    return Status::failed(error.text);
  {
    std::unique_lock<std::shared_mutex> lock(inUse);
    started = *table;
  }
  std::atexit(endMpi);
  std::shared_ptr<Mpi> mpi(new Mpi(*table));
  if (mpi->size() != launch.world || mpi->rank() != launch.rank)
    return Status::badInput(mpi->describe() + " calls this process " + std::to_string(mpi->rank()) + " of " +
                            std::to_string(mpi->size()) + ", the launcher " + std::to_string(launch.rank) + " of " +
                            std::to_string(launch.world) + "; is the launcher another MPI's? SPMD_MPI names the one to use");
  return mpi;
}

std::string Mpi::describe() const {
  char text[128] = "";
  table->describe(text, sizeof text);
  return text;
}

Expected<int32_t> Mpi::open() {
  spmd_mpi_error error = {};
  int32_t space = 0;
  if (table->open(&space, &error) != 0)
    return Status::failed(error.text);
  return space;
}

Expected<std::vector<std::string>> Mpi::gather(int32_t space, const std::string &mine) {
  auto count = static_cast<size_t>(size());
  auto length = static_cast<int64_t>(mine.size());
  std::vector<int64_t> lengths(count);
  spmd_mpi_error error = {};
  if (table->gather(space, &length, sizeof length, lengths.data(), &error) != 0)
    return Status::failed(error.text);
  auto longest = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::string padded = mine, all(longest * count, 0);
  padded.resize(longest);
  if (longest && table->gather(space, padded.data(), static_cast<int64_t>(longest), all.data(), &error) != 0)
    return Status::failed(error.text);
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(all.substr(i * longest, static_cast<size_t>(lengths[i])));
  return parts;
}

/// What a call of the library came to.
static Status check(int code, const spmd_mpi_error &error) {
  return code == 0 ? Status::success() : Status::failed(error.text);
}

static Status hasEnded() { return Status::failed("this process ends, and MPI with it"); }

Status Mpi::send(int32_t space, const void *bytes, int64_t count, int64_t to, int32_t tag, Request &request) {
  Use use;
  if (use.isOver())
    return hasEnded();
  spmd_mpi_error error = {};
  spmd_mpi_request made = {};
  Status status = check(table->send(space, bytes, count, static_cast<int32_t>(to), tag, &made, &error), error);
  request.handle = made.handle;
  return status;
}

Status Mpi::receive(int32_t space, void *bytes, int64_t count, int64_t from, int32_t tag, Request &request) {
  Use use;
  if (use.isOver())
    return hasEnded();
  spmd_mpi_error error = {};
  spmd_mpi_request made = {};
  Status status = check(table->receive(space, bytes, count, static_cast<int32_t>(from), tag, &made, &error), error);
  request.handle = made.handle;
  return status;
}

Expected<bool> Mpi::test(Request &request) {
  Use use;
  if (use.isOver())
    return hasEnded();
  spmd_mpi_error error = {};
  spmd_mpi_request tested = {request.handle};
  int32_t done = 0;
  Status status = check(table->test(&tested, 1, &done, &error), error);
  request.handle = tested.handle;
  return status.ok() ? Expected<bool>(done != 0) : Expected<bool>(status);
}

void Mpi::cancel(Request &request) {
  Use use;
  spmd_mpi_request given = {request.handle};
  if (!use.isOver())
    table->cancel(&given, 1);
  request.handle = given.handle;
}

Expected<int64_t> Mpi::probe(int32_t space, int32_t tag, int64_t &from) {
  Use use;
  if (use.isOver())
    return int64_t(-1);
  spmd_mpi_error error = {};
  int32_t source = 0;
  int64_t count = -1;
  Status status = check(table->probe(space, tag, &source, &count, &error), error);
  from = source;
  return status.ok() ? Expected<int64_t>(count) : Expected<int64_t>(status);
}

Expected<std::unique_ptr<Meeting>> MpiMeeting::meet(std::shared_ptr<Mpi> mpi) {
  Expected<int32_t> space = mpi->open();
  if (!space)
    return space.error();
  return std::unique_ptr<Meeting>(new MpiMeeting(std::move(mpi), *space));
}

} // namespace spmd::runtime
