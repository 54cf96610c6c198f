//===- RandomInputs.cpp - inputs made from names and a seed ---------------===//

#include "dialects/Spmd/Spmd.h"
#include "spmd/Interpreter/Inputs.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

namespace {

/// splitmix64: a good generator that is a function of its counter alone.
class Draws {
public:
  Draws(llvm::StringRef name, uint64_t seed, int64_t step)
      : state(llvm::xxh3_64bits(name) + seed * 0x9e3779b97f4a7c15u +
              static_cast<uint64_t>(step) * 0xd1b54a32d192ed03u) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Uniform in [-1, 1).
  double symmetric() { return std::ldexp(double(next() >> 11), -52) - 1; }

private:
  uint64_t state;
};

} // namespace

/// Weights keep the scale of what they multiply; vectors are near 1 when they
/// are called weight (norms), near 0 else.
static Tensor drawParameter(const GlobalTensor &tensor, Draws &draws) {
  Tensor result(tensor.dtype, tensor.shape);
  bool isMatrix = tensor.shape.size() > 1;
  double scale = isMatrix ? std::sqrt(3.0 / tensor.shape.back()) : 0.1;
  double center = !isMatrix && llvm::StringRef(tensor.key).ends_with("weight") ? 1 : 0;
  for (int64_t i = 0, e = result.numel(); i < e; ++i)
    result.set(i, center + scale * draws.symmetric());
  return result;
}

static Tensor drawBatch(const GlobalTensor &tensor, const IndexUse &use, Draws &draws) {
  Tensor result(tensor.dtype, tensor.shape);
  for (int64_t i = 0, e = result.numel(); i < e; ++i) {
    if (result.isFloating())
      result.set(i, draws.symmetric());
    else if (use.ignored && draws.next() % 8 == 0)
      result.set(i, *use.ignored);
    else
      result.set(i, draws.next() % std::max<int64_t>(use.bound.value_or(2), 1));
  }
  return result;
}

static Tensor draw(const GlobalTensor &tensor, const IndexUse &use, uint64_t seed, int64_t step) {
  Draws draws(tensor.key, seed, step);
  if (tensor.kind == "batch")
    return drawBatch(tensor, use, draws);
  if (tensor.init)
    return Tensor::full(tensor.dtype, tensor.shape, *tensor.init);
  if (tensor.kind == "hyper")
    return Tensor::full(tensor.dtype, tensor.shape, 0.01);
  if (tensor.kind == "parameters")
    return drawParameter(tensor, draws);
  // Buffers, constants, warm optimizer state: positive, as variances must be.
  Tensor result(tensor.dtype, tensor.shape);
  if (result.isFloating())
    for (int64_t i = 0, e = result.numel(); i < e; ++i)
      result.set(i, 1 + 0.5 * draws.symmetric());
  return result;
}

FailureOr<Inputs> makeRandomInputs(func::FuncOp step, int64_t numSteps, uint64_t seed) {
  auto described = describeArguments(step);
  if (failed(described))
    return failure();
  llvm::StringMap<IndexUse> uses;
  for (BlockArgument argument : step.getArguments())
    if (auto batch = dyn_cast_or_null<BatchAttr>(step.getArgAttr(argument.getArgNumber(), "spmd.arg")))
      uses[("batch/" + batch.getName()).str()] = findIndexUse(argument);
  Inputs inputs;
  inputs.steps.resize(numSteps);
  for (const GlobalTensor &tensor : *described) {
    bool eachStep = tensor.kind == "batch" || tensor.kind == "hyper";
    if (!eachStep) {
      inputs.state[tensor.key] = draw(tensor, {}, seed, 0);
      continue;
    }
    for (int64_t i = 0; i < numSteps; ++i)
      inputs.steps[i][tensor.key] = draw(tensor, uses.lookup(tensor.key), seed, i);
  }
  return inputs;
}

} // namespace spmd::interp
