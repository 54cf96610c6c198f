//===- CertificateOrigins.cpp ---------------------------------------------===//
//
// [Note: origins] What differs from rank to rank begins as a chunk that a rank owns of a unit, as its rows of the
// batch, or as what a kernel makes of the rank's number, and everything that is computed from it differs too, until a
// collective combines it. So each value is followed back to what it comes from, but not through collectives. A value
// that all ranks compute alike has no such origin. Of a flat buffer that all ranks have, the rank's number makes a
// chunk.
//
// On a mesh of several axes a collective combines along its own. Rows differ along all axes, and what is reduced along
// some differs along the rest; a chunk differs along the axes along which its unit is cut. Along a tensor axis ranks
// have the same rows, and parts of some parameters of a unit: what these make differ is not followed here.
//
//===----------------------------------------------------------------------===//

#include "CertificateOrigins.h"

#include <algorithm>
#include <map>
#include <set>

using namespace spmd::runtime;

namespace {

/// Axes of the mesh, a bit for each.
using Axes = uint64_t;

/// What of a value differs between ranks: names of one chunk, of a chunk of another unit, of rows. Empty: nothing.
struct Origin {
  std::string unit;       ///< whose chunk it is, where `chunk` is not empty
  std::string chunk;      ///< of a unit
  std::string otherChunk; ///< of another one
  std::string rows;       ///< of the batch, or of what a collective has cut into rows
  std::string piece;      ///< what a kernel made with the rank's number of what all ranks have
  Axes rowAxes = 0;       ///< along which rows, or pieces, differ
  Axes chunkAxes = 0;     ///< along which chunks do

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
    if (piece.empty())
      piece = other.piece;
    rowAxes |= other.rowAxes;
    chunkAxes |= other.chunkAxes;
  }
  /// What still differs when it is combined along `axes`.
  Origin combined(Axes axes) const {
    Origin rest = *this;
    rest.rowAxes &= ~axes;
    if (!rest.rowAxes) {
      rest.rows.clear();
      rest.piece.clear();
    }
    if ((chunkAxes & ~axes) == 0) {
      rest.chunkAxes = 0;
      rest.unit.clear();
      rest.chunk.clear();
      rest.otherChunk.clear();
    }
    return rest;
  }
  /// What differs, if anything does.
  const std::string &any() const { return !rows.empty() ? rows : !chunk.empty() ? chunk : piece; }
};

class OriginChecker {
public:
  OriginChecker(const Manifest &manifest, const std::vector<ValueEntry> &table) : manifest(manifest), table(table) {}

  Status check();

private:
  void readBindings();
  /// Of all operands, or of those of one value of a computation.
  Origin originOf(const ValueEntry &entry) const;
  Origin originOf(const ValueEntry &entry, size_t value) const;
  /// What the rank's number makes of operands: a chunk of the unit whose whole flat buffer is among them.
  Origin cutOf(const ValueEntry &entry, size_t value) const;
  /// Calls `use` on the values that a value of a computation is made of.
  template <typename Use>
  void forOperands(const ValueEntry &entry, size_t value, Use use) const;
  Status checkCompute(const ValueEntry &entry, const Origin &origin);
  Status checkCollective(const ValueEntry &entry, const CollectiveOperation &collective, const Origin &origin);
  Status checkUnit(const ValueEntry &entry, CollectiveKind kind, const Origin &origin, const Unit &unit,
                   Axes axes) const;
  Status checkAxes(const ValueEntry &entry, const Origin &origin, Axes axes) const;
  /// Those of these names; all where there are none. Of the axes over which the batch is cut alone.
  Axes axesOf(const std::vector<std::string> &names) const;
  Status checkTarget(const ValueEntry &entry, const Origin &origin) const;
  Status fail(const ValueEntry &entry, const std::string &message) const {
    return Status::badInput("certificate rule 10: the manifest's " + entry.pointer + ": " + message);
  }

  const Manifest &manifest;
  const std::vector<ValueEntry> &table;
  std::map<Binding, Origin> sources;
  std::map<Binding, std::string> ownerOf; ///< of a state that is cut into chunks: its unit
  std::map<Binding, std::string> wholeOf; ///< of a state that all ranks have whole: its unit
  std::map<Binding, bool> mayDiffer;      ///< targets that every rank may have for itself
  std::set<Binding> sums;                 ///< states of which each rank has a summand
  std::vector<Origin> values;
  std::vector<std::string> flatOf; ///< of a value that is a unit's whole flat buffer: the unit
};

} // namespace

void OriginChecker::readBindings() {
  for (const StateEntry &entry : manifest.state) {
    const Unit *unit = manifest.findUnit(entry.unit);
    Binding binding = bindingOf(entry);
    std::string name = toText(binding);
    bool isCut = entry.kind == StateEntry::Kind::Shard && unit && entry.numel != unit->padded;
    if (entry.kind == StateEntry::Kind::Shard && unit && unit->isSharded() && !isCut)
      wholeOf[binding] = entry.unit;
    if (isCut) {
      ownerOf[binding] = entry.unit;
      sources[binding] = {entry.unit, name, "", "", "", 0, axesOf(unit->axes)};
      if (entry.isSum) { // ranks along the other axes have summands of it
        sources[binding].rows = name;
        sources[binding].rowAxes = axesOf({}) & ~axesOf(unit->axes);
        sums.insert(binding);
      }
    } else if (entry.kind == StateEntry::Kind::Replicated) {
      // Seen as one rank's program, a step leaves each rank its own running statistics.
      mayDiffer[binding] = manifest.view == "local" || entry.isSum;
      if (entry.isSum) {
        sources[binding] = {"", "", "", name, "", axesOf({}), 0};
        sums.insert(binding);
      }
    }
  }
  for (const BatchInput &input : manifest.batch)
    if (input.split.dim)
      sources[bindingOf(input)] = {"", "", "", toText(bindingOf(input)), "", axesOf({}), 0};
  for (const Output &output : manifest.outputs)
    mayDiffer[bindingOf(output)] = output.isVarying || output.split.dim.has_value();
}

Origin OriginChecker::originOf(const ValueEntry &entry) const {
  Origin origin;
  for (int32_t value : entry.of)
    origin.add(values[static_cast<size_t>(value)]);
  return origin;
}

template <typename Use>
void OriginChecker::forOperands(const ValueEntry &entry, size_t value, Use use) const {
  if (entry.reads.empty()) {
    for (int32_t operand : entry.of)
      use(static_cast<size_t>(operand));
    return;
  }
  for (int32_t operand : entry.reads[value])
    use(static_cast<size_t>(entry.of[static_cast<size_t>(operand)]));
}

Origin OriginChecker::cutOf(const ValueEntry &entry, size_t value) const {
  Origin cut;
  std::string name = "what " + toText(entry.operation) + " makes of the rank's number";
  forOperands(entry, value, [&](size_t operand) {
    // Of a chunk it is the place of the chunk that the number tells.
    const Origin &of = values[operand];
    if (!flatOf[operand].empty())
      cut.add({flatOf[operand], name, "", "", "", 0, axesOf(entry.along)});
    else if (!of.chunk.empty() && of.otherChunk.empty())
      cut.add({of.unit, name, "", "", "", 0, of.chunkAxes});
  });
  if (cut.chunk.empty()) {
    cut.piece = name;
    cut.rowAxes = axesOf(entry.along);
  }
  return cut;
}

Origin OriginChecker::originOf(const ValueEntry &entry, size_t value) const {
  Origin origin;
  forOperands(entry, value, [&](size_t operand) { origin.add(values[operand]); });
  // Rows and chunks are cut by the rank's number anyway.
  const std::vector<int32_t> &byRank = entry.byRank;
  if (std::find(byRank.begin(), byRank.end(), static_cast<int32_t>(value)) != byRank.end() && axesOf(entry.along))
    origin.add(cutOf(entry, value));
  return origin;
}

Axes OriginChecker::axesOf(const std::vector<std::string> &names) const {
  Axes axes = 0;
  for (size_t i = 0; i < manifest.mesh.size(); ++i)
    if (!manifest.mesh[i].isTensor &&
        (names.empty() || std::find(names.begin(), names.end(), manifest.mesh[i].name) != names.end()))
      axes |= Axes(1) << i;
  return axes;
}

/// What a unit's collectives may take.
Status OriginChecker::checkUnit(const ValueEntry &entry, CollectiveKind kind, const Origin &origin, const Unit &unit,
                                Axes axes) const {
  Axes unitAxes = axesOf(unit.axes);
  if (!combines(kind)) {
    bool isPiece = origin.chunk.empty() && !origin.piece.empty();
    if (!origin.rows.empty())
      return fail(entry, "gathers what is computed from " + origin.rows);
    if (!isPiece && (origin.chunk.empty() || origin.unit != unit.name || !origin.otherChunk.empty()))
      return fail(entry, "gathers what is computed from " + (origin.chunk.empty()       ? "no chunk of " + unit.name
                                                             : origin.unit != unit.name ? origin.chunk
                                                                                        : origin.otherChunk));
    // A group of ranks gathers the pieces that it has cut of the unit's whole buffer.
    return axes == (isPiece ? unitAxes : origin.chunkAxes)
               ? Status::success()
               : fail(entry, "gathers along other axes than those along which " + unit.name + " is cut");
  }
  // Ranks along the other axes have the same chunk, and what each has of its gradient adds up.
  bool isAcross = !origin.chunk.empty() && origin.unit == unit.name && origin.otherChunk.empty() && !(axes & unitAxes);
  if (!origin.chunk.empty() && !isAcross)
    return fail(entry, "reduces what is computed from " + origin.chunk + ", of which every rank has another chunk");
  return Status::success();
}

/// What is the same along an axis would be added up as often as it has ranks.
Status OriginChecker::checkAxes(const ValueEntry &entry, const Origin &origin, Axes axes) const {
  Axes differs = origin.rowAxes | origin.chunkAxes;
  if (origin.any().empty() || (differs & axes) == axes)
    return Status::success();
  return fail(entry, "reduces along axes along which " + origin.any() + " is the same");
}

/// What a collective defines: what is left of the origins of its operands when it has combined them.
Status OriginChecker::checkCollective(const ValueEntry &entry, const CollectiveOperation &collective,
                                      const Origin &origin) {
  Axes axes = axesOf(collective.axes);
  const Unit *known = manifest.findUnit(collective.unit);
  if (known)
    if (Status status = checkUnit(entry, collective.kind, origin, *known, axes); !status.ok())
      return status;
  if (combines(collective.kind))
    if (Status status = checkAxes(entry, origin, axes); !status.ok())
      return status;
  if (isInPlace(collective.kind)) { // buffers that travel together stay apart
    std::vector<Origin> results;
    for (size_t i = 0; i < entry.bytes.size(); ++i)
      results.push_back((i < entry.of.size() ? values[static_cast<size_t>(entry.of[i])] : origin).combined(axes));
    values.insert(values.end(), results.begin(), results.end());
    return Status::success();
  }
  Origin combined = origin.combined(axes);
  std::string name = "the result of " + toText(entry.operation);
  if (sendsWhole(collective.kind) && !known)
    combined.add({"", "", "", name, "", axes, 0});
  if (sendsWhole(collective.kind) && known)
    combined.add({collective.unit, name, "", "", "", 0, axesOf(known->axes)});
  if (collective.kind == CollectiveKind::AllGather)
    flatOf[values.size()] = collective.unit;
  values.insert(values.end(), entry.bytes.size(), combined);
  return Status::success();
}

/// The values that an operation defines.
Status OriginChecker::checkCompute(const ValueEntry &entry, const Origin &origin) {
  if (const auto *collective = std::get_if<CollectiveOperation>(&entry.operation))
    return checkCollective(entry, *collective, origin);
  std::vector<Origin> results;
  for (size_t value = 0; value < entry.bytes.size(); ++value)
    results.push_back(originOf(entry, value));
  values.insert(values.end(), results.begin(), results.end());
  return Status::success();
}

Status OriginChecker::checkTarget(const ValueEntry &entry, const Origin &origin) const {
  auto owner = ownerOf.find(entry.binding);
  std::string name = toText(entry.binding);
  if (owner == ownerOf.end()) {
    auto free = mayDiffer.find(entry.binding);
    if (sums.count(entry.binding) && origin.any().empty())
      return fail(entry, name + " is the sum of what ranks have, but computed from what all have alike");
    if (origin.any().empty() || (free != mayDiffer.end() && free->second))
      return Status::success();
    return fail(entry, name + " is the same on all ranks, but computed from " + origin.any() +
                           ", which no collective has combined");
  }
  bool isSum = sums.count(entry.binding) != 0;
  if (!origin.rows.empty() && (!isSum || (origin.rowAxes & axesOf(manifest.findUnit(owner->second)->axes))))
    return fail(entry, name + " is computed from " + origin.rows + ", which no collective has combined");
  if (!origin.chunk.empty() && origin.unit != owner->second)
    return fail(entry, name + " is computed from " + origin.chunk);
  if (!origin.otherChunk.empty())
    return fail(entry, name + " is computed from " + origin.otherChunk);
  return Status::success();
}

Status OriginChecker::check() {
  readBindings();
  size_t count = 0;
  for (const ValueEntry &entry : table)
    count += entry.bytes.size();
  flatOf.resize(count);
  for (const ValueEntry &entry : table) {
    Origin origin = originOf(entry);
    Status status = Status::success();
    switch (entry.kind) {
    case ValueEntry::Kind::Source:
      flatOf[values.size()] = wholeOf[entry.binding];
      values.push_back(sources[entry.binding]);
      break;
    case ValueEntry::Kind::Join:
      flatOf[values.size()] = entry.unit;
      [[fallthrough]];
    case ValueEntry::Kind::Part:
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

Status spmd::runtime::checkOrigins(const Manifest &manifest, const std::vector<ValueEntry> &table) {
  // One rank has everything.
  return manifest.ranks == 1 ? Status::success() : OriginChecker(manifest, table).check();
}
