//===- CheckFinite.cpp - The first number that is not finite --------------===//

#include "CheckFinite.h"

#include <cmath>

using namespace spmd::runtime;

/// "element 3 of 12 is nan", or nothing if all elements are finite.
static std::string findNonFinite(const std::vector<char> &bytes, DType dtype) {
  auto count = static_cast<int64_t>(bytes.size()) / sizeOf(dtype);
  for (int64_t i = 0; i < count; ++i)
    if (double value = loadAsDouble(bytes.data(), dtype, i); !std::isfinite(value))
      return (count == 1 ? "is " : "is at element " + std::to_string(i) + " of " + std::to_string(count) + " ") +
             std::string(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  return "";
}

static Status checkOutputs(const Trainer &trainer, std::string &found) {
  const std::vector<Output> &outputs = trainer.manifest().outputs;
  for (size_t i = 0; i < outputs.size() && found.empty(); ++i) {
    const Output &output = outputs[i];
    if (!isFloating(output.dtype))
      continue;
    std::vector<char> bytes(static_cast<size_t>(numElements(output.shape) * sizeOf(output.dtype)));
    if (Status status = trainer.readOutput(i, bytes.data(), bytes.size()); !status.ok())
      return status;
    if (std::string what = findNonFinite(bytes, output.dtype); !what.empty())
      found = output.kind == Binding::Kind::Loss ? "the loss " + what : "output '" + output.path + "' " + what;
  }
  return Status::success();
}

static Status checkState(const Trainer &trainer, std::string &found) {
  for (const StateTensor &tensor : trainer.state().tensors()) {
    // A constant may be a mask of infinities.
    if (!isFloating(tensor.dtype) || tensor.state == "constant")
      continue;
    std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
    if (Status status = trainer.readTensor(tensor.state, tensor.name, bytes.data(), bytes.size()); !status.ok())
      return status;
    if (std::string what = findNonFinite(bytes, tensor.dtype); !what.empty()) {
      found += (found.empty() ? "" : "; ") + tensor.state + " '" + tensor.name + "' " + what;
      return Status::success();
    }
  }
  return Status::success();
}

Status spmd::runtime::checkFinite(const Trainer &trainer, const std::string &when, bool withOutputs) {
  std::string found;
  if (Status status = withOutputs ? checkOutputs(trainer, found) : Status::success(); !status.ok())
    return status;
  if (Status status = checkState(trainer, found); !status.ok() || found.empty())
    return status;
  Status first = withOutputs ? trainer.firstNotFinite() : Status::success();
  if (!first.ok())
    found += "; " + first.message;
  return {StatusCode::WrongResult, when + ": " + found, first.rank, first.command, first.location};
}
