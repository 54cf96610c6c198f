//===- Pipeline.cpp - The way from a captured step to a plan --------------===//

#include "spmd/Pipelines/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "spmd/Conversion/AtenToKernel/Epilogues.h"
#include "spmd/Conversion/AtenToKernel/Passes.h"
#include "spmd/Conversion/AtenToKernel/RowAlignment.h"
#include "spmd/Conversion/KernelToPlan/Passes.h"
#include "spmd/Import/Passes.h"
#include "spmd/ShardUnits/Placement.h"
#include "spmd/ShardUnits/UnitOptions.h"
#include "spmd/Transforms/BooleanOption.h"
#include "spmd/Transforms/Collectives/Passes.h"
#include "spmd/Transforms/Movement/Passes.h"
#include "spmd/Transforms/Optimizer/Passes.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/Recompute/Passes.h"
#include "spmd/Transforms/Units/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace spmd;

namespace {

/// Whether the result depends on a pass: without a required one the next phase cannot read the IR, an optimization may
/// be left out, a report is only for people and for verifiers, and a verifier changes nothing.
enum class Kind { required, optimization, report, verifier };

struct PassEntry {
  Phase phase;
  Kind kind;
  /// The pass, with what these options say to it.
  std::unique_ptr<Pass> (*create)(const PipelineOptions &);
  StringRef why;
};

/// A pass without options.
template <std::unique_ptr<Pass> (*create)()>
std::unique_ptr<Pass> make(const PipelineOptions &) {
  return create();
}

template <Phase phase>
std::unique_ptr<Pass> verifyStep(const PipelineOptions &) {
  return createVerifyStep({getPhaseName(phase).str()});
}

/// Of options that findBadOption has accepted.
int64_t getRanks(const PipelineOptions &options) {
  runtime::Expected<units::Mesh> mesh = units::chooseMesh(options.ranks, options.mesh);
  return mesh ? mesh->ranks() : options.ranks;
}

std::unique_ptr<Pass> assignShardUnits(const PipelineOptions &options) {
  AssignShardUnitsOptions pass;
  pass.policy = options.policy;
  pass.policyFile = options.policyFile;
  pass.ignoredModules.assign(options.ignoredModules.begin(), options.ignoredModules.end());
  pass.ignoredParameters.assign(options.ignoredParameters.begin(), options.ignoredParameters.end());
  pass.strictTied = options.strictTied;
  pass.precision = options.precision;
  pass.mesh = options.mesh;
  pass.reshardAfterForward = options.reshardAfterForward;
  pass.ranks = getRanks(options);
  pass.mode = options.mode;
  return createAssignShardUnits(std::move(pass));
}

std::unique_ptr<Pass> partitionTensor(const PipelineOptions &options) {
  PartitionTensorOptions pass;
  // Ranks without a mesh are in one row, without a tensor axis: placements are an error there, too.
  pass.mesh = options.mesh.empty() ? "shard:" + std::to_string(getRanks(options)) : options.mesh;
  pass.overridePlacements = options.overridePlacements;
  pass.policyFile = options.policyFile;
  pass.view = options.view;
  return createPartitionTensor(std::move(pass));
}

std::unique_ptr<Pass> guardUpdates(const PipelineOptions &options) {
  GuardUpdatesPassOptions pass;
  pass.enable = options.clampIndices;
  pass.view = options.view;
  pass.ranks = getRanks(options);
  return createGuardUpdatesPass(std::move(pass));
}

std::unique_ptr<Pass> partition(const PipelineOptions &options) {
  PartitionOptions pass;
  pass.view = options.view;
  pass.accumulate = options.accumulate;
  if (StringRef factor = options.gradientDivideFactor; !factor.empty())
    (void)factor.getAsDouble(pass.gradientDivideFactor); // findBadOption has read it
  return createPartition(std::move(pass));
}

std::unique_ptr<Pass> chooseRecomputed(const PipelineOptions &options) {
  ChooseRecomputedOptions pass;
  pass.count = options.recompute;
  return createChooseRecomputed(pass);
}

std::unique_ptr<Pass> advanceLastReduction(const PipelineOptions &options) {
  AdvanceLastReductionOptions pass;
  pass.enable = options.schedule == "auto";
  return createAdvanceLastReduction(pass);
}

std::unique_ptr<Pass> startCollectives(const PipelineOptions &options) {
  StartCollectivesOptions pass;
  pass.prefetch = options.prefetch;
  return createStartCollectives(pass);
}

std::unique_ptr<Pass> sumNorms(const PipelineOptions &options) {
  SumNormsOptions pass;
  pass.enable = options.sumNorms;
  return createSumNorms(pass);
}

std::unique_ptr<Pass> convertAtenToKernel(const PipelineOptions &options) {
  ConvertAtenToKernelPassOptions pass;
  pass.fuse = options.fuse;
  pass.reductionBlocks = options.reductionBlocks;
  pass.fewerLaunches = options.fewerLaunches;
  pass.clampIndices = options.clampIndices;
  return createConvertAtenToKernelPass(pass);
}

std::unique_ptr<Pass> fuseGemmEpilogues(const PipelineOptions &options) {
  FuseGemmEpiloguesPassOptions pass;
  bool isAuto = options.epilogues == "auto";
  pass.epilogues = isAuto ? options.fuse ? options.targetEpilogues : "none" : options.epilogues;
  pass.dtypes = options.epilogueDtypes;
  return createFuseGemmEpiloguesPass(std::move(pass));
}

std::unique_ptr<Pass> padLeadingDims(const PipelineOptions &options) {
  PadLeadingDimsPassOptions pass;
  pass.alignment = options.rowAlignment;
  return createPadLeadingDimsPass(pass);
}

std::unique_ptr<Pass> convertKernelToPlan(const PipelineOptions &options) {
  ConvertKernelToPlanPassOptions pass;
  pass.gemmWorkspace = options.gemmWorkspace;
  pass.collectiveBlocks = options.collectiveBlocks;
  return createConvertKernelToPlanPass(pass);
}

std::unique_ptr<Pass> verifyPlan(const PipelineOptions &options) {
  return createVerifyPlanPass({options.readsPlanBack});
}

/// The pipeline, in order. The first phase starts with the importer, which is no pass.
const PassEntry kPipeline[] = {
    {Phase::import, Kind::required, make<createDynamicBatch>,
     "if the batch is smaller than the captured one, padding rows must not contribute"},
    {Phase::import, Kind::required, make<createFoldEmptyTensorsPass>,
     "kernels do not support tensors without elements; their effect is known at compile time"},
    {Phase::import, Kind::required, make<createWidenStepCountersPass>,
     "eager computes bias corrections in Python's doubles; in f32 their differences lose most digits"},
    {Phase::import, Kind::required, make<createInferIndexBoundsPass>,
     "the runtime checks token ids of a batch before a step, so the step does not check them again"},
    {Phase::import, Kind::optimization, make<createUnsortRowsPass>,
     "sorting tokens by expert would gather all of them on every rank; each result depends only on its token"},
    {Phase::import, Kind::required, guardUpdates,
     "a GPU cannot end a step at a bad row number, but can keep the old state"},
    {Phase::import, Kind::verifier, verifyStep<Phase::import>,
     "every argument and result has a role, every op a segment"},

    {Phase::units, Kind::required, make<createMergeOptimizerLists>,
     "one optimizer op per flat buffer needs one list over all parameters, not one per param group"},
    {Phase::units, Kind::required, partitionTensor,
     "the layout of a unit follows from the parameters of a rank; on a tensor axis these are parts"},
    {Phase::units, Kind::required, assignShardUnits,
     "later passes refer to units; as symbols they can be read and edited before"},
    {Phase::units, Kind::verifier, verifyStep<Phase::units>, "every parameter lies in exactly one unit"},

    {Phase::partition, Kind::required, make<createSplitMeans>,
     "the mean of the ranks' means is not the mean; as a sum and a division by the global count it partitions exactly"},
    {Phase::partition, Kind::required, partition,
     "turns the global step into the program of one rank, with a collective at every use"},
    {Phase::partition, Kind::report, make<createRecordValues>,
     "passes that move communication must keep gradients and results; verifiers compare"},
    {Phase::partition, Kind::optimization, make<createDedupCollectives>,
     "one gather per unit and direction instead of one per use"},
    {Phase::partition, Kind::optimization, make<createCastBeforeGather>,
     "a unit whose parameters are all cast is gathered in the narrow type, without a wide buffer"},
    {Phase::partition, Kind::optimization, make<createReshardToGroups>,
     "a unit that keeps its parameters over a group of ranks is gathered again only within the group"},
    {Phase::partition, Kind::report, make<createListReplicatedValues>,
     "lists values that more ranks do not make smaller; only these types show it"},
    {Phase::partition, Kind::verifier, make<createVerifyPartition>,
     "no partial value reaches an op that is not linear in it, every gradient is reduced once"},

    {Phase::decompose, Kind::required, make<createDropAnchors>,
     "anchors are only for passes after the partition"},
    {Phase::decompose, Kind::required, make<createDecomposeOptimizer>,
     "optimizers become arithmetic on flat chunks, which fuses like any other"},
    {Phase::decompose, Kind::report, make<createRecordValues>, "the optimizer's arithmetic is new"},
    {Phase::decompose, Kind::verifier, verifyStep<Phase::decompose>, "no list op is left"},
    {Phase::decompose, Kind::verifier, make<createVerifyPartition>, "arithmetic on chunks must be legal on each rank"},

    {Phase::collectives, Kind::optimization, chooseRecomputed,
     "saved values that are cheap to recompute need no memory between forward and backward"},
    {Phase::collectives, Kind::optimization, make<createRecomputeValues>,
     "the copies read gathered parameters, so they must exist before collectives are started"},
    {Phase::collectives, Kind::optimization, make<createBucketCollectives>,
     "scalar all-reduces that are ready together travel in one message"},
    {Phase::collectives, Kind::optimization, advanceLastReduction,
     "the last reduction is hidden by the products that it does not need"},
    {Phase::collectives, Kind::required, startCollectives,
     "start and wait overlap communication with computation; from here on block order is the schedule"},
    {Phase::collectives, Kind::verifier, make<createVerifySchedule>,
     "every start has one wait, and no gathered buffer is read after its release"},

    {Phase::kernels, Kind::required, make<createStripSharding>,
     "sharding states are no longer needed: the remaining passes see local computation"},
    {Phase::kernels, Kind::required, sumNorms, "NCCL cannot reduce norms; square and root fuse with their neighbours"},
    {Phase::kernels, Kind::optimization, make<createShareKeyValueHeads>,
     "repeated key and value heads are read in place, and attention sums their gradients"},
    {Phase::kernels, Kind::optimization, make<createJoinSliceGradients>,
     "gradients of adjacent slices are one tensor, not a sum of tensors padded with zeros"},
    {Phase::kernels, Kind::required, convertAtenToKernel,
     "light ops become clusters, heavy ops kernels of their own, views access maps"},
    {Phase::kernels, Kind::optimization, fuseGemmEpilogues,
     "a cluster does not read again what the GEMM's library already adds"},
    {Phase::kernels, Kind::optimization, padLeadingDims,
     "a library's fast GEMMs read rows that begin at multiples of 16 bytes"},
    {Phase::kernels, Kind::required, make<createFlattenCollectivesPass>,
     "a communicator moves contiguous chunks; other rows of a tensor are copied"},
    {Phase::kernels, Kind::required, make<createOutlineKernelsPass>,
     "code is generated once per kernel, and equal blocks share it"},
    {Phase::kernels, Kind::verifier, verifyStep<Phase::kernels>, "no aten op and no sharding state is left"},
    {Phase::kernels, Kind::verifier, make<createVerifySchedule>, "kernels must keep the schedule"},

    {Phase::plan, Kind::required, convertKernelToPlan, "values get bytes of the arena, ops become commands on streams"},
    {Phase::plan, Kind::optimization, make<createDropWaitsPass>,
     "removes waits that order no memory access; the remaining ones are minimal"},
    {Phase::plan, Kind::required, make<createMarkIterationPass>,
     "a plan with a few iterations of a loop marks the one that stands for the omitted iterations"},
    {Phase::plan, Kind::verifier, verifyPlan, "the loader's own certificate, before there is an artifact"},
};

StringRef getKindName(Kind kind) {
  switch (kind) {
  case Kind::required:
    return "required";
  case Kind::optimization:
    return "optimization";
  case Kind::report:
    return "report";
  case Kind::verifier:
    return "verifier";
  }
  llvm_unreachable("unknown kind");
}

constexpr Phase kPhases[] = {Phase::import,      Phase::units,   Phase::partition, Phase::decompose,
                             Phase::collectives, Phase::kernels, Phase::plan,      Phase::artifact};

} // namespace

ArrayRef<Phase> spmd::getPhases() { return kPhases; }

StringRef spmd::getPhaseName(Phase phase) {
  static constexpr StringLiteral names[] = {"import",      "units",   "partition", "decompose",
                                            "collectives", "kernels", "plan",      "artifact"};
  return names[static_cast<unsigned>(phase)];
}

std::optional<Phase> spmd::findPhase(StringRef name) {
  for (Phase phase : kPhases)
    if (getPhaseName(phase) == name)
      return phase;
  return std::nullopt;
}

std::string spmd::findBadOption(const PipelineOptions &options) {
  auto isOneOf = [](StringRef value, ArrayRef<StringRef> allowed) { return llvm::is_contained(allowed, value); };
  if (options.ranks < 1 && options.ranks != units::kRanksNotSaid)
    return "ranks=" + std::to_string(options.ranks) + ": expected at least 1";
  if (runtime::Expected<units::Mesh> mesh = units::chooseMesh(options.ranks, options.mesh); !mesh)
    return "mesh=" + options.mesh + ": " + mesh.error().message;
  if (auto placements = units::parsePlacements(options.overridePlacements); !placements)
    return "override-placements=" + options.overridePlacements + ": " + placements.error().message;
  if (!units::parseMode(options.mode))
    return "mode=" + options.mode + ": expected " + units::kModes;
  units::UnitOptions said{units::parseMode(options.mode), {}, {}, {}, {}};
  if (!options.reshardAfterForward.empty()) {
    runtime::Expected<int64_t> reshard = units::parseReshard(options.reshardAfterForward);
    if (!reshard)
      return "reshard-after-forward=" + options.reshardAfterForward + ": " + reshard.error().message;
    said.reshardAfterForward = *reshard;
  }
  if (runtime::Status status = units::completeMode(said, ""); !status.ok())
    return "reshard-after-forward=" + options.reshardAfterForward + ": " + status.message;
  if (!isOneOf(options.view, {"global", "local"}))
    return "view=" + options.view + ": expected global, local";
  if (!isOneOf(options.accumulate, {"sharded", "scattered", "unsharded"}))
    return "accumulate=" + options.accumulate + ": expected sharded, scattered, unsharded";
  if (StringRef factor = options.gradientDivideFactor; !factor.empty()) {
    double value = 0;
    if (factor.getAsDouble(value) || !std::isfinite(value) || value <= 0)
      return "gradient-divide-factor=" + factor.str() + ": expected a number above 0";
    if (options.view != "local")
      return "gradient-divide-factor=" + factor.str() +
             ": is for view=local; with view=global gradients are those of the loss, on any number of ranks";
  }
  if (runtime::Expected<units::Precision> precision = units::parsePrecision(options.precision); !precision)
    return "precision=" + options.precision + ": " + precision.error().message;
  if (options.epilogues != "auto")
    if (std::string bad = findBadEpilogue(options.epilogues); !bad.empty())
      return "epilogues=" + options.epilogues + ": " + bad + ", or auto";
  if (options.recompute < 0)
    return "recompute=" + std::to_string(options.recompute) + ": expected at least 0";
  if (!isOneOf(options.schedule, {"auto", "basic"}))
    return "schedule=" + options.schedule + ": expected auto, basic";
  if (options.prefetch < 0 || options.prefetch > 1)
    return "prefetch=" + std::to_string(options.prefetch) + ": expected 0, 1";
  if (std::string bad = findBadRowAlignment(options.rowAlignment); !bad.empty())
    return "row-alignment=" + std::to_string(options.rowAlignment) + ": " + bad;
  return "";
}

/// Adds the passes of `phase` that are of these kinds.
static void addPasses(OpPassManager &pm, Phase phase, ArrayRef<Kind> kinds, const PipelineOptions &options) {
  for (const PassEntry &entry : kPipeline)
    if (entry.phase == phase && llvm::is_contained(kinds, entry.kind))
      pm.addPass(entry.create(options));
}

LogicalResult spmd::addPhase(OpPassManager &pm, Phase phase, const PipelineOptions &options, raw_ostream &os,
                             bool verifies) {
  addPasses(pm, phase, {Kind::required, Kind::optimization, Kind::report}, options);
  if (verifies)
    addVerifiers(pm, phase, options);
  for (const auto &[where, passes] : options.after) {
    if (where != phase)
      continue;
    // What the program computes from here on is what later phases are held to.
    if (failed(parsePassPipeline(passes, pm, os)))
      return failure();
    addPasses(pm, phase, Kind::report, options);
    if (verifies)
      addVerifiers(pm, phase, options);
  }
  return success();
}

std::string spmd::findBadPasses(const PipelineOptions &options) {
  for (const auto &[phase, passes] : options.after) {
    std::string problem;
    llvm::raw_string_ostream os(problem);
    OpPassManager pm(ModuleOp::getOperationName());
    if (failed(parsePassPipeline(passes, pm, os)))
      return "pipeline-after=" + getPhaseName(phase).str() + ":" + passes + ": " + StringRef(problem).rtrim().str();
    if (passes.empty())
      return "pipeline-after=" + getPhaseName(phase).str() + ":: expected passes behind the phase";
  }
  return "";
}

void spmd::addVerifiers(OpPassManager &pm, Phase phase, const PipelineOptions &options) {
  addPasses(pm, phase, Kind::verifier, options);
}

bool spmd::isVerifier(const Pass &pass, const PipelineOptions &options) {
  return llvm::any_of(kPipeline, [&](const PassEntry &entry) {
    return entry.kind == Kind::verifier && entry.create(options)->getTypeID() == pass.getTypeID();
  });
}

LogicalResult spmd::buildPipeline(OpPassManager &pm, const PipelineOptions &options, Phase from, Phase to,
                                  raw_ostream &os, bool verifies) {
  if (verifies)
    addVerifiers(pm, from, options);
  for (Phase phase : kPhases)
    if (from < phase && phase <= to && failed(addPhase(pm, phase, options, os, verifies)))
      return failure();
  return success();
}

void spmd::printPipeline(const PipelineOptions &options, raw_ostream &os) {
  std::optional<Phase> current;
  for (const PassEntry &entry : kPipeline) {
    if (current != entry.phase)
      os << getPhaseName(entry.phase) << '\n';
    current = entry.phase;
    entry.create(options)->printAsTextualPipeline(os << "  ");
    os << " (" << getKindName(entry.kind) << ")\n    " << entry.why << '\n';
  }
}

//===----------------------------------------------------------------------===//
// For spmd-opt
//===----------------------------------------------------------------------===//

namespace {
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> from{*this, "from", llvm::cl::desc("phase that the input has been through"),
                           llvm::cl::init("import")};
  Option<std::string> to{*this, "to", llvm::cl::desc("last phase to run"), llvm::cl::init("plan")};
  Option<std::string> policy{*this, "policy", llvm::cl::desc("which modules are shard units"), llvm::cl::init("annotations")};

  TextOptions() {
    forEachOption(values, [&](StringRef name, StringRef help, auto &value) {
      using Value = std::decay_t<decltype(value)>;
      using T = std::conditional_t<std::is_same_v<Value, bool>, BooleanOption, Value>;
      auto option = std::make_shared<Option<T>>(*this, name, llvm::cl::desc(help), llvm::cl::init(value));
      takers.push_back([option, &value] { value = option->getValue(); });
    });
  }

  const PipelineOptions &take() {
    for (auto &taker : takers)
      taker();
    values.policy = policy;
    return values;
  }

private:
  PipelineOptions values;
  std::vector<std::function<void()>> takers;
};
} // namespace

/// The phase of this name; an error lists the names there are.
static FailureOr<Phase> parsePhase(StringRef option, StringRef name, function_ref<LogicalResult(const Twine &)> error) {
  if (std::optional<Phase> phase = findPhase(name))
    return *phase;
  std::string message;
  llvm::raw_string_ostream os(message);
  os << "spmd-pipeline: " << option << "=" << name << ": expected ";
  llvm::interleaveComma(kPhases, os, [&](Phase phase) { os << getPhaseName(phase); });
  (void)error(message);
  return failure();
}

void spmd::registerPipelines() {
  // PassPipelineRegistration cannot refuse options.
  registerPassPipeline(
      "spmd-pipeline", "the phases of spmd-compile after `from`, up to `to`",
      [](OpPassManager &pm, StringRef given, function_ref<LogicalResult(const Twine &)> error) -> LogicalResult {
        TextOptions text;
        if (failed(text.parseFromString(given)))
          return failure();
        const PipelineOptions &options = text.take();
        if (std::string bad = findBadOption(options); !bad.empty())
          return error("spmd-pipeline: " + bad);
        FailureOr<Phase> from = parsePhase("from", text.from, error), to = parsePhase("to", text.to, error);
        if (failed(from) || failed(to))
          return failure();
        return buildPipeline(pm, options, *from, *to, llvm::errs());
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> show) { show(TextOptions()); });
}
