//===- CertificateOrigins.cpp ---------------------------------------------===//
//
// [Note: origins] What differs from rank to rank begins as a chunk that a rank owns of a unit, as its rows of the
// batch, or as what a kernel makes of the rank's number, and everything that is computed from it differs too, until a
// collective combines it. So each value is followed back to what it comes from, but not through collectives. A value
// that all ranks compute alike has no such origin. Of a flat buffer that all ranks have, the rank's number makes a
// chunk.
//
// On a mesh of several axes a collective combines along its own. Rows differ along all axes, and what is reduced along
// some differs along the rest; a chunk differs along the axes along which its unit is cut.
//
//===----------------------------------------------------------------------===//

#include "CertificateOrigins.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

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
  explicit OriginChecker(const Manifest &manifest) : manifest(manifest) {}

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
  Status checkUnit(const ValueEntry &entry, CollectiveKind kind, const Origin &origin, const Unit &unit,
                   Axes axes) const;
  Status checkAxes(const ValueEntry &entry, const Origin &origin, Axes axes) const;
  /// Those of these names; all where there are none.
  Axes axesOf(const std::vector<std::string> &names) const;
  /// Along which axes the operation combines, as its text says.
  Axes axesOf(const ValueEntry &entry) const;
  Status checkTarget(const ValueEntry &entry, const Origin &origin) const;
  Status fail(const ValueEntry &entry, const std::string &message) const {
    return Status::badInput("certificate rule 10: the manifest's " + entry.pointer + ": " + message);
  }

  const Manifest &manifest;
  std::unordered_map<std::string, Origin> sources;
  std::unordered_map<std::string, std::string> ownerOf; ///< of a state that is cut into chunks: its unit
  std::unordered_map<std::string, std::string> wholeOf; ///< of a state that all ranks have whole: its unit
  std::unordered_map<std::string, bool> mayDiffer;      ///< targets that every rank may have for itself
  std::unordered_set<std::string> sums;                 ///< states of which each rank has a summand
  std::vector<Origin> values;
  std::vector<std::string> flatOf; ///< of a value that is a unit's whole flat buffer: the unit
};

} // namespace

void OriginChecker::readBindings() {
  for (const StateEntry &entry : manifest.state) {
    const Unit *unit = manifest.findUnit(entry.unit);
    std::string name = bindingName(entry);
    bool isCut = entry.kind == StateEntry::Kind::Shard && unit && entry.numel != unit->padded;
    if (entry.kind == StateEntry::Kind::Shard && unit && unit->isSharded() && !isCut)
      wholeOf[name] = entry.unit;
    if (isCut) {
      ownerOf[name] = entry.unit;
      sources[name] = {entry.unit, name, "", "", "", 0, axesOf(unit->axes)};
    } else if (entry.kind == StateEntry::Kind::Replicated) {
      // Seen as one rank's program, a step leaves each rank its own running statistics.
      mayDiffer[name] = manifest.view == "local" || entry.isSum;
      if (entry.isSum) {
        sources[name] = {"", "", "", name, "", axesOf(std::vector<std::string>()), 0};
        sums.insert(name);
      }
    }
  }
  for (const BatchInput &input : manifest.batch)
    if (input.split.dim)
      sources[bindingName(input)] = {"", "", "", bindingName(input), "", axesOf(std::vector<std::string>()), 0};
  for (const Output &output : manifest.outputs)
    mayDiffer[bindingName(output)] = output.isVarying || output.split.dim.has_value();
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
  std::string name = "what " + entry.what + " makes of the rank's number";
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
  if (std::find(byRank.begin(), byRank.end(), static_cast<int32_t>(value)) != byRank.end())
    origin.add(cutOf(entry, value));
  return origin;
}

Axes OriginChecker::axesOf(const std::vector<std::string> &names) const {
  Axes axes = 0;
  for (size_t i = 0; i < manifest.mesh.size(); ++i)
    if (names.empty() || std::find(names.begin(), names.end(), manifest.mesh[i].name) != names.end())
      axes |= Axes(1) << i;
  return axes;
}

Axes OriginChecker::axesOf(const ValueEntry &entry) const {
  constexpr std::string_view along = " along ";
  size_t begin = entry.what.find(along);
  if (begin == std::string::npos)
    return axesOf(std::vector<std::string>());
  std::string names = entry.what.substr(begin + along.size());
  std::istringstream text(names.substr(0, names.find(' ')));
  std::vector<std::string> list;
  for (std::string name; std::getline(text, name, ',');)
    list.push_back(name);
  return axesOf(list);
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

/// The values that an operation defines.
Status OriginChecker::checkCompute(const ValueEntry &entry, const Origin &origin) {
  std::string op = entry.what.substr(0, entry.what.find(' '));
  size_t of = entry.what.rfind(" of ");
  std::string unit = of == std::string::npos ? "" : entry.what.substr(of + 4);
  std::optional<CollectiveKind> kind = parseCollectiveKind(op);
  Origin ofCollective;
  if (kind) {
    Axes axes = axesOf(entry);
    const Unit *known = manifest.findUnit(unit);
    if (known)
      if (Status status = checkUnit(entry, *kind, origin, *known, axes); !status.ok())
        return status;
    if (combines(*kind))
      if (Status status = checkAxes(entry, origin, axes); !status.ok())
        return status;
    ofCollective = origin.combined(axes);
    if (sendsWhole(*kind) && !known)
      ofCollective.add({"", "", "", "the result of " + entry.what, "", axes, 0});
    if (sendsWhole(*kind) && known)
      ofCollective.add({unit, "the result of " + entry.what, "", "", "", 0, axesOf(known->axes)});
  }
  std::vector<Origin> results;
  for (size_t value = 0; value < entry.bytes.size(); ++value)
    results.push_back(kind ? ofCollective : originOf(entry, value));
  if (kind == CollectiveKind::AllGather)
    flatOf[values.size()] = unit;
  values.insert(values.end(), results.begin(), results.end());
  return Status::success();
}

Status OriginChecker::checkTarget(const ValueEntry &entry, const Origin &origin) const {
  auto owner = ownerOf.find(entry.what);
  if (owner == ownerOf.end()) {
    auto free = mayDiffer.find(entry.what);
    if (sums.count(entry.what) && origin.any().empty())
      return fail(entry, entry.what + " is the sum of what ranks have, but computed from what all have alike");
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
  size_t count = 0;
  for (const ValueEntry &entry : *manifest.values)
    count += entry.bytes.size();
  flatOf.resize(count);
  for (const ValueEntry &entry : *manifest.values) {
    Origin origin = originOf(entry);
    Status status = Status::success();
    switch (entry.kind) {
    case ValueEntry::Kind::Source:
      flatOf[values.size()] = wholeOf[entry.what];
      values.push_back(sources[entry.what]);
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

Status spmd::runtime::checkOrigins(const Manifest &manifest) {
  // One rank has everything.
  return manifest.ranks == 1 ? Status::success() : OriginChecker(manifest).check();
}
