//===- MaskEmitter.cpp - the mask of an attention, a row at a time --------===//

#include "MaskEmitter.h"
#include "ElementEmitter.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace spmd::kernel {

constexpr unsigned kKeyDim = 3, kDims = 4;

void MaskEmitter::findVaryingDims() {
  SmallVector<llvm::SmallBitVector> argumentDims;
  for (AffineMap map : maps) {
    llvm::SmallBitVector dims(kDims);
    AccessMap access = AccessMap::get(map);
    for (unsigned d = 0; d < kDims; ++d)
      if (access.uses(d))
        dims.set(d);
    argumentDims.push_back(dims);
  }
  varying = getVaryingDims(mask.front(), kDims, argumentDims);
}

void MaskEmitter::beginRow(Value batch, Value head, Value query) {
  if (!isComputed())
    return;
  row = {batch, head, query};
  known.clear();
  Block &body = mask.front();
  for (BlockArgument argument : body.getArguments())
    if (!varying.lookup(argument).test(kKeyDim))
      emit(argument, b.i64(0));
  for (Operation &op : body.without_terminator())
    if (!varying.lookup(op.getResult(0)).test(kKeyDim))
      emit(op.getResult(0), b.i64(0));
}

Value MaskEmitter::apply(Value score, Value key) {
  auto rowValues = known;
  Value yielded = emit(mask.front().getTerminator()->getOperand(0), key);
  known = std::move(rowValues);
  Value wide = b.broadcast(yielded, width);
  if (getElementTypeOrSelf(yielded).isF32())
    return arith::AddFOp::create(b, score, wide);
  Value blank = b.number(score.getType(), -std::numeric_limits<double>::infinity());
  return arith::SelectOp::create(b, wide, score, blank);
}

/// `value`: a vector of keys from `key` if it differs between keys, else a scalar.
Value MaskEmitter::emit(Value value, Value key) {
  if (Value emitted = known.lookup(value))
    return emitted;
  Value emitted;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    emitted = loadOperand(argument.getArgNumber(), key);
  } else if (auto index = value.getDefiningOp<IndexOp>()) {
    emitted = index.getDim() == kKeyDim ? emitIota(b, key, width) : row[index.getDim()];
  } else if (auto coord = value.getDefiningOp<CoordOp>()) {
    emitted = b.getCoordinate(coord.getAxis());
  } else {
    Operation *def = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : def->getOperands())
      operands.push_back(emit(operand, key));
    emitted = emitElementOp(b, *def, operands);
  }
  known[value] = emitted;
  return emitted;
}

Value MaskEmitter::loadOperand(unsigned i, Value key) {
  Type element = mask.front().getArgument(i).getType();
  Value pointer = b.getPointer(firstOperand + i);
  auto indexAt = [&](Value k) { return b.affine(maps[i].getResult(0), {row[0], row[1], row[2], k}); };
  AccessMap access = AccessMap::get(maps[i]);
  if (!access.uses(kKeyDim))
    return b.load(pointer, element, indexAt(b.i64(0)));
  // Keys are taken up to two vectors at a time.
  if (width > 1 && access.getStride(kKeyDim) == 1 && sizes.getKvLen() % (2 * width) == 0)
    return b.load(pointer, element, indexAt(key), width);
  SmallVector<Value> lanes;
  for (int64_t l = 0; l < width; ++l)
    lanes.push_back(b.load(pointer, element, indexAt(b.min(b.add(key, l), b.i64(sizes.getKvLen() - 1)))));
  return b.pack(lanes);
}

} // namespace spmd::kernel
