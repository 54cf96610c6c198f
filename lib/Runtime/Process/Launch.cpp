//===- Launch.cpp - Which of several processes this is --------------------===//
//
// Where the names come from: torch/distributed/elastic/agent/server/local_elastic_agent.py
// (torchrun), ompi's prte_globals and "mpirun" manual (Open MPI 4 and 5), MPICH's
// hydra (src/pm/hydra), and srun's manual, "OUTPUT ENVIRONMENT VARIABLES".
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Process/Launch.h"

#include <charconv>
#include <cstdlib>
#include <unistd.h>

namespace spmd::runtime {

const char *nameOf(Launcher launcher) {
  switch (launcher) {
  case Launcher::None:
    return "none";
  case Launcher::Torchrun:
    return "torchrun";
  case Launcher::OpenMpi:
    return "mpirun";
  case Launcher::Pmi:
    return "mpiexec";
  case Launcher::Slurm:
    return "srun";
  case Launcher::Environment:
    return "environment";
  }
  return "none";
}

namespace {

constexpr Launcher kLaunchers[] = {Launcher::Torchrun, Launcher::OpenMpi,     Launcher::Pmi,
                                   Launcher::Slurm,    Launcher::Environment, Launcher::None};

std::optional<int64_t> parseNumber(const std::string &text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

/// Reads variables; the first that is missing or no number in its range is kept as the error.
class Reader {
public:
  Reader(Launcher launcher, const Environment &environment) : launcher(launcher), environment(environment) {}

  std::string text(const char *name) const {
    const char *value = environment(name);
    return value ? value : "";
  }
  bool has(const char *name) const { return environment(name) != nullptr; }

  int64_t number(const char *name, int64_t low, int64_t high) {
    if (!has(name))
      return fail(std::string(nameOf(launcher)) + " did not set " + name);
    std::optional<int64_t> value = parseNumber(text(name));
    if (!value || *value < low || *value > high)
      return fail(std::string(name) + "=" + text(name) + ": expected a number from " + std::to_string(low) + " to " +
                  std::to_string(high));
    return *value;
  }
  int64_t number(const char *name, int64_t low, int64_t high, int64_t missing) {
    return has(name) ? number(name, low, high) : missing;
  }

  Status status;

private:
  int64_t fail(std::string message) {
    if (status.ok())
      status = Status::badInput(std::move(message));
    return 0;
  }
  Launcher launcher;
  const Environment &environment;
};

constexpr int64_t kMostRanks = 1 << 24;

/// Batch scripts and interactive shells are steps of their own, with these numbers (slurm.h, SLURM_BATCH_SCRIPT and
/// its like): what runs in them was not started by srun.
constexpr int64_t kFirstSpecialStep = 0xfffffff0;

bool hasStarted(Launcher launcher, const Environment &environment) {
  Reader reader(launcher, environment);
  switch (launcher) {
  case Launcher::None:
    return false;
  case Launcher::Torchrun:
    return reader.has("TORCHELASTIC_RUN_ID") && reader.has("RANK");
  case Launcher::OpenMpi:
    return reader.has("OMPI_COMM_WORLD_RANK");
  case Launcher::Pmi:
    return reader.has("PMI_RANK");
  case Launcher::Slurm: {
    std::optional<int64_t> step = parseNumber(reader.text("SLURM_STEP_ID"));
    return step && *step < kFirstSpecialStep && reader.has("SLURM_PROCID");
  }
  case Launcher::Environment:
    return reader.has("RANK") && reader.has("WORLD_SIZE") && reader.has("MASTER_ADDR") && reader.has("MASTER_PORT");
  }
  return false;
}

void readRank(Reader &reader, Launch &launch, const char *rank, const char *world) {
  launch.world = reader.number(world, 1, kMostRanks);
  launch.rank = reader.number(rank, 0, std::max<int64_t>(launch.world, 1) - 1);
}

void readAddress(Reader &reader, Launch &launch) {
  launch.address = reader.text("MASTER_ADDR");
  launch.port = static_cast<int>(reader.number("MASTER_PORT", 1, 65535, launch.port));
}

/// A port that two steps of one cluster rarely share.
int getPort(int64_t job, int64_t step) { return static_cast<int>(20000 + (job * 64 + step) % 40000); }

void readVariables(Reader &reader, Launch &launch) {
  switch (launch.launcher) {
  case Launcher::None:
    return;
  case Launcher::Torchrun:
    readRank(reader, launch, "RANK", "WORLD_SIZE");
    readAddress(reader, launch);
    launch.local = reader.number("LOCAL_WORLD_SIZE", 0, launch.world, 0);
    launch.job = reader.text("TORCHELASTIC_RUN_ID");
    launch.restart = reader.number("TORCHELASTIC_RESTART_COUNT", 0, kMostRanks, 0);
    launch.hasAgentStore = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return;
  case Launcher::OpenMpi:
    readRank(reader, launch, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    readAddress(reader, launch);
    launch.local = reader.number("OMPI_COMM_WORLD_LOCAL_SIZE", 0, launch.world, 0);
    launch.job = reader.has("PMIX_NAMESPACE") ? reader.text("PMIX_NAMESPACE") : reader.text("OMPI_MCA_ess_base_jobid");
    launch.secret = reader.text("OMPI_MCA_orte_precondition_transports");
    return;
  case Launcher::Pmi:
    readRank(reader, launch, "PMI_RANK", "PMI_SIZE");
    readAddress(reader, launch);
    launch.local = reader.number("MPI_LOCALNRANKS", 0, launch.world, 0);
    // Hydra gives no name; its proxy is the parent of all processes of a host.
    launch.job = reader.has("PMI_JOBID") ? reader.text("PMI_JOBID") : "parent-" + std::to_string(getppid());
    return;
  case Launcher::Slurm: {
    int64_t job = reader.number("SLURM_JOB_ID", 0, INT64_MAX / 64 - 1),
            step = reader.number("SLURM_STEP_ID", 0, INT32_MAX);
    readRank(reader, launch, "SLURM_PROCID", reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
    launch.job = std::to_string(job) + "." + std::to_string(step);
    launch.address = getFirstHost(reader.text(reader.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST"
                                                                                : "SLURM_JOB_NODELIST"));
    launch.port = getPort(job, step);
    if (reader.has("MASTER_ADDR"))
      readAddress(reader, launch);
    launch.restart = reader.number("SLURM_RESTART_COUNT", 0, kMostRanks, 0);
    return;
  }
  case Launcher::Environment:
    readRank(reader, launch, "RANK", "WORLD_SIZE");
    launch.local = reader.number("LOCAL_WORLD_SIZE", 0, launch.world, 0);
    readAddress(reader, launch);
    return;
  }
}

/// Options go before what the launcher says.
Status applyOptions(const LaunchOptions &options, Launch &launch) {
  if (options.rank.has_value() != options.world.has_value())
    return Status::badInput("--rank and --world-size belong together");
  if (options.rank) {
    if (*options.world < 1 || *options.rank < 0 || *options.rank >= *options.world)
      return Status::badInput("--rank=" + std::to_string(*options.rank) + " --world-size=" +
                              std::to_string(*options.world) + ": expected a rank from 0 to below the world size");
    launch.rank = *options.rank;
    launch.world = *options.world;
  }
  if (options.address.empty())
    return Status::success();
  size_t colon = options.address.rfind(':');
  std::optional<int64_t> port =
      colon == std::string::npos ? std::nullopt : parseNumber(options.address.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 || colon == 0)
    return Status::badInput("--address=" + options.address + ": expected HOST:PORT");
  launch.address = options.address.substr(0, colon);
  launch.port = static_cast<int>(*port);
  launch.hasAgentStore = false;
  return Status::success();
}

Expected<Launcher> findLauncher(const LaunchOptions &options, const Environment &environment) {
  std::string names;
  for (Launcher launcher : kLaunchers) {
    if (options.launcher.empty() ? hasStarted(launcher, environment) : options.launcher == nameOf(launcher))
      return launcher;
    names += (names.empty() ? "" : ", ") + std::string(nameOf(launcher));
  }
  if (options.launcher.empty())
    return Launcher::None;
  return Status::badInput("--launcher=" + options.launcher + ": expected " + names);
}

} // namespace

Expected<Launch> readLaunch(const LaunchOptions &options, const Environment &environment) {
  Expected<Launcher> launcher = findLauncher(options, environment);
  if (!launcher)
    return launcher.error();
  Launch launch;
  launch.launcher = *launcher;
  Reader reader(*launcher, environment);
  readVariables(reader, launch);
  if (!reader.status.ok())
    return reader.status;
  if (Status status = applyOptions(options, launch); !status.ok())
    return status;
  if (!launch.isAlone() && launch.address.empty() && launch.job.empty())
    return Status::badInput(
        (*launcher == Launcher::None ? std::string("nothing says") : std::string(nameOf(*launcher)) + " does not say") +
        " where the processes can meet; set MASTER_ADDR and MASTER_PORT, or --address=HOST:PORT");
  if (!launch.isAlone() && !launch.address.empty() && launch.port == 0)
    return Status::badInput("MASTER_ADDR=" + launch.address + " without MASTER_PORT");
  return launch;
}

Expected<Launch> readLaunch(const LaunchOptions &options) {
  return readLaunch(options, [](const char *name) -> const char * { return std::getenv(name); });
}

std::string getFirstHost(const std::string &list) {
  size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket)
    return list.substr(0, comma);
  size_t end = list.find_first_of("-,]", bracket);
  size_t close = list.find(']', bracket);
  if (end == std::string::npos || close == std::string::npos)
    return "";
  // "rack[1-2]node[3-4]": what follows a bracket may have brackets of its own.
  std::string rest = list.substr(close + 1);
  std::string tail = rest.empty() || rest[0] == ',' ? "" : getFirstHost(rest);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + tail;
}

} // namespace spmd::runtime
