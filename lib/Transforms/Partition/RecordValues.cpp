//===- RecordValues.cpp - spmd-record-values ------------------------------===//
//
// [Note: recorded values]
// What a gradient or a result of the step is, is an expression: ops and their attributes, down to arguments by role.
// Passes that only move communication leave it as it is, whatever they merge, split or reorder. Its hash is taken after
// a phase that makes new arithmetic, and compared by the verifiers of the phases after it. A collective counts as what
// it computes, so that neither the form of a start and a wait nor who shares a message changes a value.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/Partition/Verify.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/Support/xxhash.h"
#include <map>

namespace spmd {
#define GEN_PASS_DEF_RECORDVALUES
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;

namespace {

constexpr StringLiteral kResultsKey = "results";

/// Hashes of the values of a step. The same on every machine: of text and numbers, never of addresses.
class Fingerprints {
public:
  explicit Fingerprints(func::FuncOp step);

  uint64_t of(Value value) const { return hashes.lookup(value); }

private:
  using Words = SmallVector<uint64_t, 16>;

  static uint64_t hash(ArrayRef<uint64_t> words) {
    return llvm::xxh3_64bits(
        ArrayRef(reinterpret_cast<const uint8_t *>(words.data()), words.size() * sizeof(uint64_t)));
  }
  static uint64_t hash(StringRef text) { return llvm::xxh3_64bits(text); }
  /// Attributes and types by their text; few of them are different.
  uint64_t hash(Attribute attr) { return hashText(attr, attr.getAsOpaquePointer()); }
  uint64_t hash(Type type) { return hashText(type, type.getAsOpaquePointer()); }
  template <typename T>
  uint64_t hashText(T printed, const void *key) {
    auto [entry, isNew] = texts.try_emplace(key, 0);
    if (isNew) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << printed;
      entry->second = hash(StringRef(text));
    }
    return entry->second;
  }
  void visit(Operation *op);
  void visitCollective(CollectiveOpInterface op);
  /// Name and attributes of an op, but for those that say where and when it runs.
  Words describe(Operation *op, StringRef name, ArrayRef<StringRef> without = {});

  llvm::DenseMap<Value, uint64_t> hashes;
  /// How a cast was hashed: the hash of what it casts, the element type of that, and the words of the cast.
  struct Cast {
    uint64_t source;
    Type from;
    Words words;
  };
  uint64_t hashCast(const Cast &cast, Type type);
  /// The hash of what moves the elements of a value and is hashed by `of(hash of the value, result type)`.
  uint64_t hashMove(uint64_t value, Type type, function_ref<uint64_t(uint64_t, Type)> of);

  std::map<uint64_t, Cast> casts; ///< by the hash of their results
  llvm::DenseMap<const void *, uint64_t> texts;
  /// Of what a handle stands for.
  llvm::DenseMap<Value, SmallVector<uint64_t>> received;
};

} // namespace

Fingerprints::Fingerprints(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments()) {
    Attribute role = getArgRole(step, argument.getArgNumber());
    hashes[argument] = hash({hash("argument"), role ? hash(role) : argument.getArgNumber(), hash(argument.getType())});
  }
  for (Operation &op : step.getBody().front().without_terminator())
    visit(&op);
}

Fingerprints::Words Fingerprints::describe(Operation *op, StringRef name, ArrayRef<StringRef> without) {
  Words words{hash(name)};
  for (NamedAttribute attr : op->getAttrs())
    if (attr.getName() != kSegmentAttr && attr.getName() != kRecomputedAttr && !llvm::is_contained(without, attr.getName().getValue()))
      words.append({hash(attr.getName().getValue()), hash(attr.getValue())});
  return words;
}

uint64_t Fingerprints::hashCast(const Cast &cast, Type type) {
  Words words = cast.words;
  words.append({cast.source, 0, hash(type)});
  uint64_t result = hash(words);
  casts.try_emplace(result, cast);
  return result;
}

uint64_t Fingerprints::hashMove(uint64_t value, Type type, function_ref<uint64_t(uint64_t, Type)> of) {
  auto entry = casts.find(value);
  if (entry == casts.end())
    return of(value, type);
  Cast cast = entry->second;
  cast.source = hashMove(cast.source, mlir::cast<RankedTensorType>(type).clone(cast.from), of);
  return hashCast(cast, type);
}

/// The value that a gather puts together again from what a slice has cut it into; null when it does not.
static Value getPutTogether(CollectiveOpInterface op) {
  auto slice = op->getOperand(0).getDefiningOp<SliceOp>();
  bool isGather = op.getCollectiveKind() == CollectiveKind::AllGather;
  if (!isGather || !slice || slice.getAxesAttr() != op.getAxesAttr() || slice.getMeshAttr() != op.getMeshAttr() ||
      slice.getDimAttr() != op->getAttr("dim") || slice.getPreAttr() != op->getAttr("pre") ||
      slice.getInput().getType() != op.getReceivedTypes().front())
    return {};
  return slice.getInput();
}

void Fingerprints::visitCollective(CollectiveOpInterface op) {
  ArrayAttr kinds = op->getAttrOfType<ArrayAttr>("kinds");
  SmallVector<uint64_t> values;
  for (auto [index, type] : llvm::enumerate(op.getReceivedTypes())) {
    uint64_t kind = kinds ? hash(kinds[index]) : 0;
    auto hashWith = [&, kind](uint64_t operand, Type type) {
      Words words = describe(op, op.getCollectiveName(), {"stream", "kinds"});
      words.append({kind, operand, hash(type)});
      return hash(words);
    };
    uint64_t operand = of(op->getOperand(index));
    bool isGather = op.getCollectiveKind() == CollectiveKind::AllGather;
    if (Value whole = getPutTogether(op))
      values.push_back(of(whole));
    else
      values.push_back(isGather ? hashMove(operand, type, hashWith) : hashWith(operand, type));
  }
  if (op.isStart())
    received[op->getResult(0)] = values;
  else
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      hashes[result] = value;
}

void Fingerprints::visit(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return visitCollective(collective);
  if (auto wait = dyn_cast<WaitOp>(op)) {
    for (auto [result, value] : llvm::zip(wait.getResults(), received.lookup(wait.getHandle())))
      hashes[result] = value;
    return;
  }
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    for (OpResult result : unpack->getResults())
      hashes[result] = hashMove(of(unpack.getFlat()), result.getType(), [&](uint64_t flat, Type type) {
        // Whoever unpacks other parameters beside it, a parameter is the same.
        Words words = describe(op, op->getName().getStringRef(), {"names"});
        words.append({flat, hash(unpack.getNames()[result.getResultNumber()]), hash(type)});
        return hash(words);
      });
    return;
  }
  if (auto copy = dyn_cast<aten::CloneOp>(op)) {
    hashes[copy] = of(copy.getSelf());
    return;
  }
  Words words = describe(op, op->getName().getStringRef());
  if (auto narrow = dyn_cast<aten::ToCopyOp>(op)) {
    Type from = narrow.getSelf().getType().getElementType();
    hashes[narrow] = hashCast({of(narrow.getSelf()), from, words}, narrow.getType());
    return;
  }
  for (Value operand : op->getOperands())
    words.push_back(of(operand));
  for (OpResult result : op->getResults()) {
    Words each = words;
    each.append({result.getResultNumber(), hash(result.getType())});
    hashes[result] = hash(each);
  }
}

/// Calls visit(unit, parameter, value, pack) for each gradient that is packed to be reduced.
static void forEachGradient(func::FuncOp step, function_ref<void(StringRef, StringRef, Value, PackOp)> visit) {
  for (auto pack : step.getBody().front().getOps<PackOp>())
    if (llvm::any_of(pack->getUsers(), llvm::IsaPred<CollectiveOpInterface>))
      for (auto [value, name] : llvm::zip(pack.getValues(), pack.getNames().getAsValueRange<StringAttr>()))
        visit(pack.getUnitAttr().getValue(), name, value, pack);
}

static DictionaryAttr record(func::FuncOp step) {
  Fingerprints fingerprints(step);
  Builder builder(step.getContext());
  auto number = [&](uint64_t hash) { return builder.getI64IntegerAttr(static_cast<int64_t>(hash)); };
  NamedAttrList gradients;
  forEachGradient(step, [&](StringRef, StringRef name, Value value, PackOp) {
    gradients.set(name, number(fingerprints.of(value)));
  });
  SmallVector<int64_t> results;
  for (Value value : step.getBody().front().getTerminator()->getOperands())
    results.push_back(static_cast<int64_t>(fingerprints.of(value)));
  return builder.getDictionaryAttr({builder.getNamedAttr("gradients", gradients.getDictionary(step.getContext())),
                                    builder.getNamedAttr(kResultsKey, builder.getDenseI64ArrayAttr(results))});
}

LogicalResult spmd::verifyRecordedValues(func::FuncOp step) {
  auto recorded = step->getAttrOfType<DictionaryAttr>(kRecordedValuesAttr);
  if (!recorded)
    return success();
  auto gradients = recorded.getAs<DictionaryAttr>("gradients");
  auto results = recorded.getAs<DenseI64ArrayAttr>(kResultsKey);
  Operation *terminator = step.getBody().front().getTerminator();
  if (!gradients || !results || results.size() != static_cast<int64_t>(terminator->getNumOperands()))
    return step.emitError() << "has a malformed " << kRecordedValuesAttr;
  DictionaryAttr now = record(step);
  constexpr StringLiteral hint = "; if the change is meant, remove spmd.recorded_values from @step";
  LogicalResult result = success();
  forEachGradient(step, [&](StringRef, StringRef name, Value, PackOp pack) {
    if (succeeded(result) && gradients.get(name) != now.getAs<DictionaryAttr>("gradients").get(name))
      result = pack->emitError() << "'" << pack->getName() << "' (" << describeSource(pack.getLoc())
                                 << ") has another value for parameter '" << name
                                 << "' than the gradient that was recorded for it" << hint;
  });
  if (failed(result))
    return failure();
  if (gradients.size() != now.getAs<DictionaryAttr>("gradients").size())
    return step.emitError() << "reduces the gradients of " << now.getAs<DictionaryAttr>("gradients").size()
                            << " parameters, " << gradients.size() << " were recorded" << hint;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    if (results[index] == now.getAs<DenseI64ArrayAttr>(kResultsKey)[index])
      continue;
    Location loc = value.getDefiningOp() ? value.getLoc() : step.getLoc();
    return emitError(loc) << "result " << index << " of @step, " << getResultRole(step, index)
                          << ", is another value than the one that was recorded for it" << hint;
  }
  return success();
}

namespace {
struct RecordValuesPass : StepPass<spmd::impl::RecordValuesBase<RecordValuesPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    step->setAttr(kRecordedValuesAttr, record(step));
    return success();
  }
};
} // namespace
