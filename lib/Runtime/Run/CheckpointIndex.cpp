//===- CheckpointIndex.cpp ------------------------------------------------===//

#include "spmd/Runtime/Run/CheckpointIndex.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"

#define XXH_INLINE_ALL
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <sstream>
#include <tuple>

using namespace spmd::runtime;
using Json = nlohmann::ordered_json;

static int64_t countBlocks(int64_t bytes) { return (bytes + CheckpointFile::kBlock - 1) / CheckpointFile::kBlock; }

static uint64_t hashBlock(BlockHash kind, const char *data, int64_t bytes, int64_t block) {
  int64_t begin = block * CheckpointFile::kBlock;
  auto size = static_cast<size_t>(std::min(CheckpointFile::kBlock, bytes - begin));
  return kind == BlockHash::xxh3 ? XXH3_64bits(data + begin, size) : hashBytes({data + begin, size});
}

static std::string formatBlocks(const std::vector<uint64_t> &blocks) {
  std::string text;
  for (uint64_t hash : blocks)
    text += formatHash(hash);
  return text;
}

/// False when `text` is no row of hashes.
static bool parseBlocks(const std::string &text, std::vector<uint64_t> &blocks) {
  if (text.size() % 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  for (size_t at = 0; at < text.size(); at += 16)
    blocks.push_back(std::stoull(text.substr(at, 16), nullptr, 16));
  return true;
}

Expected<CheckpointFile> CheckpointFile::of(const std::string &folder, const std::string &name) {
  Expected<MappedFile> mapped = MappedFile::open(folder + "/" + name);
  if (!mapped)
    return mapped.error();
  CheckpointFile file{name, static_cast<int64_t>(mapped->size()), {}};
  for (int64_t block = 0; block < countBlocks(file.bytes); ++block)
    file.blocks.push_back(hashBlock(BlockHash::xxh3, mapped->data(), file.bytes, block));
  return file;
}

std::string CheckpointFile::format() const {
  return name + " " + std::to_string(bytes) + " " + formatBlocks(blocks) + "\n";
}

std::vector<CheckpointFile> CheckpointFile::parse(const std::string &text) {
  std::vector<CheckpointFile> files;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    CheckpointFile file;
    std::string blocks;
    words >> file.name >> file.bytes >> blocks;
    (void)parseBlocks(blocks, file.blocks);
    files.push_back(std::move(file));
  }
  return files;
}

static bool haveStrides(const std::vector<CheckpointIndex::Piece> &pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](const auto &piece) { return piece.runs.repeat > 1; });
}

bool CheckpointIndex::hasStrides() const {
  return std::any_of(pieces.begin(), pieces.end(), [](const auto &entry) { return haveStrides(entry.second); });
}

std::string CheckpointIndex::format() const {
  Json json;
  json["block_bytes"] = CheckpointFile::kBlock;
  json["block_hash"] = "xxh3";
  json["files"] = Json::array();
  for (const CheckpointFile &file : files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"blocks", formatBlocks(file.blocks)}});
  json["tensors"] = Json::object();
  for (const auto &[key, tensor] : tensors) {
    Json list = Json::array();
    for (const Piece &piece : pieces.at(key)) {
      list.push_back({piece.file, piece.runs.first, piece.runs.count, piece.offset});
      if (piece.runs.repeat > 1)
        list.back().insert(list.back().end(), {piece.runs.stride, piece.runs.repeat});
    }
    json["tensors"][key] = {{"dtype", nameOf(tensor.dtype)}, {"shape", tensor.shape}, {"pieces", std::move(list)}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

static CheckpointFile readFileEntry(JsonValue value) {
  CheckpointFile file{value["name"].asString(), value["bytes"].asSize(), {}};
  if (file.name.empty() || file.name.find('/') != std::string::npos)
    value["name"].fail("expected the name of a file of the checkpoint, found \"" + file.name + "\"");
  bool areHashes = parseBlocks(value["blocks"].asString(), file.blocks);
  if (!areHashes || static_cast<int64_t>(file.blocks.size()) != countBlocks(file.bytes))
    value["blocks"].fail("expected " + std::to_string(countBlocks(file.bytes)) + " hashes of 16 hex digits");
  return file;
}

/// Follows the runs of pieces in the order of the elements, up to the tensor's last one: the first mistake, or "". Empty
/// runs are nowhere.
static std::string findGap(const std::vector<CheckpointIndex::Piece> &pieces, int64_t numElements) {
  using Next = std::pair<int64_t, size_t>; // of a piece its next run's first element, and which piece that is
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  std::vector<int64_t> done(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].runs.count)
      next.emplace(pieces[i].runs.first, i);
  int64_t known = 0;
  for (; !next.empty(); next.pop()) {
    auto [first, number] = next.top();
    const ElementRuns &runs = pieces[number].runs;
    if (first != known)
      return "begins at element " + std::to_string(first) + ", those before it end at " + std::to_string(known);
    known += runs.count;
    if (++done[number] < runs.repeat)
      next.emplace(first + runs.stride, number);
  }
  if (known != numElements)
    return "have " + std::to_string(known) + " elements, the tensor " + std::to_string(numElements);
  return "";
}

static std::vector<CheckpointIndex::Piece> readPieces(JsonValue list, const StateSource::Tensor &tensor,
                                                      const std::vector<CheckpointFile> &files) {
  std::vector<CheckpointIndex::Piece> pieces;
  int64_t numElements = spmd::runtime::numElements(tensor.shape);
  list.forEach([&](JsonValue value) {
    std::vector<int64_t> numbers = value.asSizes();
    if (numbers.size() != 4 && numbers.size() != 6)
      return value.fail("expected [file, first element, elements, byte in the file], and of several runs as long their "
                        "stride and how many there are");
    CheckpointIndex::Piece piece{static_cast<size_t>(numbers[0]), {numbers[1], numbers[2]}, numbers[3]};
    bool isStrided = numbers.size() == 6;
    if (isStrided) {
      piece.runs.stride = numbers[4];
      piece.runs.repeat = numbers[5];
    }
    const ElementRuns &runs = piece.runs;
    // Runs that lie in the tensor, one behind the other, do not overflow.
    bool isInTensor = runs.first <= numElements && runs.count <= numElements - runs.first;
    if (isStrided)
      isInTensor = isInTensor && runs.count > 0 && runs.repeat > 1 && runs.stride > runs.count &&
                   runs.repeat - 1 <= (numElements - runs.first - runs.count) / runs.stride;
    if (!isInTensor)
      return value.fail("is not in the tensor, which has " + std::to_string(numElements) + " elements");
    if (piece.file >= files.size() || piece.offset > files[piece.file].bytes ||
        bytesOf(runs.total(), tensor.dtype) > files[piece.file].bytes - piece.offset)
      return value.fail("is not in a file of the checkpoint");
    pieces.push_back(piece);
  });
  std::sort(pieces.begin(), pieces.end(), [](const auto &a, const auto &b) {
    return std::tie(a.runs.first, a.runs.count, a.file) < std::tie(b.runs.first, b.runs.count, b.file);
  });
  if (std::string gap = findGap(pieces, numElements); !gap.empty())
    list.fail(gap);
  return pieces;
}

Expected<CheckpointIndex> CheckpointIndex::parse(const std::string &name, const std::string &text) {
  JsonDocument document("'" + name + "'", text);
  JsonValue root = document.root();
  CheckpointIndex index;
  if (int64_t bytes = root["block_bytes"].asInt(); bytes != CheckpointFile::kBlock)
    root["block_bytes"].fail("expected " + std::to_string(CheckpointFile::kBlock) + ", found " + std::to_string(bytes));
  if (!root.has("block_hash"))
    index.blockHash = BlockHash::fnv1a;
  else if (std::string name = root["block_hash"].asString(); name != "xxh3")
    root["block_hash"].fail("expected \"xxh3\", found \"" + name + "\"");
  root["files"].forEach([&](JsonValue value) { index.files.push_back(readFileEntry(value)); });
  root["tensors"].forEachMember([&](const std::string &key, JsonValue value) {
    StateSource::Tensor tensor{value["dtype"].asDType(), value["shape"].asSizes()};
    index.pieces[key] = readPieces(value["pieces"], tensor, index.files);
    index.tensors[key] = std::move(tensor);
  });
  if (!document.status().ok())
    return document.status();
  return index;
}

CheckpointState::CheckpointState(std::string folder, CheckpointIndex index, uint64_t hash)
    : folder(std::move(folder)), index(std::move(index)), hash(hash), opened(this->index.files.size()) {}

Expected<const char *> CheckpointState::open(size_t number) const {
  const CheckpointFile &file = index.files[number];
  if (!opened[number]) {
    std::string path = folder + "/" + file.name;
    Expected<MappedFile> mapped = MappedFile::open(path);
    if (!mapped)
      return mapped.error();
    if (static_cast<int64_t>(mapped->size()) != file.bytes)
      return Status::badInput("'" + path + "' has " + std::to_string(mapped->size()) + " bytes, not " +
                              std::to_string(file.bytes));
    opened[number] = std::make_unique<Opened>(Opened{*mapped, std::vector<bool>(file.blocks.size())});
  }
  return opened[number]->file.data();
}

Status CheckpointState::checkBytes(size_t number, int64_t offset, int64_t bytes) const {
  Expected<const char *> data = open(number);
  if (!data)
    return data.error();
  const CheckpointFile &file = index.files[number];
  int64_t end = bytes ? (offset + bytes - 1) / CheckpointFile::kBlock + 1 : 0;
  for (int64_t block = offset / CheckpointFile::kBlock; block < end; ++block) {
    if (opened[number]->checked[static_cast<size_t>(block)])
      continue;
    uint64_t found = hashBlock(index.blockHash, *data, file.bytes, block), expected = file.blocks[static_cast<size_t>(block)];
    if (found != expected)
      return Status::badInput("'" + folder + "/" + file.name + "': its bytes from " +
                              std::to_string(block * CheckpointFile::kBlock) + " on have the hash " +
                              formatHash(found) + ", not " + formatHash(expected) +
                              ": the file was changed after it was saved");
    opened[number]->checked[static_cast<size_t>(block)] = true;
  }
  return Status::success();
}

/// The piece that has an element, of a tensor of which each is in one.
static std::vector<CheckpointIndex::Piece>::const_iterator findPiece(const std::vector<CheckpointIndex::Piece> &pieces,
                                                                     int64_t element) {
  auto has = [&](const CheckpointIndex::Piece &piece) {
    const ElementRuns &runs = piece.runs;
    int64_t from = element - runs.first;
    return from >= 0 && (runs.repeat == 1 ? from < runs.count
                                          : from / runs.stride < runs.repeat && from % runs.stride < runs.count);
  };
  // The last that begins no later has it, unless that has other runs in between.
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), element, [](int64_t at, const CheckpointIndex::Piece &p) {
    return at < p.runs.first;
  });
  do
    --piece;
  while (!has(*piece));
  return piece;
}

/// Calls visit(file, byte in it, bytes) for what has the elements, in order.
template <typename Visit>
Status CheckpointState::forEachPart(const std::string &key, int64_t first, int64_t count, const Visit &visit) const {
  int64_t size = sizeOf(index.tensors.at(key).dtype), end = first + count;
  const std::vector<CheckpointIndex::Piece> &pieces = index.pieces.at(key);
  while (first < end) {
    auto piece = findPiece(pieces, first);
    const ElementRuns &runs = piece->runs;
    int64_t run = runs.repeat > 1 ? (first - runs.first) / runs.stride : 0, inRun = first - runs.first - run * runs.stride;
    int64_t now = std::min(end - first, runs.count - inRun);
    Status status = visit(piece->file, piece->offset + (run * runs.count + inRun) * size, now * size);
    if (!status.ok())
      return status;
    first += now;
  }
  return Status::success();
}

Status CheckpointState::check(const std::string &key, int64_t first, int64_t count) const {
  return forEachPart(key, first, count,
                     [&](size_t file, int64_t offset, int64_t bytes) { return checkBytes(file, offset, bytes); });
}

Status CheckpointState::read(const std::string &key, int64_t first, int64_t count, void *destination) const {
  auto copy = [&](size_t file, int64_t offset, int64_t bytes) -> Status {
    Expected<const char *> data = open(file);
    if (!data)
      return data.error();
    std::memcpy(destination, *data + offset, static_cast<size_t>(bytes));
    destination = static_cast<char *>(destination) + bytes;
    return Status::success();
  };
  return forEachPart(key, first, count, copy);
}

Status CheckpointState::checkAll() const {
  for (size_t file = 0; file < index.files.size(); ++file)
    if (Status status = checkBytes(file, 0, index.files[file].bytes); !status.ok())
      return status;
  return Status::success();
}

Status CheckpointState::checkRest(int64_t part, int64_t parts) const {
  std::vector<bool> hasTensors(index.files.size());
  for (const auto &[key, pieces] : index.pieces)
    for (const CheckpointIndex::Piece &piece : pieces)
      hasTensors[piece.file] = true;
  for (auto file = static_cast<size_t>(part); file < index.files.size(); file += static_cast<size_t>(parts)) {
    int64_t bytes = index.files[file].bytes;
    Status status = checkBytes(file, 0, hasTensors[file] ? std::min(bytes, CheckpointFile::kBlock) : bytes);
    if (!status.ok())
      return status;
  }
  return Status::success();
}

Expected<std::string> CheckpointState::readFile(const std::string &name) const {
  for (size_t file = 0; file < index.files.size(); ++file) {
    if (index.files[file].name != name)
      continue;
    int64_t bytes = index.files[file].bytes;
    if (Status status = checkBytes(file, 0, bytes); !status.ok())
      return status;
    return std::string(*open(file), static_cast<size_t>(bytes));
  }
  return Status::badInput(describe() + " has no file '" + name + "'");
}
