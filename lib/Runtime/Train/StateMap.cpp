//===- StateMap.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Train/StateMap.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace spmd::runtime;

std::string StateTensor::fileKey(const std::string &name) const {
  if (state == "param" || state == "buffer")
    return name;
  if (state == "constant" || state == "rng")
    return state + "/" + name;
  return "optimizer/" + state + "/" + name;
}

StateMap::StateMap(const Manifest &manifest) : manifest(manifest) {
  for (const Unit &unit : manifest.units)
    groups.emplace(unit.axes, manifest.groupsAlong(unit.axes));
  for (const StateEntry &entry : manifest.state) {
    if (entry.kind == StateEntry::Kind::Replicated) {
      all.push_back({entry.name, entry.aliases, entry.state, entry.dtype, entry.shape, &entry, nullptr, 0});
      continue;
    }
    const Unit *unit = manifest.findUnit(entry.unit);
    for (size_t i = 0; i < unit->segments.size(); ++i) {
      const Segment &segment = unit->segments[i];
      // A parameter that is frozen, or in no optimizer, has a place in its unit's optimizer state, and no state in it.
      bool isOptimizerState = entry.state != "param" && entry.state != "grad";
      if ((!segment.trainable && entry.state != "param") || (segment.group < 0 && isOptimizerState))
        continue;
      bool isTable = entry.kind == StateEntry::Kind::Table;
      all.push_back({segment.name, segment.aliases, entry.state, entry.dtype,
                     isTable ? std::vector<int64_t>() : segment.parameterShape(), &entry, unit, i});
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    index.emplace(std::make_pair(all[i].state, all[i].name), i);
    for (const std::string &alias : all[i].aliases)
      index.emplace(std::make_pair(all[i].state, alias), i);
  }
}

const StateTensor *StateMap::find(const std::string &state, const std::string &name) const {
  auto found = index.find({state, name});
  return found == index.end() ? nullptr : &all[found->second];
}

/// Whether both tensors lie in the same bytes of every rank's arena.
static bool haveSamePlace(const StateTensor &a, const StateTensor &b) {
  const StateEntry &x = *a.entry, &y = *b.entry;
  if (x.kind != y.kind || x.isSum != y.isSum || x.offset != y.offset || x.numel != y.numel || !a.unit != !b.unit)
    return false;
  if (!a.unit)
    return true;
  const Segment &p = a.unit->segments[a.segment], &q = b.unit->segments[b.segment];
  return a.segment == b.segment && p.offset == q.offset && p.shape == q.shape && p.tensor.dim == q.tensor.dim &&
         p.tensor.pre == q.tensor.pre && a.unit->chunk == b.unit->chunk && a.unit->padded == b.unit->padded &&
         a.unit->axes == b.unit->axes;
}

std::string StateMap::findDifference(const StateMap &other) const {
  if (manifest.ranks != other.manifest.ranks)
    return std::to_string(manifest.ranks) + " ranks, not " + std::to_string(other.manifest.ranks);
  for (const StateTensor &tensor : other.all)
    if (!find(tensor.state, tensor.name))
      return "no " + tensor.state + " '" + tensor.name + "'";
  for (const StateTensor &tensor : all) {
    std::string what = tensor.state + " '" + tensor.name + "'";
    const StateTensor *same = other.find(tensor.state, tensor.name);
    if (!same)
      return what + " too";
    if (tensor.dtype != same->dtype || tensor.shape != same->shape)
      return what + " as " + nameOf(tensor.dtype) + formatShape(tensor.shape) + ", not " + nameOf(same->dtype) +
             formatShape(same->shape);
    if (!haveSamePlace(tensor, *same))
      return what + " at another place";
  }
  return "";
}

/// Calls visit(from, to, count) for each run of elements [from, from + count) of a rank's part that lie together in the
/// whole tensor, where they begin at `to`; for those in [begin, end).
template <typename Visit>
static Status forEachRun(const DimSplit &split, const std::vector<int64_t> &shape, int64_t position, int64_t begin,
                         int64_t end, const Visit &visit) {
  auto dim = static_cast<size_t>(*split.dim);
  int64_t inner = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d)
    inner *= shape[d];
  // A row of it is all that a rank has at one place of the dims before and of `pre`.
  int64_t row = split.chunk * inner, wholeRow = shape[dim] / split.pre * inner;
  Status status;
  for (int64_t from = begin; from < end && status.ok();) {
    int64_t number = from / row, until = std::min(end, (number + 1) * row);
    status = visit(from, number * wholeRow + position * row + from % row, until - from);
    from = until;
  }
  return status;
}

Status StateMap::forEachPiece(const StateTensor &tensor, const RanksHere &ranks, const Visit &visit) const {
  int64_t size = sizeOf(tensor.dtype);
  const StateEntry &entry = *tensor.entry;
  Status status;
  for (int64_t rank = ranks.first; rank < ranks.end() && status.ok(); ++rank) {
    if (entry.kind == StateEntry::Kind::Replicated) {
      status = visit(rank, entry.offset, int64_t(0), tensor.bytes());
    } else if (entry.kind == StateEntry::Kind::Table) {
      status = visit(rank, entry.offset + static_cast<int64_t>(tensor.segment) * size, int64_t(0), size);
    } else {
      const Segment &segment = tensor.unit->segments[tensor.segment];
      int64_t chunk = entry.numel; // of parameters that ranks have whole, all
      int64_t chunkBegin = isChunked(tensor) ? groupsOf(*tensor.unit).positionOf(rank) * chunk : 0;
      int64_t begin = std::max(segment.offset, chunkBegin);
      int64_t end = std::min(segment.offset + segment.numel, chunkBegin + chunk);
      if (const DimSplit *split = begin < end ? tensorSplit(tensor) : nullptr)
        status = forEachRun(*split, tensor.shape, manifest.tensorRankOf(rank), begin - segment.offset,
                            end - segment.offset, [&](int64_t from, int64_t to, int64_t count) {
                              return visit(rank, entry.offset + (segment.offset + from - chunkBegin) * size, to * size,
                                           count * size);
                            });
      else if (begin < end)
        status = visit(rank, entry.offset + (begin - chunkBegin) * size, (begin - segment.offset) * size,
                       (end - begin) * size);
    }
  }
  return status;
}

/// Whether each rank along the axes of the unit has a chunk of what it is laid out of.
bool StateMap::isChunked(const StateTensor &tensor) const {
  return tensor.entry->kind == StateEntry::Kind::Shard && tensor.entry->numel != tensor.unit->padded;
}

/// How the tensor axis cuts the tensor; null where it does not.
const DimSplit *StateMap::tensorSplit(const StateTensor &tensor) const {
  if (tensor.entry->kind != StateEntry::Kind::Shard)
    return nullptr;
  const DimSplit &split = tensor.unit->segments[tensor.segment].tensor;
  return split.dim ? &split : nullptr;
}

/// Where each rank's chunk of a unit is.
const RankGroups &StateMap::groupsOf(const Unit &unit) const { return groups.at(unit.axes); }

/// Whether no rank before this one has the same of the tensor.
bool StateMap::isFirst(const StateTensor &tensor, int64_t rank) const {
  // Off the axes along which ranks have parts of it the first one counts.
  std::vector<int64_t> place = manifest.coordinatesOf(rank);
  for (size_t i = 0; i < place.size(); ++i) {
    const MeshAxis &axis = manifest.mesh[i];
    const std::vector<std::string> *along = isChunked(tensor) ? &tensor.unit->axes : nullptr;
    bool hasChunks = along && (along->empty() || std::find(along->begin(), along->end(), axis.name) != along->end());
    if (place[i] != 0 && !hasChunks && !(axis.isTensor && tensorSplit(tensor)))
      return false;
  }
  return true;
}

/// Elements of a sum that are added up at a time.
static constexpr int64_t kSummed = 1 << 18;

/// The ranks that have summands of what the rank has, which comes before them. Those along a tensor axis have the same.
std::vector<int64_t> StateMap::ranksToSum(const StateTensor &tensor, int64_t rank) const {
  std::vector<int64_t> ranks;
  for (int64_t other = 0; other < manifest.ranks; ++other) {
    bool isThere =
        !isChunked(tensor) || groupsOf(*tensor.unit).positionOf(other) == groupsOf(*tensor.unit).positionOf(rank);
    if (isThere && manifest.tensorRankOf(other) == manifest.tensorRankOf(rank))
      ranks.push_back(other);
  }
  return ranks;
}

/// What the ranks have of a tensor, in their order, added up in f64.
Status StateMap::readSum(const StateTensor &tensor, const RankAccess &reader, void *destination) const {
  int64_t size = sizeOf(tensor.dtype);
  std::vector<char> summand;
  std::vector<double> sum;
  RanksHere sources{manifest.ranks, 0, ranksDiffer(tensor) ? manifest.ranks : 1};
  return forEachPiece(tensor, sources, [&](int64_t first, int64_t inArena, int64_t inTensor, int64_t bytes) {
    if (!isFirst(tensor, first))
      return Status::success();
    std::vector<int64_t> ranks = ranksToSum(tensor, first);
    for (int64_t done = 0; done < bytes; done += kSummed * size) {
      int64_t now = std::min(kSummed * size, bytes - done), count = now / size;
      summand.resize(static_cast<size_t>(now));
      sum.assign(static_cast<size_t>(count), 0);
      for (int64_t rank : ranks) {
        if (Status status = reader.read(rank, inArena + done, summand.data(), now); !status.ok())
          return status;
        for (int64_t i = 0; i < count; ++i)
          sum[static_cast<size_t>(i)] += loadAsDouble(summand.data(), tensor.dtype, i);
      }
      for (int64_t i = 0; i < count; ++i)
        storeFromDouble(static_cast<char *>(destination), tensor.dtype, (inTensor + done) / size + i,
                        sum[static_cast<size_t>(i)]);
    }
    return Status::success();
  });
}

Status StateMap::read(const StateTensor &tensor, const RankAccess &reader, void *destination) const {
  if (tensor.entry->isSum)
    return readSum(tensor, reader, destination);
  // What is the same on all ranks is read from the first that has it.
  RanksHere sources{manifest.ranks, 0, ranksDiffer(tensor) ? manifest.ranks : 1};
  return forEachPiece(tensor, sources, [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
    if (!isFirst(tensor, rank))
      return Status::success();
    return reader.read(rank, inArena, static_cast<char *>(destination) + inTensor, bytes);
  });
}

/// Whoever writes a parameter writes its master, of which the next step would make the parameter again. A master that
/// is written with it, before or after, keeps what it has beyond the parameter's type.
Status StateMap::follow(const StateTensor &parameter, const void *source, const RanksHere &ranks,
                        const std::function<Status(int64_t, int64_t, void *, int64_t)> &read,
                        const std::function<Status(int64_t, int64_t, const void *, int64_t)> &write) const {
  const StateTensor *master = parameter.state == "param" ? find("master", parameter.name) : nullptr;
  if (!master)
    return Status::success();
  int64_t size = sizeOf(master->dtype), narrow = sizeOf(parameter.dtype);
  std::vector<char> present;
  return forEachPiece(*master, ranks, [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
    present.resize(static_cast<size_t>(bytes));
    if (Status status = read(rank, inArena, present.data(), bytes); !status.ok())
      return status;
    bool changes = false;
    const char *given = static_cast<const char *>(source) + inTensor / size * narrow;
    for (int64_t i = 0; i < bytes / size; ++i) {
      char rounded[8] = {};
      storeFromDouble(rounded, parameter.dtype, 0, loadAsDouble(present.data(), master->dtype, i));
      if (std::memcmp(rounded, given + i * narrow, static_cast<size_t>(narrow)) == 0)
        continue;
      storeFromDouble(present.data(), master->dtype, i, loadAsDouble(given, parameter.dtype, i));
      changes = true;
    }
    return changes ? write(rank, inArena, present.data(), bytes) : Status::success();
  });
}

Status StateMap::write(const StateTensor &tensor, RankMemory &memory, const void *source) const {
  auto writePiece = [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
    if (getsZeros(tensor, rank))
      return memory.fill(rank, inArena, 0, bytes);
    return memory.copyIn(rank, inArena, static_cast<const char *>(source) + inTensor, bytes);
  };
  if (Status status = forEachPiece(tensor, memory.ranks(), writePiece); !status.ok())
    return status;
  return follow(
      tensor, source, memory.ranks(),
      [&](int64_t rank, int64_t offset, void *to, int64_t bytes) { return memory.copyOut(rank, offset, to, bytes); },
      [&](int64_t rank, int64_t offset, const void *from, int64_t bytes) {
        return memory.copyIn(rank, offset, from, bytes);
      });
}

Expected<bool> StateMap::replace(const StateTensor &tensor, const RankAccess &ranks, const void *source) const {
  bool changes = false;
  std::vector<char> present, zeros;
  if (tensor.entry->isSum) {
    present.resize(static_cast<size_t>(tensor.bytes()));
    if (Status status = readSum(tensor, ranks, present.data()); !status.ok())
      return status;
    if (std::memcmp(present.data(), source, present.size()) == 0)
      return false;
    zeros.resize(present.size());
  }
  auto replacePiece = [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
    if (!ranks.reaches(rank))
      return Status::success();
    const char *piece = (getsZeros(tensor, rank) ? zeros.data() : static_cast<const char *>(source)) + inTensor;
    present.resize(static_cast<size_t>(bytes));
    Status status = ranks.readReached(rank, inArena, present.data(), bytes);
    if (!status.ok() || std::memcmp(present.data(), piece, present.size()) == 0)
      return status;
    changes = true;
    return ranks.writeReached(rank, inArena, piece, bytes);
  };
  Status status = forEachPiece(tensor, RanksHere::all(manifest.ranks), replacePiece);
  if (status.ok())
    status = follow(
        tensor, source, RanksHere::all(manifest.ranks),
        [&](int64_t rank, int64_t offset, void *to, int64_t bytes) {
          return ranks.reaches(rank) ? ranks.readReached(rank, offset, to, bytes) : Status::success();
        },
        [&](int64_t rank, int64_t offset, const void *from, int64_t bytes) {
          return ranks.reaches(rank) ? ranks.writeReached(rank, offset, from, bytes) : Status::success();
        });
  return status.ok() ? Expected<bool>(changes) : status;
}

/// Sets `bytes` of a rank's arena to elements of `value`.
static Status fillWith(double value, DType dtype, RankMemory &memory, int64_t rank, int64_t offset, int64_t bytes) {
  char element[8] = {};
  int64_t size = sizeOf(dtype);
  storeFromDouble(element, dtype, 0, value);
  if (std::all_of(element, element + size, [&](char byte) { return byte == element[0]; }))
    return memory.fill(rank, offset, static_cast<uint8_t>(element[0]), bytes);
  std::vector<char> elements(static_cast<size_t>(std::min<int64_t>(bytes, size << 16)));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = element[i % static_cast<size_t>(size)];
  auto whole = static_cast<int64_t>(elements.size());
  for (int64_t done = 0; done < bytes; done += whole)
    if (Status status = memory.copyIn(rank, offset + done, elements.data(), std::min(whole, bytes - done));
        !status.ok())
      return status;
  return Status::success();
}

std::vector<std::string> StateMap::findUnknown(const SafetensorsFile &weights) const {
  std::set<std::string> known;
  for (const StateTensor &tensor : all) {
    known.insert(tensor.fileKey(tensor.name));
    for (const std::string &alias : tensor.aliases)
      known.insert(tensor.fileKey(alias));
  }
  std::vector<std::string> unknown;
  for (const auto &[name, tensor] : weights.tensors())
    if (!known.count(name))
      unknown.push_back(name);
  return unknown;
}

Status StateMap::initialize(const SafetensorsFile *weights, RankMemory &memory, MayLack mayLack) const {
  std::map<std::string, const TensorView *> values; // of parameters, as which masters begin
  for (const StateTensor &tensor : all) {
    const TensorView *stored = nullptr;
    if (weights) {
      stored = weights->find(tensor.fileKey(tensor.name));
      for (const std::string &alias : tensor.aliases)
        if (!stored)
          stored = weights->find(tensor.fileKey(alias));
    }
    std::string what = tensor.state + " '" + tensor.name + "'";
    Status status;
    if (stored) {
      if (stored->dtype != tensor.dtype || stored->shape != tensor.shape)
        return Status::badInput("'" + weights->path() + "': " + what + " is " + nameOf(stored->dtype) +
                                formatShape(stored->shape) + ", the artifact was compiled for " + nameOf(tensor.dtype) +
                                formatShape(tensor.shape));
      status = write(tensor, memory, stored->data);
      if (tensor.state == "param")
        values.emplace(tensor.name, stored);
    } else if (tensor.isMaster() && !tensor.entry->init && values.count(tensor.name)) {
      const TensorView &parameter = *values[tensor.name];
      std::vector<char> wide(static_cast<size_t>(tensor.bytes()));
      for (int64_t i = 0; i < tensor.numel(); ++i)
        storeFromDouble(wide.data(), tensor.dtype, i, loadAsDouble(parameter.data, parameter.dtype, i));
      status = write(tensor, memory, wide.data());
    } else {
      if (!tensor.entry->init && (mayLack == MayLack::Anything || (mayLack == MayLack::Saved && tensor.isSaved())))
        continue;
      if (!tensor.entry->init)
        return Status::badInput(weights ? "'" + weights->path() + "': missing weight: " + what
                                        : "no weights: the artifact has no weights.safetensors, and " + what +
                                              " no initial value; pass a safetensors file (--weights=FILE)");
      status = forEachPiece(tensor, memory.ranks(), [&](int64_t rank, int64_t inArena, int64_t, int64_t bytes) {
        return fillWith(*tensor.entry->init, tensor.dtype, memory, rank, inArena, bytes);
      });
    }
    if (!status.ok())
      return status;
  }
  return Status::success();
}
