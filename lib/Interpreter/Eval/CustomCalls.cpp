//===- CustomCalls.cpp - functions of the user's --------------------------===//
//
// The function computes in the types of the program, whatever the interpreter does: its arguments are rounded to them.
//
//===----------------------------------------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include "spmd/Interpreter/Inputs.h"

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Kernel/Kernel.h"
#include <deque>
#include <dlfcn.h>

using namespace mlir;

namespace spmd::interp {

static std::string &libraryFolder() {
  static std::string folder;
  return folder;
}

void setLibraryFolder(std::string folder) { libraryFolder() = std::move(folder); }

namespace {

/// DLTensor of dlpack.h.
struct DlTensor {
  void *data;
  int32_t deviceType, deviceId;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
};
using Function = void (*)(const DlTensor *arguments, const DlTensor *results);

/// Tensors in memory, as the function gets them.
class TensorArray {
public:
  void add(const Tensor &tensor);
  void add(Attribute number);
  Tensor read(unsigned index, DType dtype);
  const DlTensor *data() const { return tensors.data(); }

private:
  std::deque<std::vector<char>> storage;
  std::deque<std::vector<int64_t>> sizes;
  std::vector<DlTensor> tensors;
};

} // namespace

void TensorArray::add(const Tensor &tensor) {
  runtime::DType dtype = toRuntime(tensor.dtype());
  std::vector<char> &bytes = storage.emplace_back(tensor.numel() * runtime::sizeOf(dtype) + 1);
  for (int64_t i = 0, e = tensor.numel(); i < e; ++i)
    if (tensor.dtype() == DType::i64)
      std::memcpy(bytes.data() + 8 * i, &tensor.integers()[i], 8);
    else
      runtime::storeFromDouble(bytes.data(), dtype, i, tensor.at(i));
  std::vector<int64_t> &shape = sizes.emplace_back(tensor.shape().begin(), tensor.shape().end());
  std::vector<int64_t> &strides = sizes.emplace_back(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  bool isFloating = tensor.isFloating();
  uint8_t code = dtype == runtime::DType::I1     ? 6
                 : dtype == runtime::DType::BF16 ? 4
                 : isFloating                    ? 2
                 : dtype == runtime::DType::U8   ? 1
                                                 : 0;
  tensors.push_back({bytes.data(), 1, 0, static_cast<int32_t>(shape.size()), code,
                     static_cast<uint8_t>(8 * runtime::sizeOf(dtype)), 1, shape.data(), strides.data(), 0});
}

void TensorArray::add(Attribute number) {
  auto list = [&](DType dtype, auto values) {
    Tensor tensor(dtype, {static_cast<int64_t>(values.size())});
    for (auto [i, value] : llvm::enumerate(values))
      tensor.set(i, value);
    add(tensor);
  };
  if (auto integers = dyn_cast<DenseI64ArrayAttr>(number))
    list(DType::i64, integers.asArrayRef());
  else if (auto reals = dyn_cast<DenseF64ArrayAttr>(number))
    list(DType::f64, reals.asArrayRef());
  else if (auto flag = dyn_cast<BoolAttr>(number))
    add(Tensor::scalar(DType::i1, flag.getValue()));
  else if (auto integer = dyn_cast<IntegerAttr>(number))
    add(Tensor::scalar(DType::i64, integer.getInt()));
  else
    add(Tensor::scalar(DType::f64, cast<FloatAttr>(number).getValueAsDouble()));
}

Tensor TensorArray::read(unsigned index, DType dtype) {
  const DlTensor &from = tensors[index];
  Tensor tensor(dtype, ShapeRef(from.shape, from.ndim));
  for (int64_t i = 0, e = tensor.numel(); i < e; ++i)
    if (dtype == DType::i64)
      tensor.set(i, static_cast<const int64_t *>(from.data)[i]);
    else
      tensor.set(i, runtime::loadAsDouble(from.data, toRuntime(dtype), i));
  return tensor;
}

static FailureOr<Function> findFunction(OpCall &call, StringRef library, StringRef symbol) {
  if (libraryFolder().empty())
    return call.error() << "calls '" << symbol << "' of '" << library << "'; --libraries says where that is";
  std::string path = libraryFolder() + "/" + library.str();
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle)
    return call.error() << "cannot be run: " << ::dlerror();
  void *function = ::dlsym(handle, symbol.str().c_str());
  ::dlclose(handle);
  if (!function)
    return call.error() << "calls '" << symbol << "', which '" << path << "' does not have";
  return reinterpret_cast<Function>(function);
}

static LogicalResult run(OpCall &call, StringRef library, StringRef symbol, ArrayAttr arguments,
                         ArrayRef<Tensor> operands) {
  FailureOr<Function> function = findFunction(call, library, symbol);
  if (failed(function))
    return failure();
  TensorArray given, made;
  const Tensor *next = operands.begin();
  for (Attribute argument : arguments)
    if (isa<UnitAttr>(argument))
      given.add(*next++);
    else
      given.add(argument);
  for (unsigned i = 0; i < call.op->getNumResults(); ++i)
    made.add(emptyResult(call, i));
  (*function)(given.data(), made.data());
  for (unsigned i = 0; i < call.op->getNumResults(); ++i)
    call.result(made.read(i, call.resultType(i)));
  return success();
}

static LogicalResult evaluateAten(OpCall &call) {
  auto op = cast<aten::CustomCallOp>(call.op);
  return run(call, op.getLibrary(), op.getSymbol(), op.getArguments(), call.operands());
}

static LogicalResult evaluateKernel(OpCall &call) {
  auto op = cast<kernel::CustomCallOp>(call.op);
  SmallVector<Tensor> operands;
  for (auto [tensor, shape] : llvm::zip_equal(call.operands(), op.getShapes())) {
    Tensor shaped(tensor.dtype(), cast<DenseI64ArrayAttr>(shape).asArrayRef());
    for (int64_t i = 0, e = tensor.numel(); i < e; ++i)
      shaped.copyElement(i, tensor, i);
    operands.push_back(std::move(shaped));
  }
  return run(call, op.getLibrary(), op.getFunction(), op.getArguments(), operands);
}

void registerCustomCalls(EvaluatorRegistry &registry) {
  registry.add("aten.custom_call", evaluateAten);
  registry.add("kernel.custom_call", evaluateKernel);
}

} // namespace spmd::interp
