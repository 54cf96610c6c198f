//===- EmitSort.cpp - loops of kernel.sort --------------------------------===//
//
// [Note: a stable sort in place]
// A heap sort needs no memory beside the row but does not keep the order of equal elements. Here elements carry the
// place they come from, which is written out anyway, and equal ones are ordered by it: so no two are equal, the result
// is that of a stable sort, and the same on every machine.
//
//===----------------------------------------------------------------------===//

#include "../RowValues.h"
#include "Emitters.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

namespace {

/// One row: its values and where they come from, in the memory of the results.
class Row {
public:
  Row(KernelBuilder &b, Type element, bool descending, Value values, Value indices, Value first)
      : b(b), element(element), descending(descending), values(values), indices(indices), first(first) {}

  SortEntry load(Value i) {
    Value at = b.add(first, i);
    return {b.load(values, element, at), b.load(indices, b.getI64Type(), at)};
  }
  void store(SortEntry entry, Value i) {
    Value at = b.add(first, i);
    b.store(entry.value, values, at);
    b.store(entry.index, indices, at);
  }
  /// Moves the entry at `root` down to its place in the heap [0, end): the last of the row is at the top.
  void siftDown(Value root, Value end);

private:
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }

  KernelBuilder &b;
  Type element;
  bool descending;
  Value values, indices, first;
};

} // namespace

void Row::siftDown(Value root, Value end) {
  Type i64 = b.getI64Type(), i1 = b.getI1Type();
  // Carries the place and whether its entry may still go down.
  auto loop = scf::WhileOp::create(b, TypeRange{i64, i1}, ValueRange{root, b.number(i1, 1)});
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(2, b.getLoc());
  Block *test = b.createBlock(&loop.getBefore(), {}, TypeRange{i64, i1}, locations);
  Value child = b.add(b.mul(test->getArgument(0), 2), 1);
  Value goesOn = both(test->getArgument(1), compare(arith::CmpIPredicate::slt, child, end));
  scf::ConditionOp::create(b, goesOn, test->getArguments());

  Block *body = b.createBlock(&loop.getAfter(), {}, TypeRange{i64, i1}, locations);
  Value place = body->getArgument(0);
  Value left = b.add(b.mul(place, 2), 1);
  // The right child, or the left one again at the end of the heap.
  Value right = b.min(b.add(left, 1), b.sub(end, b.i64(1)));
  SortEntry parent = load(place), leftEntry = load(left), rightEntry = load(right);
  Value takesRight = isBefore(b, descending, leftEntry, rightEntry);
  Value chosen = arith::SelectOp::create(b, takesRight, right, left);
  SortEntry entry{arith::SelectOp::create(b, takesRight, rightEntry.value, leftEntry.value),
              arith::SelectOp::create(b, takesRight, rightEntry.index, leftEntry.index)};
  Value swaps = isBefore(b, descending, parent, entry);
  auto swap = scf::IfOp::create(b, swaps, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(swap.thenBlock());
    store(entry, place);
    store(parent, chosen);
  }
  scf::YieldOp::create(b, ValueRange{chosen, swaps});
}

/// What rows move again that the cache does not hold ([Note: bytes moved on CPUs]): an entry goes down a heap in at
/// most as many steps as it has levels, each of which reads two entries and writes two; the upper levels stay in it.
static void countSifted(KernelBuilder &b, SortOp op) {
  int64_t size = op.getSize(), rows = getNumElements(op.getSelf().getType()) / std::max<int64_t>(size, 1);
  int64_t entry = getElementBytes(op.getSelf().getType()) + static_cast<int64_t>(sizeof(int64_t));
  if (size * entry <= b.getCacheBytes())
    return;
  int64_t levels = llvm::Log2_64_Ceil(llvm::divideCeil(size * entry, b.getCacheBytes()));
  b.addMovedBytes(rows * (size + size / 2) * levels * 4 * entry);
}

static LogicalResult emitSort(KernelBuilder &b, SortOp op) {
  Type element = getElementTypeOrSelf(op.getSelf().getType());
  int64_t size = op.getSize();
  countSifted(b, op);
  Value self = b.getPointer(0), values = b.getResultPointer(0), indices = b.getResultPointer(1);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value number) {
    Value first = b.mul(number, size);
    Row row(b, element, op.getDescending(), values, indices, first);
    b.loop(b.i64(0), b.i64(size), 1,
           [&](Value i) { row.store({b.load(self, element, b.add(first, i)), i}, i); });
    // A heap from the last parent up, then its top to the end of what is left, again and again.
    b.loop(b.i64(0), b.i64(size / 2), 1,
           [&](Value i) { row.siftDown(b.sub(b.i64(size / 2 - 1), i), b.i64(size)); });
    b.loop(b.i64(1), b.i64(size), 1, [&](Value i) {
      Value end = b.sub(b.i64(size), i);
      SortEntry top = row.load(b.i64(0)), last = row.load(end);
      row.store(last, b.i64(0));
      row.store(top, end);
      row.siftDown(b.i64(0), end);
    });
  });
  return success();
}

void addSortEmitters(HostEmitters &emitters) { emitters.add(emitSort); }

} // namespace spmd::kernel
