//===- Fault.cpp ----------------------------------------------------------===//

#include "spmd/Runtime/Train/Executor.h"

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
