//===- UnsortRows.cpp - spmd-unsort-rows ----------------------------------===//
//
// [Note: sorted and unsorted]
// P is the permutation that a sort gives: sorted[s] = unsorted[P[s]]. A value V "is sorted" along a dim when a value U is
// known with V = U, rows taken in the order P. The sort's values are so of what it sorts, its indices of 0, 1, 2, ...,
// and what is gathered by them of what is gathered by 0, 1, 2, ... An op whose rule has a factor for the rows computes
// on each rank's rows alone, of any number of ranks: on each row alone. So it makes a sorted value of sorted ones, and
// where it sums rows up, it may as well sum them in their own order. The inverse of P puts rows back, and a gradient
// that is scattered by the inverse is sorted.
//
//===----------------------------------------------------------------------===//

#include "../Emitter.h"
#include "SortedGroups.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Import/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace spmd {
#define GEN_PASS_DEF_UNSORTROWSPASS
#include "spmd/Import/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using aten::GatherRowsOp;
using aten::ScatterRowsOp;
using aten::ShardingRule;
using aten::SortStableOp;

namespace {

/// What a sorted value is of: the rows are those of dim `dim`.
struct Unsorted {
  Value value;
  int64_t dim = 0;
};

/// Follows what one sort gives.
class Unsorting {
public:
  Unsorting(SortStableOp sort, KnownIntegers &known, IntegerRanges &ranges);
  /// True if the step changed.
  bool run();

private:
  void visit(Operation *op);
  bool visitInverse(Operation *op);
  bool visitRowsBack(Operation *op);
  bool visitKnownRows(Operation *op);
  bool visitView(Operation *op);
  void visitRowwise(Operation *op);
  bool isWorthwhile();

  bool isIndexOfRows(Value index, int64_t batchDims) const {
    return batchDims == 0 && typeOf(index).getRank() == 1 && typeOf(index).getNumElements() == rows;
  }
  Value make(Operation *like, StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attrs, Type type);
  Value makeView(Operation *like, Value value, ArrayRef<int64_t> shape);
  Value resolve(Value value) const {
    auto found = replacements.find(value);
    return found == replacements.end() ? value : found->second;
  }
  void bind(Operation *original, Value sorted, Value unsorted, int64_t dim) {
    forms[sorted] = {resolve(unsorted), dim};
    originals.insert(original);
  }
  void replace(Operation *original, Value result, Value by) {
    replacements.insert({result, resolve(by)});
    originals.insert(original);
  }

  SortStableOp sort;
  KnownIntegers &known;
  IntegerRanges &ranges;
  int64_t rows;
  llvm::DenseMap<Value, Unsorted> forms;
  /// Values that are the inverse permutation.
  llvm::DenseSet<Value> inverses;
  /// Ops made, ops that they stand for, and values that are as well these others.
  SmallVector<Operation *> made;
  llvm::SetVector<Operation *> originals;
  llvm::MapVector<Value, Value> replacements;
};

struct UnsortRowsPass : StepPass<spmd::impl::UnsortRowsPassBase<UnsortRowsPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    SmallVector<SortStableOp> sorts;
    for (SortStableOp sort : step.getOps<SortStableOp>())
      if (RankedTensorType type = typeOf(sort.getSelf());
          type.getRank() == 1 && isa<IntegerType>(type.getElementType()) && type.getNumElements() > 1)
        sorts.push_back(sort);
    if (sorts.empty())
      return success();
    nameGroups(step, sorts);
    for (SortStableOp sort : sorts) {
      // What is known of values that are gone, other values may be taken for.
      KnownIntegers known;
      IntegerRanges ranges;
      if (Unsorting(sort, known, ranges).run())
        eraseDead(step);
    }
    return success();
  }

private:
  /// Groups that are said by their ends are the sorted numbers.
  static void nameGroups(func::FuncOp step, ArrayRef<SortStableOp> sorts) {
    KnownIntegers known;
    IntegerRanges ranges;
    SmallVector<std::pair<Value, SortStableOp>> found;
    for (aten::SumDimIntListOp sum : step.getOps<aten::SumDimIntListOp>())
      if (SortStableOp sort = findSortOfGroups(sum.getResult(), sorts, known, ranges))
        found.push_back({sum.getResult(), sort});
    for (auto [groups, sort] : found) {
      Operation *sum = groups.getDefiningOp();
      if (!sort->isBeforeInBlock(sum))
        continue;
      Value numbers = sort.getValues();
      if (numbers.getType() != groups.getType()) {
        OpBuilder builder(sum);
        OperationState state(sum->getLoc(), aten::ToCopyOp::getOperationName(), numbers, groups.getType());
        state.addAttribute("dtype", TypeAttr::get(typeOf(groups).getElementType()));
        if (Attribute segment = sum->getAttr(kSegmentAttr))
          state.addAttribute(kSegmentAttr, segment);
        numbers = builder.create(state)->getResult(0);
      }
      groups.replaceAllUsesWith(numbers);
    }
    if (!found.empty())
      eraseDead(step);
  }

  static void eraseDead(func::FuncOp step) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace

Unsorting::Unsorting(SortStableOp sort, KnownIntegers &known, IntegerRanges &ranges)
    : sort(sort), known(known), ranges(ranges), rows(typeOf(sort.getValues()).getNumElements()) {}

//===----------------------------------------------------------------------===//
// Making ops
//===----------------------------------------------------------------------===//

Value Unsorting::make(Operation *like, StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attrs, Type type) {
  OpBuilder builder(like);
  OperationState state(like->getLoc(), name, operands, type, attrs);
  if (Attribute segment = like->getAttr(kSegmentAttr))
    state.addAttribute(kSegmentAttr, segment);
  made.push_back(builder.create(state));
  return made.back()->getResult(0);
}

Value Unsorting::makeView(Operation *like, Value value, ArrayRef<int64_t> shape) {
  if (typeOf(value).getShape() == shape)
    return value;
  Builder b(like->getContext());
  return make(like, aten::ViewOp::getOperationName(), value, b.getNamedAttr("size", b.getDenseI64ArrayAttr(shape)),
              typeOf(value).clone(shape));
}

//===----------------------------------------------------------------------===//
// Following values
//===----------------------------------------------------------------------===//

/// What makes the inverse of P: 0, 1, 2, ... written where P says, or what sorts P.
bool Unsorting::visitInverse(Operation *op) {
  auto isPermutation = [&](Value value) {
    auto form = forms.find(value);
    return form != forms.end() && known.isCounting(form->second.value);
  };
  if (auto scatter = dyn_cast<ScatterRowsOp>(op)) {
    if (isIndexOfRows(scatter.getIndex(), scatter.getBatchDims()) && static_cast<int64_t>(scatter.getRows()) == rows &&
        scatter.getReduce() == "set" && isPermutation(scatter.getIndex()) && known.isCounting(scatter.getSrc()))
      return inverses.insert(scatter.getResult()).second;
  } else if (auto other = dyn_cast<SortStableOp>(op)) {
    if (typeOf(other.getSelf()).getRank() == 1 && !other.getDescending() && isPermutation(other.getSelf()))
      return inverses.insert(other.getIndices()).second;
  } else if (auto where = dyn_cast<aten::WhereSelfOp>(op)) { // negative ones counted from the end: there are none
    aten::KnownRange chooses = ranges.get(where.getCondition());
    if (inverses.contains(where.getOther()) && chooses && chooses->high == 0)
      return inverses.insert(where.getResult()).second;
  } else if (auto cast = dyn_cast<aten::ToCopyOp>(op)) {
    if (inverses.contains(cast.getSelf()) && aten::movesIntegers(cast))
      return inverses.insert(cast->getResult(0)).second;
  }
  return false;
}

/// Rows that are put back, or whose gradient is.
bool Unsorting::visitRowsBack(Operation *op) {
  if (auto gather = dyn_cast<GatherRowsOp>(op)) {
    auto form = forms.find(gather.getSelf());
    if (!inverses.contains(gather.getIndex()) || !isIndexOfRows(gather.getIndex(), gather.getBatchDims()) ||
        form == forms.end() || form->second.dim != 0)
      return false;
    replace(op, gather.getResult(), form->second.value);
    return true;
  }
  auto scatter = dyn_cast<ScatterRowsOp>(op);
  if (!scatter || !inverses.contains(scatter.getIndex()) || forms.contains(scatter.getSrc()) ||
      !isIndexOfRows(scatter.getIndex(), scatter.getBatchDims()) || static_cast<int64_t>(scatter.getRows()) != rows)
    return false;
  // Every row is written once.
  if (scatter.getReduce() != "set" && (scatter.getSelf() || scatter.getReduce() != "sum"))
    return false;
  bind(op, scatter.getResult(), scatter.getSrc(), 0);
  return true;
}

/// Rows that are gathered or summed by numbers that are sorted, and unsorted are 0, 0, 1, 1, ...: as views.
bool Unsorting::visitKnownRows(Operation *op) {
  Builder b(op->getContext());
  auto shapeOf = [](Value value, ArrayRef<int64_t> first) {
    SmallVector<int64_t> shape(first);
    llvm::append_range(shape, typeOf(value).getShape().drop_front());
    return shape;
  };
  if (auto gather = dyn_cast<GatherRowsOp>(op)) {
    auto form = forms.find(gather.getIndex());
    if (form == forms.end() || forms.contains(gather.getSelf()) ||
        !isIndexOfRows(gather.getIndex(), gather.getBatchDims()))
      return false;
    Value table = gather.getSelf();
    int64_t from = typeOf(table).getDimSize(0);
    std::optional<int64_t> repeats = known.getRepeats(form->second.value, from);
    if (!repeats)
      return false;
    if (*repeats > 1) {
      SmallVector<int64_t> expanded = shapeOf(table, {from, *repeats});
      Value view = makeView(op, table, shapeOf(table, {from, 1}));
      view = make(op, aten::ExpandOp::getOperationName(), view,
                  b.getNamedAttr("size", b.getDenseI64ArrayAttr(expanded)), typeOf(view).clone(expanded));
      table = makeView(op, view, shapeOf(table, {rows}));
    }
    bind(op, gather.getResult(), table, 0);
    return true;
  }
  auto scatter = dyn_cast<ScatterRowsOp>(op);
  if (!scatter || scatter.getSelf() || scatter.getReduce() != "sum" ||
      !isIndexOfRows(scatter.getIndex(), scatter.getBatchDims()))
    return false;
  auto index = forms.find(scatter.getIndex()), src = forms.find(scatter.getSrc());
  if (index == forms.end() || src == forms.end() || src->second.dim != 0)
    return false;
  int64_t to = scatter.getRows();
  std::optional<int64_t> repeats = known.getRepeats(index->second.value, to);
  if (!repeats)
    return false;
  Value sum = src->second.value;
  if (*repeats > 1) {
    sum = makeView(op, sum, shapeOf(sum, {to, *repeats}));
    sum = make(op, aten::SumDimIntListOp::getOperationName(), sum,
               {b.getNamedAttr("dim", b.getDenseI64ArrayAttr({1})), b.getNamedAttr("keepdim", b.getBoolAttr(false))},
               scatter.getResult().getType());
  }
  replace(op, scatter.getResult(), sum);
  return true;
}

/// Views that leave the rows' dim as it is.
bool Unsorting::visitView(Operation *op) {
  auto interface = dyn_cast<aten::ShardingOpInterface>(op);
  auto form = forms.find(op->getOperand(0));
  if (!interface || !interface.isViewLike() || form == forms.end())
    return false;
  Unsorted of = form->second;
  auto before = [](ArrayRef<int64_t> shape, int64_t dim) {
    return ShapedType::getNumElements(shape.take_front(dim));
  };
  ArrayRef<int64_t> from = typeOf(op->getOperand(0)).getShape(), to = typeOf(op->getResult(0)).getShape();
  for (int64_t dim = 0, e = to.size(); dim < e; ++dim)
    if (to[dim] == from[of.dim] && before(to, dim) == before(from, of.dim)) {
      bind(op, op->getResult(0), makeView(op, of.value, to), dim);
      break;
    }
  return true;
}

/// The same along the dim, in whatever order rows come.
static bool isConstantAlong(Value value, int64_t dim) {
  if (value.getDefiningOp<aten::FullOp>())
    return true;
  auto expand = value.getDefiningOp<aten::ExpandOp>();
  if (!expand)
    return false;
  RankedTensorType from = typeOf(expand.getSelf());
  int64_t own = dim - (typeOf(value).getRank() - from.getRank());
  return own < 0 || from.getDimSize(own) == 1;
}

/// Ops that treat every row alone.
void Unsorting::visitRowwise(Operation *op) {
  auto interface = dyn_cast<aten::ShardingOpInterface>(op);
  if (!interface || op->getNumRegions() != 0)
    return;
  FailureOr<ShardingRule> rule = interface.getShardingRule();
  if (failed(rule) || rule->operands.size() != op->getNumOperands() || rule->results.size() != op->getNumResults())
    return;
  int64_t factor = ShardingRule::kNone;
  for (auto [operand, of] : llvm::zip_equal(op->getOperands(), rule->operands)) {
    auto form = forms.find(operand);
    if (form == forms.end())
      continue;
    int64_t own = of.dims[form->second.dim];
    if (own < 0 || (factor >= 0 && own != factor))
      return;
    factor = own;
  }
  auto goTogether = [&](const ShardingRule::Value &value) {
    const auto *dim = llvm::find(value.dims, factor);
    return dim != value.dims.end() && value.getStep(dim - value.dims.begin()) != 1;
  };
  if (factor < 0 || llvm::any_of(rule->operands, goTogether) || llvm::any_of(rule->results, goTogether))
    return;
  IRMapping mapping;
  for (auto [operand, of] : llvm::zip_equal(op->getOperands(), rule->operands)) {
    auto form = forms.find(operand);
    for (auto [dim, own] : llvm::enumerate(of.dims))
      if (own == factor) {
        bool isSorted = form != forms.end() && form->second.dim == static_cast<int64_t>(dim);
        if (!isSorted && !isConstantAlong(operand, dim))
          return;
      }
    if (form != forms.end())
      mapping.map(operand, form->second.value);
  }
  OpBuilder builder(op);
  Operation *clone = builder.clone(*op, mapping);
  made.push_back(clone);
  for (auto [result, unsorted, of] : llvm::zip_equal(op->getResults(), clone->getResults(), rule->results)) {
    const auto *found = llvm::find(of.dims, factor);
    if (found != of.dims.end())
      bind(op, result, unsorted, found - of.dims.begin());
    else
      replace(op, result, unsorted);
  }
}

void Unsorting::visit(Operation *op) {
  bool isOurs = llvm::any_of(op->getOperands(), [&](Value value) {
    return forms.contains(value) || inverses.contains(value);
  });
  if (isOurs && op->getNumResults() > 0 && !visitInverse(op) && !visitRowsBack(op) && !visitKnownRows(op) &&
      !visitView(op))
    visitRowwise(op);
}

//===----------------------------------------------------------------------===//
// Whether it is worth it
//===----------------------------------------------------------------------===//

/// Whether nothing computes in floating point what a new op computes as well, once values are replaced.
bool Unsorting::isWorthwhile() {
  if (replacements.empty())
    return false;
  llvm::DenseSet<Operation *> alive;
  SmallVector<Operation *> pending;
  for (Operation &op : *sort->getBlock())
    if (!isPure(&op) || op.hasTrait<OpTrait::IsTerminator>())
      pending.push_back(&op);
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!alive.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *source = resolve(operand).getDefiningOp())
        pending.push_back(source);
  }
  return llvm::none_of(originals, [&](Operation *op) {
    return alive.contains(op) && isa<FloatType>(typeOf(op->getResult(0)).getElementType());
  });
}

bool Unsorting::run() {
  Builder b(sort.getContext());
  Type type = sort.getIndices().getType();
  Value counting = make(sort, aten::ArangeStartStepOp::getOperationName(), {},
                        {b.getNamedAttr("start", b.getI64IntegerAttr(0)), b.getNamedAttr("end", b.getI64IntegerAttr(rows)),
                         b.getNamedAttr("step", b.getI64IntegerAttr(1))},
                        type);
  forms[sort.getValues()] = {sort.getSelf(), 0};
  forms[sort.getIndices()] = {counting, 0};
  for (Operation *op = sort->getNextNode(); op; op = op->getNextNode())
    visit(op);
  bool isBetter = isWorthwhile();
  if (isBetter)
    for (auto [value, by] : replacements)
      value.replaceAllUsesWith(by);
  else
    for (Operation *op : llvm::reverse(made))
      op->erase();
  return isBetter;
}
