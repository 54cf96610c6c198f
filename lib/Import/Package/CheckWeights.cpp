//===- CheckWeights.cpp - weights.safetensors against the inputs ----------===//

#include "StepPackage.h"

#include "spmd/Runtime/Core/Safetensors.h"
#include "llvm/Support/FileSystem.h"

using namespace spmd;
using namespace spmd::step;

/// The input's key in weights.safetensors; empty for what is not stored.
static std::string weightsKey(const Input &input) {
  switch (input.kind) {
  case InputKind::param:
  case InputKind::buffer:
    return input.name;
  case InputKind::state:
    return "optimizer/" + input.name + "/" + input.of;
  case InputKind::constant:
    return "constant/" + input.name;
  case InputKind::hyper:
  case InputKind::rng:
  case InputKind::batch:
    return "";
  }
  return "";
}

runtime::Status step::checkWeights(const Step &step, const std::string &folder) {
  std::string path = folder + "/weights.safetensors";
  if (!llvm::sys::fs::exists(path))
    return runtime::Status::success();
  auto file = runtime::SafetensorsFile::open(path);
  if (!file)
    return file.error();
  for (const Input &input : step.inputs) {
    std::string key = weightsKey(input);
    if (key.empty())
      continue;
    auto fail = [&](const std::string &why) {
      return runtime::Status::badInput(path + ": \"" + key + "\" " + why + " (" + step.fileName + ": " + input.pointer +
                                       ")");
    };
    const runtime::TensorView *tensor = file->find(key);
    if (!tensor) {
      if (input.kind == InputKind::state && (input.number || input.name == "master"))
        continue; // starts as `init`, or as its parameter
      return fail("is missing");
    }
    TensorSpec found{tensor->shape, tensor->dtype};
    if (!(found == input.spec))
      return fail("is " + formatSpec(found) + ", the step expects " + formatSpec(input.spec));
  }
  return runtime::Status::success();
}
