//===- BlockOrder.cpp - the order of ops while they are moved -------------===//

#include "BlockOrder.h"

using namespace mlir;
using namespace spmd;

/// Between the numbers of neighbours, so that as many ops as it has bits fit in one place.
static constexpr int64_t kStride = int64_t(1) << 20;

void BlockOrder::number() {
  int64_t next = 0;
  for (Operation &op : block)
    places[&op] = next += kStride;
}

void BlockOrder::place(Operation *op) {
  Operation *before = op->getPrevNode(), *after = op->getNextNode();
  int64_t low = before ? places.at(before) : places.at(after) - 2 * kStride;
  int64_t high = after ? places.at(after) : low + 2 * kStride;
  if (high - low < 2)
    return number();
  places[op] = low + (high - low) / 2;
}

void BlockOrder::moveBefore(Operation *op, Operation *other) {
  op->moveBefore(other);
  place(op);
}

void BlockOrder::moveAfter(Operation *op, Operation *other) {
  op->moveAfter(other);
  place(op);
}

void BlockOrder::erase(Operation *op) {
  places.erase(op);
  op->erase();
}
