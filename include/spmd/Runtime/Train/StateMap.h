//===- StateMap.h - Full tensors and where their pieces lie ------*- C++ -*-===//
//
// Users and files know full tensors by name ("h.0.attn.weight"); arenas hold
// chunks of flat buffers, tables and replicas. The StateMap translates: it
// lists every full tensor of the persistent state, and copies one out of, or
// into, the arenas of the ranks.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_TRAIN_STATEMAP_H
#define SPMD_RUNTIME_TRAIN_STATEMAP_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Train/RankAccess.h"
#include "spmd/Runtime/Train/StateSource.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace spmd::runtime {

struct StateTensor {
  std::string name;
  std::vector<std::string> aliases;
  std::string state; ///< "param", "buffer", "constant", "rng", or optimizer state
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< of all of it
  const StateEntry *entry = nullptr;
  const Unit *unit = nullptr; ///< shards and tables
  size_t segment = 0;         ///< position in the unit

  int64_t numel() const { return numElements(shape); }
  int64_t bytes() const { return bytesOf(numel(), dtype); }
  bool isOptimizerState() const { return state != "param" && state != "buffer" && state != "constant" && !isRng(); }
  /// Seed and step counter of random numbers.
  bool isRng() const { return state == "rng"; }
  /// Of a step that leaves it to later calls; a training that has none has zeros.
  bool isGradient() const { return state == "grad"; }
  /// The parameter in a wider type, which the optimizer updates: the parameter is its rounding, and it begins as it.
  bool isMaster() const { return state == "master"; }
  /// Part of a checkpoint: it outlives the step, and is not made anew with the model.
  bool isSaved() const { return isOptimizerState() || isRng() || (state != "constant" && entry->persistent); }
  /// Its key in weights.safetensors and in saved files, for one of its names.
  std::string fileKey(const std::string &name) const;
};

/// Elements of a tensor, one after the other in the arena of the one rank that saves them.
struct StatePiece {
  const StateTensor *tensor = nullptr;
  std::vector<ElementRuns> runs; ///< where they are in the tensor, in this order
  int64_t inArena = 0;           ///< bytes

  int64_t count() const;
  bool isOneRun() const { return runs.size() == 1 && runs.front().repeat == 1; }
  /// Adds a run of elements that lies behind the others.
  void add(int64_t first, int64_t count);
};

class StateMap {
public:
  /// The manifest must outlive the map.
  explicit StateMap(const Manifest &manifest);

  const std::vector<StateTensor> &tensors() const { return all; }

  /// By name or alias; null when there is none.
  const StateTensor *find(const std::string &state, const std::string &name) const;

  /// What keeps a program with this map from running on a state that `other` describes: the first tensor that is
  /// missing, of another type or elsewhere in the arena. Empty when nothing does.
  std::string findDifference(const StateMap &other) const;

  /// Copies the full tensor out of the arenas of all ranks; of a sum, what they have of it together.
  Status read(const StateTensor &tensor, const RankAccess &reader, void *destination) const;

  /// Whether a rank has all of what read() gives, in pieces: visit(byte offset in the arena, byte offset in the full
  /// tensor, bytes) is called for each, until one fails.
  bool isWhole(const StateTensor &tensor, int64_t rank) const {
    return manifest.ranks == 1 || (rank == 0 && !ranksDiffer(tensor) && !tensor.entry->isSum);
  }
  Status visitPieces(const StateTensor &tensor, int64_t rank,
                     const std::function<Status(int64_t, int64_t, int64_t)> &visit) const {
    return forEachPiece(
        tensor, {manifest.ranks, rank, 1},
        [&](int64_t, int64_t inArena, int64_t inTensor, int64_t bytes) { return visit(inArena, inTensor, bytes); });
  }

  /// Copies the pieces of the ranks here into their arenas; of a sum the first rank gets all, and the others zeros.
  /// Elements of a parameter's master become those that the parameter gets, where it is not their rounding.
  Status write(const StateTensor &tensor, RankMemory &memory, const void *source) const;

  /// Copies pieces of all ranks that are reached. True: one of them had another value.
  Expected<bool> replace(const StateTensor &tensor, const RankAccess &ranks, const void *source) const;

  /// Tensors of `weights` that have no place here, in order of their names.
  std::vector<std::string> findUnknown(const SafetensorsFile &weights) const;

  /// Fills the state of the ranks here from `weights` (may be null), or from the
  /// initial values. Arenas must be zero, so that padding is neutral. A missing
  /// tensor or one of another dtype or shape is an error that names it; what `mayLack` allows is left as it is.
  enum class MayLack { Nothing, Saved, Anything }; ///< Saved: what a checkpoint has
  Status initialize(const SafetensorsFile *weights, RankMemory &memory, MayLack mayLack = MayLack::Nothing) const;

  /// The pieces, one of a tensor, that `rank` writes into a checkpoint of a file for each rank: those of its chunks, and of rank 0 what
  /// all have alike. Those of all ranks together are every saved tensor, once.
  std::vector<StatePiece> piecesToSave(int64_t rank) const;

  /// An error that lists all that keeps the state from being filled from `source`: saved tensors that it has not,
  /// tensors that have no place here, other shapes, and types that are not converted (floating ones are). Not `strict`:
  /// only the last two. `withOptimizer`: its state must be there. Counters of random numbers may be missing together:
  /// other programs have none.
  Status compare(const StateSource &source, bool strict, bool withOptimizer) const;

  /// Checks the elements that the ranks here take of `source`, which compare() has accepted; then takes them.
  Status check(const StateSource &source, const RanksHere &ranks) const;
  Status load(const StateSource &source, RankMemory &memory) const;

private:
  /// Calls visit(rank, byte offset in the arena, byte offset in the full tensor, bytes) for every piece of `tensor` on
  /// each of `ranks` that has one, until one fails.
  using Visit = std::function<Status(int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes)>;
  Status forEachPiece(const StateTensor &tensor, const RanksHere &ranks, const Visit &visit) const;
  Status follow(const StateTensor &parameter, const void *source, const RanksHere &ranks,
                const std::function<Status(int64_t, int64_t, void *, int64_t)> &read,
                const std::function<Status(int64_t, int64_t, const void *, int64_t)> &write) const;
  const std::string *findKey(const StateSource &source, const StateTensor &tensor, std::string &storage) const;
  Status readSum(const StateTensor &tensor, const RankAccess &reader, void *destination) const;
  std::vector<int64_t> ranksToSum(const StateTensor &tensor, int64_t rank) const;
  bool isChunked(const StateTensor &tensor) const;
  const DimSplit *tensorSplit(const StateTensor &tensor) const;
  bool ranksDiffer(const StateTensor &tensor) const { return isChunked(tensor) || tensorSplit(tensor); }
  bool isFirst(const StateTensor &tensor, int64_t rank) const;
  /// Whether a rank gets zeros of a sum that is written, of which the first rank has all.
  bool getsZeros(const StateTensor &tensor, int64_t rank) const {
    return tensor.entry->isSum && (isChunked(tensor) ? !isFirst(tensor, rank) : manifest.dataRankOf(rank) != 0);
  }
  const RankGroups &groupsOf(const Unit &unit) const;

  const Manifest &manifest;
  std::map<std::vector<std::string>, RankGroups> groups; ///< by the axes along which units are cut
  std::vector<StateTensor> all;
  std::map<std::pair<std::string, std::string>, size_t> index;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_STATEMAP_H
