//===- StepPackage.cpp - inputs and references of a step package ----------===//

#include "spmd/Interpreter/Inputs.h"
#include "spmd/Runtime/Core/Safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace mlir;

namespace spmd::interp {

using runtime::SafetensorsFile;

static DType fromRuntime(runtime::DType dtype) {
  switch (dtype) {
  case runtime::DType::F32:
    return DType::f32;
  case runtime::DType::F64:
    return DType::f64;
  case runtime::DType::F16:
    return DType::f16;
  case runtime::DType::BF16:
    return DType::bf16;
  case runtime::DType::I64:
    return DType::i64;
  case runtime::DType::I32:
    return DType::i32;
  case runtime::DType::I16:
    return DType::i16;
  case runtime::DType::I8:
    return DType::i8;
  case runtime::DType::U8:
    return DType::u8;
  case runtime::DType::I1:
    return DType::i1;
  }
  return DType::f64;
}

runtime::DType toRuntime(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return runtime::DType::F64;
  case DType::f32:
    return runtime::DType::F32;
  case DType::f16:
    return runtime::DType::F16;
  case DType::bf16:
    return runtime::DType::BF16;
  case DType::i64:
    return runtime::DType::I64;
  case DType::i32:
    return runtime::DType::I32;
  case DType::i16:
    return runtime::DType::I16;
  case DType::i8:
    return runtime::DType::I8;
  case DType::u8:
    return runtime::DType::U8;
  case DType::i1:
    return runtime::DType::I1;
  }
  return runtime::DType::F64;
}

void storeElements(const Tensor &tensor, runtime::DType dtype, void *data) {
  for (int64_t i = 0, e = tensor.numel(); i < e; ++i)
    if (dtype == runtime::DType::I64)
      std::memcpy(static_cast<char *>(data) + 8 * i, &tensor.integers()[i], 8);
    else
      runtime::storeFromDouble(data, dtype, i, tensor.at(i));
}

void loadElements(Tensor &tensor, runtime::DType dtype, const void *data) {
  for (int64_t i = 0, e = tensor.numel(); i < e; ++i)
    if (dtype == runtime::DType::I64)
      std::memcpy(&tensor.integerData()[i], static_cast<const char *>(data) + 8 * i, 8);
    else
      tensor.set(i, runtime::loadAsDouble(data, dtype, i));
}

static Tensor fromView(const runtime::TensorView &view) {
  Tensor result(fromRuntime(view.dtype), ShapeRef(view.shape));
  loadElements(result, view.dtype, view.data);
  return result;
}

static FailureOr<SafetensorsFile> openFile(Location where, llvm::StringRef path) {
  auto file = SafetensorsFile::open(path.str());
  if (!file)
    return mlir::emitError(where) << file.error().message;
  return *file;
}

FailureOr<Values> readTensors(Location where, llvm::StringRef path) {
  FailureOr<SafetensorsFile> file = openFile(where, path);
  if (failed(file))
    return failure();
  Values values;
  for (const auto &[name, view] : file->tensors())
    values[name] = fromView(view);
  return values;
}

LogicalResult writeTensors(Location where, llvm::StringRef path, ArrayRef<std::pair<std::string, Tensor>> tensors,
                           bool wide) {
  std::vector<std::vector<char>> storage;
  std::vector<runtime::NamedTensor> entries;
  for (const auto &[name, tensor] : tensors) {
    DType dtype = wide && tensor.isFloating() ? DType::f64 : tensor.dtype();
    runtime::TensorView view;
    view.dtype = toRuntime(dtype);
    view.shape.assign(tensor.shape().begin(), tensor.shape().end());
    view.bytes = tensor.numel() * runtime::sizeOf(view.dtype);
    std::vector<char> &bytes = storage.emplace_back(view.bytes);
    storeElements(tensor, view.dtype, bytes.data());
    view.data = bytes.data();
    entries.push_back({name, view});
  }
  runtime::Status status = runtime::writeSafetensors(path.str(), entries, {});
  if (!status.ok())
    return mlir::emitError(where) << status.message;
  return success();
}

static std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

FailureOr<Inputs> readStepPackage(func::FuncOp step, llvm::StringRef folder, int64_t numSteps, uint64_t seed) {
  Location where = step.getLoc();
  FailureOr<SafetensorsFile> weights = openFile(where, inFolder(folder, "weights.safetensors"));
  if (failed(weights))
    return failure();
  std::string referencePath = inFolder(folder, "reference.safetensors");
  std::optional<SafetensorsFile> reference;
  if (llvm::sys::fs::exists(referencePath)) {
    FailureOr<SafetensorsFile> file = openFile(where, referencePath);
    if (failed(file))
      return failure();
    reference = *file;
  }
  int64_t recorded = 0;
  if (reference)
    if (const runtime::TensorView *losses = reference->find("loss"))
      recorded = losses->shape.empty() ? 1 : losses->shape[0];
  if (numSteps == 0)
    numSteps = std::max<int64_t>(recorded, 1);
  if (reference && numSteps > recorded)
    return mlir::emitError(where) << referencePath << " has " << recorded << " steps, " << numSteps << " are asked for";

  auto described = describeArguments(step);
  FailureOr<Inputs> inputs = makeRandomInputs(step, numSteps, seed);
  if (failed(described) || failed(inputs))
    return failure();
  for (const GlobalTensor &tensor : *described) {
    if (tensor.kind != "batch" && tensor.kind != "hyper") {
      if (const runtime::TensorView *view = weights->find(tensor.key))
        inputs->state[tensor.key] = fromView(*view);
      else if (!tensor.init)
        return mlir::emitError(where) << weights->path() << " has no tensor '" << tensor.key << "'";
      continue;
    }
    if (!reference)
      continue;
    for (int64_t i = 0; i < numSteps; ++i) {
      bool isBatch = tensor.kind == "batch";
      std::string key = tensor.key; // hyper/lr/0, one entry per step
      if (isBatch)
        key = "batch/" + std::to_string(i) + tensor.key.substr(tensor.key.find('/'));
      const runtime::TensorView *view = reference->find(key);
      if (!view && !isBatch && tensor.init)
        continue;
      if (!view)
        return mlir::emitError(where) << referencePath << " has no tensor '" << key << "'";
      Tensor value = fromView(*view);
      inputs->steps[i][tensor.key] = isBatch ? value : Tensor::scalar(tensor.dtype, value.at(i));
    }
  }
  return inputs;
}

FailureOr<Reference> readReference(ModuleOp module, llvm::StringRef folder) {
  FailureOr<SafetensorsFile> file = openFile(module.getLoc(), inFolder(folder, "reference.safetensors"));
  if (failed(file))
    return failure();
  Reference reference;
  for (const auto &[name, view] : file->tensors()) {
    llvm::StringRef key = name;
    if (key == "loss")
      for (int64_t i = 0, e = runtime::numElements(view.shape); i < e; ++i)
        reference.losses.push_back(runtime::loadAsDouble(view.data, view.dtype, i));
    if (key.consume_front("final/"))
      reference.state[key] = fromView(view);
  }
  return reference;
}

} // namespace spmd::interp
