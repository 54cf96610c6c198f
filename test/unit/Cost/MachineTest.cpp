//===- MachineTest.cpp - Machine files and their errors -------------------===//

#include "MachineReader.h"
#include "spmd/Cost/MachineFile.h"
#include "spmd/Runtime/Core/Json.h"

#include <gtest/gtest.h>

using namespace spmd::cost;

static std::string textOf(const std::string &name) {
  auto text = spmd::runtime::readFile(std::string(MACHINES) + "/" + name + ".json");
  EXPECT_TRUE(text);
  return *text;
}

/// The error of the reference with `from` replaced by `to`.
static std::string errorWith(const std::string &from, const std::string &to) {
  std::string text = textOf("reference-h100");
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  auto machine = readMachine("m.json", text);
  return machine ? "" : machine.error().message;
}

TEST(MachineTest, AllInstalledFilesAreReadable) {
  std::vector<std::string> machines = listMachines(MACHINES), networks = listMachines(MACHINES, true);
  EXPECT_EQ(machines, (std::vector<std::string>{"a100", "h200", "h200-generated", "host", "reference-h100"}));
  EXPECT_EQ(networks,
            (std::vector<std::string>{"network-100g", "network-400g", "network-a100", "network-host", "network-pcie"}));
  for (const std::string &machine : machines)
    for (const std::string &network : networks) {
      auto loaded = loadMachine(MACHINES, machine, network);
      EXPECT_TRUE(loaded) << loaded.error().message;
      EXPECT_EQ(loaded->network.name, network);
    }
}

TEST(MachineTest, TheReferenceOfTheCompilerIsTheInstalledOne) {
  const Machine &built = referenceMachine();
  auto loaded = loadMachine(MACHINES, "reference-h100");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(built.name, loaded->name);
  EXPECT_EQ(built.network.name, loaded->network.name);
  EXPECT_EQ(built.memoryBandwidth(), loaded->memoryBandwidth());
  EXPECT_EQ(built.matrixPeaks.bf16, loaded->matrixPeaks.bf16);
  EXPECT_EQ(built.gemmEfficiency(4096), loaded->gemmEfficiency(4096));
}

TEST(MachineTest, TheReferenceIsFrozen) {
  auto machine = loadMachine(MACHINES, "reference-h100");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->matrixPeaks.bf16, 989e12);
  EXPECT_EQ(machine->gemmEfficiency(1024), 0.62);
  EXPECT_EQ(machine->gemmEfficiency(2047), 0.62);
  EXPECT_EQ(machine->gemmEfficiency(2048), 0.72);
  EXPECT_EQ(machine->groupedGemmEfficiency, 0.62);
  EXPECT_EQ(machine->attentionForward, 600e12);
  EXPECT_EQ(machine->attentionBackward, 500e12);
  EXPECT_DOUBLE_EQ(machine->memoryBandwidth(), 0.9 * 3.35e12);
  EXPECT_EQ(machine->launch, 1.5e-6);
  EXPECT_EQ(machine->slowdown, 0.07);
  EXPECT_EQ(machine->network.name, "network-400g");
  auto path = machine->network.findPath({512, 64});
  ASSERT_TRUE(path);
  EXPECT_EQ(path->latency, 1e-3);
  EXPECT_EQ(path->bandwidth, 280e9);
}

TEST(MachineTest, ErrorsNameThePlaceAndEndWithAHint) {
  EXPECT_EQ(errorWith("\"launch\"", "\"lunch\""),
            "m.json: /lunch: unknown key\n  hint: the keys here are format, version, description, matrix_peak, gemm, "
            "grouped_gemm_efficiency, attention, memory_peak, memory_efficiency, launch, slowdown, slowing_bytes, "
            "host_link, network");
  EXPECT_EQ(errorWith("\"forward\": {", "\"forward\": {\"unit\": 1, "),
            "m.json: /attention/forward/unit: unknown key\n  hint: the keys here are value, source");
  EXPECT_EQ(errorWith("0.07", "-0.07"),
            "m.json: /slowdown/value: expected a positive number, found -0.07\n  hint: times "
            "are in seconds, rates in bytes or FLOP per second");
  EXPECT_EQ(errorWith("0.07", "\"0.07\""), "m.json: /slowdown/value: expected a number, found \"0.07\"\n  hint: "
                                           "docs/cost.md lists the keys of machine and network files");
  EXPECT_EQ(
      errorWith("0.72", "72"),
      "m.json: /gemm/1/efficiency/value: expected a share of at most 1, found 72\n  hint: efficiencies are shares of "
      "the peak");
  const std::string hint = "\n  hint: docs/cost.md lists the keys of machine and network files";
  EXPECT_EQ(errorWith("\"min_side\": 2048", "\"min_side\": 1"),
            "m.json: /gemm/1/min_side: expected an integer of at least 2, found 1" + hint);
  EXPECT_EQ(errorWith("spmd-machine", "spmd-network"),
            "m.json: /format: expected \"spmd-machine\", found \"spmd-network\"" + hint);
  EXPECT_EQ(errorWith("\"version\": 1", "\"version\": 2"), "m.json: /version: expected 1, found 2" + hint);
  EXPECT_EQ(errorWith("\"source\": \"assumed\"", "\"source\": \"\""),
            "m.json: /gemm/0/efficiency/source: expected where the value comes from, found \"\"\n  hint: write "
            "\"assumed\" if "
            "it is a guess");
}

TEST(MachineTest, EveryMissingKeyIsAnError) {
  for (const char *key :
       {"format", "version", "description", "matrix_peak", "gemm", "grouped_gemm_efficiency", "attention",
        "memory_peak", "memory_efficiency", "launch", "slowdown", "slowing_bytes", "host_link", "network"}) {
    std::string quoted = std::string("\"") + key + "\"";
    std::string problem = errorWith(quoted + ":", "\"x\":");
    EXPECT_NE(problem.find("\n  hint: "), std::string::npos) << key;
  }
  // Not only as the key that takes its place.
  EXPECT_EQ(errorWith("  \"launch\": {\"value\": 1.5e-6, \"source\": \"assumed; a node of a CUDA graph\"},\n", ""),
            "m.json: /launch: is missing\n  hint: docs/cost.md lists the keys of machine and network files");
}

TEST(MachineTest, ANetworkMayBeInsideTheMachine) {
  std::string text = textOf("reference-h100"), network = textOf("network-pcie"), name = "\"network-400g\"";
  text.replace(text.find(name), name.size(), network);
  auto machine = readMachine("m.json", text);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->network, "");
  EXPECT_EQ(machine->machine.network.node.bandwidth, 40e9);
}

TEST(MachineTest, NamesThatNoFileHas) {
  auto machine = loadMachine(MACHINES, "h300");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().message,
            "--machine=h300: there is no such machine\n  hint: a path of a JSON file, or one of "
            "a100, h200, h200-generated, host, reference-h100");
  auto network = loadMachine(MACHINES, "h200", "net.json");
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().message.substr(0, 49), "--network=net.json: there is no such network\n  hi");
}
