//===- Command.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Core/Command.h"

using namespace spmd::runtime;

bool Ref::dependsOnRank() const {
  for (int64_t factor : coord)
    if (factor != 0)
      return true;
  return false;
}

int64_t Ref::offsetAt(const std::vector<int64_t> &coordinates) const {
  int64_t result = offset;
  for (size_t axis = 0; axis < coord.size(); ++axis)
    result += coord[axis] * coordinates[axis];
  return result;
}

const char *spmd::runtime::nameOf(Access access) {
  return access == Access::Read ? "r" : access == Access::Write ? "w" : "rw";
}

const char *spmd::runtime::nameOf(ReductionKind kind) {
  switch (kind) {
#define SPMD_REDUCTION_KIND(NAME, TEXT)                                                                                \
  case ReductionKind::NAME:                                                                                            \
    return #TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  return "";
}

const char *spmd::runtime::nameOf(Activation activation) {
  switch (activation) {
  case Activation::None:
    return "none";
#define SPMD_ACTIVATION(NAME, TEXT)                                                                                    \
  case Activation::NAME:                                                                                               \
    return #TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  return "";
}

const char *spmd::runtime::nameOf(GemmOperand operand) {
  switch (operand) {
  case GemmOperand::None:
    return "none";
#define SPMD_GEMM_OPERAND(NAME, TEXT)                                                                                  \
  case GemmOperand::NAME:                                                                                              \
    return #TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  return "";
}

const char *spmd::runtime::nameOf(AttentionMask mask) {
  switch (mask) {
  case AttentionMask::None:
    return "none";
#define SPMD_ATTENTION_MASK(NAME, TEXT)                                                                                \
  case AttentionMask::NAME:                                                                                            \
    return #TEXT;
#include "spmd/Runtime/Core/Kinds.def"
  }
  return "";
}

std::optional<ReductionKind> spmd::runtime::parseReductionKind(std::string_view name) {
  for (ReductionKind kind : kReductionKinds)
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

std::optional<Activation> spmd::runtime::parseActivation(std::string_view name) {
  for (Activation activation : kActivations)
    if (name == nameOf(activation))
      return activation;
  return std::nullopt;
}

std::optional<GemmOperand> spmd::runtime::parseGemmOperand(std::string_view name) {
  for (GemmOperand operand : kGemmOperands)
    if (name == nameOf(operand))
      return operand;
  return std::nullopt;
}

std::optional<AttentionMask> spmd::runtime::parseAttentionMask(std::string_view name) {
  for (AttentionMask mask : kAttentionMasks)
    if (name == nameOf(mask))
      return mask;
  return std::nullopt;
}

int64_t Exchange::messageBytes() const {
  int64_t elements = 0;
  for (int64_t count : counts)
    elements += count;
  return elements * sizeOf(dtype);
}

namespace {
struct Name {
  const char *operator()(const KernelCommand &) const { return "kernel"; }
  const char *operator()(const AttentionCommand &attention) const {
    return attention.shape.isBackward ? "attention_backward" : "attention";
  }
  const char *operator()(const GemmCommand &) const { return "gemm"; }
  const char *operator()(const CollectiveCommand &collective) const { return nameOf(collective.kind); }
  const char *operator()(const WaitCommand &) const { return "wait"; }
  const char *operator()(const CopyCommand &) const { return "copy"; }
  const char *operator()(const FillCommand &) const { return "fill"; }
  const char *operator()(const CheckIndexCommand &) const { return "check_index"; }
};
} // namespace

const char *spmd::runtime::nameOf(const Command::Action &action) { return std::visit(Name(), action); }

std::string Command::describe() const {
  std::string name = nameOf(*this);
  if (const auto *kernel = as<KernelCommand>())
    return name + " " + kernel->symbol;
  return visit([&](const WaitCommand &wait) { return name + " for command " + std::to_string(wait.awaited); },
               [&](const CollectiveCommand &collective) {
                 return collective.unit.empty() ? name : name + " of " + collective.unit;
               },
               [&](const auto &) { return name; });
}

int64_t Command::sentBytes() const {
  const auto *collective = as<CollectiveCommand>();
  if (!collective)
    return 0;
  return isInPlace(collective->kind) ? collective->messageBytes() : refs[0].bytes;
}
