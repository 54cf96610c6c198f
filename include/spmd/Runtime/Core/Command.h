//===- Command.h - What a rank does next --------------------------*- C++ -*-===//
//
// A command is what all have (a stream, a place in the user's code, the bytes it
// reads and writes) and one of a few structs, which say what is done and hold
// what only that needs.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_COMMAND_H
#define SPMD_RUNTIME_CORE_COMMAND_H

#include "spmd/Runtime/Core/CollectiveKind.h"
#include "spmd/Runtime/Core/DType.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spmd::runtime {

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

/// Calls a kernel, whose arguments are the references.
struct KernelCommand {
  std::string symbol;
  int64_t parallel = 1; ///< iterations
  int64_t grain = 1;    ///< how many of them a thread takes at once
};

/// What an epilogue applies last.
enum class Activation {
  None,
#define SPMD_ACTIVATION(NAME, TEXT) NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

/// All of them, None aside.
inline constexpr Activation kActivations[] = {
#define SPMD_ACTIVATION(NAME, TEXT) Activation::NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

const char *nameOf(Activation activation);
/// The activation of this name, None aside; nothing when there is none.
std::optional<Activation> parseActivation(std::string_view name);

/// One of the matrices that a GEMM multiplies, or none.
enum class GemmOperand {
  None,
#define SPMD_GEMM_OPERAND(NAME, TEXT) NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

/// All of them, None aside.
inline constexpr GemmOperand kGemmOperands[] = {
#define SPMD_GEMM_OPERAND(NAME, TEXT) GemmOperand::NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

const char *nameOf(GemmOperand operand);
/// The operand of this name, None aside; nothing when there is none.
std::optional<GemmOperand> parseGemmOperand(std::string_view name);

/// What a GEMM computes of its matrices, row major: `batch` of them at fixed strides.
struct GemmSizes {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transA = false, transB = false;
  int64_t batch = 1;
  int64_t strideA = 0, strideB = 0, strideC = 0;
  Activation activation = Activation::None;
  /// The operand, m x k or k x n, that is also summed over k.
  GemmOperand biasGradientOf = GemmOperand::None;

  /// The sums: one for each row of A, or for each column of B.
  int64_t numBiasGradients() const { return biasGradientOf == GemmOperand::A ? m : n; }
};

/// C = activation(A·B + bias (+ C when beta is 1) + residual).
struct GemmShape : GemmSizes {
  double beta = 0;
  // Which of the command's references is what else the epilogue takes; -1: none.
  int32_t bias = -1;          ///< an element per column
  int32_t residual = -1;      ///< lies as C does, elsewhere
  int32_t preActivation = -1; ///< written: what the activation is applied to
  int32_t biasGradient = -1;  ///< written: the sums of `biasGradientOf`, one beside the other
  int32_t workspace = -1;     ///< written, with nothing that anybody reads: what a library may use meanwhile
};

/// A GEMM. The references are A, B, C, those of its epilogue and its workspace.
struct GemmCommand {
  GemmShape shape;
  DType dtype = DType::F32;
};

enum class ReductionKind : int32_t {
#define SPMD_REDUCTION_KIND(NAME, TEXT) NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

inline constexpr ReductionKind kReductionKinds[] = {
#define SPMD_REDUCTION_KIND(NAME, TEXT) ReductionKind::NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

const char *nameOf(ReductionKind kind);
/// The kind of this name; nothing when there is none.
std::optional<ReductionKind> parseReductionKind(std::string_view name);

/// What ranks exchange, apart from among whom and where it lies.
struct Exchange {
  CollectiveKind kind = CollectiveKind::AllGather;
  DType dtype = DType::F32;
  std::vector<int64_t> counts;      ///< elements of a part, or in place of each buffer
  std::vector<ReductionKind> kinds; ///< one for each count where values are combined
  std::string unit;                 ///< whose parameters or gradients they are; empty: of no shard unit

  /// Bytes of the counts: of a part, or of all buffers.
  int64_t messageBytes() const;
  /// How many buffers a rank has for it.
  size_t numBuffers() const { return isInPlace(kind) ? counts.size() : 2; }
};

/// An exchange among the ranks of a communicator. The references are what is sent
/// and what is received; in place they are the buffers, one for each count.
struct CollectiveCommand : Exchange {
  int32_t communicator = -1; ///< a number of Plan::communicators
};

/// Waits until a command of another stream is done. It has no references.
struct WaitCommand {
  int32_t awaited = -1; ///< a number of Plan::commands
};

/// Copies bytes. The references are source and destination.
struct CopyCommand {
  int64_t bytes = 0;
};

/// Sets every byte of its reference.
struct FillCommand {
  int64_t bytes = 0;
  uint8_t value = 0;
};

/// Fails unless each of the integers that its reference holds is in [low, high), or `ignoreIndex`.
struct CheckIndexCommand {
  int64_t count = 0;
  DType dtype = DType::I64;
  int64_t low = 0, high = 0;
  std::optional<int64_t> ignoreIndex;
  std::string use; ///< the op that takes them
};

struct Command {
  using Action = std::variant<KernelCommand, GemmCommand, CollectiveCommand, WaitCommand, CopyCommand, FillCommand,
                              CheckIndexCommand>;

  int32_t stream = 0;
  std::string location;
  std::vector<Ref> refs; ///< what they are depends on the action
  Action action;

  /// The action when it is a `Kind`, else null: `if (const auto *gemm = command.as<GemmCommand>())`.
  template <typename Kind>
  const Kind *as() const {
    return std::get_if<Kind>(&action);
  }
  template <typename Kind>
  Kind *as() {
    return std::get_if<Kind>(&action);
  }
  template <typename Kind>
  bool is() const {
    return std::holds_alternative<Kind>(action);
  }

  /// Calls that one of `cases` which takes the action, and returns what it returns. A kind that none takes does not
  /// compile; `[](const auto &) {}` takes all that are left.
  template <typename... Cases>
  decltype(auto) visit(Cases &&...cases) const {
    return std::visit(Overloaded<std::decay_t<Cases>...>{std::forward<Cases>(cases)...}, action);
  }

  /// "all_gather of unit0", "kernel k12": what errors call the command.
  std::string describe() const;
  /// Bytes a rank hands to a collective; 0 of what is none.
  int64_t sentBytes() const;

private:
  template <typename... Cases>
  struct Overloaded : Cases... {
    using Cases::operator()...;
  };
};

/// What plans call such a command: "kernel", "all_gather".
const char *nameOf(const Command::Action &action);
inline const char *nameOf(const Command &command) { return nameOf(command.action); }

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_COMMAND_H
