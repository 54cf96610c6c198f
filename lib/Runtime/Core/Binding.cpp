//===- Binding.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Core/Binding.h"

#include <tuple>

using namespace spmd::runtime;

bool spmd::runtime::operator<(const Binding &a, const Binding &b) {
  return std::tie(a.kind, a.name, a.state, a.group, a.dtype) < std::tie(b.kind, b.name, b.state, b.group, b.dtype);
}

const char *spmd::runtime::nameOf(Binding::Kind kind) {
  switch (kind) {
#define SPMD_BINDING_KIND(NAME, TEXT)                                                                                  \
  case Binding::Kind::NAME:                                                                                            \
    return #TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  return "";
}

std::optional<Binding::Kind> spmd::runtime::parseBindingKind(std::string_view name) {
  for (Binding::Kind kind : kBindingKinds)
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

const char *spmd::runtime::nameKeyOf(Binding::Kind kind) {
  switch (kind) {
  case Binding::Kind::Shard:
  case Binding::Kind::Table:
    return "unit";
  case Binding::Kind::Replicated:
  case Binding::Kind::Batch:
  case Binding::Kind::Hyper:
    return "name";
  case Binding::Kind::Loss:
  case Binding::Kind::Output:
    return "path";
  }
  return "";
}

std::string spmd::runtime::toText(const Binding &binding) {
  std::string text = binding.kind == Binding::Kind::Replicated ? "" : std::string(nameOf(binding.kind)) + " ";
  if (binding.hasState())
    text += binding.state + " of ";
  text += binding.name + " ";
  if (binding.kind == Binding::Kind::Hyper)
    text += std::to_string(binding.group) + " ";
  return text + nameOf(binding.dtype);
}
