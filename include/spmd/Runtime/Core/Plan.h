//===- Plan.h - A command plan ------------------------------------*- C++ -*-===//
//
// The program that every rank runs: buffers in the rank's arena, and commands
// on streams. Commands of one stream run in order; between streams only `wait`
// orders. docs/artifact-format.md describes every field of the JSON form.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_PLAN_H
#define SPMD_RUNTIME_CORE_PLAN_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Status.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spmd::runtime {

/// A named range of the arena.
struct Buffer {
  int32_t id = 0;
  std::string name;
  std::string memoryClass; ///< "gathered", "activations", "io", ...
  int64_t offset = 0;      ///< bytes in the arena
  int64_t bytes = 0;
  bool state = false; ///< persistent: keeps its value between steps
  std::string location;
};

/// Planners align transient buffers to this: a cache line, and a vector register.
constexpr int64_t kTransientAlignment = 64;

enum class Access { Read, Write, ReadWrite };

/// "r", "w", "rw".
const char *nameOf(Access access);

/// A range of a buffer that a command reads or writes. The offset is affine in
/// the rank's mesh coordinates.
struct Ref {
  int32_t buffer = 0;
  int64_t offset = 0;
  std::vector<int64_t> coord; ///< bytes per mesh coordinate; may be shorter
  int64_t bytes = 0;
  Access access = Access::Read;

  bool reads() const { return access != Access::Write; }
  bool writes() const { return access != Access::Read; }
  bool dependsOnRank() const;
  /// The byte offset in the buffer for the rank at `coordinates`.
  int64_t offsetAt(const std::vector<int64_t> &coordinates) const;
};

enum class CommandKind {
  Kernel,
  Gemm,
  AllGather,
  ReduceScatter,
  AllReduce,
  Wait,
  Copy,
  Fill,
  CheckIndex,
};

const char *nameOf(CommandKind kind);

enum class ReductionKind : int32_t { Sum, Max, Min, Norm2 };

const char *nameOf(ReductionKind kind);
/// The kind of this name; nothing when there is none.
std::optional<ReductionKind> parseReductionKind(std::string_view name);

/// What an epilogue applies last.
enum class Activation { None, Relu, Gelu, GeluTanh };

const char *nameOf(Activation activation);
/// The activation of this name, None aside; nothing when there is none.
std::optional<Activation> parseActivation(std::string_view name);

/// C = activation(A·B + bias (+ C when beta is 1) + residual), row major; `batch` of them at fixed strides.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transA = false, transB = false;
  double beta = 0;
  int64_t batch = 1;
  int64_t strideA = 0, strideB = 0, strideC = 0;
  Activation activation = Activation::None;
  // Which of the command's references is what else the epilogue takes; -1: none.
  int32_t bias = -1;          ///< an element per column
  int32_t residual = -1;      ///< lies as C does, elsewhere
  int32_t preActivation = -1; ///< written: what the activation is applied to
};

/// One command. Which fields have a meaning depends on `kind`.
struct Command {
  CommandKind kind = CommandKind::Wait;
  int32_t stream = 0;
  std::string location;

  /// Kernel: its arguments. Gemm: A, B, C and its epilogue's. AllGather, ReduceScatter: send,
  /// receive. AllReduce: the buffers. Copy: source, destination. Fill: the
  /// destination. CheckIndex: the integers.
  std::vector<Ref> refs;

  // Kernel
  std::string kernel; ///< symbol
  int64_t parallel = 1, grain = 1;

  DType dtype = DType::F32; ///< Gemm, collectives, CheckIndex
  GemmShape gemm;

  // Collectives
  int32_t communicator = -1;
  std::vector<int64_t> counts; ///< elements; one entry except for AllReduce
  std::vector<ReductionKind> kinds;
  std::string unit;

  int32_t waitFor = -1; ///< Wait: a command
  int64_t bytes = 0;    ///< Copy, Fill
  int32_t value = 0;    ///< Fill: the byte

  // CheckIndex: each of counts[0] integers of type dtype is in [low, high), or
  // ignoreIndex
  int64_t low = 0, high = 0;
  std::optional<int64_t> ignoreIndex;
  std::string use; ///< the op that takes them

  bool isCollective() const {
    return kind == CommandKind::AllGather || kind == CommandKind::ReduceScatter || kind == CommandKind::AllReduce;
  }
  /// "all_gather of unit0", "kernel k12": what errors call the command.
  std::string describe() const;
  /// Bytes of the counts: of a reduce_scatter those a rank receives, of every
  /// other collective those it sends.
  int64_t messageBytes() const;
  /// Bytes a rank hands to a collective.
  int64_t sentBytes() const;
};

struct Plan {
  std::vector<std::string> streams;
  std::vector<std::string> communicators;
  /// Of a communicator that does not connect all ranks, by name: the axes of the mesh along which it does.
  std::map<std::string, std::vector<std::string>> axes;
  std::vector<Buffer> buffers; ///< buffers[i].id == i
  std::vector<Command> commands;

  /// The axes of a communicator, by number; none: it connects all ranks.
  const std::vector<std::string> &axesOf(int32_t communicator) const;
};

/// The version of the JSON form that is written, and the only one that is read.
constexpr int32_t kPlanVersion = 1;

/// The JSON form: a line per buffer and command. parsePlan reads it back.
std::string writePlan(const Plan &plan);

/// Reads a plan; `name` is what errors call the text.
Expected<Plan> parsePlan(const std::string &name, std::string_view text);

/// The canonical collective trace: for every communicator that does not connect all ranks the line "comm axes\n", and
/// for every collective in program order the line "comm op dtype counts kinds unit\n"; lists are separated by commas and
/// what is empty is "-".
std::string collectiveTrace(const Plan &plan);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_PLAN_H
