//===- Pipeline.h - The way from a captured step to a plan ------*- C++ -*-===//
//
// The one definition of the pass pipeline; spmd-compile, spmd-opt and the tests use it.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_PIPELINES_PIPELINE_H
#define SPMD_PIPELINES_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "spmd/ShardUnits/Mesh.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spmd {

/// The phases of compilation, in order. A phase is named after what its IR shows when it is done.
enum class Phase { import, units, partition, decompose, collectives, kernels, plan, artifact };

llvm::StringRef getPhaseName(Phase phase);
std::optional<Phase> findPhase(llvm::StringRef name);
/// All phases, in order.
llvm::ArrayRef<Phase> getPhases();

/// What a user may choose.
struct PipelineOptions {
  /// units::kRanksNotSaid: those of `mesh`, or 1.
  int64_t ranks = units::kRanksNotSaid;
  /// replicate:N,shard:M or shard:M, with tensor:T behind it or tensor:T alone; empty for one axis of `ranks`.
  std::string mesh;
  /// PATTERN=PLACEMENT,PATTERN=PLACEMENT: parameters on the tensor axis of the mesh.
  std::string overridePlacements;
  /// units::kModes.
  std::string mode = "fully_shard";
  /// annotations, auto, none, always, class:A,B, size:N[,...], name:REGEX or or(P;P): docs/shard-units.md.
  std::string policy = "annotations";
  /// A plan file instead of a policy.
  std::string policyFile;
  std::vector<std::string> ignoredModules, ignoredParameters;
  bool strictTied = false;
  /// global or local.
  std::string view = "global";
  std::string gradientDivideFactor;
  /// sharded, scattered or unsharded.
  std::string accumulate = "sharded";
  /// true or false, empty: as the mode says.
  std::string reshardAfterForward;
  /// param=TYPE,reduce=TYPE,buffer=TYPE,output=TYPE; what is absent is as the step was captured.
  std::string precision;
  /// Units that are gathered ahead of their use.
  int64_t prefetch = 1;
  /// auto, or basic: docs/planning.md.
  std::string schedule = "auto";
  /// Saved values, cheapest first, that backward computes again (spmd-choose-recomputed).
  int64_t recompute = 0;
  bool fuse = true;
  /// What GEMMs take over (spmd-fuse-gemm-epilogues); auto: with `fuse`, what the target's library has.
  std::string epilogues = "auto";
  /// What that is, and of which types.
  std::string targetEpilogues = "none", epilogueDtypes = "f32";
  /// Most blocks of a reduction (spmd-convert-aten-to-kernel): what the target has processors for.
  int64_t reductionBlocks = 64;
  /// Small kernels are avoided (spmd-convert-aten-to-kernel): a launch takes time on the target.
  bool fewerLaunches = false;
  /// Norms over ranks are sums of squares (spmd-sum-norms): the target's collectives have no other.
  bool sumNorms = false;
  /// Row numbers that are checked are clamped, too (spmd-convert-aten-to-kernel): the target finds bad ones late.
  bool clampIndices = false;
  /// Bytes to whose multiples rows of GEMMs' matrices are padded (spmd-pad-leading-dims).
  int64_t rowAlignment = 16;
  /// Bytes of a GEMM's workspace (spmd-convert-kernel-to-plan): what the target's library wants; 0: none.
  int64_t gemmWorkspace = 0;
  /// The most thread blocks of a collective (spmd-convert-kernel-to-plan): what its device has room for; 0: it has
  /// none.
  int64_t collectiveBlocks = 0;
  /// Whether the plan is verified as the runtime reads it; who writes an artifact reads it back there.
  bool readsPlanBack = true;
  /// A user's passes behind those of a phase, as text: "cse,my-pass{option=1}".
  std::vector<std::pair<Phase, std::string>> after;
};

/// Calls visit(name, help, value) for every option that spmd-compile and `spmd-opt --spmd-pipeline` take alike; here
/// they have their names.
template <typename Visit>
void forEachOption(PipelineOptions &options, const Visit &visit) {
  visit("ranks", "Number of ranks (default: those of the mesh, or 1)", options.ranks);
  visit("mesh",
        "Arrangement of the ranks: shard:M, or replicate:N,shard:M, where units are cut over M ranks and replicated "
        "N times. tensor:T after it adds an axis along which ranks have parts of parameters",
        options.mesh);
  visit("override-placements",
        "Parameters that are cut over the tensor axis of the mesh, such as "
        "blocks.*.mlp.fc1.weight=shard(0),blocks.*.mlp.fc2.weight=shard(1); all others are whole. shard(DIM,PARTS) "
        "cuts each of PARTS equal parts of the dim",
        options.overridePlacements);
  visit("mode",
        "fully_shard (default): each rank keeps a chunk of parameters, gradients and optimizer state; shard_grad_op: "
        "the same, and gathered parameters are kept until backward; shard_optimizer: a chunk of gradients and "
        "optimizer state; hybrid: fully_shard on a mesh of two axes; replicate: each rank keeps everything; default: "
        "fully_shard, and as many units keep gathered parameters as --memory-budget allows",
        options.mode);
  visit("view",
        "Rows of the captured batch: global (default), those of all ranks; local, those of one rank, and gradients "
        "are averaged",
        options.view);
  visit("gradient-divide-factor",
        "With --view=local, the divisor of the sum of the ranks' gradients (default: the number of ranks); 1 gives "
        "the sum",
        options.gradientDivideFactor);
  visit(
      "accumulate",
      "Gradients that a step leaves to a later step: sharded (default), reduced in each step; scattered, on a mesh "
      "of two axes, reduced along the last axis in each step, and along the first in the step that updates; "
      "unsharded, each rank keeps a summand of all gradients, and the step that updates reduces once",
      options.accumulate);
  visit("reshard-after-forward",
        "Free gathered parameters between forward and backward: true, false, or a number of ranks over which they "
        "are kept (default: by the mode; true for fully_shard)",
        options.reshardAfterForward);
  visit("precision",
        "Types of mixed precision, such as reduce=bf16 for the reduction of gradients. param, buffer, output and "
        "master are chosen when a step is captured (docs/precision.md); other values are errors",
        options.precision);
  visit("prefetch", "Number of units that are gathered ahead of their use: 0 or 1 (default)", options.prefetch);
  visit("schedule",
        "What is moved to hide communication: auto (default), or basic: nothing, the order is the captured step's",
        options.schedule);
  visit("recompute",
        "Number of saved values that backward recomputes, cheapest first (default 0; --memory-budget chooses it)",
        options.recompute);
  visit("fuse", "Fuse light ops into clusters (default true)", options.fuse);
  visit("epilogues",
        "Epilogues of GEMMs: auto (default: by the target's library), none, or some of bias, residual, relu, gelu, "
        "gelu_tanh, gelu_tanh_backward, bias_gradient",
        options.epilogues);
  visit(
      "row-alignment",
      "Alignment in bytes of the rows of GEMMs' matrices: 16 (default), another power of two up to 128, or 1 for none",
      options.rowAlignment);
}

/// What is wrong with the values of these options, as "mode=zero: expected fully_shard, replicate"; empty when nothing.
std::string findBadOption(const PipelineOptions &options);

/// Adds the passes of one phase, then those that a user has behind it, each time with the phase's verifiers. Fails,
/// with an error on `os`, when one of the user's is not known or refuses its options.
mlir::LogicalResult addPhase(mlir::OpPassManager &pm, Phase phase, const PipelineOptions &options,
                             llvm::raw_ostream &os, bool verifies = true);

/// What is wrong with the texts of a user's passes; empty when nothing. Plug-ins are loaded by then.
std::string findBadPasses(const PipelineOptions &options);

/// Adds the verifiers of a phase alone: what must hold of IR that is said to have been through it.
void addVerifiers(mlir::OpPassManager &pm, Phase phase, const PipelineOptions &options);

/// Whether a pass is one of the pipeline's verifiers.
bool isVerifier(const mlir::Pass &pass, const PipelineOptions &options);

/// Adds the verifiers of `from`, and the passes of all phases after it up to and including `to`. Without `verifies` no
/// verifier runs: for plans that are only compared.
mlir::LogicalResult buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options, Phase from, Phase to,
                                  llvm::raw_ostream &os, bool verifies = true);

/// Prints every pass of the pipeline, by phase, with the reason why it is there.
void printPipeline(const PipelineOptions &options, llvm::raw_ostream &os);

/// Registers the pipeline as `spmd-opt --spmd-pipeline="from=import to=plan ranks=4 …"`.
void registerPipelines();

} // namespace spmd

#endif // SPMD_PIPELINES_PIPELINE_H
