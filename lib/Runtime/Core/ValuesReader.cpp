//===- ValuesReader.cpp - The JSON form of the table of values ------------===//

#include "ValuesReader.h"

#include <algorithm>

using namespace spmd::runtime;

static int32_t readValue(JsonValue value) {
  // A value that is not defined before is the certificate's to refuse.
  return static_cast<int32_t>(std::min<int64_t>(value.asSize(), INT32_MAX));
}

static std::vector<int32_t> readList(JsonValue value) {
  std::vector<int32_t> list;
  value.forEach([&](JsonValue entry) { list.push_back(readValue(entry)); });
  return list;
}

ValueEntry spmd::runtime::readValueEntry(JsonValue value) {
  ValueEntry entry;
  entry.pointer = value.location();
  if (value.has("source")) {
    entry.kind = ValueEntry::Kind::Source;
    entry.what = value["source"].asString();
    entry.bytes = {value["bytes"].asSize()};
  } else if (value.has("compute")) {
    entry.kind = ValueEntry::Kind::Compute;
    entry.what = value["compute"].asString();
    entry.of = readList(value["of"]);
    entry.bytes = value["bytes"].asSizes();
    if (value.has("reads")) {
      value["reads"].forEach([&](JsonValue list) {
        entry.reads.push_back(readList(list));
        for (int32_t number : entry.reads.back())
          if (static_cast<size_t>(number) >= entry.of.size())
            list.fail("expected numbers of operands, of which there are " + std::to_string(entry.of.size()));
      });
      if (entry.reads.size() != entry.bytes.size())
        value["reads"].fail("expected one list per value");
    }
    if (value.has("by_rank")) {
      entry.byRank = readList(value["by_rank"]);
      for (int32_t number : entry.byRank)
        if (static_cast<size_t>(number) >= entry.bytes.size())
          value["by_rank"].fail("expected numbers of values, of which there are " + std::to_string(entry.bytes.size()));
    }
    if (value.has("along"))
      entry.along = value["along"].asStrings();
  } else if (value.has("part")) {
    entry.kind = ValueEntry::Kind::Part;
    entry.of = {readValue(value["part"])};
    entry.at = {value["at"].asSize()};
    entry.bytes = {value["bytes"].asSize()};
    if (value.has("segment")) {
      entry.segments = {value["segment"].asString()};
      entry.unit = value["unit"].asString();
    }
  } else if (value.has("join")) {
    entry.kind = ValueEntry::Kind::Join;
    entry.of = readList(value["join"]);
    entry.at = value["at"].asSizes();
    entry.bytes = {value["bytes"].asSize()};
    entry.segments = value["segments"].asStrings();
    entry.unit = value["unit"].asString();
    if (entry.at.size() != entry.of.size())
      value["at"].fail("expected one per value");
    if (!entry.segments.empty() && entry.segments.size() != entry.of.size())
      value["segments"].fail("expected one per value");
  } else {
    entry.kind = ValueEntry::Kind::Target;
    entry.what = value["target"].asString();
    entry.of = {readValue(value["of"])};
  }
  return entry;
}
