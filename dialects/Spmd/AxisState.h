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

  static AxisState replicated() { return {}; }
  static AxisState varying() { return {Tag::varying, 0, 1, 0, ReduceKind::sum}; }
  static AxisState owned() { return {Tag::owned, 0, 1, 0, ReduceKind::sum}; }
  static AxisState partial(ReduceKind kind) { return {Tag::partial, 0, 1, 0, kind}; }
  static AxisState shard(int64_t dim, int64_t pre, int64_t chunk) {
    return {Tag::shard, dim, pre, chunk, ReduceKind::sum};
  }

  bool isReplicated() const { return tag == Tag::replicated; }
  bool isShard() const { return tag == Tag::shard; }
  bool isPartial() const { return tag == Tag::partial; }
  bool isOwned() const { return tag == Tag::owned; }
  bool isVarying() const { return tag == Tag::varying; }

  bool operator==(const AxisState &o) const {
    return tag == o.tag && dim == o.dim && pre == o.pre && chunk == o.chunk && kind == o.kind;
  }
  bool operator!=(const AxisState &o) const { return !(*this == o); }

  /// As it is printed: "shard<0, 1, 4>".
  std::string str() const;
};

inline llvm::hash_code hash_value(const AxisState &s) {
  return llvm::hash_combine(static_cast<int>(s.tag), s.dim, s.pre, s.chunk, static_cast<int>(s.kind));
}

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_AXISSTATE_H
