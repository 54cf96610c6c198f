//===- MachineReader.h - A machine or network as JSON -----------*- C++ -*-===//

#ifndef SPMD_LIB_COST_MACHINEREADER_H
#define SPMD_LIB_COST_MACHINEREADER_H

#include "spmd/Cost/Machine.h"

#include <string>
#include <string_view>

namespace spmd::cost {

/// A machine, and the network that its file names; empty when the file holds the network itself.
struct MachineText {
  Machine machine;
  std::string network;
};

/// Reads the text of a file; `path` is what errors call it.
runtime::Expected<MachineText> readMachine(const std::string &path, std::string_view text);
runtime::Expected<Network> readNetwork(const std::string &path, std::string_view text);

} // namespace spmd::cost

#endif // SPMD_LIB_COST_MACHINEREADER_H
