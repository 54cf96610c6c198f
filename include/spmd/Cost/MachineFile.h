//===- MachineFile.h - Reading machines and networks --------------*- C++ -*-===//

#ifndef SPMD_COST_MACHINEFILE_H
#define SPMD_COST_MACHINEFILE_H

#include "spmd/Cost/Machine.h"

#include <string>
#include <vector>

namespace spmd::cost {

/// The machine that `--machine=` and `--network=` name: a file if the text has a `/` or ends in `.json`, else a file of
/// the installed `folder`. `network` may be empty: then it is the network of the machine's file. Reading is strict: an
/// unknown or missing key, another type and a number that is not positive are errors with a JSON pointer and a hint.
runtime::Expected<Machine> loadMachine(const std::string &folder, const std::string &machine,
                                       const std::string &network = "");

/// The names of the machines in `folder`, sorted; with `networks` the names of the networks.
std::vector<std::string> listMachines(const std::string &folder, bool networks = false);

/// The installed folder of machines: `share/spmd/machines` beside the folder of the running program.
std::string machineFolder();

/// The machine that the compiler's choices are priced on: `reference-h100` with its network, part of the program.
const Machine &referenceMachine();

} // namespace spmd::cost

#endif // SPMD_COST_MACHINEFILE_H
