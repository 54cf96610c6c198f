//===- EmitCopy.cpp - loops of kernel.copy --------------------------------===//

#include "Emitters.h"
#include "dialects/Kernel/AccessMap.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

namespace {

class PieceEmitter {
public:
  PieceEmitter(KernelBuilder &b, CopyOp op, PieceAttr piece)
      : b(b), op(op), piece(piece), position(piece.getDims().size()) {}

  /// Moves the part of the piece whose first dim is in [low, high).
  void emit(unsigned depth, Value low, Value high) {
    ArrayRef<int64_t> dims = piece.getDims();
    if (depth == dims.size())
      return b.loop(low, high, 1, [&](Value) { move(1); });
    if (depth + 1 == dims.size())
      return emitInnermost(depth, low, high);
    b.loop(low, high, 1, [&](Value i) {
      position[depth] = i;
      emit(depth + 1, b.i64(0), b.i64(dims[depth + 1]));
    });
  }

private:
  /// Vectors where both sides lie side by side, then scalars.
  void emitInnermost(unsigned depth, Value low, Value high) {
    bool dense = AccessMap::get(piece.getTo()).getStride(depth) == 1 &&
                 (piece.getSource() < 0 || AccessMap::get(piece.getFrom()).getStride(depth) == 1);
    auto run = [&](Value from, Value to, int64_t width) {
      b.loop(from, to, width, [&](Value i) {
        position[depth] = i;
        move(width);
      });
    };
    Value whole = low;
    if (dense) {
      Value length = b.max(b.sub(high, low), b.i64(0));
      whole = b.add(low, b.sub(length, b.mod(length, kLanes)));
      run(low, whole, kLanes);
    }
    run(whole, high, 1);
  }

  void move(int64_t width) {
    Type element = getElementTypeOrSelf(op.getResult().getType());
    Value value = b.number(getWideType(element, width), 0);
    if (piece.getSource() >= 0)
      value = b.load(b.getPointer(piece.getSource()), element, b.affine(piece.getFrom().getResult(0), position), width);
    b.store(value, b.getResultPointer(0), b.affine(piece.getTo().getResult(0), position));
  }

  KernelBuilder &b;
  CopyOp op;
  PieceAttr piece;
  SmallVector<Value> position;
};

} // namespace

LogicalResult emitCopy(KernelBuilder &b, CopyOp op) {
  int64_t first = 0;
  for (auto piece : op.getPieces().getAsRange<PieceAttr>()) {
    int64_t trips = piece.getDims().empty() ? 1 : piece.getDims().front();
    // The part of [begin, end) that lies in this piece; empty when low is not below high.
    Value low = b.max(b.sub(b.getBegin(), b.i64(first)), b.i64(0));
    Value high = b.min(b.sub(b.getEnd(), b.i64(first)), b.i64(trips));
    PieceEmitter(b, op, piece).emit(0, low, high);
    first += trips;
  }
  return success();
}

} // namespace spmd::kernel
