//===- AttentionOps.cpp - kernel.attention, kernel.attention_backward -----===//

#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/AttentionMask.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace spmd::kernel;

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

ParseResult spmd::kernel::parseMask(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
                                    SmallVectorImpl<Type> &types, ArrayAttr &maps, Region &mask) {
  BoundOperands bound;
  SMLoc loc = parser.getCurrentLocation();
  maps = parser.getBuilder().getArrayAttr({});
  if (parseBoundOperands(parser, "mask", /*withMaps=*/true, bound))
    return failure();
  if (parser.getCurrentLocation() == loc)
    return success();
  if (!bound.guarded.empty())
    return parser.emitError(loc, "operands of a mask are not guarded");
  inputs.append(bound.operands.begin(), bound.operands.end());
  types.append(bound.types.begin(), bound.types.end());
  maps = parser.getBuilder().getAffineMapArrayAttr(bound.maps);
  return parser.parseRegion(mask, bound.arguments);
}

void spmd::kernel::printMask(OpAsmPrinter &p, Operation *, OperandRange inputs, TypeRange types, ArrayAttr maps,
                             Region &mask) {
  if (mask.empty())
    return;
  p << "mask(";
  llvm::interleaveComma(llvm::seq<unsigned>(0, inputs.size()), p, [&](unsigned i) {
    p << mask.front().getArgument(i) << " = " << inputs[i] << " at " << cast<AffineMapAttr>(maps[i]).getValue() << " : "
      << types[i];
  });
  p << ") ";
  p.printRegion(mask, /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Verification
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

/// What forward and backward check alike: (C1) to (C3), (C5).
template <typename OpT>
static LogicalResult verifyAttention(OpT op, Value out, Value lse, Value maskGrad) {
  AttentionSizesAttr s = op.getSizes();
  for (int64_t size :
       {s.getBatch(), s.getHeads(), s.getKvHeads(), s.getQLen(), s.getKvLen(), s.getHeadDim(), s.getVDim()})
    if (size <= 0)
      return op.emitOpError("sizes must be positive, got ") << s;
  if (s.getHeads() % s.getKvHeads() != 0)
    return op.emitOpError("has ") << s.getHeads() << " heads, no multiple of " << s.getKvHeads() << " key/value heads";
  Type element = getElementTypeOrSelf(op.getQ().getType());
  if (!isa<Float32Type, Float16Type, BFloat16Type>(element))
    return op.emitOpError("works on f32, bf16 or f16, got ") << element;
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults())) {
    Type type = getElementTypeOrSelf(value.getType());
    bool isStatistic = value == lse || value == maskGrad;
    if (isStatistic ? !type.isF32() : type != element && !llvm::is_contained(op.getMaskInputs(), value))
      return op.emitOpError("operands and results must be ")
             << element << " (lse and mask_grad f32), got " << value.getType();
  }
  int64_t b = s.getBatch(), h = s.getHeads(), g = s.getKvHeads();
  if (failed(verifyView(op, "q", op.getQView(), op.getQ().getType(), b, h, s.getQLen(), s.getHeadDim())) ||
      failed(verifyView(op, "k", op.getKView(), op.getK().getType(), b, g, s.getKvLen(), s.getHeadDim())) ||
      failed(verifyView(op, "v", op.getVView(), op.getV().getType(), b, g, s.getKvLen(), s.getVDim())) ||
      failed(verifyView(op, "out", op.getOutView(), out.getType(), b, h, s.getQLen(), s.getVDim())))
    return failure();
  if (getNumElements(lse.getType()) != b * h * s.getQLen())
    return op.emitOpError("lse ") << lse.getType() << " must have " << b * h * s.getQLen() << " elements";
  return success();
}

/// (C4).
template <typename OpT>
static LogicalResult verifyMask(OpT op) {
  AttentionSizesAttr s = op.getSizes();
  int64_t dims[] = {s.getBatch(), s.getHeads(), s.getQLen(), s.getKvLen()};
  if (op.getMaskMaps().size() != op.getMaskInputs().size())
    return op.emitOpError("needs one map per operand of its mask");
  if (op.getMask().empty()) {
    if (!op.getMaskInputs().empty())
      return op.emitOpError("has operands of a mask but no mask");
    return success();
  }
  for (auto [i, attr] : llvm::enumerate(op.getMaskMaps())) {
    AffineMap map = cast<AffineMapAttr>(attr).getValue();
    Type type = op.getMaskInputs()[i].getType();
    if (map.getNumDims() != 4 || map.getNumResults() != 1)
      return op.emitOpError("map of mask operand ")
             << i << " has " << map.getNumDims() << " dims and " << map.getNumResults() << " results, expected 4 and 1";
    auto range = AccessMap::get(map).getRange(dims);
    if (range && (range->first < 0 || range->second >= getNumElements(type)))
      return op.emitOpError("map of mask operand ")
             << i << " gives indices " << range->first << " to " << range->second << ", outside of " << type;
  }
  Block &body = op.getMask().front();
  Operation *yield = body.empty() ? nullptr : &body.back();
  if (!isa_and_present<YieldOp>(yield) || yield->getNumOperands() != 1)
    return op.emitOpError("mask must yield one value");
  Type yielded = yield->getOperand(0).getType();
  if (!yielded.isInteger(1) && !yielded.isF32())
    return op.emitOpError("mask must yield i1 or f32, got ") << yielded;
  for (IndexOp index : body.getOps<IndexOp>())
    if (index.getDim() >= 4)
      return index.emitOpError("names dim ") << index.getDim() << " of 4";
  return verifyBody(op, body, op.getMaskInputs().getTypes(), yielded);
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this, getOut(), getLse(), Value()); }
LogicalResult AttentionOp::verifyRegions() { return verifyMask(*this); }

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyAttention(*this, getOut(), getLse(), getMaskGrad())))
    return failure();
  if (getGrads().size() != 1 && getGrads().size() != 3)
    return emitOpError("has ") << getGrads().size() << " gradients, expected 1 or 3";
  AttentionSizesAttr s = getSizes();
  int64_t b = s.getBatch(), h = s.getHeads(), g = s.getKvHeads();
  Type dq = getGrads().front().getType(), dv = getGrads().back().getType();
  Type dk = getGrads()[getGrads().size() / 2].getType();
  if (failed(verifyView(*this, "dout", getDoutView(), getDout().getType(), b, h, s.getQLen(), s.getVDim())) ||
      failed(verifyView(*this, "dq", getDqView(), dq, b, h, s.getQLen(), s.getHeadDim())) ||
      failed(verifyView(*this, "dk", getDkView(), dk, b, g, s.getKvLen(), s.getHeadDim())) ||
      failed(verifyView(*this, "dv", getDvView(), dv, b, g, s.getKvLen(), s.getVDim())))
    return failure();
  if (!getMaskGrad())
    return success();
  auto type = cast<RankedTensorType>(getMaskGrad().getType());
  ArrayRef<int64_t> shape = type.getShape();
  if (shape.size() != 4 || (shape[0] != 1 && shape[0] != b) || (shape[1] != 1 && shape[1] != h) ||
      shape[2] != s.getQLen() || shape[3] != s.getKvLen())
    return emitOpError("mask_grad must be [1 or batch, 1 or heads, qLen, kvLen], got ") << type;
  return success();
}
LogicalResult AttentionBackwardOp::verifyRegions() {
  if (failed(verifyMask(*this)))
    return failure();
  if (getMaskGrad() && (getMask().empty() || !getMask().front().getTerminator()->getOperand(0).getType().isF32()))
    return emitOpError("has mask_grad, but no mask that is added");
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOpInterface
//===----------------------------------------------------------------------===//

/// Floating-point operations of `products` products over the pairs of queries and keys that are computed.
template <typename OpT>
static double getAttentionFlops(OpT op, double products) {
  AttentionSizesAttr s = op.getSizes();
  double pairs = countPairs(getKeyWindow(op.getMask(), s), s);
  return products * pairs * s.getBatch() * s.getHeads() * (s.getHeadDim() + s.getVDim());
}

int64_t AttentionOp::getParallelIterations() { return getSizes().getBatch() * getSizes().getHeads(); }
int64_t AttentionOp::getGrain() {
  return getGrainFor(getParallelIterations(), getFlops() / 8 / getParallelIterations());
}
double AttentionOp::getFlops() { return getAttentionFlops(*this, 2); }
int64_t AttentionOp::getBytesMoved() { return getTensorBytes(*this); }
bool AttentionOp::canAlias(unsigned, unsigned) { return false; }

int64_t AttentionBackwardOp::getParallelIterations() {
  // Query heads that share a key/value head add into one gradient, and so do batches and heads that share a mask.
  int64_t batch = getSizes().getBatch(), heads = getSizes().getKvHeads();
  if (!getMaskGrad())
    return batch * heads;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getMaskGrad().getType()).getShape();
  return shape[0] * (shape[1] == 1 ? 1 : heads);
}
int64_t AttentionBackwardOp::getGrain() {
  return getGrainFor(getParallelIterations(), getFlops() / 8 / getParallelIterations());
}
double AttentionBackwardOp::getFlops() { return getAttentionFlops(*this, 5); }
int64_t AttentionBackwardOp::getBytesMoved() { return getTensorBytes(*this); }
bool AttentionBackwardOp::canAlias(unsigned, unsigned) { return false; }
