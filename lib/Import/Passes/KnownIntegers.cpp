//===- KnownIntegers.cpp - Whole numbers that depend on nothing -----------===//

#include "KnownIntegers.h"
#include "../Emitter.h"

#include "dialects/Aten/Aten.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spmd;

/// More numbers are nobody's rows.
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

std::optional<KnownIntegers::Numbers> KnownIntegers::compute(Value value) {
  Operation *op = value.getDefiningOp();
  int64_t count = typeOf(value).getNumElements();
  if (!op || !isWhole(value) || count > kMost)
    return std::nullopt;
  if (auto arange = dyn_cast<aten::ArangeStartStepOp>(op)) {
    auto start = getInteger(arange.getStart()), step = getInteger(arange.getStep());
    if (!start || !step)
      return std::nullopt;
    Numbers numbers(count);
    for (int64_t i = 0; i < count; ++i)
      numbers[i] = *start + i * *step;
    return numbers;
  }
  if (auto full = dyn_cast<aten::FullOp>(op)) {
    auto number = getInteger(full.getFillValue());
    return number ? std::optional(Numbers(count, *number)) : std::nullopt;
  }
  if (auto scalar = dyn_cast<aten::ScalarTensorOp>(op)) {
    auto number = getInteger(scalar.getS());
    return number ? std::optional(Numbers{*number}) : std::nullopt;
  }
  auto copyOf = [&](Value from) -> std::optional<Numbers> {
    const Numbers *numbers = get(from);
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
  SmallVector<Numbers> operands; // copies: entries of the table move when others are added
  for (Value operand : op->getOperands()) {
    const Numbers *numbers = get(operand);
    if (!numbers || (numbers->size() != 1 && static_cast<int64_t>(numbers->size()) != count))
      return std::nullopt;
    operands.push_back(*numbers);
  }
  auto at = [&](unsigned operand, int64_t i) {
    return operands[operand].size() == 1 ? operands[operand][0] : operands[operand][i];
  };
  Numbers numbers(count);
  if (isa<aten::WhereSelfOp>(op)) {
    for (int64_t i = 0; i < count; ++i)
      numbers[i] = at(0, i) ? at(1, i) : at(2, i);
    return numbers;
  }
  auto *function = getFunction(op);
  auto other = op->getNumOperands() == 1 ? getInteger(op->getAttr("other")) : std::optional<int64_t>(0);
  if (!function || !other)
    return std::nullopt;
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = function(at(0, i), op->getNumOperands() == 1 ? *other : at(1, i));
  return numbers;
}

const KnownIntegers::Numbers *KnownIntegers::get(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second ? &*found->second : nullptr;
  std::optional<Numbers> numbers = compute(value);
  auto &entry = known[value] = std::move(numbers);
  return entry ? &*entry : nullptr;
}

std::optional<int64_t> KnownIntegers::getRepeats(Value value, int64_t rows) {
  const Numbers *numbers = get(value);
  if (!numbers || rows <= 0 || numbers->size() % rows != 0 || numbers->empty())
    return std::nullopt;
  int64_t repeats = numbers->size() / rows;
  for (auto [i, number] : llvm::enumerate(*numbers))
    if (number != static_cast<int64_t>(i) / repeats)
      return std::nullopt;
  return repeats;
}

bool KnownIntegers::isCounting(Value value) { return getRepeats(value, typeOf(value).getNumElements()) == 1; }
