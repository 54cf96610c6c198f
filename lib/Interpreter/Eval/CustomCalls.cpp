//===- CustomCalls.cpp - functions of the user's --------------------------===//
//
// The function computes in the types of the program, whatever the interpreter does: its arguments are rounded to them.
//
//===----------------------------------------------------------------------===//

#include "spmd/Interpreter/Evaluator.h"
#include "spmd/Interpreter/Inputs.h"

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Kernel/Kernel.h"
#include "spmd/Runtime/Core/Externals.h"
#include <deque>

using namespace mlir;

namespace spmd::interp {

static std::string &libraryFolder() {
  static std::string folder;
  return folder;
}

void setLibraryFolder(std::string folder) { libraryFolder() = std::move(folder); }

namespace {

using runtime::DlTensor;
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
  storeElements(tensor, dtype, bytes.data());
  std::vector<int64_t> &shape = sizes.emplace_back(tensor.shape().begin(), tensor.shape().end());
  Shape contiguous = contiguousStrides(tensor.shape());
  std::vector<int64_t> &strides = sizes.emplace_back(contiguous.begin(), contiguous.end());
  DlTensor &added = tensors.emplace_back();
  added.data = bytes.data();
  added.ndim = shape.size();
  added.code = runtime::getDlTypeCode(dtype);
  added.bits = 8 * runtime::sizeOf(dtype);
  added.shape = shape.data();
  added.strides = strides.data();
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
  loadElements(tensor, toRuntime(dtype), from.data);
  return tensor;
}

static FailureOr<Function> findFunction(OpCall &call, StringRef library, StringRef symbol) {
  if (libraryFolder().empty())
    return call.error() << "calls '" << symbol << "' of '" << library << "'; --libraries says where that is";
  auto function = runtime::loadFunction(libraryFolder() + "/" + library.str(), symbol.str());
  if (!function)
    return call.error() << function.error().message;
  return reinterpret_cast<Function>(*function);
}

static LogicalResult run(OpCall &call, std::optional<StringRef> library, std::optional<StringRef> symbol,
                         ArrayAttr arguments, ArrayRef<Tensor> operands) {
  if (!library || !symbol)
    return call.error() << "has a kernel for GPUs alone, which cannot be run here; a function for CPUs is declared by "
                           "spmd.register_kernel(library=…, symbol=…)";
  FailureOr<Function> function = findFunction(call, *library, *symbol);
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
