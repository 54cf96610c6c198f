//===- Compare.cpp - how far two runs of a step are apart -----------------===//

#include "spmd/Interpreter/Compare.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;

namespace spmd::interp {

static double norm(const Tensor &tensor) {
  long double squares = 0;
  for (int64_t i = 0, e = tensor.numel(); i < e; ++i) {
    double value = tensor.at(i);
    if (std::isfinite(value))
      squares += static_cast<long double>(value) * value;
  }
  return std::sqrt(squares);
}

double relativeDifference(const Tensor &a, const Tensor &b, double floor) {
  if (a.shape() != b.shape())
    return INFINITY;
  long double squares = 0;
  for (int64_t i = 0, e = b.numel(); i < e; ++i) {
    double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return INFINITY;
    squares += (static_cast<long double>(x) - y) * (static_cast<long double>(x) - y);
  }
  if (squares == 0)
    return 0;
  double scale = std::max(norm(b), floor);
  return scale == 0 ? INFINITY : std::sqrt(static_cast<double>(squares)) / scale;
}

static void record(Differences &differences, const std::string &kind, const std::string &key, double difference) {
  KindDifference &entry = differences[kind];
  ++entry.count;
  if (entry.worst.empty() || difference > entry.largest) {
    entry.largest = difference;
    entry.worst = key;
  }
}

/// The parameter whose optimizer state `key` is, or an empty name.
static llvm::StringRef parameterOf(llvm::StringRef key) {
  if (!key.consume_front("optimizer/"))
    return {};
  return key.split('/').second;
}

FailureOr<Differences> compareResults(ModuleOp module, const Results &ours, const Results &expected,
                                      const llvm::StringSet<> &zeroGradient, double noise) {
  Differences differences;
  auto lookup = [&](const NamedResults &results, const std::string &key) -> const Tensor * {
    auto it = results.find(key);
    if (it == results.end()) {
      module.emitError() << "only one of the programs gives '" << key << "'";
      return nullptr;
    }
    return &it->second.value;
  };
  for (size_t i = 0; i < expected.steps.size(); ++i)
    for (const auto &[key, result] : expected.steps[i]) {
      const Tensor *tensor = lookup(ours.steps[i], key);
      if (!tensor)
        return failure();
      record(differences, result.kind, key + " of step " + std::to_string(i),
             relativeDifference(*tensor, result.value));
    }

  for (const auto &[key, result] : ours.state)
    if (!lookup(expected.state, key))
      return failure();
  llvm::StringMap<double> largestNorm;
  llvm::StringSet<> hasState;
  for (const auto &[key, result] : expected.state) {
    double &largest = largestNorm[result.kind];
    largest = std::max(largest, norm(result.value));
    hasState.insert(parameterOf(key));
  }
  for (const auto &[key, result] : expected.state) {
    const Tensor *tensor = lookup(ours.state, key);
    if (!tensor)
      return failure();
    if (zeroGradient.contains(key) && hasState.contains(key))
      continue;
    bool isNoise = zeroGradient.contains(key) || zeroGradient.contains(parameterOf(key));
    double floor = isNoise ? noise * largestNorm[result.kind] : 0;
    record(differences, result.kind, key, relativeDifference(*tensor, result.value, floor));
  }
  return differences;
}

llvm::StringSet<> getZeroGradient(ModuleOp module) {
  llvm::StringSet<> names;
  if (auto list = module->getAttrOfType<ArrayAttr>("spmd.zero_gradient"))
    for (Attribute name : list)
      if (auto string = dyn_cast<StringAttr>(name))
        names.insert(string.getValue());
  return names;
}

double printDifferences(const Differences &differences, llvm::raw_ostream &os) {
  double largest = 0;
  os << "kind                 tensors  largest difference  tensor\n";
  for (const auto &[kind, entry] : differences) {
    os << llvm::format("%-20s %7lld  %18.2e  ", kind.c_str(), static_cast<long long>(entry.count), entry.largest)
       << entry.worst << "\n";
    largest = std::max(largest, entry.largest);
  }
  return largest;
}

void printStatistics(const Statistics &statistics, llvm::raw_ostream &os) {
  for (const auto &[kind, count] : statistics.collectives)
    os << "collectives: " << kind << " " << count.calls << " (" << count.bytes << " bytes per rank)\n";
  double share = statistics.matmulFlops == 0 ? 0 : statistics.replicatedMatmulFlops / statistics.matmulFlops;
  os << llvm::format("replicated matmul flops: %.1f%%\n", 100 * share);
}

} // namespace spmd::interp
