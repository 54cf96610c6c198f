//===- ShardUnits.cpp - every parameter in exactly one unit ---------------===//

#include "spmd/ShardUnits/ShardUnits.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::joinNames;
using runtime::Status;

namespace {

class Assigner {
public:
  Assigner(const ModuleTree &tree, const Request &request, const Decide &decide)
      : tree(tree), request(request), decide(decide) {}

  Expected<ShardUnits> run();

private:
  Status findIgnored();
  Status place(const Choices &choices, std::vector<std::vector<size_t>> &parameters);
  Status fillUnits(const Choices &choices, const std::vector<std::vector<size_t>> &parameters);
  std::vector<UnitBuffer> layOutBuffers(const std::vector<size_t> &parameters, int64_t owners) const;
  /// Ranks in whose number of equal chunks a unit's buffer is cut, or could be.
  int64_t countOwners(const Unit &unit) const {
    return unit.options.mode == Mode::replicate ? result.mesh.dataRanks() : result.mesh.shard;
  }
  Mesh chooseMesh() const;
  Status chooseGroup();
  void warnOfMixedUnit(const std::string &name, const std::vector<size_t> &parameters);
  std::string nameOf(const Choice &choice) const { return tree.getModule(choice.modules.front()).path; }

  const ModuleTree &tree;
  const Request &request;
  const Decide &decide;
  std::vector<bool> ignoredModules, ignoredParameters;
  ShardUnits result;
};

} // namespace

/// Where only the number of ranks was said, annotations arrange them.
Mesh Assigner::chooseMesh() const {
  for (const Annotation &annotation : request.annotations)
    if (const std::optional<Mesh> &mesh = annotation.options.mesh;
        request.isMeshOpen && mesh && mesh->hasTwoAxes() && mesh->ranks() == request.mesh.ranks())
      return *mesh;
  return request.mesh;
}

/// Ignored modules with all that is in them, and every parameter that one of them or the request names.
Status Assigner::findIgnored() {
  ignoredModules.assign(tree.numModules(), false);
  ignoredParameters.assign(tree.numParameters(), false);
  for (const std::string &path : request.ignoredModules) {
    const size_t *module = tree.findModule(path);
    if (!module) {
      std::vector<std::string> known;
      for (size_t i = 0; i < tree.numModules(); ++i)
        known.push_back(tree.getModule(i).path);
      return Status::badInput("ignored module '" + path + "' is not in the model" + suggestNames(path, known));
    }
    if (*module == 0)
      result.warnings.push_back("the root is to be ignored: every parameter is kept whole on every rank");
    for (size_t below : tree.getSubtree(*module)) {
      ignoredModules[below] = true;
      for (size_t parameter : tree.getOwnParameters(below))
        ignoredParameters[parameter] = true;
    }
  }
  for (const std::string &name : request.ignoredParameters) {
    const size_t *parameter = tree.findParameter(name);
    if (!parameter) {
      std::vector<std::string> known;
      for (size_t i = 0; i < tree.numParameters(); ++i)
        known.push_back(tree.getParameter(i).name);
      return Status::badInput("ignored parameter '" + name + "' is not in the model" + suggestNames(name, known));
    }
    ignoredParameters[*parameter] = true;
  }
  return Status::success();
}

/// Sorts the parameters by choice. A tied parameter goes to the unit around the nearest common ancestor of its owners,
/// unless they are all in one unit.
Status Assigner::place(const Choices &choices, std::vector<std::vector<size_t>> &parameters) {
  parameters.resize(choices.choices.size());
  for (size_t parameter = 0; parameter < tree.numParameters(); ++parameter) {
    if (ignoredParameters[parameter])
      continue;
    const std::vector<size_t> &owners = tree.getOwners(parameter);
    size_t choice = choices.getInnermost(tree, tree.getCommonAncestor(owners));
    if (owners.size() > 1) {
      std::vector<size_t> around;
      std::vector<std::string> names;
      for (size_t owner : owners) {
        around.push_back(choices.getInnermost(tree, owner));
        names.push_back("'" + formatPath(tree.getModule(owner).path) + "'");
      }
      bool isTorn = std::any_of(around.begin(), around.end(), [&](size_t other) { return other != around.front(); });
      if (!isTorn)
        choice = around.front();
      std::string text =
          "parameter '" + tree.getParameter(parameter).name + "' is shared by the modules " + joinNames(names);
      std::string unit = formatPath(nameOf(choices.choices[choice]));
      if (isTorn && request.strictTied)
        return Status::badInput(text + ", which are in different units; it would belong to the unit '" + unit +
                                "' around their nearest common ancestor, and strict-tied forbids that");
      result.remarks.push_back(text + ": it belongs to the unit '" + unit + "'" +
                               (isTorn ? " around their nearest common ancestor" : " that has them all"));
    }
    const std::vector<size_t> &ignored = choices.choices[choice].ignored;
    if (std::find(ignored.begin(), ignored.end(), parameter) != ignored.end())
      ignoredParameters[parameter] = true;
    else
      parameters[choice].push_back(parameter);
  }
  return Status::success();
}

std::vector<UnitBuffer> Assigner::layOutBuffers(const std::vector<size_t> &parameters, int64_t owners) const {
  std::vector<UnitBuffer> buffers;
  for (size_t parameter : parameters) {
    const ParameterRecord &record = tree.getParameter(parameter);
    auto fits = [&](const UnitBuffer &b) { return b.dtype == record.dtype && b.updated == record.updated; };
    auto buffer = std::find_if(buffers.begin(), buffers.end(), fits);
    if (buffer == buffers.end()) {
      buffer = buffers.insert(buffers.end(), UnitBuffer());
      buffer->dtype = record.dtype;
      buffer->updated = record.updated;
    }
    buffer->parameters.push_back(parameter);
  }
  for (UnitBuffer &buffer : buffers) {
    std::vector<int64_t> numels, groups;
    for (size_t parameter : buffer.parameters) {
      numels.push_back(tree.getNumel(parameter));
      groups.push_back(tree.getParameter(parameter).group);
    }
    FlatLayout layout = layOut(numels, groups, owners);
    std::vector<size_t> ordered;
    for (size_t position : layout.order) {
      ordered.push_back(buffer.parameters[position]);
      buffer.offsets.push_back(layout.offsets[position]);
    }
    buffer.parameters = std::move(ordered);
    buffer.padded = layout.padded;
  }
  return buffers;
}

void Assigner::warnOfMixedUnit(const std::string &name, const std::vector<size_t> &parameters) {
  std::vector<std::string> frozen, trainable;
  int64_t numel = 0;
  for (size_t parameter : parameters) {
    const ParameterRecord &record = tree.getParameter(parameter);
    (record.trainable ? trainable : frozen).push_back("'" + record.name + "'");
    if (!record.trainable)
      numel += tree.getNumel(parameter);
  }
  if (!frozen.empty() && !trainable.empty())
    result.warnings.push_back("unit '" + formatPath(name) + "' mixes trainable parameters (" + joinNames(trainable) +
                              ") with frozen ones (" + joinNames(frozen) + "): " + std::to_string(numel) +
                              " elements would be gathered for nothing when the trainable ones are; make the frozen "
                              "ones a unit of their own");
}

Status Assigner::fillUnits(const Choices &choices, const std::vector<std::vector<size_t>> &parameters) {
  std::vector<bool> done(choices.choices.size(), false);
  for (size_t module : tree.getPostOrder()) {
    if (choices.byModule[module] < 0)
      continue;
    size_t number = static_cast<size_t>(choices.byModule[module]);
    if (done[number])
      continue;
    done[number] = true;
    const Choice &choice = choices.choices[number];
    Unit unit;
    unit.modules = choice.modules;
    unit.options = choice.options;
    // PyTorch keeps what the root has gathered: backward begins with it.
    bool isByBudget = (unit.options.mode ? unit.options.mode : request.defaults.mode) == Mode::byBudget;
    if (choices.isAnnotated && choice.modules.front() == 0 && !unit.options.reshardAfterForward && !isByBudget)
      unit.options.reshardAfterForward = UnitOptions::kKeep;
    unit.givenOptions = unit.options;
    if (Status status = completeMode(unit.options, formatPath(nameOf(choice))); !status.ok())
      return status;
    UnitOptions last;
    last.mode = Mode::fullyShard;
    last.reshardAfterForward = UnitOptions::kReshard;
    last.precision = Precision();
    UnitOptions defaults = request.defaults;
    if (Status status = completeMode(defaults, ""); !status.ok())
      return status;
    unit.options = unit.options.orElse(defaults);
    unit.isReshardOpen = isByBudget && !unit.options.reshardAfterForward;
    unit.options = unit.options.orElse(last);
    if (Status status = resolveOptions(unit.options, result.mesh, formatPath(nameOf(choice))); !status.ok())
      return status;
    unit.buffers = layOutBuffers(parameters[number], countOwners(unit));
    warnOfMixedUnit(nameOf(choice), parameters[number]);
    result.units.push_back(std::move(unit));
  }
  return Status::success();
}

/// Groups of several sizes would cut the ranks into as many axes.
Status Assigner::chooseGroup() {
  const Unit *first = nullptr;
  for (const Unit &unit : result.units) {
    int64_t group = *unit.options.reshardAfterForward;
    if (group <= UnitOptions::kReshard || *unit.options.mode == Mode::replicate)
      continue;
    if (first && group != result.reshardGroup)
      return Status::badInput("unit '" + formatPath(tree.getModule(unit.modules.front()).path) +
                              "': reshard_after_forward is " + std::to_string(group) + ", and " +
                              std::to_string(result.reshardGroup) + " of unit '" +
                              formatPath(tree.getModule(first->modules.front()).path) +
                              "'; the units of a step reshard to groups of one size");
    first = &unit;
    result.reshardGroup = group;
  }
  return Status::success();
}

Expected<ShardUnits> Assigner::run() {
  if (request.mesh.ranks() < 1)
    return Status::badInput("ranks is " + std::to_string(request.mesh.ranks()) + ", expected at least 1");
  result.mesh = chooseMesh();
  if (Status status = findIgnored(); !status.ok())
    return status;
  Expected<Choices> choices = chooseModules(tree, request, ignoredModules, ignoredParameters, decide, result.warnings);
  if (!choices)
    return choices.error();
  std::vector<std::vector<size_t>> parameters;
  if (Status status = place(*choices, parameters); !status.ok())
    return status;
  if (Status status = fillUnits(*choices, parameters); !status.ok())
    return status;
  if (Status status = chooseGroup(); !status.ok())
    return status;

  std::vector<size_t> ignored;
  for (size_t parameter = 0; parameter < tree.numParameters(); ++parameter) {
    if (!ignoredParameters[parameter])
      continue;
    ignored.push_back(parameter);
    for (size_t owner : tree.getOwners(parameter))
      if (std::find(result.ignored.modules.begin(), result.ignored.modules.end(), owner) ==
          result.ignored.modules.end())
        result.ignored.modules.push_back(owner);
  }
  result.ignored.isIgnored = true;
  result.ignored.options.mode = Mode::replicate;
  result.ignored.options.reshardAfterForward = UnitOptions::kReshard;
  result.ignored.options.precision = Precision();
  result.ignored.buffers = layOutBuffers(ignored, countOwners(result.ignored));
  return std::move(result);
}

Expected<ShardUnits> units::assignShardUnits(const ModuleTree &tree, const Request &request, const Decide &decide) {
  return Assigner(tree, request, decide).run();
}
