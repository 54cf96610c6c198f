//===- CertificateOrigins.cpp ---------------------------------------------===//
//
// [Note: origins] What differs from rank to rank begins as a chunk that a rank owns of a unit, or as its rows of the
// batch, and everything that is computed from it differs too, until a collective combines it. So each value is followed
// back to what it comes from, but not through collectives. A value that all ranks compute alike has no such origin; one
// that a kernel makes of the rank's number alone is not found.
//
//===----------------------------------------------------------------------===//

#include "CertificateOrigins.h"

#include <unordered_map>

using namespace spmd::runtime;

namespace {

/// What of a value differs between ranks: names of one chunk, of a chunk of another unit, of rows. Empty: nothing.
struct Origin {
  std::string unit;       ///< whose chunk it is, where `chunk` is not empty
  std::string chunk;      ///< of a unit
  std::string otherChunk; ///< of another one
  std::string rows;       ///< of the batch, or of what a collective has cut into rows

  void add(const Origin &other) {
    if (chunk.empty()) {
      unit = other.unit;
      chunk = other.chunk;
    } else if (!other.chunk.empty() && other.unit != unit && otherChunk.empty()) {
      otherChunk = other.chunk;
    }
    if (otherChunk.empty())
      otherChunk = other.otherChunk;
    if (rows.empty())
      rows = other.rows;
  }
  /// What differs, if anything does.
  const std::string &any() const { return rows.empty() ? chunk : rows; }
};

class OriginChecker {
public:
  explicit OriginChecker(const Manifest &manifest) : manifest(manifest) {}

  Status check();

private:
  void readBindings();
  /// Of all operands, or of those of one value of a computation.
  Origin originOf(const ValueEntry &entry) const;
  Origin originOf(const ValueEntry &entry, size_t value) const;
  Status checkCompute(const ValueEntry &entry, const Origin &origin);
  Status checkTarget(const ValueEntry &entry, const Origin &origin) const;
  Status fail(const ValueEntry &entry, const std::string &message) const {
    return Status::badInput("certificate rule 10: the manifest's " + entry.pointer + ": " + message);
  }

  const Manifest &manifest;
  std::unordered_map<std::string, Origin> sources;
  std::unordered_map<std::string, std::string> ownerOf; ///< of a state that is cut into chunks: its unit
  std::unordered_map<std::string, bool> mayDiffer;      ///< targets that every rank may have for itself
  std::vector<Origin> values;
};

} // namespace

void OriginChecker::readBindings() {
  for (const StateEntry &entry : manifest.state) {
    const Unit *unit = manifest.findUnit(entry.unit);
    std::string name = bindingName(entry);
    if (entry.kind == StateEntry::Kind::Shard && unit && unit->isSharded()) {
      ownerOf[name] = entry.unit;
      sources[name] = {entry.unit, name, "", ""};
    } else if (entry.kind == StateEntry::Kind::Replicated) {
      // Seen as one rank's program, a step leaves each rank its own running statistics.
      mayDiffer[name] = manifest.view == "local";
    }
  }
  for (const BatchInput &input : manifest.batch)
    if (input.split.dim)
      sources[bindingName(input)].rows = bindingName(input);
  for (const Output &output : manifest.outputs)
    mayDiffer[bindingName(output)] = output.isVarying || output.split.dim.has_value();
}

Origin OriginChecker::originOf(const ValueEntry &entry) const {
  Origin origin;
  for (int32_t value : entry.of)
    origin.add(values[static_cast<size_t>(value)]);
  return origin;
}

Origin OriginChecker::originOf(const ValueEntry &entry, size_t value) const {
  if (entry.reads.empty())
    return originOf(entry);
  Origin origin;
  for (int32_t operand : entry.reads[value])
    origin.add(values[static_cast<size_t>(entry.of[static_cast<size_t>(operand)])]);
  return origin;
}

/// The values that an operation defines, and what a unit's collectives may take.
Status OriginChecker::checkCompute(const ValueEntry &entry, const Origin &origin) {
  std::string op = entry.what.substr(0, entry.what.find(' '));
  size_t of = entry.what.rfind(" of ");
  std::string unit = of == std::string::npos ? "" : entry.what.substr(of + 4);
  bool isGather = op == nameOf(CommandKind::AllGather), isScatter = op == nameOf(CommandKind::ReduceScatter);
  bool isCollective = isGather || isScatter || op == nameOf(CommandKind::AllReduce);
  if (isCollective && !unit.empty()) {
    if (isGather && !origin.rows.empty())
      return fail(entry, "gathers what is computed from " + origin.rows);
    if (isGather && (origin.chunk.empty() || origin.unit != unit || !origin.otherChunk.empty()))
      return fail(entry, "gathers what is computed from " + (origin.chunk.empty()  ? "no chunk of " + unit
                                                             : origin.unit != unit ? origin.chunk
                                                                                   : origin.otherChunk));
    if (!isGather && !origin.chunk.empty())
      return fail(entry, "reduces what is computed from " + origin.chunk + ", of which every rank has another chunk");
  }
  Origin ofCollective;
  if (isScatter && unit.empty())
    ofCollective.rows = "the result of " + entry.what;
  if (isScatter && !unit.empty())
    ofCollective = {unit, "the result of " + entry.what, "", ""};
  std::vector<Origin> results;
  for (size_t value = 0; value < entry.bytes.size(); ++value)
    results.push_back(isCollective ? ofCollective : originOf(entry, value));
  values.insert(values.end(), results.begin(), results.end());
  return Status::success();
}

Status OriginChecker::checkTarget(const ValueEntry &entry, const Origin &origin) const {
  auto owner = ownerOf.find(entry.what);
  if (owner == ownerOf.end()) {
    auto free = mayDiffer.find(entry.what);
    if (origin.any().empty() || (free != mayDiffer.end() && free->second))
      return Status::success();
    return fail(entry, entry.what + " is the same on all ranks, but computed from " + origin.any() +
                           ", which no collective has combined");
  }
  if (!origin.rows.empty())
    return fail(entry, entry.what + " is computed from " + origin.rows + ", which no collective has combined");
  if (!origin.chunk.empty() && origin.unit != owner->second)
    return fail(entry, entry.what + " is computed from " + origin.chunk);
  if (!origin.otherChunk.empty())
    return fail(entry, entry.what + " is computed from " + origin.otherChunk);
  return Status::success();
}

Status OriginChecker::check() {
  readBindings();
  for (const ValueEntry &entry : *manifest.values) {
    Origin origin = originOf(entry);
    Status status = Status::success();
    switch (entry.kind) {
    case ValueEntry::Kind::Source:
      values.push_back(sources[entry.what]);
      break;
    case ValueEntry::Kind::Part:
    case ValueEntry::Kind::Join:
      values.push_back(std::move(origin));
      break;
    case ValueEntry::Kind::Compute:
      status = checkCompute(entry, origin);
      break;
    case ValueEntry::Kind::Target:
      status = checkTarget(entry, origin);
      break;
    }
    if (!status.ok())
      return status;
  }
  return Status::success();
}

Status spmd::runtime::checkOrigins(const Manifest &manifest) {
  // One rank has everything.
  return manifest.ranks == 1 ? Status::success() : OriginChecker(manifest).check();
}
