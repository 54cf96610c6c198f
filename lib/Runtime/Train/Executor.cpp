//===- Executor.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Train/Executor.h"
#include "spmd/Runtime/Core/Collective.h"
#include "spmd/Runtime/Core/Text.h"

#include <cstdio>

using namespace spmd::runtime;

Expected<Fault> spmd::runtime::parseFault(const std::string &text) {
  Fault fault;
  char kind[16] = "";
  long long rank = -1, command = -1;
  int end = 0;
  if (std::sscanf(text.c_str(), "%15[a-z]:%lld:%lld%n", kind, &rank, &command, &end) == 3 &&
      static_cast<size_t>(end) == text.size() && rank >= 0 && command >= 0) {
    std::string name = kind;
    fault.kind = name == "exit"    ? Fault::Kind::Exit
                 : name == "stall" ? Fault::Kind::Stall
                 : name == "skip"  ? Fault::Kind::Skip
                                   : Fault::Kind::None;
  }
  if (fault.kind == Fault::Kind::None)
    return Status::badInput("bad fault '" + text +
                            "'; expected exit:RANK:COMMAND, "
                            "stall:RANK:COMMAND or skip:RANK:COMMAND");
  fault.rank = rank;
  fault.command = command;
  return fault;
}

Status Executor::readBack(int64_t, int64_t, int64_t, void *, int64_t) {
  return Status::badInput("what a step gave is read before the next one");
}

Status spmd::runtime::exitedOnPurpose(int64_t rank, int32_t id, const Command &command) {
  return Status::failed("rank " + std::to_string(rank) + " exited at command " + std::to_string(id) + " (" +
                            command.describe() + ")",
                        static_cast<int32_t>(rank), id, command.location);
}

Status spmd::runtime::madeNoProgress(const RanksHere &here, double seconds, int64_t rank, int32_t id,
                                     const Command *command) {
  std::string message = std::string(here.areAll() ? "no rank" : "no rank of this process") +
                        " made progress within the time-out of " + formatNumber(seconds, 6) + " s";
  if (!command)
    return Status::failed(message + kMoreTime);
  return Status::failed(message + ": rank " + std::to_string(rank) + " is in command " + std::to_string(id) + " (" +
                            command->describe() + ")" + kMoreTime,
                        static_cast<int32_t>(rank), id, command->location);
}
