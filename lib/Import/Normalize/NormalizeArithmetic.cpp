//===- NormalizeArithmetic.cpp - Overloads, numbers, promotion ------------===//

#include "Arithmetic.h"
#include "Normalize.h"

#include "dialects/Aten/TypePromotion.h"
#include "dialects/Spmd/Hint.h"

using namespace mlir;
using namespace spmd;

/// `value`, which is multiplied before it is added to what `sums` name: in the type of the sum, as PyTorch computes it.
static Value inTypeOfSum(Emitter &emitter, Call &call, Value value, ArrayRef<StringRef> sums) {
  SmallVector<RankedTensorType> types = {typeOf(value)};
  for (StringRef name : sums)
    if (BoundArg *arg = call.find(name); arg && arg->isValue())
      types.push_back(typeOf(arg->values[0]));
  return emitter.cast(value, aten::promoteTypes(types, {}, emitter.builder.getContext()));
}

/// Multiplies `other` by an alpha that is a tensor, which then is 1.
static void foldTensorAlpha(Emitter &emitter, Call &call) {
  BoundArg *alpha = call.find("alpha");
  BoundArg *other = call.find("other");
  if (!alpha || !alpha->isValue() || !other || !other->isValue())
    return;
  Value by = alpha->values[0], value = inTypeOfSum(emitter, call, other->values[0], {"self"});
  Type type = aten::promoteTypes({typeOf(value), typeOf(by)}, {}, emitter.builder.getContext());
  other->values[0] = emitter.createValue("mul.Tensor", {value, by}, {}, typeOf(value).clone(type));
  alpha->setInteger(1);
}

/// addcmul and addcdiv by a value that is a tensor: it goes into tensor1.
static LogicalResult emitAddc(Emitter &emitter, Call &call, Results &results) {
  BoundArg *value = call.find("value"), *tensor = call.find("tensor1");
  if (value && value->isValue() && tensor && tensor->isValue()) {
    Value by = value->values[0], scaled = inTypeOfSum(emitter, call, tensor->values[0], {"self", "tensor2"});
    Type type = aten::promoteTypes({typeOf(scaled), typeOf(by)}, {}, emitter.builder.getContext());
    RankedTensorType shape = typeOf(scaled).getRank() ? typeOf(scaled) : typeOf(by);
    tensor->values[0] = emitter.createValue("mul.Tensor", {scaled, by}, {}, shape.clone(type));
    value->setInteger(1);
  }
  return emitSameOp(emitter, call, results);
}

/// "x.Tensor" with a number is "x.Scalar", and the other way round.
static LogicalResult emitBinary(Emitter &emitter, Call &call, Results &results) {
  foldTensorAlpha(emitter, call);
  BoundArg *other = call.find("other");
  auto [base, overload] = StringRef(call.op).split('.');
  std::string name = base.str();
  if (other && overload == "Tensor" && other->isNumber())
    call.op = name + ".Scalar";
  else if (other && overload == "Scalar" && other->isValue())
    call.op = name + ".Tensor";
  if (call.op == "rsub.Tensor") { // other - alpha * self
    call.op = "sub.Tensor";
    std::swap(call.find("self")->literal.name, other->literal.name);
  }
  return emitSameOp(emitter, call, results);
}

/// PyTorch compares in the type of the operands, which a number is rounded to; of 16 bits it computes in f32 otherwise.
static LogicalResult emitComparison(Emitter &emitter, Call &call, Results &results) {
  BoundArg *other = call.find("other");
  Type type = typeOf(call.value("self")).getElementType();
  if (other && other->literal.kind == step::Arg::Kind::real && !isa<FloatType>(type))
    type = emitter.defaultFloat;
  if (other && other->isNumber() && (type.isF16() || type.isBF16())) {
    llvm::APFloat rounded(other->number());
    bool losesInfo;
    rounded.convert(cast<FloatType>(type).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    other->literal.real = rounded.convertToDouble();
    other->literal.kind = step::Arg::Kind::real;
  }
  return emitBinary(emitter, call, results);
}

static LogicalResult emitPow(Emitter &emitter, Call &call, Results &results) {
  if (BoundArg *exponent = call.find("exponent"); call.op == "pow.Tensor_Scalar" && exponent && exponent->isValue())
    call.op = "pow.Tensor_Tensor";
  if (BoundArg *self = call.find("self"); call.op == "pow.Scalar" && self && self->isValue())
    call.op = "pow.Tensor_Tensor";
  return emitSameOp(emitter, call, results);
}

/// clamp_min and clamp_max, of a number or a tensor.
static LogicalResult emitClampSide(Emitter &emitter, Call &call, Results &results) {
  bool tensor = StringRef(call.op).ends_with(".Tensor");
  call.op = tensor ? "clamp.Tensor" : "clamp";
  return emitSameOp(emitter, call, results);
}

/// "__and__.Tensor" as "bitwise_and.Tensor".
static LogicalResult emitPythonOperator(Emitter &emitter, Call &call, Results &results) {
  auto [name, overload] = StringRef(call.op).split('.');
  name = name.drop_front(2).drop_back(2);
  bool isShift = name.ends_with("shift");
  std::string base = isShift ? (name == "lshift" ? "left_shift" : "right_shift") : name.str();
  call.op = "bitwise_" + base + "." + (isShift && overload == "Scalar" ? "Tensor_Scalar" : overload.str());
  return emitSameOp(emitter, call, results);
}

/// where with numbers: a number becomes a 0-dimensional tensor.
static LogicalResult emitWhere(Emitter &emitter, Call &call, Results &results) {
  Type elementType = call.resultTypes[0].getElementType();
  for (StringRef name : {"self", "other"}) {
    BoundArg *arg = call.find(name);
    if (!arg || !arg->isNumber())
      continue;
    RankedTensorType type = RankedTensorType::get({}, elementType);
    arg->values = {emitter.createValue("scalar_tensor", {}, emitter.named("s", emitter.scalar(arg->literal)), type)};
    arg->literal.kind = step::Arg::Kind::value;
  }
  for (StringRef name : {"self", "other"})
    if (BoundArg *arg = call.find(name); arg && arg->isValue())
      arg->values[0] = emitter.cast(arg->values[0], elementType);
  call.op = "where.self";
  return emitSameOp(emitter, call, results);
}

/// masked_fill with a 0-dimensional tensor.
static LogicalResult emitMaskedFill(Emitter &emitter, Call &call, Results &results) {
  BoundArg *value = call.find("value");
  if (!value || !value->isValue()) {
    call.op = "masked_fill.Scalar";
    return emitSameOp(emitter, call, results);
  }
  RankedTensorType type = call.resultTypes[0];
  Value fill = emitter.cast(value->values[0], type.getElementType());
  results.push_back(emitter.createValue("where.self", {call.value("mask"), fill, call.value("self")}, {}, type));
  return success();
}

/// self * 2^other, where a power of two by whole numbers is of the default type. Of two whole numbers a
/// capture's fake tensors take f32, whatever that is: then what follows has been captured in the wrong type.
static LogicalResult emitLdexp(Emitter &emitter, Call &call, Results &results) {
  BoundArg *other = call.find("other");
  Type exponent = typeOf(other->values[0]).getElementType();
  Type captured = call.resultTypes[0].getElementType();
  if (!isa<FloatType>(exponent) && !isa<FloatType>(typeOf(call.value("self")).getElementType()) &&
      captured != emitter.defaultFloat) {
    InFlightDiagnostic error = emitter.error("'ldexp' of whole numbers is of the default dtype, ")
                               << emitter.defaultFloat << ", and was captured as " << captured;
    attachHint(error) << "x * 2.0 ** n";
    return error;
  }
  Value power = emitter.cast(other->values[0], isa<FloatType>(exponent) ? exponent : emitter.defaultFloat);
  other->values[0] = emitter.createValue(
      "pow.Scalar", power, emitter.named("self", emitter.builder.getF64FloatAttr(2)), typeOf(power));
  call.op = "mul.Tensor";
  return emitSameOp(emitter, call, results);
}

/// self = mantissa 2^exponent, 1/2 <= |mantissa| < 1; what is zero or not finite has the exponent 0.
static LogicalResult emitFrexp(Emitter &emitter, Call &call, Results &results) {
  Type element = call.resultTypes[0].getElementType();
  Arithmetic a(emitter, Arithmetic::computeType(element));
  Value self = emitter.cast(call.value("self"), a.elementType()), magnitude = a.unary("abs", self);
  auto below = [&](Value value, double bound) { return a.compare("lt.Tensor", value, a.constant(bound)); };
  // Below the normal numbers it is taken of a multiple.
  int shift = a.elementType().isF64() ? 54 : 25;
  Value isTiny = below(magnitude, a.elementType().isF64() ? 0x1p-1022 : 0x1p-126);
  Value scaled = a.where(isTiny, a.mul(self, std::ldexp(1.0, shift)), self);
  // The logarithm is rounded, and may be off by one near powers of two.
  Value exponent = a.add(a.unary("floor", a.unary("log2", a.unary("abs", scaled))), 1);
  Value mantissa = a.mul(scaled, a.unary("exp2", a.unary("neg", exponent)));
  Value tooLarge = a.compare("ge.Tensor", a.unary("abs", mantissa), a.constant(1));
  mantissa = a.where(tooLarge, a.mul(mantissa, 0.5), mantissa);
  exponent = a.where(tooLarge, a.add(exponent, 1), exponent);
  Value tooSmall = below(a.unary("abs", mantissa), 0.5);
  mantissa = a.where(tooSmall, a.mul(mantissa, 2), mantissa);
  exponent = a.where(tooSmall, a.add(exponent, -1), exponent);
  exponent = a.where(isTiny, a.add(exponent, -shift), exponent);
  Value isOrdinary = emitter.createValue(
      "logical_and",
      {a.compare("gt.Tensor", magnitude, a.constant(0)), below(magnitude, std::numeric_limits<double>::infinity())}, {},
      typeOf(self).clone(emitter.builder.getI1Type()));
  results.push_back(emitter.cast(a.where(isOrdinary, mantissa, self), element));
  results.push_back(
      emitter.cast(a.where(isOrdinary, exponent, a.constant(0)), call.resultTypes[1].getElementType()));
  return success();
}

/// log of the multivariate gamma function: sum over i < p of lgamma(self - i / 2), and p (p - 1) / 4 log pi.
static LogicalResult emitMvlgamma(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  Arithmetic a(emitter, Arithmetic::computeType(type.getElementType()));
  int64_t p = call.integer("p", 1);
  Value sum;
  for (int64_t i = 0; i < p; ++i) {
    Value term = a.unary("lgamma", a.add(call.value("self"), -0.5 * static_cast<double>(i)));
    sum = sum ? a.add(sum, term) : term;
  }
  if (!sum)
    return emitter.error("'mvlgamma' of dimension ") << p << ", which must be positive";
  sum = a.add(sum, static_cast<double>(p * (p - 1)) / 4 * std::log(M_PI));
  results.push_back(emitter.cast(sum, type.getElementType()));
  return success();
}

void spmd::normalizeArithmetic(NormalizerTable &table) {
  for (StringRef op : {"add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "mul.Tensor", "mul.Scalar",
                       "div.Tensor", "div.Scalar", "rsub.Scalar", "rsub.Tensor"})
    table[op] = {&emitBinary, {"self"}};
  for (StringRef predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
    for (StringRef overload : {".Tensor", ".Scalar"})
      table[(predicate + overload).str()] = {&emitComparison, {"self"}};
  for (StringRef op : {"pow.Tensor_Scalar", "pow.Scalar", "pow.Tensor_Tensor"})
    table[op] = &emitPow;
  for (StringRef op : {"clamp_min", "clamp_max", "clamp_min.Tensor", "clamp_max.Tensor"})
    table[op] = &emitClampSide;
  for (StringRef op : {"__and__", "__or__", "__xor__", "__lshift__", "__rshift__"})
    for (StringRef overload : {".Tensor", ".Scalar"})
      table[(op + overload).str()] = &emitPythonOperator;
  table["ldexp.Tensor"] = {&emitLdexp, {"self", "other"}};
  table["frexp.Tensor"] = {&emitFrexp, {"self"}, 2};
  table["mvlgamma"] = {&emitMvlgamma, {"self"}};
  for (StringRef op : {"addcmul", "addcdiv"})
    table[op] = &emitAddc;
  for (StringRef op : {"where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar"})
    table[op] = {&emitWhere, {"condition"}};
  for (StringRef op : {"masked_fill.Scalar", "masked_fill.Tensor"})
    table[op] = {&emitMaskedFill, {"self", "mask"}};
}
