//===- CommandList.h - A plan as the cost model reads it ----------*- C++ -*-===//
//
// What a command does, in numbers that do not depend on a machine: a vector for each property, with an element for each
// command. One translator makes it of a plan; prices and the simulation read nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_COST_COMMANDLIST_H
#define SPMD_COST_COMMANDLIST_H

#include "spmd/Runtime/Core/CollectiveKind.h"
#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spmd::cost {

/// What occupies a rank while a command runs. Commands that run at the same time share it.
enum class Resource : uint8_t { None, Device, Node, Fabric, ToHost, FromHost };
inline constexpr size_t kNumResources = 6;

/// What a command is, as far as its price is concerned.
enum class CommandKind : uint8_t {
  Gemm,
  GroupedGemm,
  Attention,
  AttentionBackward,
  Kernel,
  Copy, ///< in the device's memory; also fills
  Collective,
  ToHost,
  FromHost,
  Wait,
};

/// "gemm", "attention backward".
const char *nameOf(CommandKind kind);
/// Whether the device computes it: it is part of the sum of kernels.
bool isKernel(CommandKind kind);

struct CommandList {
  std::vector<CommandKind> kind;
  std::vector<int32_t> stream;
  std::vector<int32_t> awaited;                    ///< of a wait: an earlier command; else -1
  std::vector<int64_t> bytes;                      ///< read and written; of a collective, its whole message
  std::vector<int64_t> flops;                      ///< of matrix products
  std::vector<int64_t> side;                       ///< of a GEMM: the smaller side of its result
  std::vector<runtime::DType> dtype;               ///< of the operands of products
  std::vector<runtime::CollectiveKind> collective; ///< of collectives
  std::vector<int32_t> communicator;               ///< of a collective: a number of `groups`; else -1
  std::vector<int32_t> unit;                       ///< a number of `units`; -1: of no shard unit

  std::vector<std::string> streams, units, communicators;
  std::vector<runtime::RankGroups> groups; ///< by communicator

  size_t size() const { return kind.size(); }
  /// Adds a command without work; returns its number.
  int32_t add(CommandKind kind, int32_t stream);
  /// Adds a wait on `stream` for an earlier command.
  int32_t addWait(int32_t stream, int32_t awaited);
};

/// The commands of a plan, one for each of `plan.commands`.
CommandList makeCommandList(const runtime::Manifest &manifest, const runtime::Plan &plan);

/// Pairs of queries and keys of a head that the window of an attention leaves.
double countPairs(const runtime::AttentionShape &shape);

} // namespace spmd::cost

#endif // SPMD_COST_COMMANDLIST_H
