//===- Values.cpp - Commands as operations on values ----------------------===//

#include "spmd/Runtime/Core/Values.h"

using namespace spmd::runtime;

static const char *textOf(Access access) { return access == Access::Read ? "r" : access == Access::Write ? "w" : "b"; }

static std::string join(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

/// Beta 1 is a residual that lies where the result goes.
static bool hasResidual(const GemmShape &gemm) { return gemm.residual >= 0 || gemm.beta != 0; }

static std::string operationOf(const GemmCommand &gemm) {
  const GemmShape &g = gemm.shape;
  std::string text =
      "gemm " + std::string(nameOf(gemm.dtype)) + " " + join({g.m, g.n, g.k}) + " ld " + join({g.lda, g.ldb, g.ldc});
  text += std::string(g.transA ? " trans_a" : "") + (g.transB ? " trans_b" : "");
  if (g.batch != 1)
    text += " batch " + join({g.batch, g.strideA, g.strideB, g.strideC});
  text += std::string(g.bias >= 0 ? " bias" : "") + (hasResidual(g) ? " residual" : "");
  if (g.activation != Activation::None)
    text += std::string(" ") + nameOf(g.activation);
  return text + (g.preActivation >= 0 ? " pre_activation" : "");
}

static std::string operationOf(const CollectiveCommand &collective, const std::vector<std::string> &axes) {
  std::string kinds;
  for (ReductionKind kind : collective.kinds)
    kinds += (kinds.empty() ? " " : ",") + std::string(nameOf(kind));
  std::string along;
  for (const std::string &axis : axes)
    along += (along.empty() ? " along " : ",") + axis;
  return std::string(nameOf(collective.kind)) + " " + nameOf(collective.dtype) + kinds + " " + join(collective.counts) +
         along + (collective.unit.empty() ? "" : " of " + collective.unit);
}

std::string spmd::runtime::operationOf(const Command &command, const std::vector<std::string> &axes) {
  return command.visit(
      [&](const KernelCommand &kernel) {
        // How often it runs is for the kernel file to say (rule 9): a GPU launches other numbers than a loop has
        // iterations.
        std::string text = "kernel " + kernel.symbol + " ";
        for (const Ref &ref : command.refs)
          text += textOf(ref.access);
        return text;
      },
      [](const GemmCommand &gemm) { return ::operationOf(gemm); },
      [&](const CollectiveCommand &collective) { return ::operationOf(collective, axes); },
      [](const CheckIndexCommand &check) {
        return "check_index " + std::string(nameOf(check.dtype)) + " " + join({check.count, check.low, check.high}) +
               (check.ignoreIndex ? " or " + std::to_string(*check.ignoreIndex) : "") + " for " + check.use;
      },
      [](const WaitCommand &) { return std::string(); }, [](const CopyCommand &) { return std::string(); },
      [](const FillCommand &) { return std::string(); });
}

std::vector<const Ref *> spmd::runtime::operandsOf(const Command &command) {
  std::vector<const Ref *> operands;
  if (const auto *product = command.as<GemmCommand>()) {
    const GemmShape &gemm = product->shape;
    operands = {&command.refs[0], &command.refs[1]};
    if (gemm.bias >= 0)
      operands.push_back(&command.refs[static_cast<size_t>(gemm.bias)]);
    if (hasResidual(gemm))
      operands.push_back(&command.refs[gemm.residual >= 0 ? static_cast<size_t>(gemm.residual) : 2]);
    return operands;
  }
  for (const Ref &ref : command.refs)
    if (ref.reads())
      operands.push_back(&ref);
  return operands;
}

std::vector<const Ref *> spmd::runtime::resultsOf(const Command &command) {
  std::vector<const Ref *> results;
  for (const Ref &ref : command.refs)
    if (ref.writes())
      results.push_back(&ref);
  return results;
}
