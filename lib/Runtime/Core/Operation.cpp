//===- Operation.cpp ------------------------------------------------------===//

#include "spmd/Runtime/Core/Operation.h"
#include "spmd/Runtime/Core/Text.h"

#include <tuple>

using namespace spmd::runtime;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

static auto tie(const GemmSizes &g) {
  return std::tie(g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.transA, g.transB, g.batch, g.strideA, g.strideB, g.strideC,
                  g.activation, g.biasGradientOf);
}
static auto tie(const AttentionView &v) { return std::tie(v.offset, v.batch, v.head, v.row); }
static auto tie(const AttentionShape &s) {
  return std::tuple_cat(std::tie(s.isBackward, s.batch, s.heads, s.kvHeads, s.qLen, s.kvLen, s.headDim, s.vDim, s.scale,
                                 s.dtype, s.mask, s.windowLow, s.windowHigh),
                        tie(s.q), tie(s.k), tie(s.v), tie(s.out), tie(s.dout), tie(s.dq), tie(s.dk), tie(s.dv));
}
static auto tie(const GemmOperation &g) { return std::tie(g.dtype, g.hasBias, g.hasResidual, g.hasPreActivation); }
static auto tie(const CollectiveOperation &c) { return std::tie(c.kind, c.dtype, c.counts, c.kinds, c.unit, c.axes); }
static auto tie(const CheckIndexCommand &c) { return std::tie(c.dtype, c.count, c.low, c.high, c.ignoreIndex, c.use); }

bool spmd::runtime::operator<(const KernelOperation &a, const KernelOperation &b) {
  return std::tie(a.symbol, a.arguments) < std::tie(b.symbol, b.arguments);
}
bool spmd::runtime::operator<(const AttentionOperation &a, const AttentionOperation &b) {
  return std::tuple_cat(std::tie(a.symbol, a.arguments), tie(a.shape)) <
         std::tuple_cat(std::tie(b.symbol, b.arguments), tie(b.shape));
}
bool spmd::runtime::operator<(const GemmOperation &a, const GemmOperation &b) {
  return std::tuple_cat(tie(a.sizes), tie(a)) < std::tuple_cat(tie(b.sizes), tie(b));
}
bool spmd::runtime::operator<(const CollectiveOperation &a, const CollectiveOperation &b) { return tie(a) < tie(b); }
bool spmd::runtime::operator<(const CheckIndexCommand &a, const CheckIndexCommand &b) { return tie(a) < tie(b); }

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static const char *textOf(Access access) { return access == Access::Read ? "r" : access == Access::Write ? "w" : "b"; }

static std::string join(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

/// The symbol and how each argument is used.
static std::string launchText(const KernelOperation &kernel) {
  std::string text = kernel.symbol + " ";
  for (Access access : kernel.arguments)
    text += textOf(access);
  return text;
}

static std::string textOf(const KernelOperation &kernel) { return "kernel " + launchText(kernel); }

static std::string textOf(const AttentionOperation &attention) {
  const AttentionShape &s = attention.shape;
  auto viewText = [](const char *name, const AttentionView &view) {
    return std::string(" ") + name + " " + join({view.offset, view.batch, view.head, view.row});
  };
  std::string text = std::string(s.isBackward ? "attention_backward " : "attention ") + launchText(attention) + " " +
                     nameOf(s.dtype) + " " + join({s.batch, s.heads, s.kvHeads, s.qLen, s.kvLen, s.headDim, s.vDim}) +
                     " scale " + formatNumber(s.scale, 6);
  if (s.mask != AttentionMask::None)
    text += std::string(" mask ") + nameOf(s.mask);
  text += s.windowLow ? " from " + std::to_string(*s.windowLow) : "";
  text += s.windowHigh ? " to " + std::to_string(*s.windowHigh) : "";
  text += viewText("q", s.q) + viewText("k", s.k) + viewText("v", s.v) + viewText("out", s.out);
  if (s.isBackward)
    text += viewText("dout", s.dout) + viewText("dq", s.dq) + viewText("dk", s.dk) + viewText("dv", s.dv);
  return text;
}

static std::string textOf(const GemmOperation &gemm) {
  const GemmSizes &g = gemm.sizes;
  std::string text =
      "gemm " + std::string(nameOf(gemm.dtype)) + " " + join({g.m, g.n, g.k}) + " ld " + join({g.lda, g.ldb, g.ldc});
  text += std::string(g.transA ? " trans_a" : "") + (g.transB ? " trans_b" : "");
  if (g.batch != 1)
    text += " batch " + join({g.batch, g.strideA, g.strideB, g.strideC});
  text += std::string(gemm.hasBias ? " bias" : "") + (gemm.hasResidual ? " residual" : "");
  if (g.activation != Activation::None)
    text += std::string(" ") + nameOf(g.activation);
  text += gemm.hasPreActivation ? " pre_activation" : "";
  if (g.biasGradientOf != GemmOperand::None)
    text += std::string(" bias_gradient ") + nameOf(g.biasGradientOf);
  return text;
}

static std::string textOf(const CollectiveOperation &collective) {
  std::string kinds;
  for (ReductionKind kind : collective.kinds)
    kinds += (kinds.empty() ? " " : ",") + std::string(nameOf(kind));
  std::string along;
  for (const std::string &axis : collective.axes)
    along += (along.empty() ? " along " : ",") + axis;
  return std::string(nameOf(collective.kind)) + " " + nameOf(collective.dtype) + kinds + " " + join(collective.counts) +
         along + (collective.unit.empty() ? "" : " of " + collective.unit);
}

static std::string textOf(const CheckIndexCommand &check) {
  return "check_index " + std::string(nameOf(check.dtype)) + " " + join({check.count, check.low, check.high}) +
         (check.ignoreIndex ? " or " + std::to_string(*check.ignoreIndex) : "") + " for " + check.use;
}

std::string spmd::runtime::toText(const Operation &operation) {
  return std::visit([](const auto &it) { return textOf(it); }, operation);
}

//===----------------------------------------------------------------------===//
// Of commands
//===----------------------------------------------------------------------===//

/// Beta 1 is a residual that lies where the result goes.
static bool hasResidual(const GemmShape &gemm) { return gemm.residual >= 0 || gemm.beta != 0; }

std::optional<Operation> spmd::runtime::operationOf(const Plan &plan, const Command &command) {
  using Found = std::optional<Operation>;
  // How often it runs is for the kernel file to say (rule 9): a GPU launches other numbers than a loop has iterations.
  auto launchOf = [&](const KernelCommand &kernel) {
    KernelOperation operation{kernel.symbol, {}};
    for (const Ref &ref : command.refs)
      operation.arguments.push_back(ref.access);
    return operation;
  };
  return command.visit([&](const KernelCommand &kernel) -> Found { return launchOf(kernel); },
                       [&](const AttentionCommand &attention) -> Found {
                         return AttentionOperation{launchOf(attention), attention.shape};
                       },
                       [](const GemmCommand &gemm) -> Found {
                         GemmOperation operation(gemm.shape, gemm.dtype);
                         operation.hasBias = gemm.shape.bias >= 0;
                         operation.hasResidual = hasResidual(gemm.shape);
                         operation.hasPreActivation = gemm.shape.preActivation >= 0;
                         return operation;
                       },
                       [&](const CollectiveCommand &collective) -> Found {
                         return CollectiveOperation{collective, plan.axesOf(collective.communicator)};
                       },
                       [](const CheckIndexCommand &check) -> Found { return check; },
                       [](const WaitCommand &) { return Found(); }, [](const CopyCommand &) { return Found(); },
                       [](const FillCommand &) { return Found(); });
}

std::vector<const Ref *> spmd::runtime::operandsOf(const Command &command) {
  std::vector<const Ref *> operands;
  if (const auto *gemmCommand = command.as<GemmCommand>()) {
    const GemmShape &gemm = gemmCommand->shape;
    operands = {&command.refs[0], &command.refs[1]};
    if (gemm.bias >= 0)
      operands.push_back(&command.refs[static_cast<size_t>(gemm.bias)]);
    if (hasResidual(gemm))
      operands.push_back(&command.refs[gemm.residual >= 0 ? static_cast<size_t>(gemm.residual) : 2]);
    if (gemm.readsPreActivation() && gemm.preActivation >= 0)
      operands.push_back(&command.refs[static_cast<size_t>(gemm.preActivation)]);
    return operands;
  }
  for (const Ref &ref : command.refs)
    if (ref.reads())
      operands.push_back(&ref);
  return operands;
}

const Ref *spmd::runtime::workspaceOf(const Command &command) {
  const auto *product = command.as<GemmCommand>();
  return product && product->shape.workspace >= 0 ? &command.refs[static_cast<size_t>(product->shape.workspace)]
                                                  : nullptr;
}

std::vector<const Ref *> spmd::runtime::resultsOf(const Command &command) {
  std::vector<const Ref *> results;
  const Ref *workspace = workspaceOf(command);
  for (const Ref &ref : command.refs)
    if (ref.writes() && &ref != workspace)
      results.push_back(&ref);
  return results;
}
