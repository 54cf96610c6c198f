//===- Safetensors.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Core/Safetensors.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"

#include <algorithm>
#include <cstring>
#include <tuple>

using namespace spmd::runtime;

namespace {
/// The bytes of one tensor, and where the header says so.
struct ByteRange {
  int64_t begin, end;
  JsonValue place;
};
} // namespace

/// The format leaves no byte of the data to no tensor or to two: a file that does is another's rest, or damaged.
static void checkCoverage(std::vector<ByteRange> ranges, int64_t dataSize, JsonValue root) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange &a, const ByteRange &b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  int64_t covered = 0;
  for (const ByteRange &range : ranges) {
    if (range.begin != covered)
      return range.place.fail("begins at byte " + std::to_string(range.begin) + " of the data, the tensors before it " +
                              "end at byte " + std::to_string(covered));
    covered = range.end;
  }
  if (covered != dataSize)
    root.fail("the file has " + std::to_string(dataSize) + " bytes of data, its tensors only " +
              std::to_string(covered));
}

uint64_t SafetensorsFile::fingerprint() const {
  constexpr int64_t kSample = 256;
  uint64_t hash = 0;
  for (const auto &[name, tensor] : entries) {
    auto add = [&, of = std::string_view(static_cast<const char *>(tensor.data), static_cast<size_t>(tensor.bytes))](
                   int64_t from) {
      hash = hash * 31 + hashBytes(of.substr(static_cast<size_t>(from), static_cast<size_t>(kSample)));
    };
    hash = hash * 31 + hashBytes(name + nameOf(tensor.dtype) + formatShape(tensor.shape));
    add(0);
    add(tensor.bytes / 2);
    add(std::max<int64_t>(0, tensor.bytes - kSample));
  }
  return hash;
}

Expected<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  SafetensorsFile file;
  file.fileName = path;
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.error();
  file.mapping = *mapped;
  size_t size = mapped->size();
  if (size < 8)
    return Status::badInput("'" + path + "': truncated: " + std::to_string(size) +
                            " bytes, a safetensors file has at least 8");
  const char *bytes = mapped->data();

  // The size of a header may have the same bytes; what follows it is JSON.
  bool isJson = size > 8 && bytes[8] == '{';
  if (!isJson && (std::memcmp(bytes, "PK\3\4", 4) == 0 || std::memcmp(bytes, "\x80\2", 2) == 0))
    return Status::badInput("'" + path + "' is a file of torch.save, and none of safetensors\n  hint: in Python, " +
                            "spmd.checkpoint.to_safetensors(\"" + path + "\", FILE), whose parameters and buffers it has; " +
                            "with optimizer state, spmd.checkpoint.Checkpoint.make(\"" + path + "\", FOLDER) to resume");
  uint64_t headerSize;
  std::memcpy(&headerSize, bytes, 8);
  if (headerSize > size - 8)
    return Status::badInput("'" + path + "': truncated: the header has " + std::to_string(headerSize) +
                            " bytes, the file only " + std::to_string(size - 8) + " after its size");
  const char *data = bytes + 8 + headerSize;
  auto dataSize = static_cast<int64_t>(size - 8 - headerSize);

  JsonDocument document("'" + path + "'", std::string_view(bytes + 8, headerSize));
  std::vector<ByteRange> ranges;
  document.root().forEachMember([&](const std::string &name, JsonValue value) {
    if (name == "__metadata__") {
      value.forEachMember([&](const std::string &key, JsonValue text) { file.notes[key] = text.asString(); });
      return;
    }
    TensorView tensor;
    std::string dtype = value["dtype"].asString();
    std::optional<DType> known = parseSafetensorsDType(dtype);
    if (!known)
      return value["dtype"].fail("unsupported dtype '" + dtype + "'");
    tensor.dtype = *known;
    tensor.shape = value["shape"].asSizes();
    std::vector<int64_t> range = value["data_offsets"].asSizes();
    if (range.size() != 2 || range[0] > range[1])
      return value["data_offsets"].fail("expected [begin, end]");
    if (range[1] > dataSize)
      return value["data_offsets"].fail("truncated: ends at byte " + std::to_string(range[1]) + ", the file has " +
                                        std::to_string(dataSize) + " bytes of data");
    tensor.bytes = range[1] - range[0];
    if (tensor.bytes != bytesOf(numElements(tensor.shape), tensor.dtype))
      return value["data_offsets"].fail(std::to_string(tensor.bytes) + " bytes do not hold " + dtype +
                                        formatShape(tensor.shape));
    tensor.data = data + range[0];
    ranges.push_back({range[0], range[1], value["data_offsets"]});
    file.entries.emplace(name, std::move(tensor));
  });
  if (document.status().ok())
    checkCoverage(std::move(ranges), dataSize, document.root());
  if (!document.status().ok())
    return document.status();
  return file;
}

const TensorView *SafetensorsFile::find(const std::string &name) const {
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

static std::string formatHeader(const std::vector<NamedTensor> &tensors,
                                const std::map<std::string, std::string> &metadata) {
  std::string header = "{";
  const char *separator = "";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (auto &[key, text] : metadata) {
      header += separator + quoteJson(key) + ":" + quoteJson(text);
      separator = ",";
    }
    header += "}";
  }
  int64_t offset = 0;
  for (const NamedTensor &entry : tensors) {
    const TensorView &tensor = entry.tensor;
    header += separator + quoteJson(entry.name) + ":{\"dtype\":\"" + safetensorsNameOf(tensor.dtype) +
              "\",\"shape\":" + formatShape(tensor.shape) + ",\"data_offsets\":[" + std::to_string(offset) + "," +
              std::to_string(offset + tensor.bytes) + "]}";
    separator = ",";
    offset += tensor.bytes;
  }
  header += "}";
  // Tensor data starts 8-byte aligned.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

Expected<SafetensorsWriter> SafetensorsWriter::create(const std::string &path, const std::vector<NamedTensor> &tensors,
                                                      const std::map<std::string, std::string> &metadata) {
  std::string header = formatHeader(tensors, metadata);
  uint64_t headerSize = header.size();
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  file->write(&headerSize, 8);
  file->write(header.data(), header.size());
  return SafetensorsWriter(std::move(*file));
}

Status spmd::runtime::writeSafetensors(const std::string &path, const std::vector<NamedTensor> &tensors,
                                       const std::map<std::string, std::string> &metadata) {
  Expected<SafetensorsWriter> writer = SafetensorsWriter::create(path, tensors, metadata);
  if (!writer)
    return writer.error();
  for (const NamedTensor &entry : tensors)
    writer->write(entry.tensor.data, entry.tensor.bytes);
  return writer->commit();
}
