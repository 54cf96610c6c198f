//===- Content.cpp --------------------------------------------------------===//

#include "Content.h"

#include <algorithm>
#include <cstring>

using namespace spmd::runtime;

/// The part [skip, skip + bytes) of a piece. All bytes of what is no value are alike.
static Piece partOf(const Piece &piece, int64_t skip, int64_t bytes) {
  return {piece.value, piece.value < 0 ? 0 : piece.offset + skip, bytes};
}

void Content::append(Piece piece) {
  if (piece.bytes == 0)
    return;
  if (!list.empty()) {
    Piece &last = list.back();
    if (last.value == piece.value && (piece.value < 0 || last.offset + last.bytes == piece.offset)) {
      last.bytes += piece.bytes;
      return;
    }
  }
  list.push_back(piece);
}

void Content::append(const Content &other) {
  for (const Piece &piece : other.list)
    append(piece);
}

Content Content::slice(int64_t offset, int64_t bytes) const {
  Content part;
  int64_t at = 0;
  for (const Piece &piece : list) {
    int64_t begin = std::max(at, offset), end = std::min(at + piece.bytes, offset + bytes);
    if (begin < end)
      part.append(partOf(piece, begin - at, end - begin));
    at += piece.bytes;
  }
  return part;
}

int64_t Content::bytes() const {
  int64_t sum = 0;
  for (const Piece &piece : list)
    sum += piece.bytes;
  return sum;
}

void spmd::runtime::appendKey(std::string &key, int64_t number) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  key.append(bytes, sizeof(number));
}

void Content::appendKey(std::string &key) const {
  runtime::appendKey(key, static_cast<int64_t>(list.size()));
  for (const Piece &piece : list)
    for (int64_t number : {static_cast<int64_t>(piece.value), piece.offset, piece.bytes})
      runtime::appendKey(key, number);
}

std::string Content::key() const {
  std::string key;
  appendKey(key);
  return key;
}

void BufferContent::write(int64_t begin, const Content &content) {
  int64_t end = begin + content.bytes();
  // What is overwritten goes, but for what sticks out on either side.
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin())
    --at;
  while (at != pieces.end() && at->first < end) {
    auto [start, old] = *at;
    int64_t stop = start + old.bytes;
    if (stop <= begin) {
      ++at;
      continue;
    }
    at = pieces.erase(at);
    if (start < begin)
      pieces.emplace(start, partOf(old, 0, begin - start));
    if (stop > end)
      at = pieces.emplace(end, partOf(old, end - start, stop - end)).first;
  }
  for (const Piece &piece : content.pieces()) {
    pieces.emplace(begin, piece);
    begin += piece.bytes;
  }
}

Content BufferContent::read(int64_t begin, int64_t bytes) const {
  Content content;
  int64_t end = begin + bytes;
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin())
    --at;
  for (; at != pieces.end() && at->first < end; ++at) {
    int64_t from = std::max(begin, at->first), to = std::min(end, at->first + at->second.bytes);
    if (from >= to)
      continue;
    content.append({kUnwritten, 0, from - begin});
    content.append(partOf(at->second, from - at->first, to - from));
    begin = to;
  }
  content.append({kUnwritten, 0, end - begin});
  return content;
}
