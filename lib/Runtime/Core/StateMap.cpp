//===- StateMap.cpp -------------------------------------------------------===//

#include "spmd/Runtime/Core/StateMap.h"

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;

std::string StateTensor::fileKey(const std::string &name) const {
  if (state == "param" || state == "buffer")
    return name;
  if (state == "constant" || state == "rng")
    return state + "/" + name;
  return "optimizer/" + state + "/" + name;
}

StateMap::StateMap(const Manifest &manifest) : manifest(manifest) {
  for (const StateEntry &entry : manifest.state) {
    if (entry.kind == StateEntry::Kind::Replicated) {
      all.push_back({entry.name, entry.aliases, entry.state, entry.dtype, entry.shape, &entry, nullptr, 0});
      continue;
    }
    const Unit *unit = manifest.findUnit(entry.unit);
    for (size_t i = 0; i < unit->segments.size(); ++i) {
      const Segment &segment = unit->segments[i];
      // A frozen parameter has a place in its unit's optimizer state, and no
      // state in it.
      if (!segment.trainable && entry.state != "param")
        continue;
      bool isTable = entry.kind == StateEntry::Kind::Table;
      all.push_back({segment.name, segment.aliases, entry.state, entry.dtype,
                     isTable ? std::vector<int64_t>() : segment.shape, &entry, unit, i});
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
  if (x.kind != y.kind || x.offset != y.offset || x.numel != y.numel || !a.unit != !b.unit)
    return false;
  return !a.unit || (a.segment == b.segment && a.unit->chunk == b.unit->chunk && a.unit->padded == b.unit->padded &&
                     a.unit->segments[a.segment].offset == b.unit->segments[b.segment].offset);
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

/// Calls visit(rank, byte offset in the arena, byte offset in the full tensor,
/// bytes) for every piece of `tensor` on every rank that has one.
template <typename Visit>
void StateMap::forEachPiece(const StateTensor &tensor, const Visit &visit) const {
  int64_t size = sizeOf(tensor.dtype);
  const StateEntry &entry = *tensor.entry;
  for (int64_t rank = 0; rank < manifest.ranks; ++rank) {
    if (entry.kind == StateEntry::Kind::Replicated) {
      visit(rank, entry.offset, int64_t(0), tensor.bytes());
    } else if (entry.kind == StateEntry::Kind::Table) {
      visit(rank, entry.offset + static_cast<int64_t>(tensor.segment) * size, int64_t(0), size);
    } else {
      const Segment &segment = tensor.unit->segments[tensor.segment];
      int64_t chunk = tensor.unit->chunk;
      int64_t chunkBegin = tensor.unit->isSharded() ? rank * chunk : 0;
      int64_t begin = std::max(segment.offset, chunkBegin);
      int64_t end = std::min(segment.offset + segment.numel, chunkBegin + chunk);
      if (begin < end)
        visit(rank, entry.offset + (begin - chunkBegin) * size, (begin - segment.offset) * size, (end - begin) * size);
    }
  }
}

void StateMap::read(const StateTensor &tensor, const std::vector<char *> &arenas, void *destination) const {
  bool isSharded = tensor.entry->kind == StateEntry::Kind::Shard && tensor.unit->isSharded();
  forEachPiece(tensor, [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
    if (isSharded || rank == 0)
      std::memcpy(static_cast<char *>(destination) + inTensor, arenas[static_cast<size_t>(rank)] + inArena,
                  static_cast<size_t>(bytes));
  });
}

void StateMap::write(const StateTensor &tensor, const std::vector<char *> &arenas, const void *source) const {
  forEachPiece(tensor, [&](int64_t rank, int64_t inArena, int64_t inTensor, int64_t bytes) {
    std::memcpy(arenas[static_cast<size_t>(rank)] + inArena, static_cast<const char *>(source) + inTensor,
                static_cast<size_t>(bytes));
  });
}

Status StateMap::initialize(const SafetensorsFile *weights, const std::vector<char *> &arenas) const {
  for (const StateTensor &tensor : all) {
    const TensorView *stored = nullptr;
    if (weights) {
      stored = weights->find(tensor.fileKey(tensor.name));
      for (const std::string &alias : tensor.aliases)
        if (!stored)
          stored = weights->find(tensor.fileKey(alias));
    }
    std::string what = tensor.state + " '" + tensor.name + "'";
    if (stored) {
      if (stored->dtype != tensor.dtype || stored->shape != tensor.shape)
        return Status::badInput("'" + weights->path() + "': " + what + " is " + nameOf(stored->dtype) +
                                formatShape(stored->shape) + ", the artifact was compiled for " + nameOf(tensor.dtype) +
                                formatShape(tensor.shape));
      write(tensor, arenas, stored->data);
      continue;
    }
    if (!tensor.entry->init)
      return Status::badInput(weights ? "'" + weights->path() + "': missing weight: " + what
                                      : "no weights given: " + what + " has no initial value; pass a safetensors file");
    forEachPiece(tensor, [&](int64_t rank, int64_t inArena, int64_t, int64_t bytes) {
      char *piece = arenas[static_cast<size_t>(rank)] + inArena;
      for (int64_t i = 0; i < bytes / sizeOf(tensor.dtype); ++i)
        storeFromDouble(piece, tensor.dtype, i, *tensor.entry->init);
    });
  }
  return Status::success();
}
