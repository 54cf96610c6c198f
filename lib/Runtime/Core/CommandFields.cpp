//===- CommandFields.cpp --------------------------------------------------===//

#include "CommandFields.h"

using namespace spmd::runtime;

void spmd::runtime::writeGemmSizes(JsonWriter &json, const GemmSizes &sizes) {
  json.member("m", sizes.m);
  json.member("n", sizes.n);
  json.member("k", sizes.k);
  json.member("lda", sizes.lda);
  json.member("ldb", sizes.ldb);
  json.member("ldc", sizes.ldc);
  json.member("batch", sizes.batch);
  json.member("stride_a", sizes.strideA);
  json.member("stride_b", sizes.strideB);
  json.member("stride_c", sizes.strideC);
  json.member("trans_a", sizes.transA);
  json.member("trans_b", sizes.transB);
}

void spmd::runtime::writeActivation(JsonWriter &json, Activation activation) {
  if (activation != Activation::None)
    json.member("activation", nameOf(activation));
}

void spmd::runtime::writeBiasGradientOf(JsonWriter &json, GemmOperand operand) {
  if (operand != GemmOperand::None)
    json.member("bias_gradient_of", nameOf(operand));
}

/// Calls `each` with the name and the view of each operand and result that is a view.
template <typename Shape, typename Each>
static void forEachView(Shape &shape, Each each) {
  each("q", shape.q);
  each("k", shape.k);
  each("v", shape.v);
  each("out", shape.out);
  if (!shape.isBackward)
    return;
  each("dout", shape.dout);
  each("dq", shape.dq);
  each("dk", shape.dk);
  each("dv", shape.dv);
}

void spmd::runtime::writeAttentionShape(JsonWriter &json, const AttentionShape &shape) {
  json.member("dtype", shape.dtype);
  json.member("batch", shape.batch);
  json.member("heads", shape.heads);
  json.member("kv_heads", shape.kvHeads);
  json.member("q_len", shape.qLen);
  json.member("kv_len", shape.kvLen);
  json.member("head_dim", shape.headDim);
  json.member("v_dim", shape.vDim);
  json.member("scale", shape.scale);
  if (shape.mask != AttentionMask::None)
    json.member("mask", nameOf(shape.mask));
  json.optionalMember("window_low", shape.windowLow);
  json.optionalMember("window_high", shape.windowHigh);
  json.object("views", [&] {
    forEachView(shape, [&](const char *name, const AttentionView &view) {
      json.object(name, [&] {
        json.member("offset", view.offset);
        json.member("batch", view.batch);
        json.member("head", view.head);
        json.member("row", view.row);
      });
    });
  });
}

void spmd::runtime::writeExchange(JsonWriter &json, const Exchange &exchange) {
  json.member("unit", exchange.unit);
  std::vector<std::string> kinds;
  for (ReductionKind kind : exchange.kinds)
    kinds.push_back(nameOf(kind));
  if (isInPlace(exchange.kind)) {
    json.member("kinds", kinds);
    json.member("dtype", exchange.dtype);
    json.member("counts", exchange.counts);
    return;
  }
  if (combines(exchange.kind))
    json.member("kind", kinds[0]);
  json.member("dtype", exchange.dtype);
  json.member("count", exchange.counts[0]);
}

void spmd::runtime::writeCheckIndex(JsonWriter &json, const CheckIndexCommand &check) {
  json.member("count", check.count);
  json.member("dtype", check.dtype);
  json.member("low", check.low);
  json.member("high", check.high);
  json.optionalMember("ignore_index", check.ignoreIndex);
  json.member("use", check.use);
}

void spmd::runtime::readGemmSizes(JsonValue value, GemmSizes &sizes) {
  sizes.m = value["m"].asSize();
  sizes.n = value["n"].asSize();
  sizes.k = value["k"].asSize();
  if (sizes.k == 0)
    value["k"].fail("expected at least 1, found 0");
  sizes.lda = value["lda"].asSize();
  sizes.ldb = value["ldb"].asSize();
  sizes.ldc = value["ldc"].asSize();
  sizes.transA = value["trans_a"].asBool();
  sizes.transB = value["trans_b"].asBool();
  if (value.has("batch"))
    sizes.batch = value["batch"].asSize();
  if (value.has("stride_a"))
    sizes.strideA = value["stride_a"].asSize();
  if (value.has("stride_b"))
    sizes.strideB = value["stride_b"].asSize();
  if (value.has("stride_c"))
    sizes.strideC = value["stride_c"].asSize();
}

DType spmd::runtime::readGemmDType(JsonValue value) {
  DType dtype = value.asDType();
  if (!isFloating(dtype))
    value.fail(std::string("expected f32, f64, bf16 or f16, found ") + nameOf(dtype));
  return dtype;
}

Activation spmd::runtime::readActivation(JsonValue value) {
  if (!value.has("activation"))
    return Activation::None;
  std::string text = value["activation"].asString();
  Activation activation = parseActivation(text).value_or(Activation::None);
  if (activation == Activation::None)
    value["activation"].fail("expected " + joinChoices(kActivations) + ", found '" + text + "'");
  return activation;
}

GemmOperand spmd::runtime::readBiasGradientOf(JsonValue value) {
  if (!value.has("bias_gradient_of"))
    return GemmOperand::None;
  std::string text = value["bias_gradient_of"].asString();
  GemmOperand operand = parseGemmOperand(text).value_or(GemmOperand::None);
  if (operand == GemmOperand::None)
    value["bias_gradient_of"].fail("expected " + joinChoices(kGemmOperands) + ", found '" + text + "'");
  return operand;
}

void spmd::runtime::readAttentionShape(JsonValue value, AttentionShape &shape) {
  shape.dtype = readGemmDType(value["dtype"]);
  auto readSize = [&](const char *key) {
    int64_t size = value[key].asSize();
    if (size < 1)
      value[key].fail("expected at least 1, found 0");
    return size;
  };
  shape.batch = readSize("batch");
  shape.heads = readSize("heads");
  shape.kvHeads = readSize("kv_heads");
  if (shape.kvHeads > 0 && shape.heads % shape.kvHeads != 0)
    value["kv_heads"].fail("is no divisor of the " + std::to_string(shape.heads) + " heads");
  shape.qLen = readSize("q_len");
  shape.kvLen = readSize("kv_len");
  shape.headDim = readSize("head_dim");
  shape.vDim = readSize("v_dim");
  shape.scale = value["scale"].asDouble();
  if (value.has("mask")) {
    std::string text = value["mask"].asString();
    shape.mask = parseAttentionMask(text).value_or(AttentionMask::None);
    if (shape.mask == AttentionMask::None)
      value["mask"].fail("expected " + joinChoices(kAttentionMasks) + ", found '" + text + "'");
  }
  if (value.has("window_low"))
    shape.windowLow = value["window_low"].asInt();
  if (value.has("window_high"))
    shape.windowHigh = value["window_high"].asInt();
  forEachView(shape, [&](const char *name, AttentionView &view) {
    JsonValue entry = value["views"][name];
    view = {entry["offset"].asSize(), entry["batch"].asSize(), entry["head"].asSize(), entry["row"].asSize()};
  });
}

static ReductionKind readKind(JsonValue value) {
  std::string text = value.asString();
  if (std::optional<ReductionKind> kind = parseReductionKind(text))
    return *kind;
  value.fail("expected " + joinChoices(kReductionKinds) + ", found '" + text + "'");
  return ReductionKind::Sum;
}

void spmd::runtime::readExchange(JsonValue value, Exchange &exchange) {
  exchange.dtype = value["dtype"].asDType();
  if (value.has("unit"))
    exchange.unit = value["unit"].asString();
  if (isInPlace(exchange.kind)) {
    exchange.counts = value["counts"].asSizes();
    value["kinds"].forEach([&](JsonValue entry) { exchange.kinds.push_back(readKind(entry)); });
    return;
  }
  exchange.counts = {value["count"].asSize()};
  if (combines(exchange.kind))
    exchange.kinds = {readKind(value["kind"])};
}

void spmd::runtime::readCheckIndex(JsonValue value, CheckIndexCommand &check) {
  check.dtype = value["dtype"].asDType();
  if (isFloating(check.dtype))
    value["dtype"].fail(std::string("expected integers, found ") + nameOf(check.dtype));
  check.count = value["count"].asSize();
  check.low = value["low"].asInt();
  check.high = value["high"].asInt();
  if (value.has("ignore_index"))
    check.ignoreIndex = value["ignore_index"].asInt();
  check.use = value["use"].asString();
}

Access spmd::runtime::readAccess(JsonValue value) {
  std::string access = value.asString();
  if (access != "r" && access != "w" && access != "rw")
    value.fail("expected r, w or rw, found '" + access + "'");
  return access == "r" ? Access::Read : access == "w" ? Access::Write : Access::ReadWrite;
}

void spmd::runtime::writeRepeats(JsonWriter &json, const std::optional<Repeats> &repeats) {
  if (!repeats)
    return;
  json.object("repeats", [&] {
    json.member("begin", repeats->begin);
    json.member("end", repeats->end);
    json.member("more", repeats->more);
    json.member("fed", repeats->fed);
  });
}

std::optional<Repeats> spmd::runtime::readRepeats(JsonValue value) {
  if (!value.has("repeats"))
    return std::nullopt;
  JsonValue entry = value["repeats"];
  Repeats repeats{entry["begin"].asSize(), entry["end"].asSize(), entry["more"].asSize(), {}};
  entry["fed"].forEach([&](JsonValue list) {
    repeats.fed.emplace_back();
    list.forEach([&](JsonValue number) {
      if (int64_t read = number.asSize(); read < kMaxUnrolledItems)
        repeats.fed.back().push_back(static_cast<int32_t>(read));
      else
        number.fail("expected less than " + std::to_string(kMaxUnrolledItems));
    });
  });
  return repeats;
}
