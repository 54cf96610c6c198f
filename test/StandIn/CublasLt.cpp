//===- CublasLt.cpp - A stand-in for libcublasLt.so.13 --------------------===//
//
// Products by the runtime's own code for CPUs, so they have the bits of an
// emulated artifact. What that code does not have (other 16-bit epilogues, activations)
// is computed in f32 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "StandIn.h"
#include "lib/Runtime/Cuda/CublasLtApi.h"
#include "spmd/Runtime/Host/Gemm.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

using namespace spmd::runtime;
using namespace spmd::runtime::cublas;

namespace spmd::runtime::cublas {
struct cublasLtContext {};
struct cublasLtMatmulDescOpaque {
  int compute = 0, scale = 0;
  int32_t transA = 0, transB = 0, epilogue = kEpilogueDefault, biasType = -1, auxType = -1;
  void *bias = nullptr, *aux = nullptr;
  int64_t auxLd = 0, auxStride = 0;
};
struct cublasLtMatrixLayoutOpaque {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct cublasLtMatmulPreferenceOpaque {
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256}; ///< of A, B, C and D: what the library takes for granted
};
} // namespace spmd::runtime::cublas

namespace {

struct Task {
  GemmCommand product;
  uint64_t a, b, c, added, bias, aux, biasGradient;
  int epilogue;
  int64_t auxLd, auxStride;
  uint64_t workspace, workspaceBytes;
};

DType dtypeOf(int type) {
  return type == kF64 ? DType::F64 : type == kBF16 ? DType::BF16 : type == kF16 ? DType::F16 : DType::F32;
}

bool hasBias(int epilogue) { return epilogue & kEpilogueBias; }
bool hasAux(int epilogue) { return epilogue & 128; }
/// Whether the auxiliary matrix is read, not written.
bool isDGelu(int epilogue) { return epilogue == kEpilogueDGelu || epilogue == kEpilogueDGeluBgrad; }
bool isGelu(int epilogue) { return epilogue & kEpilogueGelu; }
bool isRelu(int epilogue) { return epilogue & kEpilogueRelu; }

/// Which matrix of the row-major product is summed: operands are those of the library in the other order.
GemmOperand biasGradientOf(int epilogue) {
  return epilogue == kEpilogueBgradB       ? GemmOperand::A
         : epilogue == kEpilogueBgradA     ? GemmOperand::B
         : epilogue == kEpilogueDGeluBgrad ? GemmOperand::C
                                           : GemmOperand::None;
}

/// The greatest power of two, up to 16, that something begins at a multiple of.
uint64_t alignmentOf(const void *at) {
  uint64_t bits = reinterpret_cast<uint64_t>(at) | 16;
  return bits & (~bits + 1);
}

/// The alignment of the vector of a bias gradient; 1 without one.
uint64_t vectorAlignment(const cublasLtMatmulDescOpaque &description) {
  return biasGradientOf(description.epilogue) == GemmOperand::None ? 1 : alignmentOf(description.bias);
}

/// The alignment of the matrix that a gradient is taken at; 1 without one.
uint64_t auxiliaryAlignment(const cublasLtMatmulDescOpaque &description) {
  return isDGelu(description.epilogue) ? alignmentOf(description.aux) : 1;
}

/// By tanh, as the library's.
double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

template <typename Visit>
void forEach(const GemmShape &g, const Visit &visit) {
  for (int64_t i = 0; i < g.batch; ++i)
    for (int64_t row = 0; row < g.m; ++row)
      for (int64_t column = 0; column < g.n; ++column)
        visit(i, row, column);
}

/// In f32, element by element: for what the runtime's products do not have.
void runSlowly(const Task &task, void *a, void *b, void *c, void *added, void *bias, void *aux) {
  const GemmShape &g = task.product.shape;
  DType dtype = task.product.dtype;
  forEach(g, [&](int64_t i, int64_t row, int64_t column) {
    float sum = 0;
    for (int64_t k = 0; k < g.k; ++k) {
      double x = loadAsDouble(a, dtype, i * g.strideA + (g.transA ? k * g.lda + row : row * g.lda + k));
      double y = loadAsDouble(b, dtype, i * g.strideB + (g.transB ? column * g.ldb + k : k * g.ldb + column));
      sum += static_cast<float>(x) * static_cast<float>(y);
    }
    int64_t at = i * g.strideC + row * g.ldc + column;
    double value = sum;
    if (bias)
      value += loadAsDouble(bias, dtype, column);
    if (added)
      value += loadAsDouble(added, dtype, at);
    if (aux)
      storeFromDouble(aux, dtype, i * task.auxStride + row * task.auxLd + column, value);
    if (isGelu(task.epilogue))
      value = gelu(value);
    else if (isRelu(task.epilogue))
      value = value > 0 ? value : value != value ? value : 0;
    storeFromDouble(c, dtype, at, value);
  });
}

/// What an allocation of CUDA's is aligned to.
constexpr uint64_t kWorkspaceAlignment = 256;

/// Leaves nothing of what was in the first and the last bytes of the workspace: those that neighbours would have.
void scribble(const Task &task) {
  uint64_t bytes = std::min<uint64_t>(task.workspaceBytes, 1 << 16);
  for (uint64_t at : {task.workspace, task.workspace + task.workspaceBytes - bytes})
    if (bytes)
      std::memset(standInReach(at), 0xff, bytes);
}

/// Products share what the runtime's code keeps.
std::mutex mutex;
void prepare(DType dtype) {
  static thread_local bool isReady[16];
  if (!std::exchange(isReady[static_cast<int>(dtype)], true))
    prepareGemmThread(dtype);
}

/// The auxiliary matrices, laid out as the results are.
std::vector<char> lieAsResult(const Task &task, const void *aux) {
  const GemmShape &g = task.product.shape;
  int64_t size = sizeOf(task.product.dtype), last = (g.batch - 1) * g.strideC + (g.m - 1) * g.ldc + g.n;
  std::vector<char> laid(static_cast<size_t>(last * size));
  for (int64_t i = 0; i < g.batch; ++i)
    for (int64_t row = 0; row < g.m; ++row)
      std::memcpy(laid.data() + (i * g.strideC + row * g.ldc) * size,
                  static_cast<const char *>(aux) + (i * task.auxStride + row * task.auxLd) * size,
                  static_cast<size_t>(g.n * size));
  return laid;
}

int run(void *context, uint64_t) {
  const Task &task = *static_cast<Task *>(context);
  scribble(task);
  auto reach = [](uint64_t address) { return address ? standInReach(address) : nullptr; };
  void *a = reach(task.a), *b = reach(task.b), *c = reach(task.c), *added = reach(task.added), *bias = reach(task.bias),
       *aux = reach(task.aux);
  const GemmShape &g = task.product.shape;
  static WorkerPool pool(1, 0, "");
  auto sum = [&] {
    if (task.biasGradient)
      runBiasGradient(task.product, a, b, c, reach(task.biasGradient));
  };
  if (isDGelu(task.epilogue)) {
    std::lock_guard<std::mutex> lock(mutex);
    prepare(task.product.dtype);
    runGemmGeluBackward(task.product, a, b, lieAsResult(task, aux).data(), c, pool);
    sum();
    return 1;
  }
  sum();
  bool isPlain = !bias && !aux && !isGelu(task.epilogue) && !isRelu(task.epilogue) && (!added || added == c);
  bool adds = task.product.dtype == DType::F32 && !aux && !isGelu(task.epilogue) && !isRelu(task.epilogue);
  if (!isPlain && !adds && task.product.dtype != DType::F32) {
    runSlowly(task, a, b, c, added, bias, aux);
    return 1;
  }
  std::lock_guard<std::mutex> lock(mutex);
  prepare(task.product.dtype);
  spmd::runtime::Epilogue epilogue;
  epilogue.bias = static_cast<const float *>(bias);
  if (added && added != c) {
    epilogue.residual = static_cast<const float *>(added);
    epilogue.ldr = g.ldc;
    epilogue.strideR = g.strideC;
  }
  runGemm(task.product, a, b, c, epilogue, pool);
  if (adds || isPlain)
    return 1;
  auto *out = static_cast<float *>(c);
  forEach(g, [&](int64_t i, int64_t row, int64_t column) {
    float &value = out[i * g.strideC + row * g.ldc + column];
    if (aux)
      static_cast<float *>(aux)[i * task.auxStride + row * task.auxLd + column] = value;
    value = isGelu(task.epilogue) ? static_cast<float>(gelu(value)) : value > 0 ? value : value != value ? value : 0;
  });
  return 1;
}

/// What tells the algorithm of one product from that of others.
uint64_t signOf(const cublasLtMatmulDescOpaque &description, const cublasLtMatrixLayoutOpaque &a,
                const cublasLtMatrixLayoutOpaque &b, const cublasLtMatrixLayoutOpaque &c) {
  uint64_t sign = 1469598103934665603u;
  auto mix = [&](auto value) { sign = (sign ^ static_cast<uint64_t>(value)) * 1099511628211u; };
  mix(description.compute), mix(description.transA), mix(description.transB), mix(description.epilogue);
  for (const cublasLtMatrixLayoutOpaque *layout : {&a, &b, &c})
    mix(layout->type), mix(layout->rows), mix(layout->columns), mix(layout->ld), mix(layout->batch),
        mix(layout->stride);
  return sign;
}

StandInRange rangeOf(const void *at, const cublasLtMatrixLayoutOpaque &layout, int writes) {
  auto element = static_cast<uint64_t>(sizeOf(dtypeOf(layout.type)));
  uint64_t last = (layout.columns - 1) * static_cast<uint64_t>(layout.ld) + layout.rows +
                  static_cast<uint64_t>((layout.batch - 1) * layout.stride);
  return {reinterpret_cast<uint64_t>(at), last * element, writes};
}

} // namespace

#define ENTER(function)                                                                                                \
  if (int failed = standInEnter(function))                                                                             \
  return failed == kLeftOut ? kSuccess : failed == 999 ? kExecutionFailed : failed

STANDIN_API size_t cublasLtGetVersion() {
  const char *given = standInSetting("cublaslt");
  return given ? std::strtoull(given, nullptr, 10) : 130100;
}

STANDIN_API cublas::Status cublasLtCreate(Handle *handle) {
  ENTER("cublasLtCreate");
  *handle = new cublasLtContext;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtDestroy(Handle handle) {
  ENTER("cublasLtDestroy");
  delete handle;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatmulDescCreate(Description *description, Compute compute, Type scale) {
  ENTER("cublasLtMatmulDescCreate");
  *description = new cublasLtMatmulDescOpaque;
  (*description)->compute = compute;
  (*description)->scale = scale;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatmulDescDestroy(Description description) {
  ENTER("cublasLtMatmulDescDestroy");
  delete description;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatmulDescSetAttribute(Description description, Attribute attribute, const void *value,
                                                  size_t bytes) {
  ENTER("cublasLtMatmulDescSetAttribute");
  auto set = [&](auto &field) {
    if (bytes != sizeof field)
      return kInvalidValue;
    std::memcpy(&field, value, bytes);
    return kSuccess;
  };
  switch (attribute) {
  case kTransA:
    return set(description->transA);
  case kTransB:
    return set(description->transB);
  case kEpilogue:
    return set(description->epilogue);
  case kBiasPointer:
    return set(description->bias);
  case kBiasDataType:
    return set(description->biasType);
  case kEpilogueAuxPointer:
    return set(description->aux);
  case kEpilogueAuxLd:
    return set(description->auxLd);
  case kEpilogueAuxBatchStride:
    return set(description->auxStride);
  case kEpilogueAuxDataType:
    return set(description->auxType);
  }
  return kNotSupported;
}
STANDIN_API cublas::Status cublasLtMatrixLayoutCreate(Layout *layout, Type type, uint64_t rows, uint64_t columns, int64_t ld) {
  ENTER("cublasLtMatrixLayoutCreate");
  if (!rows || !columns || ld < static_cast<int64_t>(rows))
    return kInvalidValue;
  *layout = new cublasLtMatrixLayoutOpaque;
  **layout = {type, rows, columns, ld, 1, 0};
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatrixLayoutDestroy(Layout layout) {
  ENTER("cublasLtMatrixLayoutDestroy");
  delete layout;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatrixLayoutSetAttribute(Layout layout, LayoutAttribute attribute, const void *value,
                                                    size_t bytes) {
  ENTER("cublasLtMatrixLayoutSetAttribute");
  if (attribute == kBatchCount && bytes == 4)
    std::memcpy(&layout->batch, value, 4);
  else if (attribute == kBatchStride && bytes == 8)
    std::memcpy(&layout->stride, value, 8);
  else
    return kInvalidValue;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatmulPreferenceCreate(Preference *preference) {
  ENTER("cublasLtMatmulPreferenceCreate");
  *preference = new cublasLtMatmulPreferenceOpaque;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  ENTER("cublasLtMatmulPreferenceDestroy");
  delete preference;
  return kSuccess;
}
STANDIN_API cublas::Status cublasLtMatmulPreferenceSetAttribute(Preference preference, PreferenceAttribute attribute,
                                                        const void *value, size_t bytes) {
  ENTER("cublasLtMatmulPreferenceSetAttribute");
  if (attribute == kMaxWorkspaceBytes && bytes == 8)
    std::memcpy(&preference->workspace, value, 8);
  else if (attribute >= kMinAlignmentA && attribute <= kMinAlignmentD && bytes == 4)
    std::memcpy(&preference->alignments[attribute - kMinAlignmentA], value, 4);
  else
    return kInvalidValue;
  return kSuccess;
}

STANDIN_API cublas::Status cublasLtMatmulAlgoGetHeuristic(Handle, Description description, Layout a, Layout b, Layout c,
                                                  Layout d, Preference preference, int requested,
                                                  HeuristicResult *results, int *found) {
  ENTER("cublasLtMatmulAlgoGetHeuristic");
  *found = 0;
  if (a->type != b->type || requested < 1)
    return kNotSupported;
  // No 16-bit types with an f64 sum, and no epilogue that writes beside C in a batch without a stride.
  if ((a->type == kF64) != (description->compute == kCompute64F) || c->type != d->type)
    return kNotSupported;
  // A bias gradient is one vector of the type of D, and there is none of f64.
  if (biasGradientOf(description->epilogue) != GemmOperand::None &&
      (!description->bias || d->batch != 1 || d->type == kF64 ||
       (description->biasType != -1 && description->biasType != d->type)))
    return kNotSupported;
  // A gradient is taken at a matrix of the type of D, each of whose columns begins at a multiple of 8 elements.
  if (isDGelu(description->epilogue) &&
      (!description->aux || description->auxLd % 8 || description->auxLd < static_cast<int64_t>(d->rows) ||
       (d->batch > 1 && description->auxStride % 8) || d->type == kF64 ||
       (description->auxType != -1 && description->auxType != d->type)))
    return kNotSupported;
  results[0] = {};
  results[0].workspaceBytes = preference->workspace;
  results[0].algorithm.data[0] = signOf(*description, *a, *b, *c);
  results[0].algorithm.data[1] = preference->workspace;
  for (int i = 0; i < 4; ++i)
    results[0].algorithm.data[2 + i] = preference->alignments[i];
  results[0].algorithm.data[6] = vectorAlignment(*description);
  results[0].algorithm.data[7] = auxiliaryAlignment(*description);
  *found = 1;
  return kSuccess;
}

/// Only what this library has chosen, and for what it was chosen.
STANDIN_API cublas::Status cublasLtMatmulAlgoCheck(Handle, Description description, Layout a, Layout b, Layout c,
                                                   Layout, const Algorithm *algorithm, HeuristicResult *result) {
  ENTER("cublasLtMatmulAlgoCheck");
  if (algorithm->data[0] != signOf(*description, *a, *b, *c) || vectorAlignment(*description) < algorithm->data[6] ||
      auxiliaryAlignment(*description) < algorithm->data[7])
    return kInvalidValue;
  *result = {};
  result->algorithm = *algorithm;
  result->workspaceBytes = algorithm->data[1];
  return kSuccess;
}

STANDIN_API cublas::Status cublasLtMatmul(Handle, Description description, const void *alpha, const void *a, Layout aLayout,
                                  const void *b, Layout bLayout, const void *beta, const void *c, Layout cLayout,
                                  void *d, Layout dLayout, const Algorithm *algorithm, void *workspace,
                                  size_t workspaceBytes, StreamHandle stream) {
  ENTER("cublasLtMatmul");
  bool isDouble = description->scale == kF64;
  auto read = [&](const void *value) {
    return isDouble ? *static_cast<const double *>(value) : static_cast<double>(*static_cast<const float *>(value));
  };
  if (!algorithm || algorithm->data[0] != signOf(*description, *aLayout, *bLayout, *dLayout) || read(alpha) != 1)
    return kInvalidValue; // the runtime chooses algorithms when it loads
  const std::pair<const void *, const cublasLtMatrixLayoutOpaque *> operands[] = {
      {a, aLayout}, {b, bLayout}, {c, cLayout}, {d, dLayout}};
  for (int i = 0; i < 4; ++i) { // each matrix of a batch
    auto [operand, layout] = operands[i];
    uint64_t step = layout->batch == 1 ? 0 : static_cast<uint64_t>(layout->stride * sizeOf(dtypeOf(layout->type)));
    if ((reinterpret_cast<uint64_t>(operand) | step) % algorithm->data[2 + i]) {
      standInReport("an algorithm for operands that are aligned to more bytes than these");
      return kInvalidValue;
    }
  }
  if (vectorAlignment(*description) < algorithm->data[6]) {
    standInReport("an algorithm for a bias gradient that is aligned to more bytes than this");
    return kInvalidValue;
  }
  if (auxiliaryAlignment(*description) < algorithm->data[7]) {
    standInReport("an algorithm for what a gradient is taken at that is aligned to more bytes than this");
    return kInvalidValue;
  }
  if (reinterpret_cast<uint64_t>(workspace) % kWorkspaceAlignment)
    return kInvalidValue;
  // The transposed product, row-major: D^T = op(B)^T op(A)^T.
  auto *task = new Task{};
  GemmShape &g = task->product.shape;
  task->product.dtype = dtypeOf(dLayout->type);
  g.m = static_cast<int64_t>(dLayout->columns);
  g.n = static_cast<int64_t>(dLayout->rows);
  g.k = static_cast<int64_t>(description->transA ? aLayout->rows : aLayout->columns);
  g.lda = bLayout->ld;
  g.ldb = aLayout->ld;
  g.ldc = dLayout->ld;
  g.transA = description->transB;
  g.transB = description->transA;
  g.batch = dLayout->batch;
  g.strideA = bLayout->stride;
  g.strideB = aLayout->stride;
  g.strideC = dLayout->stride;
  bool adds = read(beta) != 0;
  g.beta = adds && c == d ? 1 : 0;
  task->a = reinterpret_cast<uint64_t>(b);
  task->b = reinterpret_cast<uint64_t>(a);
  task->c = reinterpret_cast<uint64_t>(d);
  task->added = adds ? reinterpret_cast<uint64_t>(c) : 0;
  task->epilogue = description->epilogue;
  task->bias = hasBias(task->epilogue) ? reinterpret_cast<uint64_t>(description->bias) : 0;
  task->aux = hasAux(task->epilogue) ? reinterpret_cast<uint64_t>(description->aux) : 0;
  g.biasGradientOf = biasGradientOf(task->epilogue);
  task->biasGradient = g.biasGradientOf == GemmOperand::None ? 0 : reinterpret_cast<uint64_t>(description->bias);
  task->auxLd = description->auxLd;
  task->auxStride = description->auxStride;
  task->workspace = reinterpret_cast<uint64_t>(workspace);
  task->workspaceBytes = workspaceBytes;
  StandInRange ranges[7] = {rangeOf(a, *aLayout, 0), rangeOf(b, *bLayout, 0), rangeOf(d, *dLayout, 1)};
  size_t count = 3;
  if (adds)
    ranges[count++] = rangeOf(c, *cLayout, 0);
  auto element = static_cast<uint64_t>(sizeOf(task->product.dtype));
  if (task->bias)
    ranges[count++] = {task->bias, dLayout->rows * element, 0};
  if (task->biasGradient)
    ranges[count++] = {task->biasGradient, static_cast<uint64_t>(g.numBiasGradients()) * element, 1};
  if (task->aux) {
    cublasLtMatrixLayoutOpaque aux = *dLayout;
    aux.ld = task->auxLd;
    aux.stride = task->auxStride;
    ranges[count++] = rangeOf(description->aux, aux, isDGelu(task->epilogue) ? 0 : 1);
  }
  if (workspaceBytes)
    ranges[count++] = {reinterpret_cast<uint64_t>(workspace), workspaceBytes, 1};
  for (size_t i = 0; i < count; ++i)
    if (!standInReach(ranges[i].begin) || !standInReach(ranges[i].begin + ranges[i].bytes - 1))
      return kInvalidValue;
  return standInEnqueue(stream, "a product", run, task, ranges, count) ? kExecutionFailed : kSuccess;
}
