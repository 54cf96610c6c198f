//===- HeavyOps.cpp - kernel.gemm, kernel.attention(_backward) ------------===//

#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace spmd::kernel;

//===----------------------------------------------------------------------===//
// gemm
//===----------------------------------------------------------------------===//

LogicalResult GemmOp::verify() {
  int64_t m = getM(), n = getN(), k = getK(), batch = getBatch();
  if (m <= 0 || n <= 0 || k <= 0 || batch <= 0)
    return emitOpError("sizes must be positive, got m ") << m << " n " << n << " k " << k << " batch " << batch;
  Type element = getElementTypeOrSelf(getResult().getType());
  if (!element.isF32() && !element.isF64() && !element.isBF16())
    return emitOpError("works on f32, f64 or bf16, got ") << element;
  for (Type type : getOperandTypes())
    if (getElementTypeOrSelf(type) != element)
      return emitOpError("has operands of other types than its result: ") << type << " and " << getResult().getType();
  auto checkView = [&](StringRef name, Type type, int64_t rows, int64_t columns, int64_t offset, int64_t ld,
                       int64_t stride) -> LogicalResult {
    if (ld < columns)
      return emitOpError("leading dimension of ") << name << " is " << ld << ", less than a row of " << columns;
    int64_t last = offset + (batch - 1) * stride + (rows - 1) * ld + columns - 1;
    if (offset < 0 || stride < 0 || last >= getNumElements(type))
      return emitOpError("view of ") << name << " ends at element " << last << ", outside of " << type;
    return success();
  };
  if (failed(checkView("a", getA().getType(), getTransA() ? k : m, getTransA() ? m : k, getAOffset(), getLda(),
                       getAStride())) ||
      failed(checkView("b", getB().getType(), getTransB() ? n : k, getTransB() ? k : n, getBOffset(), getLdb(),
                       getBStride())))
    return failure();
  if (getNumElements(getResult().getType()) != batch * m * n)
    return emitOpError("result ") << getResult().getType() << " must have " << batch * m * n << " elements";
  if (getC() && getNumElements(getC().getType()) != batch * m * n)
    return emitOpError("c ") << getC().getType() << " must have " << batch * m * n << " elements";
  return success();
}

StringAttr GemmOp::getSymbolAttr() { return {}; }
void GemmOp::setSymbolAttr(StringAttr) {}
int64_t GemmOp::getParallelTrips() { return 1; }
int64_t GemmOp::getGrain() { return 1; }
double GemmOp::getFlops() { return 2.0 * getBatch() * getM() * getN() * getK(); }
int64_t GemmOp::getBytesMoved() { return getTensorBytes(*this); }
bool GemmOp::canAlias(unsigned operand, unsigned) {
  Value c = getC();
  return c && operand == 2 && c != getA() && c != getB();
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

static LogicalResult verifyView(Operation *op, StringRef name, ViewAttr view, Type type, int64_t batch, int64_t heads,
                                int64_t rows, int64_t columns) {
  int64_t last = view.getOffset() + (batch - 1) * view.getBatch() + (heads - 1) * view.getHead() +
                 (rows - 1) * view.getRow() + columns - 1;
  if (view.getOffset() < 0 || view.getBatch() < 0 || view.getHead() < 0 || view.getRow() < 0 ||
      last >= getNumElements(type))
    return op->emitOpError("view of ") << name << " ends at element " << last << ", outside of " << type;
  return success();
}

/// What forward and backward check alike: (C1) to (C5).
template <typename OpT>
static LogicalResult verifyAttention(OpT op, Value out, Value lse) {
  AttentionSizesAttr s = op.getSizes();
  for (int64_t size :
       {s.getBatch(), s.getHeads(), s.getKvHeads(), s.getQLen(), s.getKvLen(), s.getHeadDim(), s.getVDim()})
    if (size <= 0)
      return op.emitOpError("sizes must be positive, got ") << s;
  if (s.getHeads() % s.getKvHeads() != 0)
    return op.emitOpError("has ") << s.getHeads() << " heads, no multiple of " << s.getKvHeads() << " key/value heads";
  Type element = getElementTypeOrSelf(op.getQ().getType());
  if (!element.isF32() && !element.isBF16())
    return op.emitOpError("works on f32 or bf16, got ") << element;
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults())) {
    Type type = getElementTypeOrSelf(value.getType());
    if (value == lse ? !type.isF32() : type != element && !(value == op.getMask() && type.isInteger(1)))
      return op.emitOpError("operands and results must be ")
             << element << " (a mask also i1, lse f32), got " << value.getType();
  }
  if (bool(op.getMask()) != op.getMaskView().has_value())
    return op.emitOpError("needs mask and mask_view together");
  int64_t b = s.getBatch(), h = s.getHeads(), g = s.getKvHeads();
  if (failed(verifyView(op, "q", op.getQView(), op.getQ().getType(), b, h, s.getQLen(), s.getHeadDim())) ||
      failed(verifyView(op, "k", op.getKView(), op.getK().getType(), b, g, s.getKvLen(), s.getHeadDim())) ||
      failed(verifyView(op, "v", op.getVView(), op.getV().getType(), b, g, s.getKvLen(), s.getVDim())) ||
      failed(verifyView(op, "out", op.getOutView(), out.getType(), b, h, s.getQLen(), s.getVDim())) ||
      (op.getMask() &&
       failed(verifyView(op, "mask", *op.getMaskView(), op.getMask().getType(), b, h, s.getQLen(), s.getKvLen()))))
    return failure();
  if (getNumElements(lse.getType()) != b * h * s.getQLen())
    return op.emitOpError("lse ") << lse.getType() << " must have " << b * h * s.getQLen() << " elements";
  return success();
}

static double getAttentionFlops(AttentionSizesAttr s, bool causal, double products) {
  double pairs = static_cast<double>(s.getQLen()) * s.getKvLen();
  if (causal)
    pairs /= 2;
  return products * pairs * s.getBatch() * s.getHeads() * (s.getHeadDim() + s.getVDim());
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this, getOut(), getLse()); }
int64_t AttentionOp::getParallelTrips() { return getSizes().getBatch() * getSizes().getHeads(); }
int64_t AttentionOp::getGrain() { return getGrainFor(getParallelTrips(), getFlops() / 8 / getParallelTrips()); }
double AttentionOp::getFlops() { return getAttentionFlops(getSizes(), getCausal(), 2); }
int64_t AttentionOp::getBytesMoved() { return getTensorBytes(*this); }
bool AttentionOp::canAlias(unsigned, unsigned) { return false; }

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyAttention(*this, getOut(), getLse())))
    return failure();
  if (getGrads().size() != 1 && getGrads().size() != 3)
    return emitOpError("has ") << getGrads().size() << " results, expected 1 or 3";
  AttentionSizesAttr s = getSizes();
  int64_t b = s.getBatch(), h = s.getHeads(), g = s.getKvHeads();
  Type dq = getGrads().front().getType(), dv = getGrads().back().getType();
  Type dk = getGrads()[getGrads().size() / 2].getType();
  return failure(
      failed(verifyView(*this, "dout", getDoutView(), getDout().getType(), b, h, s.getQLen(), s.getVDim())) ||
      failed(verifyView(*this, "dq", getDqView(), dq, b, h, s.getQLen(), s.getHeadDim())) ||
      failed(verifyView(*this, "dk", getDkView(), dk, b, g, s.getKvLen(), s.getHeadDim())) ||
      failed(verifyView(*this, "dv", getDvView(), dv, b, g, s.getKvLen(), s.getVDim())));
}
int64_t AttentionBackwardOp::getParallelTrips() {
  // Query heads that share a key/value head add into one gradient.
  return getSizes().getBatch() * getSizes().getKvHeads();
}
int64_t AttentionBackwardOp::getGrain() { return getGrainFor(getParallelTrips(), getFlops() / 8 / getParallelTrips()); }
double AttentionBackwardOp::getFlops() { return getAttentionFlops(getSizes(), getCausal(), 5); }
int64_t AttentionBackwardOp::getBytesMoved() { return getTensorBytes(*this); }
bool AttentionBackwardOp::canAlias(unsigned, unsigned) { return false; }
