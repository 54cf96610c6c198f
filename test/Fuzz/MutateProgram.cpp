//===- MutateProgram.cpp --------------------------------------------------===//

#include "MutateProgram.h"

#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace spmd;
using spmd::fuzz::Mutant;

namespace {

bool isReduction(Operation *op) {
  return isa<ReduceScatterOp, ReduceScatterStartOp, AllReduceOp, AllReduceStartOp>(op);
}
bool isGather(Operation *op) { return isa<AllGatherOp, AllGatherStartOp>(op); }

/// The values that a collective gives, through its wait.
SmallVector<Value> getReceived(Operation *op) {
  if (op->getNumResults() == 1 && isa<HandleType>(op->getResult(0).getType())) {
    for (Operation *user : op->getUsers())
      if (isa<WaitOp>(user))
        return llvm::to_vector_of<Value>(user->getResults());
    return {};
  }
  return llvm::to_vector_of<Value>(op->getResults());
}

class Finder {
public:
  explicit Finder(func::FuncOp step) : step(step) {
    for (Operation &op : step.getBody().front()) {
      numbers[&op] = ops.size();
      ops.push_back(&op);
    }
    module = step->getParentOfType<ModuleOp>();
    for (auto unit : module.getOps<ShardUnitOp>())
      units.push_back(FlatSymbolRefAttr::get(unit.getSymNameAttr()));
  }

  std::vector<Mutant> find();

private:
  using Change = std::function<void(ArrayRef<Operation *>, func::FuncOp)>;

  /// A mutant that `change` makes of the ops of a clone, given in the order of this program.
  void add(StringRef className, Operation *at, const Twine &what, Change change) {
    std::string text = describeSource(at->getLoc());
    mutants.push_back({className.str(), (at->getName().getStringRef() + " (" + text + "): " + what).str(),
                       [change = std::move(change)](func::FuncOp clone) {
                         SmallVector<Operation *> ops;
                         for (Operation &op : clone.getBody().front())
                           ops.push_back(&op);
                         change(ops, clone);
                       },
                       nullptr, nullptr, nullptr});
  }
  /// Where a value is in any clone.
  struct Place {
    bool isArgument;
    unsigned op, index;
    Value in(ArrayRef<Operation *> ops, func::FuncOp clone) const {
      return isArgument ? Value(clone.getArgument(index)) : Value(ops[op]->getResult(index));
    }
  };
  Place placeOf(Value value) const {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return {true, 0, argument.getArgNumber()};
    auto result = cast<OpResult>(value);
    return {false, numbers.at(result.getOwner()), result.getResultNumber()};
  }
  bool isBefore(Value value, Operation *op) const {
    return isa<BlockArgument>(value) || value.getDefiningOp()->isBeforeInBlock(op);
  }

  void findReductions(Operation *op);
  void findGathers(Operation *op);
  void findUnits(Operation *op);
  void findPacks(Operation *op);
  void findMasks(Operation *op);
  void findOptimizer(Operation *op);
  void findSchedule(Operation *op);
  void findSwaps();
  void findResults();
  /// Operand `index` of `op` becomes `value`.
  void addOperand(StringRef className, Operation *op, unsigned index, Value value, const Twine &what) {
    add(className, op, what, [n = numbers[op], index, place = placeOf(value)](ArrayRef<Operation *> ops, auto clone) {
      ops[n]->setOperand(index, place.in(ops, clone));
    });
    mutants.back().at = op;
    mutants.back().before = op->getOperand(index);
    mutants.back().after = value;
  }
  void addSwap(StringRef className, Value a, Value b, const Twine &what) {
    Operation *at = b.getDefiningOp() ? b.getDefiningOp() : step.getOperation();
    add(className, at, what, [a = placeOf(a), b = placeOf(b)](ArrayRef<Operation *> ops, func::FuncOp clone) {
      Value first = a.in(ops, clone), second = b.in(ops, clone);
      Operation *later = second.getDefiningOp();
      SmallVector<OpOperand *> ofFirst, ofSecond;
      for (OpOperand &use : first.getUses())
        if (!later || (later != use.getOwner() && later->isBeforeInBlock(use.getOwner())))
          ofFirst.push_back(&use);
      for (OpOperand &use : second.getUses())
        ofSecond.push_back(&use);
      for (OpOperand *use : ofFirst)
        use->set(second);
      for (OpOperand *use : ofSecond)
        use->set(first);
    });
  }

  func::FuncOp step;
  ModuleOp module;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, unsigned> numbers;
  SmallVector<FlatSymbolRefAttr> units;
  std::vector<Mutant> mutants;
};

} // namespace

void Finder::findReductions(Operation *op) {
  if (!isReduction(op))
    return;
  SmallVector<Value> received = getReceived(op);
  for (auto [index, value] : llvm::enumerate(received)) {
    Value operand = op->getOperand(index);
    if (isa<AllReduceOp, AllReduceStartOp>(op)) {
      // Each rank goes on with its part, and types say so, or say that it had been reduced.
      for (bool isHidden : {false, true})
        add(isHidden ? "lose-reduction-hidden" : "lose-reduction", op, "value " + Twine(index) + " is not reduced",
            [from = placeOf(operand), to = placeOf(value), isHidden](ArrayRef<Operation *> ops, func::FuncOp clone) {
              Value part = from.in(ops, clone), whole = to.in(ops, clone);
              whole.replaceAllUsesWith(part);
              if (isHidden)
                part.setType(whole.getType());
            });
      add("reduce-twice", op, "value " + Twine(index) + " is reduced again",
          [to = placeOf(value), n = numbers[op], index = index](ArrayRef<Operation *> ops, func::FuncOp clone) {
            Value whole = to.in(ops, clone);
            OpBuilder builder(whole.getDefiningOp());
            builder.setInsertionPointAfter(whole.getDefiningOp());
            auto collective = cast<CollectiveOpInterface>(ops[n]);
            auto kinds = builder.getArrayAttr({ops[n]->getAttrOfType<ArrayAttr>("kinds")[index]});
            Operation *again;
            if (isa<AllReduceStartOp>(ops[n])) {
              auto handle = HandleType::get(clone.getContext(), {whole.getType()});
              auto start =
                  AllReduceStartOp::create(builder, whole.getLoc(), handle, ValueRange{whole}, collective.getMeshAttr(),
                                           collective.getAxesAttr(), FlatSymbolRefAttr(), kinds,
                                           StreamAttr::get(clone.getContext(), Stream::scalar));
              again = WaitOp::create(builder, whole.getLoc(), TypeRange{whole.getType()}, start);
              whole.replaceAllUsesExcept(again->getResult(0), start);
            } else {
              again = AllReduceOp::create(builder, whole.getLoc(), TypeRange{whole.getType()}, ValueRange{whole},
                                          collective.getMeshAttr(), collective.getAxesAttr(), FlatSymbolRefAttr(),
                                          kinds);
              whole.replaceAllUsesExcept(again->getResult(0), again);
            }
          });
    } else {
      add("lose-reduction", op, "each rank takes its rows of its own part",
          [from = placeOf(operand), to = placeOf(value), n = numbers[op]](ArrayRef<Operation *> ops,
                                                                          func::FuncOp clone) {
            Value part = from.in(ops, clone), chunk = to.in(ops, clone);
            OpBuilder builder(ops[n]);
            auto collective = cast<CollectiveOpInterface>(ops[n]);
            auto number = [&](StringRef name) { return ops[n]->getAttrOfType<IntegerAttr>(name); };
            auto slice =
                SliceOp::create(builder, ops[n]->getLoc(), chunk.getType(), part, collective.getMeshAttr(),
                                collective.getAxesAttr(), number("dim"), number("pre"), number("chunk"));
            chunk.replaceAllUsesWith(slice);
            for (Operation *user : llvm::make_early_inc_range(ops[n]->getUsers()))
              user->erase();
            ops[n]->erase();
          });
    }
  }
  for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max}) {
    Attribute attr = ReduceKindAttr::get(step.getContext(), kind);
    auto kinds = op->getAttrOfType<ArrayAttr>("kinds");
    if (op->getAttr("kind") == attr || (kinds && llvm::all_of(kinds, [&](Attribute each) { return each == attr; })))
      continue;
    add("change-kind", op, "reduces by " + stringifyReduceKind(kind),
        [kind, n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp clone) {
          auto attr = ReduceKindAttr::get(clone.getContext(), kind);
          if (ops[n]->hasAttr("kind"))
            ops[n]->setAttr("kind", attr);
          else
            ops[n]->setAttr("kinds", ArrayAttr::get(clone.getContext(), SmallVector<Attribute>(
                                                                            ops[n]->getNumOperands(), attr)));
        });
  }
  for (Operation *other : ops)
    if (isReduction(other) && op->isBeforeInBlock(other) && other->getOperand(0).getType() == op->getOperand(0).getType())
      addOperand("reduce-another", other, 0, op->getOperand(0), "reduces what an earlier one has reduced");
}

void Finder::findGathers(Operation *op) {
  if (!isGather(op))
    return;
  for (BlockArgument argument : step.getArguments())
    if (argument != op->getOperand(0) && argument.getType() == op->getOperand(0).getType())
      addOperand("gather-another", op, 0, argument, "sends argument " + Twine(argument.getArgNumber()));
  for (Operation *other : ops)
    if (isGather(other) && op->isBeforeInBlock(other) && other->getResultTypes() == op->getResultTypes() &&
        other->getOperand(0) != op->getOperand(0))
      add("swap-gathers", other, "sends what an earlier one sends, and that what it sends",
          [a = numbers[op], b = numbers[other]](ArrayRef<Operation *> ops, func::FuncOp) {
            Value first = ops[a]->getOperand(0);
            if (Operation *producer = ops[b]->getOperand(0).getDefiningOp(); producer && !producer->isBeforeInBlock(ops[a]))
              return;
            ops[a]->setOperand(0, ops[b]->getOperand(0));
            ops[b]->setOperand(0, first);
          });
}

void Finder::findUnits(Operation *op) {
  auto unit = op->getAttrOfType<FlatSymbolRefAttr>("unit");
  for (FlatSymbolRefAttr other : units)
    if (unit && other != unit)
      add("wrong-unit", op, "of unit " + other.getValue(),
          [other, n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) { ops[n]->setAttr("unit", other); });
}

void Finder::findPacks(Operation *op) {
  auto pack = dyn_cast<PackOp>(op);
  auto unpack = dyn_cast<UnpackOp>(op);
  if (!pack && !unpack)
    return;
  ValueRange values = pack ? ValueRange(pack.getValues()) : ValueRange(unpack.getValues());
  ArrayAttr names = pack ? pack.getNames() : unpack.getNames();
  for (auto [i, a] : llvm::enumerate(values))
    for (auto [j, b] : llvm::enumerate(values))
      if (i < j && a.getType() == b.getType())
        add(pack ? "swap-segments" : "swap-parameters", op, llvm::formatv("{0} and {1}", names[i], names[j]).str(),
            [i = i, j = j, n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
              auto names = llvm::to_vector(ops[n]->getAttrOfType<ArrayAttr>("names"));
              std::swap(names[i], names[j]);
              ops[n]->setAttr("names", ArrayAttr::get(ops[n]->getContext(), names));
            });
  for (unsigned i = 0; pack && i != values.size() && values.size() > 1; ++i)
    add("lose-segment", op, llvm::formatv("{0} is zero", names[i]).str(),
        [i, n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
          auto names = llvm::to_vector(ops[n]->getAttrOfType<ArrayAttr>("names"));
          names.erase(names.begin() + i);
          ops[n]->setAttr("names", ArrayAttr::get(ops[n]->getContext(), names));
          ops[n]->eraseOperand(i);
        });
}

void Finder::findMasks(Operation *op) {
  auto mask = dyn_cast<MaskOp>(op);
  if (!mask)
    return;
  add("lose-mask", op, "padded rows stay as they are", [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
    ops[n]->getResult(0).replaceAllUsesWith(ops[n]->getOperand(0));
  });
  add("change-fill", op, "padded rows become 1", [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp clone) {
    ops[n]->setAttr("fill", FloatAttr::get(Float64Type::get(clone.getContext()), 1.0));
  });
  add("change-rows", op, "one row of padding less", [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp clone) {
    auto total = ops[n]->getAttrOfType<IntegerAttr>("total");
    ops[n]->setAttr("total", IntegerAttr::get(total.getType(), total.getInt() + 1));
  });
}

/// Ops of the optimizer and the scalars between them take something else of the same type.
void Finder::findOptimizer(Operation *op) {
  bool isOptimizer = getPhase(op) == StepPhase::optimizer;
  if (!isa<aten::AtenOpInterface>(op))
    return;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Type type = operand.getType();
    if (isOptimizer) {
      for (BlockArgument argument : step.getArguments())
        if (argument != operand && argument.getType() == type)
          addOperand("another-state", op, index, argument,
                     "operand " + Twine(index) + " is argument " + Twine(argument.getArgNumber()));
      // A gradient that no rank has in full: its own part's rows.
      Operation *wait = operand.getDefiningOp();
      auto produced = dyn_cast_or_null<WaitOp>(wait);
      Operation *reduction = produced ? produced.getHandle().getDefiningOp() : wait;
      if (reduction && isa<ReduceScatterOp, ReduceScatterStartOp>(reduction))
        add("unreduced-gradient", op, "operand " + Twine(index) + " is this rank's own part",
            [index = index, n = numbers[op], r = numbers[reduction]](ArrayRef<Operation *> ops, func::FuncOp) {
              OpBuilder builder(ops[n]);
              auto collective = cast<CollectiveOpInterface>(ops[r]);
              auto number = [&](StringRef name) { return ops[r]->getAttrOfType<IntegerAttr>(name); };
              auto slice = SliceOp::create(builder, ops[n]->getLoc(), ops[n]->getOperand(index).getType(),
                                           ops[r]->getOperand(0), collective.getMeshAttr(), collective.getAxesAttr(),
                                           number("dim"), number("pre"), number("chunk"));
              ops[n]->setOperand(index, slice);
            });
    }
    // Another value of this type, of an op nearby.
    unsigned tried = 0;
    for (Operation *other = op->getPrevNode(); other && tried < 20; other = other->getPrevNode(), ++tried)
      for (Value value : other->getResults())
        if (value != operand && value.getType() == type && operand.getDefiningOp() != other) {
          addOperand(isOptimizer ? "another-value-in-optimizer" : "another-value", op, index, value,
                     "operand " + Twine(index) + " is a result of " + other->getName().getStringRef());
          tried = 20;
        }
    if (isOptimizer && op->getNumResults() == 1 && op->getResult(0).getType() == type)
      add("lose-op", op, "its operand " + Twine(index) + " goes on instead",
          [index = index, n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
            ops[n]->getResult(0).replaceAllUsesWith(ops[n]->getOperand(index));
          });
  }
}

void Finder::findSchedule(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    for (Operation *other : ops)
      if (isa<WaitOp>(other) && other->isBeforeInBlock(op) && other->getResultTypes() == op->getResultTypes())
        add("lose-wait", op, "what an earlier one waited for is taken instead",
            [a = numbers[other], n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
              ops[n]->replaceAllUsesWith(ops[a]->getResults());
              ops[n]->erase();
            });
    add("wait-twice", op, "waits again", [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
      OpBuilder builder(ops[n]);
      builder.setInsertionPointAfter(ops[n]);
      builder.clone(*ops[n]);
    });
    add("wait-earlier", op, "waits right after the start", [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
      ops[n]->moveAfter(ops[n]->getOperand(0).getDefiningOp());
    });
  }
  if (auto release = dyn_cast<ReleaseOp>(op)) {
    add("lose-release", op, "is not released",
        [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) { ops[n]->erase(); });
    add("release-twice", op, "is released again",
        [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) { OpBuilder(ops[n]).clone(*ops[n]); });
    add("release-early", op, "is released before its last reader",
        [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
          ops[n]->moveAfter(ops[n]->getOperand(0).getDefiningOp());
        });
    add("release-late", op, "is released one op later", [n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp) {
      if (Operation *next = ops[n]->getNextNode(); next && !next->hasTrait<OpTrait::IsTerminator>())
        ops[n]->moveAfter(next);
    });
  }
  if (auto stream = op->getAttrOfType<StreamAttr>("stream"))
    for (Stream other : {Stream::gather, Stream::reduce, Stream::scalar})
      if (other != stream.getValue())
        add("wrong-stream", op, "on " + stringifyStream(other),
            [other, n = numbers[op]](ArrayRef<Operation *> ops, func::FuncOp clone) {
              ops[n]->setAttr("stream", StreamAttr::get(clone.getContext(), other));
            });
}

/// Two values that collectives gave, of one type.
void Finder::findSwaps() {
  struct Received {
    Value value, sent;
    bool isReduced;
  };
  SmallVector<Received> all;
  for (Operation *op : ops)
    if (isa<CollectiveOpInterface>(op))
      for (auto [value, sent] : llvm::zip(getReceived(op), op->getOperands()))
        all.push_back({value, sent, isReduction(op)});
  for (auto [i, a] : llvm::enumerate(all))
    for (const Received &b : llvm::drop_begin(all, i + 1))
      if (a.value.getType() == b.value.getType() && a.isReduced == b.isReduced && a.sent != b.sent)
        addSwap(a.isReduced ? "swap-reduced" : "swap-gathered", a.value, b.value,
                "is taken for an earlier one, and that for it");
}

void Finder::findResults() {
  Operation *terminator = ops.back();
  for (OpOperand &a : terminator->getOpOperands()) {
    for (OpOperand &b : terminator->getOpOperands())
      if (a.getOperandNumber() < b.getOperandNumber() && a.get().getType() == b.get().getType() && a.get() != b.get())
        add("swap-results", terminator,
            "results " + Twine(a.getOperandNumber()) + " and " + Twine(b.getOperandNumber()),
            [i = a.getOperandNumber(), j = b.getOperandNumber()](ArrayRef<Operation *> ops, func::FuncOp) {
              Value first = ops.back()->getOperand(i);
              ops.back()->setOperand(i, ops.back()->getOperand(j));
              ops.back()->setOperand(j, first);
            });
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, a.getOperandNumber()));
    if (std::optional<unsigned> argument = update ? findArg(step, update.getArg()) : std::nullopt)
      if (step.getArgument(*argument) != a.get())
        addOperand("stale-state", terminator, a.getOperandNumber(), step.getArgument(*argument),
                   "result " + Twine(a.getOperandNumber()) + " is the old value");
  }
}

std::vector<Mutant> Finder::find() {
  for (Operation *op : ops) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      break;
    findReductions(op);
    findGathers(op);
    findUnits(op);
    findPacks(op);
    findMasks(op);
    findOptimizer(op);
    findSchedule(op);
  }
  findSwaps();
  findResults();
  return std::move(mutants);
}

std::vector<Mutant> spmd::fuzz::findMutants(func::FuncOp step) { return Finder(step).find(); }

namespace {

/// No result of the step depends on `op`.
bool isDead(Operation *op) {
  SmallVector<Operation *> open{op};
  llvm::DenseSet<Operation *> seen;
  while (!open.empty()) {
    Operation *next = open.pop_back_val();
    if (next->hasTrait<OpTrait::IsTerminator>())
      return false;
    if (seen.insert(next).second)
      llvm::append_range(open, next->getUsers());
  }
  return true;
}

/// Both are computed by the same ops from the same arguments and constants.
bool isSameExpression(Value a, Value b) {
  SmallVector<std::pair<Value, Value>> open{{a, b}};
  llvm::DenseSet<std::pair<Value, Value>> seen;
  while (!open.empty()) {
    auto [first, second] = open.pop_back_val();
    if (first == second || !seen.insert({first, second}).second)
      continue;
    auto one = dyn_cast<OpResult>(first), other = dyn_cast<OpResult>(second);
    if (!one || !other)
      return false;
    Operation *left = one.getOwner(), *right = other.getOwner();
    if (auto from = dyn_cast<UnpackOp>(left), to = dyn_cast<UnpackOp>(right); from && to) {
      // One of them may take other segments of the unit as well.
      if (from.getNames()[one.getResultNumber()] != to.getNames()[other.getResultNumber()])
        return false;
      open.push_back({from->getOperand(0), to->getOperand(0)});
      continue;
    }
    // Properties hold the attributes of an op; where it came from is in discardable ones and in its location.
    if (one.getResultNumber() != other.getResultNumber() || left->getName() != right->getName() ||
        left->getNumOperands() != right->getNumOperands() || left->getResultTypes() != right->getResultTypes() ||
        left->getPropertiesAsAttribute() != right->getPropertiesAsAttribute())
      return false;
    for (auto operands : llvm::zip(left->getOperands(), right->getOperands()))
      open.push_back({std::get<0>(operands), std::get<1>(operands)});
  }
  return true;
}

} // namespace

std::string spmd::fuzz::getHarmlessReason(const Mutant &mutant) {
  if (mutant.className == "wait-earlier")
    return "a wait may stand anywhere between the start and the first use";
  if (mutant.className == "release-late")
    return "a release may stand anywhere after the last use";
  if (mutant.at && isDead(mutant.at))
    return "no result depends on it";
  if (mutant.before && isSameExpression(mutant.before, mutant.after))
    return "both values are the same expression";
  return "";
}
