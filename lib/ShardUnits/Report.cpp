//===- Report.cpp - what shard units cost ---------------------------------===//

#include "spmd/ShardUnits/Report.h"

#include "spmd/Runtime/Core/Text.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace spmd;
using namespace spmd::units;
using runtime::formatCount;
using Json = nlohmann::ordered_json;

static bool isSharded(const Unit &unit, const Mesh &mesh) {
  return unit.options.mode != Mode::replicate && mesh.shard > 1;
}

/// What travels: the dtype of mixed precision, or the parameters' own.
static runtime::DType getWireType(const Unit &unit, const UnitBuffer &buffer) {
  return unit.options.precision && unit.options.precision->param ? *unit.options.precision->param : buffer.dtype;
}

UnitCost units::getCost(const ModuleTree &tree, const Unit &unit, const Mesh &mesh) {
  UnitCost cost;
  for (const UnitBuffer &buffer : unit.buffers) {
    cost.padding += buffer.padded;
    for (size_t parameter : buffer.parameters) {
      ++cost.numParameters;
      cost.numel += tree.getNumel(parameter);
      cost.frozenNumel += tree.getParameter(parameter).trainable ? 0 : tree.getNumel(parameter);
    }
    bool isCut = isSharded(unit, mesh) && unit.options.mode != Mode::shardOptimizer;
    int64_t kept = isCut ? buffer.padded / mesh.shard : buffer.padded;
    cost.keptBytes += kept * runtime::sizeOf(buffer.dtype);
    if (isSharded(unit, mesh))
      cost.gatheredBytes += buffer.padded * runtime::sizeOf(getWireType(unit, buffer));
  }
  cost.padding -= cost.numel;
  return cost;
}

static std::string getName(const ModuleTree &tree, const Unit &unit) {
  return unit.modules.empty() ? "" : tree.getModule(unit.modules.front()).path;
}

std::vector<std::string> units::getCostWarnings(const ModuleTree &tree, const ShardUnits &units) {
  constexpr int64_t megabyte = 1000000;
  std::vector<std::string> warnings, small;
  int64_t numel = 0, rootNumel = 0;
  for (const Unit &unit : units.units) {
    UnitCost cost = getCost(tree, unit, units.mesh);
    numel += cost.numel;
    rootNumel = unit.modules.front() == 0 ? cost.numel : rootNumel;
    if (isSharded(unit, units.mesh) && cost.numParameters > 0 && cost.gatheredBytes < megabyte)
      small.push_back(formatPath(getName(tree, unit)));
  }
  if (!small.empty()) {
    constexpr size_t shown = 5;
    std::string text;
    for (size_t i = 0; i < std::min(shown, small.size()); ++i)
      text += (i ? ", " : "") + small[i];
    warnings.push_back(std::to_string(small.size()) + (small.size() == 1 ? " unit gathers" : " units gather") +
                       " less than 1 MB, which takes as long as latency does: " + text +
                       (small.size() > shown ? ", ..." : ""));
  }
  if (rootNumel * 2 > numel && units.units.size() > 1)
    warnings.push_back("the root unit holds " + std::to_string(rootNumel * 100 / numel) +
                       "% of the parameters, which are all gathered at once");
  else if (units.units.size() == 1 && numel > 0)
    warnings.push_back("the root unit holds all of the parameters, which are all gathered at once");
  return warnings;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string formatReshard(const UnitOptions &options) {
  int64_t value = options.reshardAfterForward.value_or(UnitOptions::kReshard);
  return value == UnitOptions::kKeep ? "no" : value == UnitOptions::kReshard ? "yes" : std::to_string(value);
}

static std::string formatPrecision(const std::optional<Precision> &precision) {
  std::string text;
  for (auto &[name, dtype] : precision.value_or(Precision()).entries())
    if (dtype)
      text += (text.empty() ? "" : " ") + std::string(name) + "=" + runtime::nameOf(*dtype);
  return text.empty() ? "-" : text;
}

static std::string formatModules(const ModuleTree &tree, const Unit &unit) {
  std::string text;
  for (size_t module : unit.modules)
    text += (text.empty() ? "" : " + ") + formatPath(tree.getModule(module).path);
  return text;
}

std::string units::formatUnits(const ModuleTree &tree, const ShardUnits &units) {
  std::vector<std::vector<std::string>> rows = {{"unit", "mode", "reshard", "precision", "prefetch", "parameters",
                                                 "elements", "padding", "frozen", "bytes gathered", "bytes per rank"}};
  UnitCost total;
  auto add = [&](const Unit &unit, const std::string &name) {
    UnitCost cost = getCost(tree, unit, units.mesh);
    int64_t frozen = cost.numel ? cost.frozenNumel * 100 / cost.numel : 0;
    bool sharded = isSharded(unit, units.mesh);
    rows.push_back({name, nameOf(*unit.options.mode), sharded ? formatReshard(unit.options) : "-",
                    formatPrecision(unit.options.precision),
                    unit.options.prefetch ? std::to_string(*unit.options.prefetch) : "-",
                    formatCount(cost.numParameters), formatCount(cost.numel), formatCount(cost.padding),
                    std::to_string(frozen) + "%", formatCount(cost.gatheredBytes), formatCount(cost.keptBytes)});
    total.numParameters += cost.numParameters;
    total.numel += cost.numel;
    total.padding += cost.padding;
    total.frozenNumel += cost.frozenNumel;
    total.gatheredBytes += cost.gatheredBytes;
    total.keptBytes += cost.keptBytes;
  };
  for (const Unit &unit : units.units)
    add(unit, formatModules(tree, unit));
  if (!units.ignored.buffers.empty())
    add(units.ignored, "(ignored)");
  int64_t frozen = total.numel ? total.frozenNumel * 100 / total.numel : 0;
  rows.push_back({"total", "", "", "", "", formatCount(total.numParameters), formatCount(total.numel),
                  formatCount(total.padding), std::to_string(frozen) + "%", formatCount(total.gatheredBytes),
                  formatCount(total.keptBytes)});
  const Mesh &mesh = units.mesh;
  std::string text = "shard units for " +
                     (mesh.hasTwoAxes() ? mesh.describe()
                                        : formatCount(mesh.ranks()) + (mesh.ranks() == 1 ? " rank" : " ranks")) +
                     ", in post-order:\n" + runtime::formatTable(rows);
  for (const std::string &warning : units.warnings)
    text += "warning: " + warning + "\n";
  for (const std::string &warning : getCostWarnings(tree, units))
    text += "warning: " + warning + "\n";
  for (const std::string &remark : units.remarks)
    text += "remark: " + remark + "\n";
  return text;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Those that are there; precision is null when it is switched off.
static Json writeOptions(const UnitOptions &options) {
  Json json = Json::object();
  if (options.mode)
    json["mode"] = nameOf(*options.mode);
  if (options.reshardAfterForward) {
    int64_t reshard = *options.reshardAfterForward;
    bool isGroup = reshard > UnitOptions::kReshard;
    json["reshard_after_forward"] = isGroup ? Json(reshard) : Json(reshard == UnitOptions::kReshard);
  }
  if (options.precision) {
    Json &precision = json["precision"] = nullptr;
    for (auto &[name, dtype] : options.precision->entries())
      if (dtype)
        precision[name] = runtime::nameOf(*dtype);
  }
  if (options.prefetch)
    json["prefetch"] = *options.prefetch;
  return json;
}

/// [rank, first, last + 1]: the elements of the parameter that each rank owns.
static Json writeSlices(int64_t offset, int64_t numel, int64_t chunk) {
  Json slices = Json::array();
  for (int64_t begin = offset; begin < offset + numel;) {
    int64_t rank = begin / chunk, end = std::min(offset + numel, (rank + 1) * chunk);
    slices.push_back({rank, begin - offset, end - offset});
    begin = end;
  }
  return slices;
}

static Json writeUnit(const ModuleTree &tree, const Unit &unit, const Mesh &mesh) {
  UnitCost cost = getCost(tree, unit, mesh);
  Json json;
  json["name"] = getName(tree, unit);
  json["modules"] = Json::array();
  for (size_t module : unit.modules)
    json["modules"].push_back(tree.getModule(module).path);
  json["options"] = writeOptions(unit.options);
  json["given_options"] = writeOptions(unit.givenOptions);
  json["numel"] = cost.numel;
  json["frozen_numel"] = cost.frozenNumel;
  json["padding"] = cost.padding;
  json["bytes_gathered"] = cost.gatheredBytes;
  json["bytes_per_rank"] = cost.keptBytes;
  json["buffers"] = Json::array();
  json["parameters"] = Json::array();
  for (size_t number = 0; number < unit.buffers.size(); ++number) {
    const UnitBuffer &buffer = unit.buffers[number];
    int64_t chunk = isSharded(unit, mesh) ? buffer.padded / mesh.shard : buffer.padded;
    Json entry;
    entry["dtype"] = runtime::nameOf(buffer.dtype);
    entry["updated"] = buffer.updated;
    entry["padded"] = buffer.padded;
    entry["chunk"] = chunk;
    json["buffers"].push_back(std::move(entry));
    for (size_t i = 0; i < buffer.parameters.size(); ++i) {
      const ParameterRecord &record = tree.getParameter(buffer.parameters[i]);
      int64_t numel = tree.getNumel(buffer.parameters[i]);
      Json parameter;
      parameter["name"] = record.name;
      parameter["shape"] = record.shape;
      parameter["dtype"] = runtime::nameOf(record.dtype);
      parameter["trainable"] = record.trainable;
      parameter["buffer"] = number;
      parameter["offset"] = buffer.offsets[i];
      parameter["numel"] = numel;
      parameter["slices"] =
          unit.options.mode == Mode::replicate || unit.options.mode == Mode::shardOptimizer ? Json("all") : writeSlices(buffer.offsets[i], numel, chunk);
      json["parameters"].push_back(std::move(parameter));
    }
  }
  return json;
}

std::string units::toJson(const ModuleTree &tree, const ShardUnits &units) {
  Json json;
  json["ranks"] = units.mesh.ranks();
  json["mesh"] = {units.mesh.replicate, units.mesh.shard};
  json["units"] = Json::array();
  for (const Unit &unit : units.units)
    json["units"].push_back(writeUnit(tree, unit, units.mesh));
  json["ignored"] = units.ignored.buffers.empty() ? Json(nullptr) : writeUnit(tree, units.ignored, units.mesh);
  json["warnings"] = units.warnings;
  json["cost_warnings"] = getCostWarnings(tree, units);
  json["remarks"] = units.remarks;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
