//===- CollectiveKind.h - What ranks do together ------------------*- C++ -*-===//
//
// The collectives, by the list in Kinds.def, and what follows from its columns. The
// dialects, the plan, its certificate and the runtime decide by these; what is
// special to one collective is said once in each of the places that
// CONTRIBUTING.md names.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_COLLECTIVEKIND_H
#define SPMD_RUNTIME_CORE_COLLECTIVEKIND_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace spmd::runtime {

enum class CollectiveKind {
#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES) NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

inline constexpr CollectiveKind kCollectiveKinds[] = {
#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES) CollectiveKind::NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

/// How much of the values of all ranks a buffer holds: a part, of one rank, or the whole, a part for each rank, which
/// lie in the order of the ranks. InPlace: what is sent and what is received are one buffer, and there may be several.
enum class Extent { Part, Whole, InPlace };

/// Whether values arrive as they are sent, or combined over the ranks by a reduction.
enum class Transfer { Moved, Combined };

/// What the columns of Kinds.def say of a collective.
struct CollectiveTraits {
  const char *name; ///< in plans and in the dialects
  Extent sent, received;
  Transfer values;
};

inline constexpr CollectiveTraits kCollectiveTraits[] = {
#define SPMD_COLLECTIVE_KIND(NAME, TEXT, SENT, RECEIVED, VALUES)                                                       \
  {#TEXT, Extent::SENT, Extent::RECEIVED, Transfer::VALUES},
#include "spmd/Runtime/Core/Kinds.def"
};

constexpr const CollectiveTraits &traitsOf(CollectiveKind kind) { return kCollectiveTraits[static_cast<int>(kind)]; }

/// "all_gather", "reduce_scatter", "all_reduce".
constexpr const char *nameOf(CollectiveKind kind) { return traitsOf(kind).name; }

/// The kind of this name; nothing when there is none.
constexpr std::optional<CollectiveKind> parseCollectiveKind(std::string_view name) {
  for (CollectiveKind kind : kCollectiveKinds)
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

/// Each of its buffers is sent and receives; other collectives have one that is sent and one that receives.
constexpr bool isInPlace(CollectiveKind kind) { return traitsOf(kind).received == Extent::InPlace; }
/// A rank sends a part for each rank, so that every rank receives other values.
constexpr bool sendsWhole(CollectiveKind kind) { return traitsOf(kind).sent == Extent::Whole; }
/// A rank receives a part from each rank.
constexpr bool receivesWhole(CollectiveKind kind) { return traitsOf(kind).received == Extent::Whole; }
/// What is received is a reduction, and has a reduction kind.
constexpr bool combines(CollectiveKind kind) { return traitsOf(kind).values == Transfer::Combined; }

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_COLLECTIVEKIND_H
