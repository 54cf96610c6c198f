//===- FuseGemmEpilogues.cpp - spmd-fuse-gemm-epilogues -------------------===//
//
// [Note: when an epilogue pays] Clusters are bound by memory, GEMMs mostly are not. A GEMM takes something over
// when no more bytes move than before, what the GEMM itself then reads and writes included, and clusters move at
// least one matrix less: a cluster is gone, or a sum that a cluster wrote is the GEMM's result, or one input of it
// is. A bias alone, before a cluster that reads the GEMM anyway, stays where it is.
//
//===----------------------------------------------------------------------===//

#include "BiasGradient.h"
#include "Epilogue.h"

#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "spmd/Conversion/AtenToKernel/Epilogues.h"
#include "spmd/Conversion/AtenToKernel/Passes.h"
#include "spmd/Transforms/FunctionPass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace spmd {
#define GEN_PASS_DEF_FUSEGEMMEPILOGUESPASS
#include "spmd/Conversion/AtenToKernel/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using namespace spmd::epilogue;
using kernel::Activation;
using kernel::ClusterOp;
using kernel::GemmOp;

namespace {

/// An epilogue that a GEMM could take over.
struct Candidate {
  Value bias, residual;
  /// Where the derivative of the activation is taken; null without one.
  DerivativeAt derivative;
  std::optional<Activation> activation;
  SmallVector<Site> sites;
  /// What it leaves of the clusters, in program order.
  SmallVector<Remains> remains;
  Type resultType, preActivationType;
  /// Bytes that clusters need not move any more, and that the GEMM moves on top.
  int64_t saved = 0, added = 0;

  bool usesPreActivation() const {
    return llvm::any_of(remains, [](const Remains &rest) { return rest.usesPreActivation(); });
  }
  std::string describe() const;
};

struct FuseGemmEpiloguesPass : FunctionPass<spmd::impl::FuseGemmEpiloguesPassBase<FuseGemmEpiloguesPass>> {
  using FunctionPass::FunctionPass;

  LogicalResult initialize(MLIRContext *context) override;
  LogicalResult runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) override;

private:
  bool has(StringRef epilogue) const { return available.contains(epilogue); }
  void weigh(GemmOp gemm, Candidate candidate, Candidate &best) const;
  Candidate findBest(GemmOp gemm) const;
  Candidate findGeluBackward(GemmOp gemm) const;
  std::optional<Candidate> findBias(GemmOp gemm) const;
  void takeGeluBackward(GemmOp gemm) const;
  /// Whether the GEMM may have epilogues and has none.
  bool mayTake(GemmOp gemm) const;

  llvm::StringSet<> available;
};

/// Whether the GEMM has no epilogue, and rows as long as they are.
bool isPlain(GemmOp gemm) { return !gemm.getResidual() && !gemm.getBias() && !gemm.getActivation() && !gemm.getLdc(); }

} // namespace

std::string Candidate::describe() const {
  std::string text;
  auto add = [&](StringRef name) { text += (text.empty() ? "" : ", ") + name.str(); };
  if (bias)
    add("bias");
  if (residual)
    add("residual");
  if (activation)
    add(kernel::stringifyActivation(*activation));
  return text;
}

std::string spmd::findBadEpilogue(StringRef epilogues) {
  const StringRef known[] = {"bias", "residual", "relu", "gelu", "gelu_tanh", "gelu_tanh_backward", "bias_gradient"};
  bool isGood = epilogues == "none" || llvm::all_of(llvm::split(epilogues, ','), [&](StringRef name) {
    return llvm::is_contained(known, name);
  });
  return isGood ? "" : "expected none, or some of " + llvm::join(ArrayRef(known), ", ");
}

LogicalResult FuseGemmEpiloguesPass::initialize(MLIRContext *context) {
  if (std::string bad = findBadEpilogue(epilogues); !bad.empty())
    return emitError(UnknownLoc::get(context), "spmd-fuse-gemm-epilogues: epilogues=") << epilogues << ": " << bad;
  const StringRef types[] = {"f32", "f64", "bf16"};
  for (StringRef name : llvm::split(dtypes, ','))
    if (!llvm::is_contained(types, name))
      return emitError(UnknownLoc::get(context), "spmd-fuse-gemm-epilogues: dtypes=")
             << dtypes << ": expected some of " << llvm::join(ArrayRef(types), ", ");
  available.clear();
  for (StringRef name : llvm::split(epilogues, ','))
    available.insert(name);
  return success();
}

/// True if `value` is there when `op` runs.
static bool isBefore(Value value, Operation *op) {
  Operation *defining = value.getDefiningOp();
  return !defining || (defining->getBlock() == op->getBlock() && defining->isBeforeInBlock(op));
}

/// Sets the types of the GEMM's results: those of the results they replace, which must be of one type.
static bool findTypes(GemmOp gemm, Candidate &candidate) {
  auto merge = [](Type &type, Type other) {
    bool fits = !type || type == other;
    type = other;
    return fits;
  };
  for (const Remains &rest : candidate.remains)
    for (auto [index, type] : llvm::enumerate(ClusterOp(rest.cluster).getResultTypes()))
      if ((rest.activated.test(index) && !merge(candidate.resultType, type)) ||
          (rest.preActivated.test(index) && !merge(candidate.preActivationType, type)))
        return false;
  for (Type *type : {&candidate.resultType, &candidate.preActivationType})
    if (!*type)
      *type = gemm.getResult().getType();
  return true;
}

static int64_t getBytes(Value value) {
  return kernel::getNumElements(value.getType()) * kernel::getElementBytes(value.getType());
}

/// The sites in program order; none when something else reads the GEMM.
static SmallVector<Site> getSites(GemmOp gemm) {
  SmallVector<Site> sites = findSites(gemm.getResult()).value_or(SmallVector<Site>());
  llvm::sort(sites, [](const Site &a, const Site &b) {
    return a.cluster == b.cluster ? a.operand < b.operand : a.cluster->isBeforeInBlock(b.cluster);
  });
  return sites;
}

/// Sets what the candidate leaves of the clusters, and the bytes that are moved less and more then.
static void addRemains(GemmOp gemm, Candidate &candidate) {
  llvm::MapVector<Operation *, SmallVector<Site>> byCluster;
  for (const Site &site : candidate.sites)
    byCluster[site.cluster].push_back(site);
  for (auto &[cluster, sites] : byCluster) {
    candidate.remains.push_back(findRemains(cast<ClusterOp>(cluster), sites));
    candidate.saved += candidate.remains.back().getSavedBytes();
  }
  int64_t matrix = getBytes(gemm.getResult());
  candidate.added = (candidate.bias ? getBytes(candidate.bias) : 0) + (candidate.residual ? matrix : 0) +
                    (candidate.usesPreActivation() || candidate.derivative.matrix ? matrix : 0);
}

/// Makes `candidate` the best if it pays and is better.
void FuseGemmEpiloguesPass::weigh(GemmOp gemm, Candidate candidate, Candidate &best) const {
  addRemains(gemm, candidate);
  if (!findTypes(gemm, candidate))
    return;
  int64_t matrix = getBytes(gemm.getResult());
  // Libraries keep the sign of what relu is applied to, not the value.
  if (candidate.usesPreActivation() && candidate.activation == Activation::Relu)
    return;
  if (candidate.saved >= matrix && candidate.saved >= candidate.added && candidate.saved > best.saved)
    best = std::move(candidate);
}

/// The GEMM with the bias that its readers add. Where the gradient of gelu reads the sum, the parameter may have been
/// gathered once more for that.
std::optional<Candidate> FuseGemmEpiloguesPass::findBias(GemmOp gemm) const {
  Candidate candidate;
  candidate.sites = getSites(gemm);
  if (!has("bias") || candidate.sites.empty())
    return std::nullopt;
  candidate.bias = addBias(candidate.sites, gemm.getN(), /*acrossGathers=*/has("gelu_tanh_backward"));
  return candidate.bias && isBefore(candidate.bias, gemm) ? std::make_optional(std::move(candidate)) : std::nullopt;
}

Candidate FuseGemmEpiloguesPass::findBest(GemmOp gemm) const {
  Candidate best, plain;
  plain.sites = getSites(gemm);
  if (plain.sites.empty())
    return best;
  std::vector<Candidate> candidates{plain};
  if (std::optional<Candidate> sum = findBias(gemm))
    candidates.push_back(std::move(*sum));
  for (size_t i = 0, e = has("residual") ? candidates.size() : 0; i != e; ++i) {
    Candidate sum = candidates[i];
    sum.residual = addMatrix(sum.sites);
    if (sum.residual && isBefore(sum.residual, gemm))
      candidates.push_back(std::move(sum));
  }
  for (size_t i = 0, e = candidates.size(); i != e; ++i)
    for (Activation activation : {Activation::Relu, Activation::Gelu, Activation::GeluTanh}) {
      Candidate activated = candidates[i];
      if (!has(kernel::stringifyActivation(activation)) || !applyActivation(activated.sites, activation))
        continue;
      activated.activation = activation;
      candidates.push_back(std::move(activated));
    }
  for (Candidate &candidate : llvm::drop_begin(candidates))
    weigh(gemm, std::move(candidate), best);
  return best;
}

/// The gradient of gelu, of which libraries want rows of multiples of 8 elements
/// ("CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD" in cuBLASLt's documentation).
Candidate FuseGemmEpiloguesPass::findGeluBackward(GemmOp gemm) const {
  Candidate best, candidate;
  candidate.sites = getSites(gemm);
  if (candidate.sites.empty() || gemm.getN() % 8 != 0)
    return best;
  std::optional<DerivativeAt> derivative = multiplyByGeluDerivative(candidate.sites);
  if (!derivative || !isBefore(derivative->matrix, gemm))
    return best;
  candidate.derivative = *derivative;
  candidate.activation = Activation::GeluTanhBackward;
  weigh(gemm, std::move(candidate), best);
  return best;
}

bool FuseGemmEpiloguesPass::mayTake(GemmOp gemm) const {
  Type type = getElementTypeOrSelf(gemm.getResult().getType());
  StringRef name = type.isF32() ? "f32" : type.isF64() ? "f64" : "bf16";
  return isPlain(gemm) && llvm::is_contained(llvm::split(dtypes, ','), name);
}

/// Replaces the GEMM and the clusters by what the candidate makes of them.
static void fuse(GemmOp gemm, const Candidate &candidate) {
  OpBuilder builder(gemm);
  Type preActivation = candidate.usesPreActivation() ? candidate.preActivationType : Type();
  kernel::ActivationAttr activation;
  if (candidate.activation)
    activation = kernel::ActivationAttr::get(gemm.getContext(), *candidate.activation);
  auto fused = GemmOp::create(
      builder, gemm.getLoc(), candidate.resultType, preActivation, /*bias_gradient=*/Type(), gemm.getA(), gemm.getB(),
      candidate.residual, candidate.bias, candidate.derivative.matrix, gemm.getM(), gemm.getN(), gemm.getK(),
      gemm.getBatch(), gemm.getTransA(), gemm.getTransB(), gemm.getAOffset(), gemm.getLda(), gemm.getAStride(),
      gemm.getBOffset(), gemm.getLdb(), gemm.getBStride(), activation, kernel::GemmOperandAttr(), gemm.getLdcAttr());
  numberInBlock(fused);
  fused->setDiscardableAttrs(gemm->getDiscardableAttrDictionary());
  for (const Remains &rest : candidate.remains)
    replaceCluster(rest, gemm.getResult(), fused.getResult(), fused.getPreActivation());
  gemm.erase();
}

/// Replaces the GEMM by the candidate, if there is one, and says so.
static void takeOver(GemmOp gemm, const Candidate &candidate) {
  if (candidate.remains.empty())
    return;
  emitRemark(gemm.getLoc()) << "GEMM takes over " << candidate.describe() << ": clusters move " << candidate.saved
                            << " bytes less, the GEMM " << candidate.added << " more";
  fuse(gemm, candidate);
}

void FuseGemmEpiloguesPass::takeGeluBackward(GemmOp gemm) const {
  Candidate best = findGeluBackward(gemm);
  if (best.derivative.addsBias) { // what gelu was applied to is in no memory until the GEMM before adds its bias
    auto forward = best.derivative.matrix.getDefiningOp<GemmOp>();
    std::optional<Candidate> sum = forward && mayTake(forward) ? findBias(forward) : std::nullopt;
    if (!sum)
      return;
    addRemains(forward, *sum);
    if (!findTypes(forward, *sum))
      return;
    takeOver(forward, *sum);
    best = findGeluBackward(gemm);
  }
  if (!best.derivative.addsBias)
    takeOver(gemm, best);
}

LogicalResult FuseGemmEpiloguesPass::runOnFunction(func::FuncOp func, IRRewriter &, SegmentListener &) {
  SmallVector<GemmOp> gemms;
  func.walk([&](GemmOp gemm) {
    if (mayTake(gemm))
      gemms.push_back(gemm);
  });
  for (GemmOp gemm : gemms)
    takeOver(gemm, findBest(gemm));
  if (has("gelu_tanh_backward")) {
    gemms.clear();
    func.walk([&](GemmOp gemm) {
      if (isPlain(gemm) && !getElementTypeOrSelf(gemm.getResult().getType()).isF64())
        gemms.push_back(gemm);
    });
    // A GEMM that gets its bias meanwhile comes before.
    for (GemmOp gemm : gemms)
      takeGeluBackward(gemm);
  }
  if (!has("bias_gradient"))
    return success();
  gemms.clear();
  func.walk([&](GemmOp gemm) { gemms.push_back(gemm); });
  for (GemmOp gemm : gemms) {
    std::optional<BiasGradient> gradient = findBiasGradient(gemm);
    if (!gradient)
      continue;
    int64_t saved = 0;
    GemmOp giving = giveBiasGradient(gemm, *gradient, saved);
    emitRemark(giving.getLoc()) << "GEMM gives a bias gradient: clusters move " << saved << " bytes less";
  }
  return success();
}
