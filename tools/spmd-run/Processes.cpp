//===- Processes.cpp - One of several processes of a job ------------------===//

#include "Processes.h"

#include "spmd/Runtime/Process/Join.h"

#include <cstdio>
#include <sstream>

namespace spmd::runtime {

static Expected<bool> logs(const std::string &logRanks, int64_t rank) {
  if (logRanks == "all")
    return true;
  bool isNamed = false;
  std::istringstream parts(logRanks);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.empty() || part.size() > 9 || part.find_first_not_of("0123456789") != std::string::npos)
      return Status::badInput("--log-ranks=" + logRanks + ": expected all, or ranks such as 0,3");
    isNamed |= std::stoll(part) == rank;
  }
  return isNamed;
}

Expected<Launch> enterJob(const LaunchOptions &options, const std::string &logRanks, TrainerOptions &trainer,
                          bool &isLogged) {
  Expected<Launch> launch = joinJob(options, trainer);
  if (!launch)
    return launch;
  Expected<bool> named = logs(logRanks, launch->rank);
  if (!named)
    return named.error();
  isLogged = *named;
  if (!launch->isAlone() && !isLogged && !std::freopen("/dev/null", "w", stdout))
    return Status::failed("cannot open /dev/null");
  return launch;
}

} // namespace spmd::runtime
