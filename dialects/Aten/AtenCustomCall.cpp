//===- AtenCustomCall.cpp - Sharding of operators of the user's -----------===//

#include "dialects/Aten/AtenCustomCall.h"

#include "dialects/Aten/AtenLaunch.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenVerify.h"
#include "dialects/Aten/TensorType.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

namespace {

/// Reads one text; the first mistake is in `error`.
class ShardingReader {
public:
  explicit ShardingReader(std::string &error) : error(error) {}

  /// The dims of tensors of `shapes`, which are `what`.
  bool read(StringRef text, ArrayRef<ArrayRef<int64_t>> shapes, StringRef what, bool isResult,
            SmallVectorImpl<ShardingRule::Value> &values);

  /// The size of each name, also of the dimensions of "...".
  llvm::StringMap<int64_t> getNamed() const;

  SmallVector<int64_t> sizes;

private:
  bool readEntry(StringRef entry, ArrayRef<int64_t> shape, const Twine &what, bool isResult,
                 ShardingRule::Value &value);
  std::optional<int64_t> getFactor(StringRef name, int64_t size, const Twine &what, bool isResult);
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }

  std::string &error;
  llvm::StringMap<int64_t> factors; ///< by name, looked up only
  std::optional<size_t> leading;    ///< dims of "..."
};

} // namespace

llvm::StringMap<int64_t> ShardingReader::getNamed() const {
  llvm::StringMap<int64_t> named;
  for (const auto &factor : factors)
    named[factor.getKey()] = sizes[factor.getValue()];
  return named;
}

std::optional<int64_t> ShardingReader::getFactor(StringRef name, int64_t size, const Twine &what, bool isResult) {
  auto [it, isNew] = factors.try_emplace(name, sizes.size());
  if (isNew && isResult) {
    fail(what + " has the dimension '" + name + "', which no argument has; one that is made is '_'");
    return std::nullopt;
  }
  if (isNew)
    sizes.push_back(size);
  if (sizes[it->second] != size) {
    fail("dimension '" + name + "' is " + Twine(size) + " in " + what + ", and " + Twine(sizes[it->second]) +
         " before");
    return std::nullopt;
  }
  return it->second;
}

bool ShardingReader::readEntry(StringRef entry, ArrayRef<int64_t> shape, const Twine &what, bool isResult,
                               ShardingRule::Value &value) {
  SmallVector<StringRef> names;
  llvm::SplitString(entry, names);
  bool hasLeading = !names.empty() && names.front() == "...";
  if (hasLeading) {
    names.erase(names.begin());
    if (names.size() > shape.size())
      return fail(what + " has " + Twine(shape.size()) + " dimensions, too few for '" + entry.trim() + "'");
    size_t count = shape.size() - names.size();
    if (leading && *leading != count)
      return fail("'...' is " + Twine(count) + " dimensions in " + what + ", and " + Twine(*leading) + " before");
    leading = count;
  } else if (names.size() != shape.size()) {
    return fail(what + " has " + Twine(shape.size()) + " dimensions, and '" + entry.trim() + "' names " +
                Twine(names.size()));
  }
  size_t before = shape.size() - names.size();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    std::string name = dim < before ? "..." + std::to_string(dim) : names[dim - before].str();
    if (name == "_") {
      value.dims.push_back(ShardingRule::kWhole);
      continue;
    }
    if (dim >= before && !llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      return fail("'" + Twine(name) + "' is no name of a dimension; names have letters and digits, '...' comes first");
    std::optional<int64_t> factor = getFactor(name, size, what, isResult);
    if (!factor)
      return false;
    if (llvm::is_contained(value.dims, *factor))
      return fail(what + " has dimension '" + Twine(name) + "' twice");
    value.dims.push_back(*factor);
  }
  return true;
}

bool ShardingReader::read(StringRef text, ArrayRef<ArrayRef<int64_t>> shapes, StringRef what, bool isResult,
                          SmallVectorImpl<ShardingRule::Value> &values) {
  SmallVector<StringRef> entries;
  if (!shapes.empty() || !text.trim().empty())
    text.split(entries, ',');
  if (entries.size() != shapes.size())
    return fail("it has " + Twine(entries.size()) + " " + what + "s, and the operator " + Twine(shapes.size()));
  for (auto [index, entry] : llvm::enumerate(entries))
    if (!readEntry(entry, shapes[index], what + Twine(" ") + Twine(index), isResult, values.emplace_back()))
      return false;
  return true;
}

std::optional<ShardingRule> spmd::aten::readSharding(StringRef sharding, ArrayRef<StringRef> reduce,
                                                     ArrayRef<ArrayRef<int64_t>> inputs,
                                                     ArrayRef<ArrayRef<int64_t>> results, std::string &error) {
  auto [before, after] = sharding.split("->");
  ShardingReader reader(error);
  ShardingRule rule;
  if (!sharding.contains("->")) {
    error = "it has no '->'";
    return std::nullopt;
  }
  if (!reader.read(before, inputs, "tensor argument", /*isResult=*/false, rule.operands) ||
      !reader.read(after, results, "result", /*isResult=*/true, rule.results))
    return std::nullopt;
  if (reduce.size() != results.size()) {
    error = llvm::formatv("reduce has {0} entries, and the operator {1} results", reduce.size(), results.size());
    return std::nullopt;
  }
  for (auto [index, value] : llvm::enumerate(rule.results)) {
    bool isWhole =
        static_cast<size_t>(llvm::count_if(value.dims, [](int64_t dim) { return dim >= 0; })) == reader.sizes.size();
    auto kind = llvm::StringSwitch<std::optional<ReductionKind>>(reduce[index])
                    .Case("sum", ReductionKind::sum)
                    .Case("max", ReductionKind::max)
                    .Case("min", ReductionKind::min)
                    .Default(std::nullopt);
    if (!kind && !(isWhole && reduce[index].empty())) {
      error =
          llvm::formatv("result {0} lacks a dimension of the arguments, and reduce does not say how it combines over "
                        "it; allowed: sum, max, min; or name the dimension '_'",
                        index);
      return std::nullopt;
    }
    rule.resultReduction.push_back(kind.value_or(ReductionKind::sum));
  }
  rule.factorSizes = reader.sizes;
  rule.neutral.resize(inputs.size());
  rule.dontCare.assign(inputs.size(), false);
  // Whatever rows hold by chance could be row numbers.
  rule.fillsPadding = rule.contractsNoPadding = true;
  return rule;
}

llvm::StringMap<int64_t> spmd::aten::getDimensions(StringRef sharding, ArrayRef<ArrayRef<int64_t>> inputs) {
  std::string error;
  ShardingReader reader(error);
  SmallVector<ShardingRule::Value> values;
  reader.read(sharding.split("->").first, inputs, "tensor argument", /*isResult=*/false, values);
  return reader.getNamed();
}

static SmallVector<ArrayRef<int64_t>> shapesOf(ValueRange values) {
  return llvm::map_to_vector(values, [](Value value) { return typeOf(value).getShape(); });
}

static std::optional<ShardingRule> readShardingOf(CustomCallOp call, std::string &error) {
  SmallVector<StringRef> reduce(call.getReduce().getAsValueRange<StringAttr>());
  return readSharding(call.getSharding(), reduce, shapesOf(call.getInputs()), shapesOf(call.getOuts()), error);
}

Rule spmd::aten::customCallRule(Operation *op) {
  std::string error;
  std::optional<ShardingRule> rule = readShardingOf(cast<CustomCallOp>(op), error);
  if (!rule)
    return failure();
  return *rule;
}

LogicalResult spmd::aten::verifyCustomCall(Operation *op) {
  auto call = cast<CustomCallOp>(op);
  size_t tensors = 0;
  for (Attribute argument : call.getArguments()) { // C1
    tensors += isa<UnitAttr>(argument);
    if (!isa<UnitAttr, IntegerAttr, FloatAttr, DenseI64ArrayAttr, DenseF64ArrayAttr>(argument))
      return op->emitOpError() << "has the argument " << argument
                               << ", expected a number, numbers, or unit for a tensor";
  }
  if (tensors != call.getInputs().size()) // C2
    return op->emitOpError() << "has " << tensors << " tensors among its arguments, and " << call.getInputs().size()
                             << " inputs";
  if (call.getOuts().empty()) // C3
    return op->emitOpError() << "has no result";
  std::string error;
  if (!readShardingOf(call, error)) // C4
    return op->emitOpError() << "has the sharding \"" << call.getSharding() << "\" of '" << call.getOp()
                             << "': " << error;
  bool hasFunction = call.getLibrary() && call.getHash() && call.getSymbol();
  if (!hasFunction && (call.getLibrary() || call.getHash() || call.getSymbol())) // C5
    return op->emitOpError() << "has not all of library, hash and symbol";
  bool hasKernel = call.getNames() && call.getLaunch() && call.getCubins();
  if (!hasKernel && (call.getNames() || call.getLaunch() || call.getCubins())) // C6
    return op->emitOpError() << "has not all of names, launch and cubins";
  if (!hasFunction && !hasKernel) // C7
    return op->emitOpError() << "has neither a function in a library nor a kernel in cubins";
  if (!hasKernel)
    return success();
  if (!readLaunch(call, error)) // C8
    return op->emitOpError() << "has the launch \"" << *call.getLaunch() << "\" of '" << call.getOp() << "': " << error;
  for (StringRef cubin : call.getCubins()->getAsValueRange<StringAttr>()) // C9
    if (!UserCubin::parse(cubin))
      return op->emitOpError() << "has the cubin \"" << cubin << "\", expected CHIP HASH FILE";
  return success();
}

std::optional<LaunchSpec> spmd::aten::readLaunch(CustomCallOp call, std::string &error) {
  SmallVector<StringRef> names(call.getNames()->getAsValueRange<StringAttr>());
  SmallVector<ArrayRef<int64_t>> inputs = shapesOf(call.getInputs()), results = shapesOf(call.getOuts());
  return readLaunch(*call.getLaunch(), {call.getArguments(), names, inputs, results, call.getSharding()}, error);
}
