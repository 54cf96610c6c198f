//===- CublasLt.cpp -------------------------------------------------------===//

#include "CublasLt.h"
#include "SharedLibrary.h"
#include "spmd/Runtime/Core/Operation.h"

#include <array>
#include <mutex>

namespace spmd::runtime::cuda {

Expected<std::shared_ptr<const CublasLt>> CublasLt::open() {
  Expected<void *> library = openLibrary("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"});
  if (!library)
    return library.error();
  auto lt = std::make_shared<CublasLt>();
  auto look = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(findSymbol(*library, name));
    return function != nullptr;
  };
  size_t (*getVersion)() = nullptr;
  if (!look(getVersion, cublas::kVersion))
    return Status::badInput(std::string("cuBLASLt has no function cublasLtGetVersion; ") + kHint);
  lt->found = getVersion();
#define SPMD_LOOK(name, parameters)                                                                                    \
  if (!look(lt->name, #name))                                                                                          \
    return Status::badInput("cuBLASLt of version " + std::to_string(lt->found) + " has no function " #name "; " +      \
                            std::string(kHint));
  SPMD_CUBLASLT_FUNCTIONS(SPMD_LOOK)
#undef SPMD_LOOK
  return std::shared_ptr<const CublasLt>(std::move(lt));
}

Expected<std::shared_ptr<const CublasLt>> CublasLt::load() {
  static std::mutex mutex;
  static std::shared_ptr<const CublasLt> kept;
  std::lock_guard<std::mutex> lock(mutex);
  if (kept)
    return kept;
  Expected<std::shared_ptr<const CublasLt>> library = open();
  if (library)
    kept = *library;
  return library;
}

Status CublasLt::check(cublas::Status result, const std::string &what) const {
  if (result == cublas::kSuccess)
    return Status::success();
  return Status::failed("cuBLASLt: " + what + ": cublasStatus_t " + std::to_string(result));
}

#define SPMD_CUBLAS_TRY(library, function, ...)                                                                        \
  do {                                                                                                                 \
    if (Status tried = (library).check((library).function(__VA_ARGS__), #function); !tried.ok())                       \
      return tried;                                                                                                    \
  } while (0)

Expected<std::unique_ptr<GemmContext>> GemmContext::make(std::shared_ptr<const CublasLt> library,
                                                         std::shared_ptr<const Gpu> gpu) {
  if (Status status = gpu->use(); !status.ok())
    return status;
  std::unique_ptr<GemmContext> context(new GemmContext);
  context->lib = std::move(library);
  context->gpu = gpu;
  SPMD_CUBLAS_TRY(*context->lib, cublasLtCreate, &context->opened);
  context->cache = AlgorithmCache::open(context->lib->version(), *gpu);
  return context;
}

GemmContext::~GemmContext() {
  if (opened && gpu->use().ok())
    (void)lib->cublasLtDestroy(opened);
}

namespace {

cublas::Type typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return cublas::kF64;
  case DType::BF16:
    return cublas::kBF16;
  case DType::F16:
    return cublas::kF16;
  default:
    return cublas::kF32;
  }
}

int32_t epilogueOf(const GemmShape &gemm) {
  bool bias = gemm.bias >= 0, aux = gemm.preActivation >= 0;
  if (gemm.biasGradientOf == GemmOperand::C)
    return cublas::kEpilogueDGeluBgrad;
  if (gemm.biasGradientOf != GemmOperand::None) // the operands change places [Note: columns]
    return gemm.biasGradientOf == GemmOperand::A ? cublas::kEpilogueBgradB : cublas::kEpilogueBgradA;
  switch (gemm.activation) {
  case Activation::Relu:
    return bias ? cublas::kEpilogueReluBias : cublas::kEpilogueRelu;
  case Activation::GeluTanh:
  case Activation::Gelu:
    return aux ? (bias ? cublas::kEpilogueGeluAuxBias : cublas::kEpilogueGeluAux)
               : (bias ? cublas::kEpilogueGeluBias : cublas::kEpilogueGelu);
  case Activation::GeluTanhBackward:
    return cublas::kEpilogueDGelu;
  case Activation::None:
    break;
  }
  return bias ? cublas::kEpilogueBias : cublas::kEpilogueDefault;
}

} // namespace

// [Note: columns] The library's matrices are column-major: C^T = op(B)^T op(A)^T, so the operands change places, and
// rows are columns.
Expected<std::unique_ptr<CublasGemm>> CublasGemm::make(GemmContext &context, const Command &command,
                                                       const std::vector<Address> &addresses) {
  const CublasLt &lt = context.library();
  const GemmCommand &gemm = *command.as<GemmCommand>();
  const GemmShape &g = gemm.shape;
  cublas::Type type = typeOf(gemm.dtype);
  std::unique_ptr<CublasGemm> made(new CublasGemm(context));
  made->isDouble = gemm.dtype == DType::F64;
  SPMD_CUBLAS_TRY(lt, cublasLtMatmulDescCreate, &made->description,
                  made->isDouble ? cublas::kCompute64F : cublas::kCompute32F,
                  made->isDouble ? cublas::kF64 : cublas::kF32);
  auto set = [&](cublas::Attribute attribute, const auto &value) {
    return lt.check(lt.cublasLtMatmulDescSetAttribute(made->description, attribute, &value, sizeof value),
                    "cublasLtMatmulDescSetAttribute " + std::to_string(attribute));
  };
  auto at = [&](int32_t ref) { return addresses[static_cast<size_t>(ref)]; };
  int32_t transA = g.transB, transB = g.transA, epilogue = epilogueOf(g);
  Status status = set(cublas::kTransA, transA);
  if (status.ok())
    status = set(cublas::kTransB, transB);
  if (status.ok() && epilogue != cublas::kEpilogueDefault)
    status = set(cublas::kEpilogue, epilogue);
  if (status.ok() && g.bias >= 0)
    status = set(cublas::kBiasPointer, at(g.bias));
  if (status.ok() && g.biasGradient >= 0) {
    made->vector = at(g.biasGradient);
    status = set(cublas::kBiasPointer, made->vector);
    if (status.ok())
      status = set(cublas::kBiasDataType, static_cast<int32_t>(type));
  }
  if (status.ok() && g.preActivation >= 0) {
    status = set(cublas::kEpilogueAuxPointer, at(g.preActivation));
    if (status.ok())
      status = set(cublas::kEpilogueAuxLd, g.ldc);
    if (status.ok() && g.batch > 1)
      status = set(cublas::kEpilogueAuxBatchStride, g.strideC);
    if (status.ok() && g.readsPreActivation()) {
      made->auxiliary = at(g.preActivation);
      status = set(cublas::kEpilogueAuxDataType, static_cast<int32_t>(type));
    }
  }
  if (!status.ok())
    return status;
  auto makeLayout = [&](cublas::Layout &layout, int64_t rows, int64_t columns, int64_t ld, int64_t stride) {
    Status made = lt.check(lt.cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                                         static_cast<uint64_t>(columns), ld),
                           "cublasLtMatrixLayoutCreate");
    if (!made.ok() || g.batch == 1)
      return made;
    auto batch = static_cast<int32_t>(g.batch);
    made = lt.check(lt.cublasLtMatrixLayoutSetAttribute(layout, cublas::kBatchCount, &batch, sizeof batch),
                    "cublasLtMatrixLayoutSetAttribute");
    if (made.ok())
      made = lt.check(lt.cublasLtMatrixLayoutSetAttribute(layout, cublas::kBatchStride, &stride, sizeof stride),
                      "cublasLtMatrixLayoutSetAttribute");
    return made;
  };
  status = makeLayout(made->a, g.transB ? g.k : g.n, g.transB ? g.n : g.k, g.ldb, g.strideB);
  if (status.ok())
    status = makeLayout(made->b, g.transA ? g.m : g.k, g.transA ? g.k : g.m, g.lda, g.strideA);
  if (status.ok())
    status = makeLayout(made->c, g.n, g.m, g.ldc, g.strideC);
  if (!status.ok())
    return status;
  made->left = at(1);
  made->right = at(0);
  made->out = at(2);
  made->adds = g.beta != 0 || g.residual >= 0;
  made->added = g.residual >= 0 ? at(g.residual) : made->out;

  uint64_t most = 0;
  if (g.workspace >= 0) {
    made->workspace = at(g.workspace);
    most = static_cast<uint64_t>(command.refs[static_cast<size_t>(g.workspace)].bytes);
  }
  if (Status status = made->choose(context.algorithms(), gemm, most); !status.ok())
    return status;
  return made;
}

/// The largest power of two that an operand's matrices begin at multiples of, up to the 256 bytes that cuBLASLt takes
/// for granted where it is told nothing; an algorithm for more would read past its vectors or fail.
static uint32_t alignmentOf(Address address, int64_t strideBytes) {
  uint64_t bits = address | static_cast<uint64_t>(strideBytes) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

/// All that an algorithm is chosen by, apart from library and device. `vector`, `auxiliary`: where a bias gradient goes
/// and what a gradient is taken at lies, whose alignment the library sees.
static std::string problemOf(const GemmCommand &gemm, bool adds, const std::array<uint32_t, 4> &alignments,
                             Address vector, Address auxiliary, uint64_t mostBytes) {
  const GemmShape &g = gemm.shape;
  std::string text = nameOf(gemm.dtype);
  for (int64_t number : {g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.batch, g.strideA, g.strideB, g.strideC})
    text += " " + std::to_string(number);
  text += std::string(" ") + (g.transA ? "T" : "N") + (g.transB ? "T" : "N") + " epilogue " +
          std::to_string(epilogueOf(g)) + (adds ? " adds" : "");
  text += " aligned";
  for (uint32_t alignment : alignments)
    text += " " + std::to_string(alignment);
  if (gemm.shape.biasGradient >= 0)
    text += " vector " + std::to_string(alignmentOf(vector, 0));
  if (g.readsPreActivation())
    text += " auxiliary " + std::to_string(alignmentOf(auxiliary, 0));
  return text + " in " + std::to_string(mostBytes);
}

/// What a user may do about an epilogue that the library does not have.
static std::string hintOf(const GemmShape &gemm) {
  if (!gemm.readsPreActivation() && gemm.biasGradient < 0)
    return "";
  return std::string("; spmd-compile --epilogues=LIST without ") +
         (gemm.readsPreActivation() ? nameOf(gemm.activation) : "bias_gradient") + " compiles it without";
}

Status CublasGemm::choose(AlgorithmCache &cache, const GemmCommand &gemm, uint64_t mostBytes) {
  const CublasLt &lt = context.library();
  const GemmShape &g = gemm.shape;
  auto aligned = [&](Address address, int64_t stride) {
    return alignmentOf(address, g.batch == 1 ? 0 : stride * sizeOf(gemm.dtype));
  };
  std::array<uint32_t, 4> alignments = {aligned(left, g.strideB), aligned(right, g.strideA), aligned(added, g.strideC),
                                        aligned(out, g.strideC)};
  std::string problem = problemOf(gemm, adds, alignments, vector, auxiliary, mostBytes);
  cublas::HeuristicResult best = {};
  if (std::optional<cublas::Algorithm> known = cache.find(problem);
      known &&
      lt.cublasLtMatmulAlgoCheck(context.handle(), description, a, b, c, c, &*known, &best) == cublas::kSuccess &&
      best.workspaceBytes <= mostBytes) {
    algorithm = *known;
    workspaceBytes = best.workspaceBytes;
    return Status::success();
  }
  cublas::Preference preference = nullptr;
  SPMD_CUBLAS_TRY(lt, cublasLtMatmulPreferenceCreate, &preference);
  Status status = lt.check(
      lt.cublasLtMatmulPreferenceSetAttribute(preference, cublas::kMaxWorkspaceBytes, &mostBytes, sizeof mostBytes),
      "cublasLtMatmulPreferenceSetAttribute");
  constexpr cublas::PreferenceAttribute kAlignments[] = {cublas::kMinAlignmentA, cublas::kMinAlignmentB,
                                                         cublas::kMinAlignmentC, cublas::kMinAlignmentD};
  for (size_t i = 0; i < alignments.size() && status.ok(); ++i)
    status = lt.check(
        lt.cublasLtMatmulPreferenceSetAttribute(preference, kAlignments[i], &alignments[i], sizeof alignments[i]),
        "cublasLtMatmulPreferenceSetAttribute");
  if (status.ok()) {
    int found = 0;
    cublas::Status asked =
        lt.cublasLtMatmulAlgoGetHeuristic(context.handle(), description, a, b, c, c, preference, 1, &best, &found);
    if (asked == cublas::kNotSupported || (asked == cublas::kSuccess && found == 0))
      status = Status::failed("cuBLASLt of version " + std::to_string(lt.version()) + " has no algorithm for " +
                              toText(GemmOperation(g, gemm.dtype)) + hintOf(g));
    else
      status = lt.check(asked, "cublasLtMatmulAlgoGetHeuristic");
  }
  (void)lt.cublasLtMatmulPreferenceDestroy(preference);
  if (!status.ok())
    return status;
  algorithm = best.algorithm;
  workspaceBytes = best.workspaceBytes;
  cache.add(problem, algorithm);
  return Status::success();
}

CublasGemm::~CublasGemm() {
  const CublasLt &lt = context.library();
  for (cublas::Layout layout : {a, b, c})
    if (layout)
      (void)lt.cublasLtMatrixLayoutDestroy(layout);
  if (description)
    (void)lt.cublasLtMatmulDescDestroy(description);
}

Status CublasGemm::issue(StreamHandle stream) const {
  const CublasLt &lt = context.library();
  float one = 1, beta = adds ? 1 : 0;
  double wideOne = 1, wideBeta = beta;
  auto pointer = [](Address address) { return reinterpret_cast<void *>(address); };
  return lt.check(
      lt.cublasLtMatmul(context.handle(), description, isDouble ? static_cast<const void *>(&wideOne) : &one,
                        pointer(left), a, pointer(right), b, isDouble ? static_cast<const void *>(&wideBeta) : &beta,
                        pointer(added), c, pointer(out), c, &algorithm, pointer(workspace), workspaceBytes, stream),
      "cublasLtMatmul");
}

} // namespace spmd::runtime::cuda
