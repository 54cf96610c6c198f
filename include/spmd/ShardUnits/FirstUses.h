//===- FirstUses.h - where a step first uses its parameters -----*- C++ -*-===//

#ifndef SPMD_SHARDUNITS_FIRSTUSES_H
#define SPMD_SHARDUNITS_FIRSTUSES_H

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace spmd::units {

/// Finds the op that first uses each parameter of a step, whose ops are given in their order. An op whose only operand
/// is a parameter (a cast, a transposition) gives a value that stands for the parameter: it is no use, since captured
/// steps cast all parameters before they use the first. Values are known by any number that is theirs alone.
class FirstUses {
public:
  explicit FirstUses(size_t numParameters) : uses(numParameters, kNone) {}

  /// No op uses the parameter.
  static constexpr int64_t kNone = -1;

  void setParameter(uint64_t value, size_t parameter) { parameters[value] = parameter; }
  /// The next op: the values it reads, an operand that it reads twice twice, and those it gives.
  void addOp(const std::vector<uint64_t> &operands, const std::vector<uint64_t> &results);
  /// The number of the op, counted from 0, or kNone.
  int64_t get(size_t parameter) const { return uses[parameter]; }

private:
  int64_t next = 0;
  std::vector<int64_t> uses;
  /// Of values that are parameters or stand for them.
  std::unordered_map<uint64_t, size_t> parameters;
};

} // namespace spmd::units

#endif // SPMD_SHARDUNITS_FIRSTUSES_H
