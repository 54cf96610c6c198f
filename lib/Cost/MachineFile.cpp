//===- MachineFile.cpp ----------------------------------------------------===//

#include "spmd/Cost/MachineFile.h"
#include "MachineReader.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <filesystem>

using namespace spmd;
using namespace spmd::cost;
namespace fs = std::filesystem;

/// Names of networks begin so; all other files of the folder are machines.
static constexpr char kNetworkPrefix[] = "network-";

static bool isPath(const std::string &text) {
  return text.find('/') != std::string::npos || fs::path(text).extension() == ".json";
}

static std::string nameOf(const std::string &text) { return isPath(text) ? fs::path(text).stem().string() : text; }

/// The file that an option names. A name that no file has is an error that lists the names there are.
static runtime::Expected<std::string> findFile(const std::string &folder, const std::string &option,
                                               const std::string &text) {
  std::error_code ignored;
  bool isNetwork = option == "--network";
  std::string path = isPath(text) ? text : folder + "/" + text + ".json";
  if (fs::is_regular_file(path, ignored))
    return path;
  return runtime::Status::badInput(option + "=" + text + ": there is no such " + (isNetwork ? "network" : "machine") +
                                   "\n  hint: a path of a JSON file, or one of " +
                                   runtime::joinNames(listMachines(folder, isNetwork)));
}

std::vector<std::string> spmd::cost::listMachines(const std::string &folder, bool networks) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, ignored))
    if (std::string name = entry.path().stem().string();
        entry.path().extension() == ".json" && (name.rfind(kNetworkPrefix, 0) == 0) == networks)
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string spmd::cost::machineFolder() {
  std::error_code ignored;
  fs::path program = fs::canonical("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / "share" / "spmd" / "machines").string();
}

static runtime::Expected<Network> loadNetwork(const std::string &folder, const std::string &text) {
  runtime::Expected<std::string> path = findFile(folder, "--network", text);
  if (!path)
    return path.error();
  runtime::Expected<std::string> content = runtime::readFile(*path);
  if (!content)
    return content.error();
  runtime::Expected<Network> network = readNetwork(*path, *content);
  if (network)
    network->name = nameOf(text);
  return network;
}

runtime::Expected<Machine> spmd::cost::loadMachine(const std::string &folder, const std::string &machine,
                                                   const std::string &network) {
  runtime::Expected<std::string> path = findFile(folder, "--machine", machine);
  if (!path)
    return path.error();
  runtime::Expected<std::string> content = runtime::readFile(*path);
  if (!content)
    return content.error();
  runtime::Expected<MachineText> text = readMachine(*path, *content);
  if (!text)
    return text.error();
  text->machine.name = nameOf(machine);
  std::string chosen = network.empty() ? text->network : network;
  if (chosen.empty()) {
    text->machine.network.name = text->machine.name;
    return text->machine;
  }
  runtime::Expected<Network> loaded = loadNetwork(folder, chosen);
  if (!loaded)
    return loaded.error();
  text->machine.network = std::move(*loaded);
  return text->machine;
}
