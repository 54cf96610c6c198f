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
#include <type_traits>
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

/// What a mask does to a score, beyond the window of keys that its positions leave.
enum class AttentionMask {
  None,
#define SPMD_ATTENTION_MASK(NAME, TEXT) NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

/// All of them, None aside.
inline constexpr AttentionMask kAttentionMasks[] = {
#define SPMD_ATTENTION_MASK(NAME, TEXT) AttentionMask::NAME,
#include "spmd/Runtime/Core/Kinds.def"
};

const char *nameOf(AttentionMask mask);
/// The mask of this name, None aside; nothing when there is none.
std::optional<AttentionMask> parseAttentionMask(std::string_view name);

/// Where [batch, head, row, column] lies in a reference, in elements; columns are contiguous.
struct AttentionView {
  int64_t offset = 0, batch = 0, head = 0, row = 0;
};

/// What an attention computes: out = softmax(scale q k^T + mask) v for each batch and head, and lse, the logarithms of
/// the sums of the exponentials, [batch, heads, qLen] in f32. Or, backward, the gradients of q, k and v by that of out.
struct AttentionShape {
  bool isBackward = false;
  int64_t batch = 0, heads = 0;
  int64_t kvHeads = 0; ///< query head h has key and value head h / (heads / kvHeads)
  int64_t qLen = 0, kvLen = 0, headDim = 0, vDim = 0;
  double scale = 1;
  DType dtype = DType::F32;
  AttentionMask mask = AttentionMask::None;
  /// Query t sees keys in [t + windowLow, t + windowHigh]; where one is missing, no bound. Causal: windowHigh is 0.
  std::optional<int64_t> windowLow, windowHigh;
  AttentionView q, k, v, out;
  AttentionView dout, dq, dk, dv; ///< backward
};

/// A library's way to compute an attention instead of the kernel.
struct LibraryPlan {
  std::string library; ///< "cudnn"
  std::string plan;    ///< what only the library understands
};

/// An attention and the kernel that computes it. The references are the kernel's arguments: forward q, k, v, those of
/// the mask, out, lse; backward dout, q, k, v, those of the mask, out, lse, the gradients, that of the mask.
struct AttentionCommand : KernelCommand {
  AttentionShape shape;
  int32_t maskInputs = 0;
  int32_t gradients = 0; ///< backward: 3, of q, k and v, or 1, in which they lie at their views
  bool hasMaskGradient = false;
  std::optional<LibraryPlan> libraryPlan;

  // Which of the references is which; those of a backward.
  size_t q() const { return shape.isBackward ? 1 : 0; }
  size_t mask() const { return q() + 3; }
  size_t out() const { return mask() + static_cast<size_t>(maskInputs); }
  size_t lse() const { return out() + 1; }
  size_t gradient() const { return lse() + 1; }
  size_t maskGradient() const { return gradient() + static_cast<size_t>(gradients); }
  /// What is written: results come last.
  size_t firstResult() const { return shape.isBackward ? gradient() : out(); }
  size_t numRefs() const { return maskGradient() + (hasMaskGradient ? 1 : 0); }
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

/// One of the matrices of a GEMM, or none.
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
  /// A or B, which are also summed over k, or C, whose rows are.
  GemmOperand biasGradientOf = GemmOperand::None;

  /// The sums: one for each row of A, or for each column of B or C.
  int64_t numBiasGradients() const { return biasGradientOf == GemmOperand::A ? m : n; }
  /// Whether what the activation was applied to is an operand: the activation's gradient is taken there.
  bool readsPreActivation() const { return activation == Activation::GeluTanhBackward; }
};

/// C = activation(A·B + bias (+ C when beta is 1) + residual), or C = A·B · activation'(preActivation).
struct GemmShape : GemmSizes {
  double beta = 0;
  // Which of the command's references is what else the epilogue takes; -1: none.
  int32_t bias = -1;          ///< an element per column
  int32_t residual = -1;      ///< lies as C does, elsewhere
  int32_t preActivation = -1; ///< what the activation is applied to: written, but of a gradient read; lies as C does
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
  using Action = std::variant<KernelCommand, AttentionCommand, GemmCommand, CollectiveCommand, WaitCommand, CopyCommand,
                              FillCommand, CheckIndexCommand>;

  int32_t stream = 0;
  std::string location;
  std::vector<Ref> refs; ///< what they are depends on the action
  Action action;

  /// The action if it is a `Kind` or derived from one, else null: `if (const auto *gemm = command.as<GemmCommand>())`.
  template <typename Kind>
  const Kind *as() const {
    return std::visit(
        [](const auto &it) -> const Kind * {
          if constexpr (std::is_base_of_v<Kind, std::decay_t<decltype(it)>>)
            return &it;
          else
            return nullptr;
        },
        action);
  }
  template <typename Kind>
  Kind *as() {
    return const_cast<Kind *>(std::as_const(*this).as<Kind>());
  }
  template <typename Kind>
  bool is() const {
    return as<Kind>() != nullptr;
  }

  /// Calls that one of `cases` which takes the action, and returns what it returns. A kind that none takes does not
  /// compile; `[](const auto &) {}` takes all that are left.
  template <typename... Cases>
  decltype(auto) visit(Cases &&...cases) const {
    return std::visit(Overloaded<std::decay_t<Cases>...>{std::forward<Cases>(cases)...}, action);
  }

  /// "all_gather of unit0", "kernel k12", "attention k13": what errors call the command.
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
