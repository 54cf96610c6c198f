//===- MachineReader.cpp --------------------------------------------------===//

#include "MachineReader.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cmath>

using namespace spmd;
using namespace spmd::cost;
using runtime::JsonValue;

/// The version of both formats.
static constexpr int64_t kVersion = 1;
static constexpr char kHint[] = "\n  hint: docs/cost.md lists the keys of machine and network files";

/// Fails at each member that is not in `keys`.
static void checkKeys(JsonValue object, const std::vector<std::string> &keys) {
  object.forEachMember([&](const std::string &key, JsonValue value) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      value.fail("unknown key\n  hint: the keys here are " + runtime::joinNames(keys));
  });
}

/// `{"value": number, "source": text}`.
static double readConstant(JsonValue constant) {
  checkKeys(constant, {"value", "source"});
  double value = constant["value"].asDouble();
  if (!(value > 0) || !std::isfinite(value))
    constant["value"].fail("expected a positive number, found " + runtime::formatNumber(value) +
                           "\n  hint: times are in seconds, rates in bytes or FLOP per second");
  if (constant["source"].asString().empty())
    constant["source"].fail(
        "expected where the value comes from, found \"\"\n  hint: write \"assumed\" if it is a guess");
  return value;
}

static double readShare(JsonValue constant) {
  double value = readConstant(constant);
  if (value > 1)
    constant["value"].fail("expected a share of at most 1, found " + runtime::formatNumber(value) +
                           "\n  hint: efficiencies are shares of the peak");
  return value;
}

/// A count that has no source: it says which case a row is for.
static int64_t readCount(JsonValue value, int64_t least) {
  int64_t count = value.asInt();
  if (count < least)
    value.fail("expected an integer of at least " + std::to_string(least) + ", found " + std::to_string(count) + kHint);
  return count;
}

static void readHeader(JsonValue root, const std::string &format) {
  if (std::string found = root["format"].asString(); found != format)
    root["format"].fail("expected \"" + format + "\", found \"" + found + "\"" + kHint);
  if (int64_t found = root["version"].asInt(); found != kVersion)
    root["version"].fail("expected " + std::to_string(kVersion) + ", found " + std::to_string(found) + kHint);
  root["description"].asString();
}

/// The error of a document, which ends with a hint.
static runtime::Status finish(const runtime::JsonDocument &document) {
  runtime::Status status = document.status();
  if (!status.ok() && status.message.find("\n  hint: ") == std::string::npos)
    status.message += kHint;
  return status;
}

static Path readPath(JsonValue path) {
  checkKeys(path, {"latency", "bandwidth"});
  return {readConstant(path["latency"]), readConstant(path["bandwidth"])};
}

static Network readNetwork(JsonValue root, const std::string &name) {
  readHeader(root, "spmd-network");
  checkKeys(root, {"format", "version", "description", "ranks_per_node", "node", "fabric"});
  Network network;
  network.name = name;
  network.ranksPerNode = readCount(root["ranks_per_node"], 1);
  network.node = readPath(root["node"]);
  root["fabric"].forEach([&](JsonValue row) {
    checkKeys(row, {"nodes", "whole", "single"});
    int64_t last = network.fabric.empty() ? 1 : network.fabric.back().nodes;
    network.fabric.push_back({readCount(row["nodes"], last + 1), readPath(row["whole"]), readPath(row["single"])});
  });
  return network;
}

static std::vector<GemmEfficiency> readGemm(JsonValue list) {
  std::vector<GemmEfficiency> rows;
  list.forEach([&](JsonValue row) {
    checkKeys(row, {"min_side", "efficiency"});
    rows.push_back(
        {readCount(row["min_side"], rows.empty() ? 1 : rows.back().minSide + 1), readShare(row["efficiency"])});
  });
  if (rows.empty() || rows.front().minSide != 1)
    list.fail(
        "expected a first row with \"min_side\": 1, found none\n  hint: products of all sizes need an efficiency");
  return rows;
}

static MachineText readMachine(JsonValue root, const std::string &name) {
  readHeader(root, "spmd-machine");
  checkKeys(root, {"format", "version", "description", "matrix_peak", "gemm", "grouped_gemm_efficiency", "attention",
                   "memory_peak", "memory_efficiency", "launch", "slowdown", "slowing_bytes", "host_link", "network"});
  MachineText text;
  Machine &machine = text.machine;
  machine.name = name;
  machine.description = root["description"].asString();
  JsonValue peaks = root["matrix_peak"];
  checkKeys(peaks, {"bf16", "f16", "f32", "f64"});
  machine.matrixPeaks = {readConstant(peaks["bf16"]), readConstant(peaks["f16"]), readConstant(peaks["f32"]),
                         readConstant(peaks["f64"])};
  machine.gemm = readGemm(root["gemm"]);
  machine.groupedGemmEfficiency = readShare(root["grouped_gemm_efficiency"]);
  JsonValue attention = root["attention"];
  checkKeys(attention, {"forward", "backward"});
  machine.attentionForward = readConstant(attention["forward"]);
  machine.attentionBackward = readConstant(attention["backward"]);
  machine.memoryPeak = readConstant(root["memory_peak"]);
  machine.memoryEfficiency = readShare(root["memory_efficiency"]);
  machine.launch = readConstant(root["launch"]);
  machine.slowdown = readConstant(root["slowdown"]);
  machine.slowingBytes = readConstant(root["slowing_bytes"]);
  JsonValue host = root["host_link"];
  checkKeys(host, {"latency", "to_host", "from_host"});
  machine.host = {readConstant(host["latency"]), readConstant(host["to_host"]), readConstant(host["from_host"])};
  if (JsonValue network = root["network"]; network.kind() == JsonValue::Kind::Object)
    machine.network = readNetwork(network, name);
  else
    text.network = network.asString();
  return text;
}

runtime::Expected<MachineText> spmd::cost::readMachine(const std::string &path, std::string_view text) {
  runtime::JsonDocument document(path, text);
  MachineText machine = ::readMachine(document.root(), path);
  if (runtime::Status status = finish(document); !status.ok())
    return status;
  return machine;
}

runtime::Expected<Network> spmd::cost::readNetwork(const std::string &path, std::string_view text) {
  runtime::JsonDocument document(path, text);
  Network network = ::readNetwork(document.root(), path);
  if (runtime::Status status = finish(document); !status.ok())
    return status;
  return network;
}
