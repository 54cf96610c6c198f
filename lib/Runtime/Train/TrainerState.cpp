//===- TrainerState.cpp - The state of a trainer in files -----------------===//

#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Train/Trainer.h"

#include <algorithm>
#include <optional>

using namespace spmd::runtime;

/// Before a first step of its own kind there is no optimizer state.
bool Trainer::hasOptimizerState() const { return !first || ranFirst; }

/// Writes the state, one tensor in memory at a time. Where processes do not read alone all of them read, and one that
/// `writes` has the file.
Status Trainer::writeState(const std::string &path, bool withOptimizer, bool writes, StateSnapshot *from) const {
  bool hasOptimizer = from ? from->hasOptimizerState : hasOptimizerState();
  std::vector<NamedTensor> tensors;
  std::vector<std::pair<const StateTensor *, size_t>> times; // in a row: one for each name
  for (const StateTensor &tensor : content->state.tensors()) {
    bool isExtra = tensor.isOptimizerState() || tensor.isRng();
    if (!tensor.isSaved() || (isExtra && !withOptimizer) || (tensor.isOptimizerState() && !hasOptimizer))
      continue;
    TensorView view{tensor.dtype, tensor.shape, nullptr, tensor.bytes()};
    tensors.push_back({tensor.fileKey(tensor.name), view});
    for (const std::string &alias : tensor.aliases)
      tensors.push_back({tensor.fileKey(alias), view});
    times.emplace_back(&tensor, 1 + tensor.aliases.size());
  }
  std::optional<SafetensorsWriter> writer;
  Status status;
  if (writes) {
    Expected<SafetensorsWriter> created = SafetensorsWriter::create(path, tensors, {{"format", "pt"}});
    if (created)
      writer.emplace(std::move(*created));
    else
      status = created.error();
  }
  if (!status.ok() && readsAlone())
    return status;
  std::vector<char> bytes;
  for (const auto &[tensor, names] : times) {
    bytes.resize(static_cast<size_t>(tensor->bytes()));
    Status read =
        from ? content->state.read(*tensor, {*from, *content->shared->processes, content->shared->abort}, bytes.data())
             : readState([&, of = tensor] { return content->state.read(*of, content->access(), bytes.data()); });
    if (!read.ok())
      return read;
    for (size_t i = 0; writer && i < names; ++i)
      writer->write(bytes.data(), tensor->bytes());
  }
  return writer ? writer->commit() : status;
}

Status Trainer::save(const std::string &path, bool withOptimizer, StateSnapshot *from) const {
  bool writes = content->ranks.has(0), gathers = writes || !readsAlone();
  return agreeOn(gathers ? writeState(path, withOptimizer, writes, from) : Status::success());
}

Status Trainer::saveAlone(const std::string &path, bool withOptimizer) const {
  if (!readsAlone())
    return Status::badInput("the ranks are on several hosts, so all processes read the state together");
  return writeState(path, withOptimizer, /*writes=*/true);
}

std::vector<StatePiece> Trainer::piecesToSave(int64_t rank, const StateSnapshot *from) const {
  std::vector<StatePiece> pieces = content->state.piecesToSave(rank);
  if (!(from ? from->hasOptimizerState : hasOptimizerState()))
    pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                                [](const StatePiece &piece) { return piece.tensor->isOptimizerState(); }),
                 pieces.end());
  return pieces;
}

Status Trainer::saveRank(int64_t rank, const std::string &path, const StateSnapshot *from) const {
  constexpr int64_t kBytes = 1 << 20;
  std::vector<StatePiece> pieces = piecesToSave(rank, from);
  const RankMemory &memory = from ? static_cast<const RankMemory &>(*from) : content->memory();
  std::vector<NamedTensor> tensors;
  for (const StatePiece &piece : pieces)
    tensors.push_back({piece.tensor->fileKey(piece.tensor->name),
                       {piece.tensor->dtype, {piece.count()}, nullptr, piece.count() * sizeOf(piece.tensor->dtype)}});
  Expected<SafetensorsWriter> writer = SafetensorsWriter::create(path, tensors, {{"format", "pt"}});
  if (!writer)
    return writer.error();
  std::vector<char> bytes(static_cast<size_t>(kBytes));
  for (const StatePiece &piece : pieces) {
    int64_t left = piece.count() * sizeOf(piece.tensor->dtype);
    for (int64_t at = piece.inArena; left > 0; at += kBytes, left -= kBytes) {
      int64_t now = std::min(kBytes, left);
      if (Status status = memory.copyOut(rank, at, bytes.data(), now); !status.ok())
        return status;
      writer->write(bytes.data(), now);
    }
  }
  return writer->commit();
}

Status Trainer::readPiece(int64_t rank, const StatePiece &piece, void *destination) const {
  return content->shared->read([&] {
    return content->memory().copyOut(rank, piece.inArena, destination, piece.count() * sizeOf(piece.tensor->dtype));
  });
}

Status Trainer::takeSnapshot(StateSnapshot &into) const {
  into.hasOptimizerState = hasOptimizerState();
  into.hyper = hyper;
  return content->shared->read([&] {
    Status status;
    for (int64_t rank = ranks().first; rank < ranks().end() && status.ok(); ++rank)
      status = content->memory().copyOut(rank, 0, into.addressOf(rank, 0), into.bytes());
    return status;
  });
}

Status Trainer::settle() const {
  return content->shared->read([] { return Status::success(); });
}

Status Trainer::gatherSums() const {
  std::vector<char> sum;
  for (const StateTensor &tensor : content->state.tensors()) {
    if (!tensor.entry->isSum)
      continue;
    sum.resize(static_cast<size_t>(tensor.bytes()));
    Status status = readState([&] { return content->state.read(tensor, content->access(), sum.data()); });
    if (status = agreeOn(status); !status.ok()) // nobody still reads what others write
      return status;
    if (status = agreeOn(content->state.write(tensor, content->memory(), sum.data())); !status.ok())
      return status;
  }
  return Status::success();
}

static bool hasOptimizerState(const StateSource &source) {
  const std::string prefix = "optimizer/";
  auto found = source.tensors().lower_bound(prefix);
  return found != source.tensors().end() && found->first.compare(0, prefix.size(), prefix) == 0;
}

Status Trainer::compareState(const StateSource &source, bool strict) const {
  return content->state.compare(source, strict, ::hasOptimizerState(source) || hasOptimizerState());
}

Status Trainer::checkState(const StateSource &source) const { return content->state.check(source, content->ranks); }

Status Trainer::loadState(const StateSource &source) {
  if (Status status = settle(); !status.ok())
    return status;
  if (!content->shared->failure.ok())
    return content->shared->failure;
  if (Status status = content->state.load(source, content->memory()); !status.ok())
    return content->shared->failure = status;
  if (::hasOptimizerState(source))
    first.reset();
  return Status::success();
}

Status Trainer::agreeOn(const Status &status) const {
  return content->ranks.areAll() ? status : agreement().share(status);
}
