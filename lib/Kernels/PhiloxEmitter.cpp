//===- PhiloxEmitter.cpp - code that draws random numbers -----------------===//

#include "PhiloxEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "spmd/Runtime/Core/Philox.h"
#include <array>

using namespace mlir;

namespace spmd::kernel {
namespace {

/// 32-bit words in i64 lanes, upper halves zero: the product of two of them is one instruction.
class Words {
public:
  Words(ImplicitLocOpBuilder &b, Type type) : b(b), type(type) {}

  Value constant(uint64_t value) {
    IntegerAttr number = b.getI64IntegerAttr(static_cast<int64_t>(value));
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, Attribute(number)));
    return arith::ConstantOp::create(b, number);
  }
  Value splat(Value scalar) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Value(vector::BroadcastOp::create(b, vector, scalar)) : scalar;
  }
  Value low(Value x) { return arith::AndIOp::create(b, x, constant(0xFFFFFFFF)); }
  Value high(Value x) { return arith::ShRUIOp::create(b, x, constant(32)); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value exclusiveOr(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }

private:
  ImplicitLocOpBuilder &b;
  Type type;
};

} // namespace

Value emitUniform(ImplicitLocOpBuilder &b, Value seed, Value step, Value index, int64_t stream, unsigned word) {
  using namespace runtime;
  Words scalar(b, b.getI64Type()), lanes(b, index.getType());
  std::array<Value, 2> key = {scalar.low(seed), scalar.high(seed)};
  std::array<Value, 4> counter = {lanes.low(index), lanes.high(index), lanes.constant(static_cast<uint32_t>(stream)),
                                  lanes.splat(scalar.low(step))};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    Value product0 = lanes.mul(counter[0], lanes.constant(kPhiloxMultipliers[0]));
    Value product1 = lanes.mul(counter[2], lanes.constant(kPhiloxMultipliers[1]));
    auto mix = [&](Value product, Value other, Value key) {
      return lanes.exclusiveOr(lanes.exclusiveOr(lanes.high(product), other), lanes.splat(key));
    };
    counter = {mix(product1, counter[1], key[0]), lanes.low(product1), mix(product0, counter[3], key[1]),
               lanes.low(product0)};
    for (unsigned i : {0u, 1u})
      key[i] = scalar.low(arith::AddIOp::create(b, key[i], scalar.constant(kPhiloxIncrements[i])));
  }
  auto vector = dyn_cast<VectorType>(index.getType());
  auto typed = [&](Type element) { return vector ? Type(VectorType::get(vector.getShape(), element)) : element; };
  Value bits = arith::ShRUIOp::create(b, counter[word], lanes.constant(8));
  Value narrow = arith::TruncIOp::create(b, typed(b.getI32Type()), bits);
  Value number = arith::SIToFPOp::create(b, typed(b.getF32Type()), narrow);
  FloatAttr scale = b.getF32FloatAttr(0x1p-24f);
  Value factor = vector ? Value(arith::ConstantOp::create(
                              b, DenseElementsAttr::get(cast<VectorType>(typed(b.getF32Type())), Attribute(scale))))
                        : Value(arith::ConstantOp::create(b, scale));
  return arith::MulFOp::create(b, number, factor);
}

} // namespace spmd::kernel
