//===- Binding.h - What is bound to bytes of the arena ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_BINDING_H
#define SPMD_RUNTIME_CORE_BINDING_H

#include "spmd/Runtime/Core/DType.h"

#include <optional>
#include <string>
#include <string_view>

namespace spmd::runtime {

/// Names a state, an input or an output of the step: all that tells it from the others, and its type.
struct Binding {
  enum class Kind {
#define SPMD_BINDING_KIND(NAME, TEXT) NAME,
#include "spmd/Runtime/Core/Kinds.def"
  };
  Kind kind = Kind::Shard;
  std::string name;  ///< of the unit (Shard, Table), the tensor, input or hyper-parameter; the path of a loss or output
  std::string state; ///< Shard, Table and Replicated: "param", "buffer", ...
  int64_t group = 0; ///< Hyper: whose it is
  DType dtype = DType::F32;

  bool hasState() const { return kind == Kind::Shard || kind == Kind::Table || kind == Kind::Replicated; }
};

inline constexpr Binding::Kind kBindingKinds[] = {
#define SPMD_BINDING_KIND(NAME, TEXT) Binding::Kind::NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

/// So that maps may have them as keys.
bool operator<(const Binding &a, const Binding &b);

/// "shard", "batch".
const char *nameOf(Binding::Kind kind);
/// The kind of this name; nothing when there is none.
std::optional<Binding::Kind> parseBindingKind(std::string_view name);

/// The member of the JSON form that has the name: "unit", "name" or "path".
const char *nameKeyOf(Binding::Kind kind);

/// For people: "shard param of unit0 f32", "batch x i64".
std::string toText(const Binding &binding);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_BINDING_H
