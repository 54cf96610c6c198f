//===- Check.cpp ----------------------------------------------------------===//

#include "Check.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace spmd::runtime;

namespace {
/// How often further off than eager itself moves, when its parameters are rounded, ours may be.
constexpr double kMovements = 3;

/// Of some differences the one that is furthest beyond what is allowed, or nearest to it; a NaN is beyond everything.
/// Allowed is a tolerance, or what eager moves times kMovements, whichever is more.
struct Worst {
  explicit Worst(double tolerance) : tolerance(tolerance) {}

  double tolerance, difference = 0, moved = 0;
  std::string where;

  void add(double value, double movement, const std::string &name) {
    if (where.empty() || (!std::isnan(difference) && !(excess(value, movement) <= excess(difference, moved)))) {
      difference = value;
      moved = movement;
      where = name;
    }
  }
  bool good() const { return difference <= allowed(moved); }
  /// What eager moves there, where that is what allows the difference, or forbids it.
  std::string text(const Reference &reference) const {
    if (!reference.hasMovement() || where.empty())
      return "";
    return "; eager moves " + formatNumber(moved) + " there when its parameters are rounded, three times which is allowed";
  }

private:
  double allowed(double movement) const { return std::max(tolerance, kMovements * movement); }
  double excess(double value, double movement) const {
    double most = allowed(movement);
    return most > 0 ? value / most : value > 0 ? HUGE_VAL : value;
  }
};
} // namespace

static double norm(const TensorView &tensor) {
  double sum = 0;
  for (int64_t i = 0; i < numElements(tensor.shape); ++i) {
    double value = loadAsDouble(tensor.data, tensor.dtype, i);
    sum += value * value;
  }
  return std::sqrt(sum);
}

namespace {
/// ‖ours − reference‖ / max(‖reference‖, floor), 0 when both are zero; and what eager moves, by the same measure.
struct Difference {
  double value = 0, moved = 0;
};
} // namespace

static Expected<Difference> compareTensor(const Trainer &trainer, const StateTensor &tensor, const TensorView &reference,
                                          double floor, double moved) {
  if (reference.shape != tensor.shape)
    return Status{StatusCode::WrongResult,
                  "the reference has " + tensor.state + " '" + tensor.name + "' with shape " +
                      formatShape(reference.shape) + ", the artifact with " + formatShape(tensor.shape),
                  -1, -1, ""};
  std::vector<char> ours(static_cast<size_t>(tensor.bytes()));
  if (Status status = trainer.readTensor(tensor.state, tensor.name, ours.data(), ours.size()); !status.ok())
    return status;
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    double difference = loadAsDouble(ours.data(), tensor.dtype, i) - loadAsDouble(reference.data, reference.dtype, i);
    sum += difference * difference;
  }
  double scale = std::max(norm(reference), floor);
  return Difference{sum == 0 ? 0.0 : std::sqrt(sum) / scale, moved == 0 ? 0.0 : moved / scale};
}

static const TensorView *findFinal(const Reference &reference, const StateTensor &tensor) {
  const TensorView *found = reference.final(tensor.fileKey(tensor.name));
  for (const std::string &alias : tensor.aliases)
    if (!found)
      found = reference.final(tensor.fileKey(alias));
  return found;
}

static double findMovement(const Reference &reference, const StateTensor &tensor) {
  double moved = reference.moved(tensor.fileKey(tensor.name));
  for (const std::string &alias : tensor.aliases)
    moved = std::max(moved, reference.moved(tensor.fileKey(alias)));
  return moved;
}

static double epsilon(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return std::ldexp(1.0, -52);
  case DType::F32:
    return std::ldexp(1.0, -23);
  case DType::F16:
    return std::ldexp(1.0, -10);
  case DType::BF16:
    return std::ldexp(1.0, -7);
  default:
    return 0;
  }
}

/// Rounding of a sum that is zero, in epsilons of the largest gradient: eager PyTorch's own was seen to be 0.8.
static constexpr double kNoise = 4;

/// Epsilon of the coarsest type of parameters and matrix products.
static double coarsestEpsilon(const Trainer &trainer) {
  double coarsest = 0;
  for (const StateTensor &tensor : trainer.state().tensors())
    if (tensor.state == "param")
      coarsest = std::max(coarsest, epsilon(tensor.dtype));
  for (const Command &command : trainer.artifact().plan.commands)
    if (const auto *gemm = command.as<GemmCommand>())
      coarsest = std::max(coarsest, epsilon(gemm->dtype));
  return coarsest;
}

namespace {
/// What ‖b‖ counts as at least where a tensor of some state only holds rounding noise: that of which the tolerance is
/// kNoise epsilons of the largest norm of the run's tensors of this state.
class NoiseFloors {
public:
  NoiseFloors(const Trainer &trainer, double tolerance) : trainer(trainer), tolerance(tolerance) {}

  Expected<double> of(const std::string &state) {
    auto known = floors.find(state);
    if (known != floors.end())
      return known->second;
    double largest = 0;
    std::vector<char> bytes;
    for (const StateTensor &tensor : trainer.state().tensors()) {
      if (tensor.state != state)
        continue;
      bytes.resize(static_cast<size_t>(tensor.bytes()));
      if (Status status = trainer.readTensor(tensor.state, tensor.name, bytes.data(), bytes.size()); !status.ok())
        return status;
      largest = std::max(largest, norm({tensor.dtype, tensor.shape, bytes.data(), tensor.bytes()}));
    }
    return floors[state] = tolerance > 0 ? kNoise * coarsestEpsilon(trainer) * largest / tolerance : 0;
  }

private:
  const Trainer &trainer;
  double tolerance;
  std::map<std::string, double> floors;
};
} // namespace

/// Compares the optimizer state of a parameter whose gradient is zero. False
/// when the reference has none of it.
static Expected<bool> compareState(const Trainer &trainer, const Reference &reference, const std::string &name,
                                   NoiseFloors &floors, Worst &worst) {
  bool any = false;
  for (const StateTensor &tensor : trainer.state().tensors()) {
    const TensorView *expected = nullptr;
    if (tensor.name == name && tensor.isOptimizerState())
      expected = findFinal(reference, tensor);
    if (!expected)
      continue;
    any = true;
    Expected<double> floor = floors.of(tensor.state);
    if (!floor)
      return floor.error();
    Expected<Difference> difference =
        compareTensor(trainer, tensor, *expected, *floor, findMovement(reference, tensor));
    if (!difference)
      return difference.error();
    worst.add(difference->value, difference->moved, tensor.state + " of " + name);
  }
  return any;
}

static Status compareParameters(const Trainer &trainer, const Reference &reference, double tolerance,
                                Worst &parameters, Worst &states, size_t &compared) {
  const std::vector<std::string> &zero = trainer.manifest().zeroGradient;
  NoiseFloors floors(trainer, tolerance);
  for (const StateTensor &tensor : trainer.state().tensors()) {
    if (tensor.state != "param")
      continue;
    ++compared;
    double floor = 0;
    if (std::find(zero.begin(), zero.end(), tensor.name) != zero.end()) {
      Expected<bool> any = compareState(trainer, reference, tensor.name, floors, states);
      if (!any)
        return any.error();
      if (*any)
        continue;
      Expected<double> noise = floors.of(tensor.state);
      if (!noise)
        return noise.error();
      floor = *noise;
    }
    const TensorView *expected = findFinal(reference, tensor);
    if (!expected)
      return {StatusCode::WrongResult, "the reference has no final value of '" + tensor.name + "'", -1, -1, ""};
    Expected<Difference> difference =
        compareTensor(trainer, tensor, *expected, floor, findMovement(reference, tensor));
    if (!difference)
      return difference.error();
    parameters.add(difference->value, difference->moved, tensor.name);
  }
  return Status::success();
}

Status spmd::runtime::checkRun(const Trainer &trainer, const Reference &reference, const std::vector<double> &losses,
                               const Tolerances &given) {
  double coarsest = coarsestEpsilon(trainer);
  double lossTolerance = given.loss.value_or(std::max(1e-4, 2 * coarsest));
  double tolerance = given.parameters.value_or(std::max(1e-3, 8 * coarsest));
  auto steps = static_cast<int64_t>(losses.size());
  std::printf("check against eager PyTorch: %s steps\n", formatCount(steps).c_str());
  Worst loss(lossTolerance);
  for (int64_t step = 0; step < steps; ++step) {
    std::optional<double> expected = reference.loss(step);
    if (!expected)
      return {StatusCode::WrongResult, "the reference has no loss of step " + std::to_string(step), -1, -1, ""};
    double ours = losses[static_cast<size_t>(step)];
    double difference = ours == *expected ? 0 : std::fabs(ours - *expected) / std::fabs(*expected);
    double moved = reference.movedLoss(step);
    loss.add(difference, moved == 0 ? 0 : moved / std::fabs(*expected), "step " + std::to_string(step));
  }
  std::printf("  loss: largest relative difference %s (%s), tolerance %s%s\n", formatNumber(loss.difference).c_str(),
              loss.where.c_str(), formatNumber(lossTolerance).c_str(), loss.text(reference).c_str());

  Worst parameters(tolerance), states(tolerance);
  if (steps == reference.steps()) {
    size_t compared = 0;
    if (Status status = compareParameters(trainer, reference, tolerance, parameters, states, compared);
        !status.ok())
      return status;
    std::printf("  parameters: largest |a-b|/|b| %s (%s) of %zu tensors, "
                "tolerance %s%s\n",
                formatNumber(parameters.difference).c_str(),
                parameters.where.empty() ? "none" : parameters.where.c_str(), compared,
                formatNumber(tolerance).c_str(), parameters.text(reference).c_str());
    if (!states.where.empty())
      std::printf("  parameters without gradient, by optimizer state: largest "
                  "|a-b|/|b| %s (%s), same tolerance\n",
                  formatNumber(states.difference).c_str(), states.where.c_str());
  } else {
    std::printf("  parameters: not compared, the reference holds those after "
                "step %s\n",
                formatCount(reference.steps()).c_str());
  }
  bool good = loss.good() && parameters.good() && states.good();
  if (!good && !reference.hasMovement())
    std::printf("  hint: Adam moves a parameter at random if its gradient is zero except for rounding (an "
                "attention's key bias), and batch norm over few values is chaotic; record the sensitivity of eager "
                "with spmd.capture(..., reference_movement=True), or list such parameters in zero_gradient=[...]\n");
  if (!good)
    return {StatusCode::WrongResult,
            "the check failed: the run differs from its reference by more than "
            "the tolerance",
            -1, -1, ""};
  std::printf("  passed\n");
  return Status::success();
}
