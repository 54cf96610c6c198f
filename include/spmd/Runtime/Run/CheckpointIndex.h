//===- CheckpointIndex.h - Where the bytes of a checkpoint are ---*- C++ -*-===//
//
// index.json of a checkpoint: its data files with a hash of each block, and where the elements of each tensor lie in
// them. So whoever needs some elements reads and checks no more than the blocks which have them.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_RUN_CHECKPOINTINDEX_H
#define SPMD_RUNTIME_RUN_CHECKPOINTINDEX_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/MappedFile.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Train/StateSource.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spmd::runtime {

/// What a block's hash is: XXH3 of 64 bits; FNV-1a in checkpoints before version 3.
enum class BlockHash { fnv1a, xxh3 };

/// A file of a checkpoint, whose content is known by the hashes of its blocks.
struct CheckpointFile {
  static constexpr int64_t kBlock = 1 << 20; ///< bytes; the last block has the rest

  std::string name;
  int64_t bytes = 0;
  std::vector<uint64_t> blocks;

  /// Of a file as it is.
  static Expected<CheckpointFile> of(const std::string &folder, const std::string &name);

  /// As text, for other processes, and back.
  std::string format() const;
  static std::vector<CheckpointFile> parse(const std::string &text);
};

struct CheckpointIndex {
  /// Elements of a tensor, one after the other from `offset` bytes into a file on.
  struct Piece {
    size_t file = 0;
    ElementRuns runs;
    int64_t offset = 0;
  };

  BlockHash blockHash = BlockHash::xxh3;
  std::vector<CheckpointFile> files;
  std::map<std::string, StateSource::Tensor> tensors;
  /// Of each tensor all elements, once. Where no piece has a stride they are in the order of the elements.
  std::map<std::string, std::vector<Piece>> pieces;

  bool hasStrides() const;

  std::string format() const;
  /// `name` is what errors call the text. A piece that lies outside of its file, and elements in no piece, are errors.
  static Expected<CheckpointIndex> parse(const std::string &name, const std::string &text);
};

/// The state that a checkpoint has. Files are opened, and bytes read, when they are asked for.
class CheckpointState : public StateSource {
public:
  CheckpointState(std::string folder, CheckpointIndex index, uint64_t hash);

  std::string describe() const override { return "checkpoint '" + folder + "'"; }
  uint64_t fingerprint() const override { return hash; }
  const std::map<std::string, Tensor> &tensors() const override { return index.tensors; }
  Status check(const std::string &key, int64_t first, int64_t count) const override;
  Status read(const std::string &key, int64_t first, int64_t count, void *destination) const override;

  /// Checks all blocks of all files.
  Status checkAll() const;
  /// Checks what no tensor's elements tell of, as number `part` of `parts` who share it: that each file is there with
  /// its bytes and its beginning, and files without tensors.
  Status checkRest(int64_t part, int64_t parts) const;
  /// The content of a small file of the checkpoint; its hash is compared. An error when there is none of the name.
  Expected<std::string> readFile(const std::string &name) const;
  const std::vector<CheckpointFile> &files() const { return index.files; }

private:
  /// A file that was opened, and which of its blocks were seen to be what was written.
  struct Opened {
    MappedFile file;
    std::vector<bool> checked;
  };

  Expected<const char *> open(size_t file) const;
  Status checkBytes(size_t file, int64_t offset, int64_t bytes) const;
  template <typename Visit>
  Status forEachPart(const std::string &key, int64_t first, int64_t count, const Visit &visit) const;

  std::string folder;
  CheckpointIndex index;
  uint64_t hash;
  mutable std::vector<std::unique_ptr<Opened>> opened;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_CHECKPOINTINDEX_H
