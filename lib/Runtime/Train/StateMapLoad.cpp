//===- StateMapLoad.cpp - A state out of a checkpoint, and into one -------===//

#include "spmd/Runtime/Train/StateMap.h"

#include <algorithm>
#include <set>

using namespace spmd::runtime;

int64_t StatePiece::count() const {
  int64_t all = 0;
  for (const ElementRuns &run : runs)
    all += run.total();
  return all;
}

void StatePiece::add(int64_t first, int64_t count) {
  ElementRuns *last = runs.empty() ? nullptr : &runs.back();
  if (last && last->repeat == 1 && last->first + last->count == first) {
    last->count += count;
  } else if (last && last->count == count &&
             (last->repeat == 1 || last->first + last->repeat * last->stride == first)) {
    last->stride = (first - last->first) / last->repeat;
    ++last->repeat;
  } else {
    runs.push_back({first, count});
  }
}

std::vector<StatePiece> StateMap::piecesToSave(int64_t rank) const {
  std::vector<StatePiece> pieces;
  for (const StateTensor &tensor : all) {
    if (!tensor.isSaved() || !isFirst(tensor, rank))
      continue;
    int64_t size = sizeOf(tensor.dtype);
    auto add = [&](int64_t, int64_t inArena, int64_t inTensor, int64_t bytes) {
      if (pieces.empty() || pieces.back().tensor != &tensor)
        pieces.push_back({&tensor, {}, inArena});
      pieces.back().add(inTensor / size, bytes / size);
      return Status::success();
    };
    (void)forEachPiece(tensor, {manifest.ranks, rank, 1}, add);
  }
  return pieces;
}

static bool converts(DType from, DType to) { return from == to || (isFloating(from) && isFloating(to)); }

/// The key under which a source has a tensor; null when it has none. A master is its parameter where it is not there.
const std::string *StateMap::findKey(const StateSource &source, const StateTensor &tensor, std::string &storage) const {
  storage = tensor.fileKey(tensor.name);
  for (size_t i = 0; !source.find(storage); ++i) {
    if (i == tensor.aliases.size()) {
      const StateTensor *parameter = tensor.isMaster() ? find("param", tensor.name) : nullptr;
      return parameter ? findKey(source, *parameter, storage) : nullptr;
    }
    storage = tensor.fileKey(tensor.aliases[i]);
  }
  return &storage;
}

namespace {
/// Names of one kind of mistake, of which the first few are written out.
struct Names {
  std::vector<std::string> all;

  std::string format(const std::string &what) const {
    constexpr size_t kNamed = 8;
    if (all.empty())
      return "";
    std::string text = "; " + what + " ";
    for (size_t i = 0; i < std::min(all.size(), kNamed); ++i)
      text += (i ? ", " : "") + all[i];
    return text + (all.size() > kNamed ? " and " + std::to_string(all.size() - kNamed) + " more" : "");
  }
};
} // namespace

Status StateMap::compare(const StateSource &source, bool strict, bool withOptimizer) const {
  Names missing, unexpected, shapes, types;
  std::set<std::string> known;
  auto rng = source.tensors().lower_bound("rng/"); // other programs have no such counter
  bool drawsNumbers = rng != source.tensors().end() && rng->first.compare(0, 4, "rng/") == 0;
  std::string storage;
  for (const StateTensor &tensor : all) {
    known.insert(tensor.fileKey(tensor.name));
    for (const std::string &alias : tensor.aliases)
      known.insert(tensor.fileKey(alias));
    if (!tensor.isSaved())
      continue;
    const std::string *key = findKey(source, tensor, storage);
    std::string name = "'" + tensor.fileKey(tensor.name) + "'";
    if (!key) {
      if ((tensor.isRng() && !drawsNumbers) || tensor.isGradient())
        continue;
      if (withOptimizer || !tensor.isOptimizerState())
        missing.all.push_back(name);
      continue;
    }
    const StateSource::Tensor &stored = *source.find(*key);
    if (stored.shape != tensor.shape)
      shapes.all.push_back(name + " as " + formatShape(stored.shape) + ", not " + formatShape(tensor.shape));
    else if (!converts(stored.dtype, tensor.dtype))
      types.all.push_back(name + " as " + nameOf(stored.dtype) + ", not " + nameOf(tensor.dtype));
  }
  for (const auto &[key, tensor] : source.tensors())
    if (!known.count(key))
      unexpected.all.push_back("'" + key + "'");
  std::string what = shapes.format("it has") + types.format("it has");
  bool isCured = what.empty();
  if (strict)
    what += missing.format("it lacks") + unexpected.format("unexpected");
  if (what.empty())
    return Status::success();
  return Status::badInput(source.describe() + " does not fit the step, nothing was loaded: " + what.substr(2) +
                          (isCured
                               ? "\n  hint: strict=False (spmd-run: --strict=off) leaves what it lacks as it is, and "
                                 "what is unexpected out"
                               : ""));
}

Status StateMap::check(const StateSource &source, const RanksHere &ranks) const {
  std::string storage;
  for (const StateTensor &tensor : all) {
    const std::string *key = tensor.isSaved() ? findKey(source, tensor, storage) : nullptr;
    if (!key)
      continue;
    int64_t size = sizeOf(tensor.dtype);
    auto checkPiece = [&](int64_t, int64_t, int64_t inTensor, int64_t bytes) {
      return source.check(*key, inTensor / size, bytes / size);
    };
    if (Status status = forEachPiece(tensor, ranks, checkPiece); !status.ok())
      return status;
  }
  return Status::success();
}

Status StateMap::load(const StateSource &source, RankMemory &memory) const {
  constexpr int64_t kElements = 1 << 18;
  std::vector<char> stored, converted;
  std::string storage;
  for (const StateTensor &tensor : all) {
    const std::string *key = tensor.isSaved() ? findKey(source, tensor, storage) : nullptr;
    if (!key && tensor.isGradient()) { // a training that had none
      auto clearPiece = [&](int64_t rank, int64_t inArena, int64_t, int64_t bytes) {
        return memory.fill(rank, inArena, 0, bytes);
      };
      if (Status status = forEachPiece(tensor, memory.ranks(), clearPiece); !status.ok())
        return status;
    }
    if (!key)
      continue;
    DType from = source.find(*key)->dtype, to = tensor.dtype;
    stored.resize(static_cast<size_t>(kElements * sizeOf(from)));
    converted.resize(static_cast<size_t>(kElements * sizeOf(to)));
    auto loadPiece = [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
      if (getsZeros(tensor, rank))
        return memory.fill(rank, inArena, 0, bytes);
      int64_t first = inTensor / sizeOf(to), count = bytes / sizeOf(to);
      Status status;
      for (int64_t done = 0; done < count && status.ok(); done += kElements) {
        int64_t now = std::min(kElements, count - done);
        status = source.read(*key, first + done, now, stored.data());
        for (int64_t i = 0; from != to && i < now; ++i)
          storeFromDouble(converted.data(), to, i, loadAsDouble(stored.data(), from, i));
        if (status.ok())
          status = memory.copyIn(rank, inArena + done * sizeOf(to), from == to ? stored.data() : converted.data(),
                                 now * sizeOf(to));
      }
      return status;
    };
    if (Status status = forEachPiece(tensor, memory.ranks(), loadPiece); !status.ok())
      return status;
  }
  return Status::success();
}
