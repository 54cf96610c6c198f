//===- NormalizeReductions.cpp - Reductions with their dims spelled out ---===//

#include "Arithmetic.h"
#include "Normalize.h"

#include "dialects/Aten/AtenPointwise.h"
#include "dialects/Aten/AtenView.h"

#include <cmath>

using namespace mlir;
using namespace spmd;

/// The reduced dimensions, counted from the front and ascending; none and an
/// empty list mean all.
static SmallVector<int64_t> reducedDims(Call &call) {
  int64_t rank = typeOf(call.value("self")).getRank();
  SmallVector<int64_t> dims;
  if (BoundArg *dim = call.find("dim")) {
    if (dim->literal.kind == step::Arg::Kind::integer)
      dims.push_back(dim->literal.integer);
    else
      dims.append(dim->literal.integers.begin(), dim->literal.integers.end());
  }
  for (int64_t &dim : dims)
    dim = wrapDim(dim, rank);
  // A tensor without dimensions may be reduced over "dimension 0".
  if (dims.empty() || rank == 0)
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::sort(dims);
  return dims;
}

static LogicalResult emitReduction(Emitter &emitter, Call &call, Results &results) {
  setIntegers(call, "dim", reducedDims(call));
  if (call.op == "sum")
    call.op = "sum.dim_IntList";
  if (call.op == "mean")
    call.op = "mean.dim";
  if (call.op == "max" || call.op == "min")
    call.op = call.op == "max" ? "amax" : "amin";
  return emitSameOp(emitter, call, results);
}

namespace {
/// A norm by one that ranks combine, of order 2 or infinity: that of |x|^power, or of 1 where x is not zero, to the
/// power of 1 / power.
struct NormForm {
  Attribute order;
  double power;
  bool counts = false;

  /// (sum |x|^p)^(1/p) = norm2(|x|^(p/2))^(2/p); the smallest by the largest reciprocal; the number of what is not zero
  /// by its square root. None of orders 2 and infinity themselves.
  static std::optional<NormForm> of(Builder &b, Call &call) {
    BoundArg *order = call.find("ord");
    if (!order || !order->isNumber())
      return std::nullopt;
    double p = order->number(), infinity = std::numeric_limits<double>::infinity();
    if (p == 2 || p == infinity || std::isnan(p))
      return std::nullopt;
    if (p == -infinity)
      return NormForm{b.getF64FloatAttr(infinity), -1};
    return p == 0 ? NormForm{b.getI64IntegerAttr(2), 0.5, true} : NormForm{b.getI64IntegerAttr(2), p / 2};
  }
};
} // namespace

static Value emitPower(Emitter &emitter, Value value, double exponent) {
  return emitter.createValue("pow.Tensor_Scalar", value,
                             emitter.named("exponent", emitter.builder.getF64FloatAttr(exponent)), typeOf(value));
}

static Value emitPowerNorm(Emitter &emitter, Value self, NormForm form, bool keepdim, RankedTensorType result) {
  RankedTensorType computed = result.clone(Arithmetic::computeType(result.getElementType()));
  OpBuilder &builder = emitter.builder;
  Arithmetic a(emitter, computed.getElementType());
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(self).getRank()));
  Value powers = form.counts ? emitter.cast(a.compare("ne.Tensor", self, a.constant(0)), a.elementType())
                             : emitPower(emitter, a.unary("abs", self), form.power);
  Value norm = emitter.createValue("linalg_vector_norm", powers,
                                   {emitter.named("ord", form.order),
                                    emitter.named("dim", builder.getDenseI64ArrayAttr(dims)),
                                    emitter.named("keepdim", builder.getBoolAttr(keepdim))},
                                   computed);
  return emitter.cast(emitPower(emitter, norm, 1 / form.power), result.getElementType());
}

/// The norm of norms of one order is one of everything. Of a stack of n_i^(2/p), n_i of order 2, it is
/// norm2(n_i)^(2/p), so that ranks combine one number for clipping: what emitPowerNorm made of each gradient does not
/// come between. A count of counts is not one of everything.
static Value emitNormOfNorms(Emitter &emitter, Value self, NormForm form, RankedTensorType result) {
  auto stack = self.getDefiningOp<aten::StackOp>();
  if (!stack || form.counts)
    return {};
  SmallVector<Value> norms;
  for (Value entry : stack.getTensors()) {
    auto power = entry.getDefiningOp<aten::PowTensorScalarOp>();
    auto exponent = power ? dyn_cast<FloatAttr>(power.getExponent()) : FloatAttr();
    Operation *norm = power ? power.getSelf().getDefiningOp() : nullptr;
    bool isNorm = norm && norm->getAttr("ord") == form.order && typeOf(entry).getRank() == 0;
    if (!isNorm || !exponent || exponent.getValueAsDouble() != 1 / form.power)
      return {};
    norms.push_back(power.getSelf());
  }
  OpBuilder &builder = emitter.builder;
  Value joined = emitter.createValue("stack", norms, emitter.named("dim", builder.getI64IntegerAttr(0)),
                                     typeOf(self).clone(typeOf(norms.front()).getElementType()));
  Value norm = emitter.createValue(
      "linalg_vector_norm", joined,
      {emitter.named("ord", form.order), emitter.named("dim", builder.getDenseI64ArrayAttr(0))}, typeOf(norms.front()));
  return emitter.cast(emitPower(emitter, norm, 1 / form.power), result.getElementType());
}

static LogicalResult emitVectorNorm(Emitter &emitter, Call &call, Results &results) {
  std::optional<NormForm> form = NormForm::of(emitter.builder, call);
  if (!form || static_cast<int64_t>(reducedDims(call).size()) != typeOf(call.value("self")).getRank())
    return emitReduction(emitter, call, results);
  if (!call.boolean("keepdim"))
    if (Value norm = emitNormOfNorms(emitter, call.value("self"), *form, call.resultTypes[0])) {
      results.push_back(norm);
      return success();
    }
  results.push_back(emitPowerNorm(emitter, call.value("self"), *form, call.boolean("keepdim"), call.resultTypes[0]));
  return success();
}

/// The norms of gradients, for clipping.
static LogicalResult emitListNorm(Emitter &emitter, Call &call, Results &results) {
  std::optional<NormForm> form = NormForm::of(emitter.builder, call);
  BoundArg *list = call.find("self");
  if (!form || !list || list->values.empty() || list->values.size() != call.resultTypes.size() ||
      llvm::is_contained(list->values, Value()))
    return emitSameOp(emitter, call, results);
  Type element = typeOf(list->values.front()).getElementType();
  bool isPlain =
      !form->counts && Arithmetic::computeType(element) == element &&
      llvm::all_of(call.resultTypes, [&](RankedTensorType type) { return type.getElementType() == element; }) &&
      llvm::all_of(list->values, [&](Value value) { return typeOf(value).getElementType() == element; });
  if (!isPlain) {
    for (auto [value, type] : llvm::zip_equal(list->values, call.resultTypes))
      results.push_back(emitPowerNorm(emitter, value, *form, false, type));
    return success();
  }
  // As lists: a unit's gradients are one op on its flat buffer.
  OpBuilder &builder = emitter.builder;
  auto map = [&](ValueRange values, StringRef op, ArrayRef<NamedAttribute> options) {
    NamedAttribute attrs[] = {emitter.named("op", builder.getStringAttr(op)),
                              emitter.named("options", builder.getDictionaryAttr(options))};
    return emitter.create("_foreach_map", values, attrs, values.getTypes())->getResults();
  };
  ValueRange powers = map(map(list->values, "abs", {}), "pow.Tensor_Scalar",
                          emitter.named("exponent", builder.getF64FloatAttr(form->power)));
  SmallVector<Type> types(call.resultTypes.begin(), call.resultTypes.end());
  NamedAttribute order = emitter.named("ord", form->order);
  for (Value norm : emitter.create("_foreach_norm.Scalar", powers, order, types)->getResults())
    results.push_back(emitPower(emitter, norm, 1 / form->power));
  return success();
}

/// norm is linalg_vector_norm with an order that may be left out.
static LogicalResult emitNorm(Emitter &emitter, Call &call, Results &results) {
  if (BoundArg *order = call.find("p"); order && order->isNone())
    setInteger(call, "p", 2);
  if (BoundArg *order = call.find("p"))
    order->literal.name = "ord";
  call.op = "linalg_vector_norm";
  return emitVectorNorm(emitter, call, results);
}

/// The norm of a difference.
static LogicalResult emitDist(Emitter &emitter, Call &call, Results &results) {
  BoundArg *self = call.find("self");
  self->values[0] = Arithmetic(emitter, call.resultTypes[0].getElementType()).sub(self->values[0], call.value("other"));
  llvm::erase_if(call.args, [](const BoundArg &arg) { return arg.name() == "other"; });
  return emitNorm(emitter, call, results);
}

/// Slices of dimension `dim` whose norm is above `maxnorm`, made as short as that.
static LogicalResult emitRenorm(Emitter &emitter, Call &call, Results &results) {
  RankedTensorType type = call.resultTypes[0];
  BoundArg *most = call.find("maxnorm");
  int64_t rank = type.getRank(), dim = wrapDim(call.integer("dim", 0), rank);
  if (!most || !most->isNumber() || dim < 0 || dim >= rank)
    return refuseDim(emitter, call, dim, rank);
  double bound = most->number();
  Arithmetic a(emitter, Arithmetic::computeType(type.getElementType()));
  Call norm = call;
  llvm::erase_if(norm.args, [](const BoundArg &arg) { return arg.name() == "dim" || arg.name() == "maxnorm"; });
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank)), shape(rank, 1);
  dims.erase(dims.begin() + dim);
  shape[dim] = type.getDimSize(dim);
  Value self = emitter.cast(call.value("self"), a.elementType());
  SmallVector<Value> norms;
  if (dims.empty()) {
    norms.push_back(a.unary("abs", self)); // each element is a slice
  } else {
    norm.find("self")->values = {self};
    setIntegers(norm, "dim", dims);
    setBoolean(norm, "keepdim", true);
    norm.resultTypes = {RankedTensorType::get(shape, a.elementType())};
    if (failed(emitNorm(emitter, norm, norms)))
      return failure();
  }
  Value factor = a.div(a.constant(bound), a.add(norms[0], 1e-7));
  factor = a.where(a.compare("gt.Tensor", norms[0], a.constant(bound)), factor, a.constant(1));
  results.push_back(emitter.cast(a.mul(self, factor), type.getElementType()));
  return success();
}

namespace {
/// Reductions of a call's `self`, written as other ops.
struct Reducer {
  Reducer(Emitter &emitter, Call &call)
      : emitter(emitter), dims(reducedDims(call)), keepdim(call.boolean("keepdim")) {}

  SmallVector<int64_t> shapeOf(Value value, bool keep) {
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::enumerate(typeOf(value).getShape()))
      if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
        shape.push_back(size);
      else if (keep)
        shape.push_back(1);
    return shape;
  }
  Value reduce(StringRef op, Value value, Type type, bool keep) {
    return emitter.createValue(op, value,
                               {emitter.named("dim", emitter.builder.getDenseI64ArrayAttr(dims)),
                                emitter.named("keepdim", emitter.builder.getBoolAttr(keep))},
                               RankedTensorType::get(shapeOf(value, keep), type));
  }
  Value unary(StringRef op, Value value) { return emitter.createValue(op, value, {}, typeOf(value)); }
  Value compareZero(StringRef op, Value value) {
    return emitter.createValue(op, value, emitter.named("other", emitter.builder.getI64IntegerAttr(0)),
                               typeOf(value).clone(emitter.builder.getI1Type()));
  }

  Emitter &emitter;
  SmallVector<int64_t> dims;
  bool keepdim;
};
} // namespace

/// any: some element is not zero; all: no element is. Counts add up over ranks.
static LogicalResult emitTruth(Emitter &emitter, Call &call, Results &results) {
  bool isAny = StringRef(call.op).starts_with("any");
  Reducer r(emitter, call);
  Value found = r.compareZero(isAny ? "ne.Scalar" : "eq.Scalar", call.value("self"));
  Value count = r.reduce("sum.dim_IntList", found, emitter.builder.getI64Type(), r.keepdim);
  Value truth = r.compareZero(isAny ? "ne.Scalar" : "eq.Scalar", count);
  results.push_back(emitter.cast(truth, call.resultTypes[0].getElementType()));
  return success();
}

static LogicalResult emitCountNonzero(Emitter &emitter, Call &call, Results &results) {
  Reducer r(emitter, call);
  Value found = r.compareZero("ne.Scalar", call.value("self"));
  results.push_back(r.reduce("sum.dim_IntList", found, emitter.builder.getI64Type(), /*keep=*/false));
  return success();
}

/// log(sum(exp(self - max))) + max, where a maximum that is infinite counts as 0.
static LogicalResult emitLogSumExp(Emitter &emitter, Call &call, Results &results) {
  Reducer r(emitter, call);
  Type type = call.resultTypes[0].getElementType();
  if (typeOf(call.value("self")).getNumElements() == 0) { // the logarithm of a sum of nothing
    auto nothing = emitter.builder.getF64FloatAttr(-std::numeric_limits<double>::infinity());
    results.push_back(emitter.full(call.resultTypes[0], nothing));
    return success();
  }
  Value self = emitter.cast(call.value("self"), type);
  Value max = r.reduce("amax", self, type, /*keep=*/true);
  Value isInfinite = emitter.createValue("isinf", max, {}, typeOf(max).clone(emitter.builder.getI1Type()));
  Value zero = emitter.full(RankedTensorType::get({}, type), emitter.builder.getF64FloatAttr(0.0));
  Value base = emitter.createValue("where.self", {isInfinite, zero, max}, {}, typeOf(max));
  Value exponentials = r.unary("exp", emitter.createValue("sub.Tensor", {self, base}, {}, typeOf(self)));
  Value sum = r.unary("log", r.reduce("sum.dim_IntList", exponentials, type, r.keepdim));
  base = emitter.view(base, typeOf(sum).getShape());
  results.push_back(emitter.createValue("add.Tensor", {sum, base}, {}, typeOf(sum)));
  return success();
}

/// Sums of what is a number.
static LogicalResult emitNanSum(Emitter &emitter, Call &call, Results &results) {
  Reducer r(emitter, call);
  Type type = call.resultTypes[0].getElementType();
  Value self = call.value("self");
  if (isa<FloatType>(typeOf(self).getElementType())) {
    Value isNan = emitter.createValue("isnan", self, {}, typeOf(self).clone(emitter.builder.getI1Type()));
    Value zero = emitter.full(RankedTensorType::get({}, typeOf(self).getElementType()),
                              emitter.builder.getF64FloatAttr(0.0));
    self = emitter.createValue("where.self", {isNan, zero, self}, {}, typeOf(self));
  }
  results.push_back(r.reduce("sum.dim_IntList", emitter.cast(self, type), type, r.keepdim));
  return success();
}

/// var, std, std_mean by var_mean.
static LogicalResult emitVariance(Emitter &emitter, Call &call, Results &results) {
  StringRef name = StringRef(call.op).split('.').first;
  setIntegers(call, "dim", reducedDims(call));
  RankedTensorType type = call.resultTypes[0];
  Call both = call;
  both.op = "var_mean.correction";
  both.resultTypes.assign({type, type});
  SmallVector<Value> values;
  if (failed(emitSameOp(emitter, both, values)))
    return failure();
  results.push_back(name.starts_with("std") ? emitter.createValue("sqrt", values[0], {}, type) : values[0]);
  if (name.ends_with("_mean"))
    results.push_back(values[1]);
  return success();
}

/// Ops along one dimension: max.dim, prod.dim_int, cumsum and their relatives. Without a dimension they see the tensor
/// as one line; a tensor without dimensions is a line of one.
static LogicalResult emitAlongDim(Emitter &emitter, Call &call, Results &results) {
  BoundArg *self = call.find("self"), *dim = call.find("dim");
  if (llvm::is_contained(call.resultTypes, RankedTensorType()))
    return emitter.error("'") << call.op << "' lacks a result";
  Value value = self->values[0];
  int64_t rank = typeOf(value).getRank();
  bool isFlat = rank == 0 || !dim || dim->isNone();
  StringRef name = StringRef(call.op).split('.').first;
  bool isScan = name.contains("cum"), isPlace = name.starts_with("arg"), isProduct = name.ends_with("prod");
  if (isProduct || name == "cumsum")
    value = emitter.cast(value, call.resultTypes[0].getElementType());
  if (isFlat)
    value = emitter.view(value, {typeOf(value).getNumElements()});
  setInteger(call, "dim", isFlat ? 0 : wrapDim(call.integer("dim", 0), rank));

  Call along = call;
  if (isPlace)
    along.op = name == "argmax" ? "max.dim" : "min.dim";
  else if (name == "prod")
    along.op = "prod.dim_int";
  along.find("self")->values = {value};
  SmallVector<int64_t> shape(call.resultTypes.back().getShape());
  if (isFlat)
    shape.assign(isScan ? typeOf(value).getShape() : ArrayRef<int64_t>());
  if (isFlat && !isScan)
    setBoolean(along, "keepdim", false);
  along.resultTypes.clear();
  if (isPlace)
    along.resultTypes.push_back(RankedTensorType::get(shape, typeOf(value).getElementType()));
  for (RankedTensorType type : call.resultTypes)
    along.resultTypes.push_back(type.clone(shape));
  SmallVector<Value> values;
  if (failed(emitSameOp(emitter, along, values)))
    return failure();
  ArrayRef<Value> wanted = ArrayRef<Value>(values).take_back(call.resultTypes.size());
  for (auto [result, type] : llvm::zip_equal(wanted, call.resultTypes))
    results.push_back(emitter.view(result, type.getShape()));
  return success();
}

static LogicalResult emitMinMax(Emitter &emitter, Call &call, Results &results) {
  for (StringRef op : {"amin", "amax"}) {
    Reducer r(emitter, call);
    results.push_back(r.reduce(op, call.value("self"), call.resultTypes[0].getElementType(), r.keepdim));
  }
  return success();
}

/// The whole numbers that `value` is, written as floating ones.
static Value getWholeNumbers(Value value) {
  auto cast = value.getDefiningOp<aten::ToCopyOp>();
  if (!cast)
    return {};
  Type from = typeOf(cast.getSelf()).getElementType();
  return from.isInteger(32) || from.isInteger(64) ? cast.getSelf() : Value();
}

/// Counts of the elements in equal bins between min and max, both of which count. As ATen's HistogramKernel.cpp finds
/// the bin: (x - min) * bins / (max - min) cut to an integer, the last bin for max itself.
static LogicalResult emitHistc(Emitter &emitter, Call &call, Results &results) {
  double low = call.number("min", 0), high = call.number("max", 0);
  int64_t bins = call.integer("bins", 100);
  if (!(low < high) || bins <= 0)
    return emitter.error("'histc' needs bounds min < max of its bins, which do not depend on values");
  Arithmetic a(emitter, call.resultTypes[0].getElementType());
  Value line = call.value("self");
  // A bin for each whole number: so few that rounding finds no other (a quotient is at least 1 / bins from the next).
  // Where max is one more than the last bin's, it counts in that bin, too.
  constexpr int64_t kExactBins = 2048;
  double width = high - low;
  if (Value numbers = getWholeNumbers(line); numbers && low == std::floor(low) && bins <= kExactBins &&
                                             (width == static_cast<double>(bins - 1) || width == static_cast<double>(bins))) {
    Arithmetic whole(emitter, typeOf(numbers).getElementType());
    numbers = emitter.view(numbers, {1, typeOf(numbers).getNumElements()});
    if (low != 0)
      numbers = whole.add(numbers, -low);
    if (width == static_cast<double>(bins))
      numbers = whole.where(whole.compare("eq.Tensor", numbers, whole.constant(width)), whole.constant(width - 1), numbers);
    results.push_back(a.sum(whole.compare("eq.Tensor", whole.positions(bins, 0, 2), numbers), {1}));
    return success();
  }
  line = emitter.view(line, {1, typeOf(line).getNumElements()});
  auto truth = [&](StringRef op, ValueRange operands, RankedTensorType like, ArrayRef<NamedAttribute> attrs = {}) {
    return emitter.createValue(op, operands, attrs, like.clone(emitter.builder.getI1Type()));
  };
  auto bound = [&](double value) { return emitter.named("other", emitter.builder.getF64FloatAttr(value)); };
  Value isIn = truth("logical_and",
                     {truth("ge.Scalar", line, typeOf(line), bound(low)),
                      truth("le.Scalar", line, typeOf(line), bound(high))},
                     typeOf(line));
  Value bin = a.unary("trunc", a.div(a.mul(a.add(line, -low), static_cast<double>(bins)), high - low));
  bin = a.clamp(bin, std::nullopt, static_cast<double>(bins - 1));
  Value isOf = a.compare("eq.Tensor", a.positions(bins, 0, 2), bin);
  results.push_back(a.sum(truth("logical_and", {isOf, isIn}, typeOf(isOf)), {1}));
  return success();
}

void spmd::normalizeReductions(NormalizerTable &table) {
  for (StringRef op :
       {"sum", "sum.dim_IntList", "mean", "mean.dim", "amax", "amin", "max", "min", "var_mean.correction"})
    table[op] = {&emitReduction, {"self"}};
  table["linalg_vector_norm"] = {&emitVectorNorm, {"self"}};
  table["_foreach_norm.Scalar"] = &emitListNorm;
  for (StringRef op : {"norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim_dtype"})
    table[op] = {&emitNorm, {"self"}};
  table["dist"] = {&emitDist, {"self", "other"}};
  table["renorm"] = {&emitRenorm, {"self"}};
  for (StringRef op : {"any", "any.dim", "any.dims", "all", "all.dim", "all.dims"})
    table[op] = {&emitTruth, {"self"}};
  for (StringRef op : {"count_nonzero", "count_nonzero.dim_IntList"})
    table[op] = {&emitCountNonzero, {"self"}};
  for (StringRef op : {"var.correction", "std.correction", "std_mean.correction"})
    table[op] = {&emitVariance, {"self"}};
  for (StringRef op : {"max.dim", "min.dim", "argmax", "argmin", "prod", "prod.dim_int", "cumsum", "cumprod",
                       "logcumsumexp", "cummax", "cummin"})
    table[op] = {&emitAlongDim, {"self"}};
  table["logsumexp"] = {&emitLogSumExp, {"self"}};
  table["nansum"] = {&emitNanSum, {"self"}};
  table["aminmax"] = {&emitMinMax, {"self"}};
  table["histc"] = {&emitHistc, {"self"}};
}
