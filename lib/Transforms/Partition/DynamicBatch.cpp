//===- DynamicBatch.cpp - spmd-dynamic-batch ------------------------------===//
//
// [Note: dynamic batch]
// The program of the largest batch serves smaller ones: the rows after the first
// `rows`, a number that is an argument, are padding. Which dimension of a value has
// such rows follows as the partitioner's states do, from the same sharding rules: a
// batch of B rows is like one that is cut into B chunks of a row, of which a part is
// padding, S(d, p, c) with the c rows that the dimension has for one of the batch.
// An op whose rule would contract the dimension gets the neutral element in the
// padded rows first, by select, and what it gives depends on no padding any more. One
// that needs the dimension whole, or has no rule, refuses. That what the states say
// has sizes that depend on the batch, and nothing else has, the comparison with the
// other capture shows ([Note: batch sizes]).
//
// The pass runs on the captured step, so that all that follows sees a step like any
// other, with one batch input more.
//
//===----------------------------------------------------------------------===//

#include "BatchSizes.h"
#include "Parts.h"
#include "Propagate.h"
#include "SplitMeans.h"

#include "dialects/Aten/AtenCompare.h"
#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenReduce.h"
#include "dialects/Aten/AtenView.h"
#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/DynamicBatch.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Transforms/Partition/Passes.h"
#include "spmd/Transforms/StepPass.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <map>

namespace spmd {
#define GEN_PASS_DEF_DYNAMICBATCH
#include "spmd/Transforms/Partition/Passes.h.inc"
} // namespace spmd

using namespace mlir;
using namespace spmd;
using namespace spmd::partition;

namespace {

class DynamicBatch {
public:
  DynamicBatch(func::FuncOp step, BlockArgument rows, BatchSizes &sizes)
      : step(step), rows(rows), sizes(sizes), attrs(step.getContext()) {}

  LogicalResult run();

private:
  AxisState getState(Value value) const { return states.lookup_or(value, AxisState::replicated()); }
  bool hasRows(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value value) { return getState(value).isShard(); });
  }
  AxisState getRowsState(Value value, int64_t dim) const {
    return AxisState::shard(dim, 1, typeOf(value).getDimSize(dim) / sizes.rows);
  }
  LogicalResult addArguments();
  SmallVector<AxisState> getStates(Operation *op) const;
  bool fitsUniform(Value value, const AxisState &want) const;
  LogicalResult visit(Operation *op);
  LogicalResult visitCreation(Operation *op);
  LogicalResult setState(Operation *op, Value value, AxisState state);
  LogicalResult verifyResults(Operation *terminator);
  Operation *divide(OpBuilder &builder, Value sum, const Count &count);
  void replaceNumber(Operation *op, const RowsNumber &number);

  // What is computed from the number of rows.
  template <typename OpTy, typename... Args>
  Value create(OpBuilder &builder, Location loc, Args &&...args) {
    auto op = OpTy::create(builder, loc, std::forward<Args>(args)...);
    if (segment)
      op->setAttr(kSegmentAttr, segment);
    return op->getResult(0);
  }
  template <typename OpTy, typename... Args>
  Value atStart(Args &&...args) {
    Attribute first = firstSegment;
    std::swap(segment, first);
    OpBuilder builder = getStart();
    Value made = create<OpTy>(builder, rows.getLoc(), std::forward<Args>(args)...);
    std::swap(segment, first);
    lastAtStart = made.getDefiningOp();
    return made;
  }
  /// Where numbers of rows are computed, before all that was captured.
  OpBuilder getStart() {
    OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
    if (lastAtStart)
      builder.setInsertionPointAfter(lastAtStart);
    return builder;
  }
  Value castTo(OpBuilder &builder, Location loc, Value value, Type type) {
    RankedTensorType wanted = typeOf(value).clone(type);
    return wanted == value.getType() ? value : create<aten::ToCopyOp>(builder, loc, wanted, value, TypeAttr::get(type));
  }
  Value getNumber(const RowsNumber &number, double correction, FloatType type);
  Value getPadding(int64_t total, int64_t pre, int64_t chunk);
  Value getSource(Value value) const;
  Value getMasked(Value value, const AxisState &state, double fill);

  func::FuncOp step;
  BlockArgument rows;
  BatchSizes &sizes;
  Builder attrs;
  Operation *lastAtStart = nullptr;
  Attribute segment, firstSegment;
  llvm::DenseMap<Value, AxisState> states;
  llvm::DenseMap<std::tuple<int64_t, int64_t, int64_t>, Value> paddings;
  llvm::DenseMap<std::pair<Value, uint64_t>, Value> masked;
  llvm::DenseSet<Value> zeros;   ///< values with zeros in their padded rows
  llvm::DenseSet<Value> uniform; ///< values of which all rows are alike, wherever those of the batch are said to be
  std::map<std::tuple<RowsNumber::Kind, double, double, double, unsigned>, Value> numbers;
  Value wideRows; ///< as f64
};

} // namespace

//===----------------------------------------------------------------------===//
// What is computed from the number of rows
//===----------------------------------------------------------------------===//

/// The number, less `correction` though not below none, as a 0-dimensional value of `type`, f64 or f32.
Value DynamicBatch::getNumber(const RowsNumber &number, double correction, FloatType type) {
  using Kind = RowsNumber::Kind;
  Value &made = numbers[{number.kind, number.factor, number.perRow, correction, type.getWidth()}];
  if (made)
    return made;
  RankedTensorType wide = RankedTensorType::get({}, attrs.getF64Type());
  auto constant = [&](double value) { return atStart<aten::ScalarTensorOp>(wide, attrs.getF64FloatAttr(value)); };
  auto multiply = [&](double factor) {
    return factor == 1 ? wideRows : atStart<aten::MulScalarOp>(wide, wideRows, attrs.getF64FloatAttr(factor));
  };
  auto subtract = [&](Value value, double less) {
    return atStart<aten::SubScalarOp>(wide, value, attrs.getF64FloatAttr(less), attrs.getF64FloatAttr(1));
  };
  auto quotient = [&](Value value, Value by) { return atStart<aten::DivTensorOp>(wide, value, by); };
  auto atLeast = [&](Value value, double least) { return atStart<aten::MaximumOp>(wide, value, constant(least)); };
  if (!wideRows)
    wideRows = atStart<aten::ToCopyOp>(wide, rows, TypeAttr::get(attrs.getF64Type()));
  switch (number.kind) {
  case Kind::multiple:
    made = multiply(number.factor);
    break;
  case Kind::inverse:
    made = quotient(constant(number.factor), wideRows);
    break;
  case Kind::inverseLessOne:
    made = quotient(constant(number.factor), subtract(multiply(number.perRow), 1));
    break;
  case Kind::unbiased:
    made = multiply(number.perRow);
    made = quotient(made, atLeast(subtract(made, 1), 1));
    break;
  }
  if (correction != 0)
    made = atLeast(subtract(made, correction), 0);
  if (type != wide.getElementType())
    made = atStart<aten::ToCopyOp>(RankedTensorType::get({}, type), made, TypeAttr::get(type));
  return made;
}

/// For each of pre × total rows, of which each of the batch has `chunk`, whether it is padding.
Value DynamicBatch::getPadding(int64_t total, int64_t pre, int64_t chunk) {
  Value &made = paddings[{total, pre, chunk}];
  if (made)
    return made;
  auto number = [&](int64_t value) { return attrs.getI64IntegerAttr(value); };
  RankedTensorType numbers = RankedTensorType::get({total}, attrs.getI64Type());
  Value own = atStart<aten::ArangeStartStepOp>(numbers, number(0), number(total), number(1));
  Value end = chunk == 1 ? Value(rows) : atStart<aten::MulScalarOp>(rows.getType(), rows, number(chunk));
  made = atStart<aten::GeTensorOp>(numbers.clone(attrs.getI1Type()), own, end);
  if (pre == 1)
    return made;
  auto shaped = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, attrs.getI1Type()); };
  auto sizesOf = [&](RankedTensorType type) { return attrs.getDenseI64ArrayAttr(type.getShape()); };
  RankedTensorType all = shaped({pre, total}), flat = shaped({pre * total});
  made = atStart<aten::ExpandOp>(all, made, sizesOf(all));
  made = atStart<aten::ViewOp>(flat, made, sizesOf(flat));
  return made;
}

/// The value with which padded rows of `type` are filled, as the attribute of an op.
static Attribute getFill(Type type, double fill) {
  Builder builder(type.getContext());
  if (isa<FloatType>(type))
    return builder.getF64FloatAttr(fill);
  if (type.isInteger(1))
    return builder.getBoolAttr(fill > 0);
  unsigned bits = type.getIntOrFloatBitWidth();
  if (std::isinf(fill)) {
    APInt end = type.isUnsignedInteger() ? (fill < 0 ? APInt::getMinValue(bits) : APInt::getMaxValue(bits))
                                         : (fill < 0 ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
    return builder.getI64IntegerAttr(type.isUnsignedInteger() ? end.getZExtValue() : end.getSExtValue());
  }
  return builder.getI64IntegerAttr(static_cast<int64_t>(fill));
}

/// The results of the op have the rows of its operands where those have them, moved or in another type.
static bool movesRows(Operation *op) {
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  return iface && (iface.isViewLike() || iface.movesElements());
}

/// The elements are those of a batch input.
static bool isOfBatch(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->getNumOperands() == 1 && movesRows(op)) {
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return isa<BlockArgument>(value);
}

/// The one floating value that has all rows of `value`.
Value DynamicBatch::getSource(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 1 || !movesRows(op))
    return {};
  Value source = op->getOperand(0);
  bool isSource =
      getState(source).isShard() && !uniform.contains(source) && isa<FloatType>(typeOf(source).getElementType());
  return isSource ? source : Value();
}

/// `value` with `fill` in its padded rows. What is there says nothing, so zeros can be there for all uses of a floating
/// value: the select is then part of the kernel that computes it.
Value DynamicBatch::getMasked(Value value, const AxisState &state, double fill) {
  if (fill == 0 && zeros.contains(value))
    return value;
  bool isUniform = uniform.contains(value); // and the rows are elsewhere for another op
  auto known = masked.find({value, llvm::bit_cast<uint64_t>(fill)});
  if (known != masked.end() && !isUniform)
    return known->second;
  if (Value source = fill == 0 && !isUniform ? getSource(value) : Value()) {
    getMasked(source, getState(source), fill); // which `value` is made of now
    zeros.insert(value);
    return value;
  }
  RankedTensorType type = typeOf(value);
  Value padding = getPadding(type.getDimSize(state.dim) / state.pre, state.pre, state.chunk);
  OpBuilder builder = getStart();
  segment = firstSegment;
  if (Operation *op = value.getDefiningOp()) {
    builder.setInsertionPointAfter(op);
    segment = op->getAttr(kSegmentAttr);
  }
  SmallVector<int64_t> shape(type.getRank(), 1);
  shape[state.dim] = type.getDimSize(state.dim);
  Location loc = value.getLoc();
  if (type.getRank() > 1)
    padding = create<aten::ViewOp>(builder, loc, RankedTensorType::get(shape, attrs.getI1Type()), padding,
                                   attrs.getDenseI64ArrayAttr(shape));
  Value made =
      create<aten::MaskedFillScalarOp>(builder, loc, type, value, padding, getFill(type.getElementType(), fill));
  states[made] = state;
  masked[{value, llvm::bit_cast<uint64_t>(fill)}] = made;
  if (fill == 0)
    zeros.insert(made);
  if (fill == 0 && isa<FloatType>(type.getElementType()) && !isUniform)
    value.replaceAllUsesExcept(made, made.getDefiningOp());
  return made;
}

/// What PyTorch computes with a Python number in, of values of a floating type.
static FloatType getCountType(Type type) {
  return type.isF16() || type.isBF16() ? Float32Type::get(type.getContext()) : cast<FloatType>(type);
}

/// Divides a sum by its count, which is that of the rows there are where padded ones are among what was added up.
Operation *DynamicBatch::divide(OpBuilder &builder, Value sum, const Count &count) {
  AxisState state = getState(count.of);
  if (!state.isShard() || !llvm::is_contained(count.dims, state.dim))
    return divideByConstant(builder, sum, count);
  double factor = 1;
  for (int64_t dim : count.dims)
    factor *= static_cast<double>(typeOf(count.of).getDimSize(dim));
  Type own = typeOf(sum).getElementType();
  FloatType compute = getCountType(own);
  Value number =
      getNumber({RowsNumber::Kind::multiple, factor / static_cast<double>(sizes.rows)}, count.correction, compute);
  segment = sum.getDefiningOp()->getAttr(kSegmentAttr);
  Location loc = sum.getLoc();
  Value wide = castTo(builder, loc, sum, compute);
  return castTo(builder, loc, create<aten::DivTensorOp>(builder, loc, wide.getType(), wide, number), own)
      .getDefiningOp();
}

/// An op with a number that depends on the rows becomes one with a value in its place.
void DynamicBatch::replaceNumber(Operation *op, const RowsNumber &number) {
  OpBuilder builder(op);
  segment = op->getAttr(kSegmentAttr);
  Location loc = op->getLoc();
  RankedTensorType type = typeOf(op->getResult(0));
  Type own = type.getElementType();
  FloatType compute = getCountType(own);
  Value value = getNumber(number, 0, compute), made;
  auto iface = cast<aten::AtenOpInterface>(op);
  if (iface.getFillNumber()) {
    made = castTo(builder, loc, value, own);
    if (type.getRank())
      made = create<aten::ExpandOp>(builder, loc, type, made, builder.getDenseI64ArrayAttr(type.getShape()));
  } else {
    Value self = castTo(builder, loc, op->getOperand(0), compute);
    OperationState overload(loc, iface.getTensorOverload(), {self, value}, self.getType());
    if (segment)
      overload.addAttribute(kSegmentAttr, segment);
    made = builder.create(overload)->getResult(0);
    states[made] = getState(op->getOperand(0));
    made = castTo(builder, loc, made, own);
  }
  Value old = op->getResult(0);
  states[made] = getState(old);
  if (uniform.erase(old))
    uniform.insert(made);
  old.replaceAllUsesWith(made);
  states.erase(old);
  zeros.erase(old);
  sizes.forget(op);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Which rows are padding
//===----------------------------------------------------------------------===//

LogicalResult DynamicBatch::addArguments() {
  for (BlockArgument argument : step.getArguments()) {
    SmallVector<int64_t> dims = sizes.getDims(argument);
    if (dims.empty())
      continue;
    if (dims.size() > 1 || !getArgRole<BatchAttr>(step, argument.getArgNumber()))
      return SizeRefusal(step) << "has argument " << argument.getArgNumber() << ", "
                               << getArgRole(step, argument.getArgNumber()) << " of type " << argument.getType()
                               << ", whose shape depends on the batch otherwise than by its rows";
    states[argument] = getRowsState(argument, dims.front());
  }
  return success();
}

/// Notes where the rows of a captured value are, once the other capture agrees.
LogicalResult DynamicBatch::setState(Operation *op, Value value, AxisState state) {
  if (sizes.isCaptured(value)) {
    SmallVector<int64_t> dims = sizes.getDims(value), own;
    if (state.isShard())
      own.push_back(state.dim);
    if (dims != own || (state.isShard() && state.pre * state.chunk * sizes.rows != typeOf(value).getDimSize(state.dim)))
      return SizeRefusal(op) << "gives a value of type " << value.getType() << " of which "
                             << (dims.empty() ? "no dimension depends" : "other dimensions depend")
                             << " on the batch than those of its rows";
  }
  if (state.isShard())
    states[value] = state;
  return success();
}

/// All rows of the result along `dim` are alike: by the rule of its op they follow from no row of an operand, and a
/// rank can make any part of them without knowing which.
static bool makesAlikeRows(OpResult result, int64_t dim) {
  Operation *op = result.getOwner();
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  FailureOr<aten::ShardingRule> rule = iface ? iface.getShardingRule() : FailureOr<aten::ShardingRule>(failure());
  int64_t factor = succeeded(rule) ? rule->results[result.getResultNumber()].dims[dim] : aten::ShardingRule::kWhole;
  if (factor < 0)
    return false;
  for (auto [value, operand] : llvm::zip_equal(op->getOperands(), rule->operands))
    for (auto [size, of] : llvm::zip_equal(typeOf(value).getShape(), operand.dims))
      if (of == factor && size != 1)
        return false;
  return true;
}

static bool continuesRows(Operation *op) {
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  return iface && iface.continuesRows();
}

/// An op that reads no rows gives some: each is what it is with any number of them.
LogicalResult DynamicBatch::visitCreation(Operation *op) {
  for (OpResult result : op->getResults()) {
    SmallVector<int64_t> dims = sizes.isCaptured(result) ? sizes.getDims(result) : SmallVector<int64_t>();
    if (dims.empty())
      continue;
    bool isAlike = makesAlikeRows(result, dims.front());
    if (dims.size() > 1 || !(isAlike || continuesRows(op)))
      return SizeRefusal(op) << "makes a value of type " << result.getType()
                             << " whose rows may be others with another number of them";
    if (failed(setState(op, result, getRowsState(result, dims.front()))))
      return failure();
    if (isAlike)
      uniform.insert(result);
  }
  return success();
}

/// Where the operands have their rows; one with rows that are all alike has them where the others do, if there are
/// others.
SmallVector<AxisState> DynamicBatch::getStates(Operation *op) const {
  auto isGiven = [&](Value value) { return getState(value).isShard() && !uniform.contains(value); };
  bool hasOthers = llvm::any_of(op->getOperands(), isGiven);
  return llvm::map_to_vector(op->getOperands(), [&](Value value) {
    return hasOthers && uniform.contains(value) ? AxisState::replicated() : getState(value);
  });
}

/// All rows of the value are alike, and it has as many in the dimension for each of the batch as `want` says.
bool DynamicBatch::fitsUniform(Value value, const AxisState &want) const {
  AxisState own = getState(value);
  return uniform.contains(value) && want.isShard() && want.dim == own.dim &&
         want.pre * want.chunk == own.pre * own.chunk;
}

LogicalResult DynamicBatch::visit(Operation *op) {
  auto iface = dyn_cast<aten::ShardingOpInterface>(op);
  if (isa<aten::ListOpInterface>(op) || !iface)
    return SizeRefusal(op) << "reads rows of the batch, and has no rule that says what it does with each";
  SmallVector<AxisState> given = getStates(op);
  bool hasRule = iface.isViewLike() || mapThroughParts(op, given) || succeeded(iface.getShardingRule());
  if (!hasRule)
    return SizeRefusal(op) << "needs all rows of the batch at once: it has no rule that says what it does with each";
  // One chunk more than rows: in every value some may be padding.
  FailureOr<OpStates> chosen = propagate(op, given, /*staysPartial=*/false, sizes.rows + 1);
  if (failed(chosen))
    return failure();
  FailureOr<aten::ShardingRule> rule =
      iface.isViewLike() ? FailureOr<aten::ShardingRule>(failure()) : iface.getShardingRule();
  auto isRead = [&](unsigned index) {
    return failed(rule) || index >= rule->dontCare.size() || !rule->dontCare[index];
  };
  for (auto [index, want] : llvm::enumerate(chosen->operands)) {
    AxisState own = getState(op->getOperand(index));
    if (own == want || !isRead(index) || fitsUniform(op->getOperand(index), want))
      continue;
    if (own.isShard())
      return SizeRefusal(op) << "needs all rows of the batch at once: operand " << index << " of type "
                             << op->getOperand(index).getType() << " has them in dimension " << own.dim;
    return SizeRefusal(op) << "combines rows of the batch with operand " << index << " of type "
                           << op->getOperand(index).getType() << ", which has none";
  }
  // Row numbers of the batch itself are those of rows in any case, which the runtime checks.
  bool isChecked = isa<aten::CheckIndexOp>(op) && isOfBatch(op->getOperand(0));
  for (auto [index, fill] : llvm::enumerate(isChecked ? ArrayRef<std::optional<double>>() : chosen->fill))
    if (fill && chosen->operands[index].isShard())
      op->setOperand(index, getMasked(op->getOperand(index), chosen->operands[index], *fill));
  // Rows are where they were, and so are zeros in them.
  bool keepsZeros =
      movesRows(op) && llvm::all_of(op->getOperands(), [&](Value value) { return zeros.contains(value); });
  auto pointwise = dyn_cast<aten::ScalarBodyOpInterface>(op);
  bool isUniform = pointwise && pointwise.isPointwise() && llvm::all_of(op->getOperands(), [&](Value value) {
                     return !getState(value).isShard() || uniform.contains(value);
                   });
  for (auto [value, state] : llvm::zip_equal(op->getResults(), chosen->results)) {
    if (failed(setState(op, value, state.isShard() ? state : AxisState::replicated())))
      return failure();
    if (keepsZeros && state.isShard())
      zeros.insert(value);
    if (isUniform && state.isShard())
      uniform.insert(value);
  }
  return success();
}

/// The caller cuts rows that are padding off at the end of a dimension.
LogicalResult DynamicBatch::verifyResults(Operation *terminator) {
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    AxisState state = getState(value);
    if (!state.isShard())
      continue;
    if (isa_and_nonnull<UpdateAttr>(getResultRole(step, index)))
      return SizeRefusal(step) << "has result " << index << ", " << getResultRole(step, index)
                               << ", that keeps rows of the batch";
    if (state.pre != 1)
      return SizeRefusal(step) << "has result " << index << " of type " << value.getType()
                               << " with rows of the batch in " << state.pre << " places";
  }
  return success();
}

LogicalResult DynamicBatch::run() {
  if (failed(addArguments()))
    return failure();
  Block &body = step.getBody().front();
  firstSegment = body.front().getAttr(kSegmentAttr);
  auto divideRows = [&](OpBuilder &builder, Value sum, const Count &count) { return divide(builder, sum, count); };
  Operation *next = nullptr;
  for (Operation *op = &body.front(); op != body.getTerminator(); op = next) {
    Operation *before = op->getPrevNode();
    if (hasRows(op) && isMean(op)) {
      sizes.forget(op);
      splitMean(op, divideRows);
      next = before ? before->getNextNode() : lastAtStart ? lastAtStart->getNextNode() : &body.front();
      continue;
    }
    if (failed(hasRows(op) ? visit(op) : visitCreation(op)))
      return failure();
    next = op->getNextNode();
    if (std::optional<RowsNumber> number = sizes.getNumber(op))
      replaceNumber(op, *number);
  }
  return verifyResults(body.getTerminator());
}

namespace {
struct DynamicBatchPass : StepPass<spmd::impl::DynamicBatchBase<DynamicBatchPass>> {
  LogicalResult runOnStep(func::FuncOp step) override {
    ModuleOp module = getOperation();
    auto said = module->getAttrOfType<DictionaryAttr>(kDynamicBatchAttr);
    if (!said)
      return success();
    auto fail = [&](const Twine &message) -> LogicalResult { return module.emitError() << message; };
    auto other = module.lookupSymbol<ModuleOp>(kOtherBatchName);
    auto otherSaid = other ? other->getAttrOfType<DictionaryAttr>(kDynamicBatchAttr) : DictionaryAttr();
    if (!otherSaid)
      return fail(
          "the step is for batches of several sizes, and has no capture of another size, other_batch/step.json; "
          "capture it again with dynamic_batch");
    auto sizeOf = [](DictionaryAttr of) { return of.getAs<IntegerAttr>("size"); };
    auto name = said.getAs<StringAttr>("rows");
    func::FuncOp otherStep = getStep(other);
    if (!otherStep)
      return failure();
    std::optional<unsigned> number = name ? findArg(step, BatchAttr::get(&getContext(), name, -1)) : std::nullopt;
    auto type = RankedTensorType::get({}, Builder(&getContext()).getI64Type());
    if (!number || step.getArgument(*number).getType() != type || otherSaid.get("rows") != name)
      return fail("the number of rows of the batch is no 0-dimensional i64 batch input of the step");
    IntegerAttr size = sizeOf(said), otherSize = sizeOf(otherSaid);
    if (!size || !otherSize || size.getInt() < 1 || otherSize.getInt() < 1 || size == otherSize)
      return fail("the two captures of the step are of one batch size; expected two sizes of at least 1 row");
    FailureOr<BatchSizes> sizes = BatchSizes::compare(step, otherStep, size.getInt(), otherSize.getInt());
    if (failed(sizes) || failed(DynamicBatch(step, step.getArgument(*number), *sizes).run()))
      return failure();
    step.setArgAttr(*number, kIndexBoundAttr, IntegerAttr::get(size.getType(), size.getInt() + 1));
    other->erase();
    module->removeAttr(kDynamicBatchAttr);
    return success();
  }
};
} // namespace
