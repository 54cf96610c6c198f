//===- KnownIntegers.cpp - Whole numbers that depend on nothing -----------===//

#include "KnownIntegers.h"
#include "../Emitter.h"

#include "dialects/Aten/Aten.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spmd;

using Integers = KnownIntegers::Integers;
using Stairs = KnownIntegers::Stairs;

/// More numbers are not computed one by one.
static constexpr int64_t kMost = int64_t(1) << 24;

static std::optional<int64_t> getInteger(Attribute attr) {
  auto integer = dyn_cast_or_null<IntegerAttr>(attr);
  return integer ? std::optional(integer.getInt()) : std::nullopt;
}

static bool isWhole(Value value) { return isa<IntegerType>(typeOf(value).getElementType()); }

/// What a pointwise op makes of numbers `a` and `b`; null for ops that row numbers are not made with.
static int64_t (*getFunction(Operation *op))(int64_t, int64_t) {
  using Function = int64_t (*)(int64_t, int64_t);
  Function floorDivide = [](int64_t a, int64_t b) { return b ? llvm::divideFloorSigned(a, b) : 0; };
  return TypeSwitch<Operation *, Function>(op)
      .Case([&](aten::FloorDivideOp) { return floorDivide; })
      .Case([&](aten::DivScalarModeOp div) { return div.getRoundingMode() == "floor" ? floorDivide : nullptr; })
      .Case<aten::AddTensorOp, aten::AddScalarOp>([](auto add) -> Function {
        if (getInteger(add.getAlphaAttr()) != 1)
          return nullptr;
        return [](int64_t a, int64_t b) { return a + b; };
      })
      .Case<aten::MulTensorOp, aten::MulScalarOp>(
          [](auto) -> Function { return [](int64_t a, int64_t b) { return a * b; }; })
      .Case(
          [](aten::LtScalarOp) -> Function { return [](int64_t a, int64_t b) { return static_cast<int64_t>(a < b); }; })
      .Case([](aten::EqScalarOp) -> Function {
        return [](int64_t a, int64_t b) { return static_cast<int64_t>(a == b); };
      })
      .Default(Function());
}

static Integers makeStairs(int64_t count, Stairs stairs) {
  // Steps behind the last element do not matter.
  if (stairs.repeats >= count)
    stairs.step = 0;
  if (stairs.step == 0)
    stairs.repeats = 1;
  return {count, stairs, {}};
}

/// Numbers one by one; nothing if they are too many.
static std::optional<Integers> makeNumbers(int64_t count, llvm::function_ref<int64_t(int64_t)> get) {
  if (count > kMost)
    return std::nullopt;
  if (count == 1)
    return makeStairs(count, {get(0), 0, 1});
  Integers result{count, {}, {}};
  result.numbers.reserve(count);
  for (int64_t i = 0; i < count; ++i)
    result.numbers.push_back(get(i));
  return result;
}

static int64_t getLast(const Integers &numbers) { return numbers[numbers.count - 1]; }

//===----------------------------------------------------------------------===//
// Stairs of stairs
//===----------------------------------------------------------------------===//

static std::optional<Stairs> addStairs(const Stairs &a, const Stairs &b, int64_t) {
  if (a.step != 0 && b.step != 0 && a.repeats != b.repeats)
    return std::nullopt;
  return Stairs{a.start + b.start, a.step + b.step, a.step != 0 ? a.repeats : b.repeats};
}

static std::optional<Stairs> multiplyStairs(const Stairs &a, const Stairs &b, int64_t) {
  const Stairs &stairs = b.step == 0 ? a : b, &factor = b.step == 0 ? b : a;
  if (factor.step != 0)
    return std::nullopt;
  return Stairs{stairs.start * factor.start, stairs.step * factor.start, stairs.repeats};
}

static std::optional<Stairs> floorDivideStairs(const Stairs &a, const Stairs &b, int64_t) {
  int64_t divisor = b.start;
  if (b.step != 0 || divisor <= 0)
    return std::nullopt;
  if (a.step % divisor == 0)
    return Stairs{llvm::divideFloorSigned(a.start, divisor), a.step / divisor, a.repeats};
  // Steps that divide the divisor, from one of its multiples on: longer stairs.
  if (a.step > 0 && divisor % a.step == 0 && a.start % divisor == 0)
    return Stairs{a.start / divisor, 1, a.repeats * (divisor / a.step)};
  return std::nullopt;
}

/// Constant where all of the stairs lie on one side.
static std::optional<Stairs> compareStairs(const Stairs &a, const Stairs &b, int64_t count) {
  Integers left{count, a, {}}, right{count, b, {}};
  if (b.step != 0)
    return std::nullopt;
  int64_t low = std::min(left[0], getLast(left)), high = std::max(left[0], getLast(left));
  if (high < right[0])
    return Stairs{1, 0, 1};
  return low >= right[0] ? std::optional(Stairs{0, 0, 1}) : std::nullopt;
}

static std::optional<Stairs> equateStairs(const Stairs &a, const Stairs &b, int64_t count) {
  Integers left{count, a, {}};
  if (b.step != 0)
    return std::nullopt;
  int64_t low = std::min(left[0], getLast(left)), high = std::max(left[0], getLast(left));
  if (low == high)
    return Stairs{static_cast<int64_t>(low == b.start), 0, 1};
  return high < b.start || low > b.start ? std::optional(Stairs{0, 0, 1}) : std::nullopt;
}

/// What getFunction's op makes of stairs; nothing where that is none.
static std::optional<Stairs> applyToStairs(Operation *op, const Stairs &a, const Stairs &b, int64_t count) {
  return TypeSwitch<Operation *, std::optional<Stairs>>(op)
      .Case<aten::FloorDivideOp, aten::DivScalarModeOp>([&](auto) { return floorDivideStairs(a, b, count); })
      .Case<aten::AddTensorOp, aten::AddScalarOp>([&](auto) { return addStairs(a, b, count); })
      .Case<aten::MulTensorOp, aten::MulScalarOp>([&](auto) { return multiplyStairs(a, b, count); })
      .Case([&](aten::LtScalarOp) { return compareStairs(a, b, count); })
      .Case([&](aten::EqScalarOp) { return equateStairs(a, b, count); })
      .Default(std::optional<Stairs>());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<Integers> KnownIntegers::compute(Value value) {
  Operation *op = value.getDefiningOp();
  int64_t count = typeOf(value).getNumElements();
  if (!op || !isWhole(value) || count == 0)
    return std::nullopt;
  if (auto arange = dyn_cast<aten::ArangeStartStepOp>(op)) {
    auto start = getInteger(arange.getStart()), step = getInteger(arange.getStep());
    return start && step ? std::optional(makeStairs(count, {*start, *step, 1})) : std::nullopt;
  }
  auto constant = [&](Attribute attr) {
    auto number = getInteger(attr);
    return number ? std::optional(makeStairs(count, {*number, 0, 1})) : std::nullopt;
  };
  if (auto full = dyn_cast<aten::FullOp>(op))
    return constant(full.getFillValue());
  if (auto scalar = dyn_cast<aten::ScalarTensorOp>(op))
    return constant(scalar.getS());
  auto copyOf = [&](Value from) -> std::optional<Integers> {
    const Integers *numbers = get(from);
    return numbers ? std::optional(*numbers) : std::nullopt;
  };
  if (auto known = dyn_cast<aten::ShardingOpInterface>(op); known && known.isViewLike())
    return copyOf(op->getOperand(0));
  if (auto cast = dyn_cast<aten::ToCopyOp>(op)) // row numbers fit in all of them
    return isWhole(cast.getSelf()) && !typeOf(value).getElementType().isInteger(1) ? copyOf(cast.getSelf())
                                                                                  : std::nullopt;
  if (auto check = dyn_cast<aten::CheckIndexOp>(op))
    return copyOf(check.getSelf());

  // Pointwise, of tensors of this size or of one number.
  SmallVector<Integers> operands; // copies: entries of the table move when others are added
  for (Value operand : op->getOperands()) {
    const Integers *numbers = get(operand);
    if (!numbers || (numbers->count != 1 && numbers->count != count))
      return std::nullopt;
    operands.push_back(*numbers);
  }
  if (isa<aten::WhereSelfOp>(op)) {
    auto take = [&](Integers from) {
      from.count = count;
      return from;
    };
    if (operands[0].isConstant())
      return take(operands[operands[0][0] ? 1 : 2]);
    return makeNumbers(count, [&](int64_t i) { return operands[0][i] ? operands[1][i] : operands[2][i]; });
  }
  auto *function = getFunction(op);
  auto other = op->getNumOperands() == 1 ? getInteger(op->getAttr("other")) : std::optional<int64_t>(0);
  if (!function || !other)
    return std::nullopt;
  if (op->getNumOperands() == 1)
    operands.push_back(makeStairs(count, {*other, 0, 1}));
  if (operands[0].areStairs() && operands[1].areStairs())
    if (auto stairs = applyToStairs(op, operands[0].stairs, operands[1].stairs, count))
      return makeStairs(count, *stairs);
  return makeNumbers(count, [&](int64_t i) { return function(operands[0][i], operands[1][i]); });
}

const Integers *KnownIntegers::get(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second ? &*found->second : nullptr;
  std::optional<Integers> numbers = compute(value);
  auto &entry = known[value] = std::move(numbers);
  return entry ? &*entry : nullptr;
}

std::optional<int64_t> KnownIntegers::getRepeats(Value value, int64_t rows) {
  const Integers *numbers = get(value);
  if (!numbers || rows <= 0 || numbers->count % rows != 0)
    return std::nullopt;
  int64_t repeats = numbers->count / rows;
  if (numbers->areStairs()) {
    const Stairs &stairs = numbers->stairs;
    bool isOneStep = rows == 1 && stairs.step == 0;
    bool areSteps = stairs.step == 1 && stairs.repeats == repeats;
    return stairs.start == 0 && (isOneStep || areSteps) ? std::optional(repeats) : std::nullopt;
  }
  for (auto [i, number] : llvm::enumerate(numbers->numbers))
    if (number != static_cast<int64_t>(i) / repeats)
      return std::nullopt;
  return repeats;
}

bool KnownIntegers::isCounting(Value value) { return getRepeats(value, typeOf(value).getNumElements()) == 1; }
