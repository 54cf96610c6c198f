//===- TokenFile.cpp ------------------------------------------------------===//

#include "spmd/Runtime/Run/TokenFile.h"

#include <cstring>

using namespace spmd::runtime;

namespace {
/// llm.c, dev/data/data_common.py.
struct Header {
  int32_t magic, version, tokens, rest[253];
};
} // namespace

Expected<TokenFile> TokenFile::open(const std::string &path, const std::string &type) {
  TokenFile tokens;
  ArrayFile &array = tokens.array;
  array.path = path;
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  array.file = *file;
  array.data = file->data();
  array.kind = ArrayFile::Kind::Unsigned;
  array.width = type == "uint32" ? 4 : 2;
  size_t bytes = file->size();
  Header header{};
  if (bytes >= sizeof header)
    std::memcpy(&header, array.data, sizeof header);
  bool isShort = header.magic == 20240520 && header.version == 1;
  if (isShort || (header.magic == 20240801 && header.version == 7)) {
    array.width = isShort ? 2 : 4;
    array.data += sizeof header;
    bytes -= sizeof header;
    if (bytes != static_cast<size_t>(header.tokens) * static_cast<size_t>(array.width))
      return Status::badInput("'" + path + "': its header says " + std::to_string(header.tokens) +
                              " tokens, and it has " + std::to_string(bytes) + " bytes of them");
  }
  if (bytes % static_cast<size_t>(array.width))
    return Status::badInput("'" + path + "' has " + std::to_string(bytes) + " bytes, which are no " + array.typeName() +
                            " ids; --token-dtype says their type");
  array.shape = {static_cast<int64_t>(bytes) / array.width};
  return tokens;
}
