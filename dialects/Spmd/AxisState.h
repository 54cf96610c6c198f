//===- AxisState.h - state of a value on one mesh axis ----------*- C++ -*-===//

#ifndef SPMD_DIALECTS_SPMD_AXISSTATE_H
#define SPMD_DIALECTS_SPMD_AXISSTATE_H

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

#include "dialects/Spmd/SpmdEnums.h.inc"

namespace spmd {

/// In exactly one of these states is every value on every mesh axis; the
/// description of #spmd.sharding says what they mean.
struct AxisState {
  enum class Tag { replicated, shard, partial, owned, varying };

  Tag tag = Tag::replicated;
  /// Only for shard.
  int64_t dim = 0, pre = 1, chunk = 0;
  /// Only for partial.
  ReduceKind kind = ReduceKind::sum;
  /// A value's states on the two axes of a mesh, read as one: `same` when this state is that of all ranks, else it is
  /// the state on the second axis, and this is what holds on the first. Never in an attribute, which has both.
  enum class Outer { same, replicated, partial };
  Outer outer = Outer::same;

  static AxisState replicated() { return {}; }
  static AxisState varying() { return {Tag::varying, 0, 1, 0, ReduceKind::sum, Outer::same}; }
  static AxisState owned() { return {Tag::owned, 0, 1, 0, ReduceKind::sum, Outer::same}; }
  static AxisState partial(ReduceKind kind) { return {Tag::partial, 0, 1, 0, kind, Outer::same}; }
  static AxisState shard(int64_t dim, int64_t pre, int64_t chunk) {
    return {Tag::shard, dim, pre, chunk, ReduceKind::sum, Outer::same};
  }
  /// This state on the second axis of a mesh, and `outer` on the first.
  AxisState within(Outer outer) const {
    AxisState state = *this;
    state.outer = outer;
    return state;
  }

  bool isReplicated() const { return tag == Tag::replicated; }
  bool isShard() const { return tag == Tag::shard; }
  bool isPartial() const { return tag == Tag::partial; }
  bool isOwned() const { return tag == Tag::owned; }
  bool isVarying() const { return tag == Tag::varying; }
  /// Of a gradient: each rank has a summand of it, a partial sum or a value of its own.
  bool isSummand() const { return isVarying() || (isPartial() && kind == ReduceKind::sum); }

  bool operator==(const AxisState &o) const {
    return tag == o.tag && dim == o.dim && pre == o.pre && chunk == o.chunk && kind == o.kind &&
           outer == o.outer;
  }
  bool operator!=(const AxisState &o) const { return !(*this == o); }

  /// As it is printed: "shard<0, 1, 4>".
  std::string str() const;
};

inline llvm::hash_code hash_value(const AxisState &s) {
  return llvm::hash_combine(static_cast<int>(s.tag), s.dim, s.pre, s.chunk, static_cast<int>(s.kind), static_cast<int>(s.outer));
}

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_AXISSTATE_H
