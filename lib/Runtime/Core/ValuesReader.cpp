//===- ValuesReader.cpp - The JSON form of the table of values ------------===//

#include "ValuesReader.h"
#include "CommandFields.h"

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

/// `key` has the kind.
static Binding readBinding(JsonValue value, const char *key) {
  Binding binding;
  std::string text = value[key].asString();
  std::optional<Binding::Kind> kind = parseBindingKind(text);
  if (!kind)
    value[key].fail("expected " + joinChoices(kBindingKinds) + ", found '" + text + "'");
  binding.kind = kind.value_or(Binding::Kind::Batch);
  binding.name = value[nameKeyOf(binding.kind)].asString();
  if (binding.hasState())
    binding.state = value["state"].asString();
  if (binding.kind == Binding::Kind::Hyper)
    binding.group = value["group"].asSize();
  binding.dtype = value["dtype"].asDType();
  return binding;
}

static GemmOperation readGemm(JsonValue value) {
  GemmSizes sizes;
  readGemmSizes(value, sizes);
  sizes.activation = readActivation(value);
  sizes.biasGradientOf = readBiasGradientOf(value);
  GemmOperation gemm(sizes, readGemmDType(value["dtype"]));
  auto isThere = [&](const char *key) { return value.has(key) && value[key].asBool(); };
  gemm.hasBias = isThere("bias");
  gemm.hasResidual = isThere("residual");
  gemm.hasPreActivation = isThere("pre_activation");
  return gemm;
}

static Operation readOperation(JsonValue value) {
  std::string name = value["compute"].asString();
  auto readLaunch = [&] {
    KernelOperation kernel{value["kernel"].asString(), {}};
    value["args"].forEach([&](JsonValue access) { kernel.arguments.push_back(readAccess(access)); });
    return kernel;
  };
  if (name == nameOf(KernelCommand()))
    return readLaunch();
  for (bool isBackward : {false, true}) {
    AttentionCommand attention;
    attention.shape.isBackward = isBackward;
    if (name != nameOf(attention))
      continue;
    readAttentionShape(value, attention.shape);
    return AttentionOperation{readLaunch(), attention.shape};
  }
  if (name == nameOf(GemmCommand()))
    return readGemm(value);
  if (name == nameOf(CheckIndexCommand())) {
    CheckIndexCommand check;
    readCheckIndex(value, check);
    return check;
  }
  CollectiveOperation collective;
  auto kind = std::find_if(std::begin(kCollectiveKinds), std::end(kCollectiveKinds),
                           [&](CollectiveKind kind) { return name == nameOf(kind); });
  if (kind == std::end(kCollectiveKinds)) {
    value["compute"].fail("unknown operation '" + name + "'");
    return collective;
  }
  collective.kind = *kind;
  readExchange(value, collective);
  if (collective.counts.size() != value["of"].asSizes().size())
    value["of"].fail("expected one per count");
  if (collective.kind == CollectiveKind::AllReduce && collective.kinds.size() != collective.counts.size())
    value["kinds"].fail("expected one per count");
  if (value.has("axes"))
    collective.axes = value["axes"].asStrings();
  return collective;
}

ValueEntry spmd::runtime::readValueEntry(JsonValue value) {
  ValueEntry entry;
  entry.pointer = value.location();
  if (value.has("source")) {
    entry.kind = ValueEntry::Kind::Source;
    entry.binding = readBinding(value, "source");
    entry.bytes = {value["bytes"].asSize()};
  } else if (value.has("compute")) {
    entry.kind = ValueEntry::Kind::Compute;
    entry.operation = readOperation(value);
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
    entry.binding = readBinding(value, "target");
    entry.of = {readValue(value["of"])};
  }
  return entry;
}
