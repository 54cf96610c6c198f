//===- EmitSort.cpp - kernel.sort for GPUs --------------------------------===//
//
// [Note: sorting rows on GPUs]
// A block sorts a row, or several short ones, by a bitonic network: merges of 2, 4, 8, ... entries, each a flip (entry
// i of a run of k against entry k - 1 - i) and then halves (entry i against i + j/2), all of them with the lesser entry
// to the lower place. So entries that a row has not, up to the next power of two, count as greatest and are never
// touched. Entries carry the place they come from, so no two are equal and the result is a stable sort's. Rows are kept
// in shared memory; longer ones are sorted where the results lie, by the same network, at the speed of the L2 cache.
//
//===----------------------------------------------------------------------===//

#include "../RowValues.h"
#include "BlockOps.h"
#include "GpuEmitters.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

using namespace mlir;

namespace spmd::kernel {
namespace {

/// Entries in memory: values of `element`, indices of `index`.
struct Entries {
  Value values, indices;
  Type element, index;

  SortEntry load(GpuBuilder &b, Value i) const { return {b.load(values, element, i), b.load(indices, index, i)}; }
  void store(GpuBuilder &b, SortEntry entry, Value i) const {
    b.store(entry.value, values, i);
    b.store(entry.index, indices, i);
  }
};

class SortEmitter {
public:
  SortEmitter(GpuBuilder &b, SortOp op, const Device &device);
  void emit();

private:
  void emitNetwork(const Entries &entries);
  void exchange(const Entries &entries, Value row, Value low, Value high);
  void forElements(llvm::function_ref<void(Value, Value, Value)> body);

  GpuBuilder &b;
  SortOp op;
  Type element;
  int64_t size, rows;
  /// Pairs that one step of a row compares.
  int64_t pairs;
  int64_t threads, blockRows;
  bool fits;
  /// First row of the block, and how many it has.
  Value firstRow, ownRows;
};

} // namespace

SortEmitter::SortEmitter(GpuBuilder &b, SortOp op, const Device &device)
    : b(b), op(op), element(getElementTypeOrSelf(op.getSelf().getType())), size(op.getSize()),
      rows(op.getParallelIterations()) {
  pairs = std::max<int64_t>(llvm::PowerOf2Ceil(size) / 2, 1);
  threads = std::clamp<int64_t>(pairs, device.threadsPerSM / 16, device.threadsPerBlock);
  int64_t rowBytes = size * (getElementBytes(element) + getElementBytes(b.getI32Type()));
  // Two arrays, each rounded up to an access.
  int64_t most = (device.sharedBytesPerBlock - 2 * kWideBytes) / rowBytes;
  fits = most > 0;
  blockRows = fits ? std::min({threads / std::min(pairs, threads), most, rows}) : 1;
}

/// Runs `body(row, column, number)` for the elements of the block's rows, `number` counting them.
void SortEmitter::forElements(llvm::function_ref<void(Value, Value, Value)> body) {
  int64_t elements = blockRows * size;
  b.loop(b.getThread(), b.i64(elements), threads, [&](Value i) {
    Value row, column;
    std::tie(row, column) = b.divide(i, size, elements);
    b.when(b.isLess(row, ownRows), [&] { body(row, column, i); });
  });
}

/// Orders entries `low` and `high` of a row of the block.
void SortEmitter::exchange(const Entries &entries, Value row, Value low, Value high) {
  Value isThere = arith::AndIOp::create(b, b.isLess(high, b.i64(size)), b.isLess(row, ownRows));
  b.when(isThere, [&] {
    Value base = b.mul(row, size), x = b.add(base, low), y = b.add(base, high);
    SortEntry first = entries.load(b, x), second = entries.load(b, y);
    b.when(isBefore(b, op.getDescending(), second, first), [&] {
      entries.store(b, second, x);
      entries.store(b, first, y);
    });
  });
}

void SortEmitter::emitNetwork(const Entries &entries) {
  int64_t levels = llvm::Log2_64_Ceil(std::max<int64_t>(size, 1)), all = blockRows * pairs;
  Value one = b.i64(1);
  auto shift = [&](Value by) { return arith::ShLIOp::create(b, one, by); };
  auto forPairs = [&](llvm::function_ref<void(Value, Value)> body) {
    b.loop(b.getThread(), b.i64(all), threads, [&](Value i) {
      auto [row, pair] = b.divide(i, pairs, all);
      body(row, pair);
    });
    b.barrier();
  };
  b.loop(one, b.i64(levels + 1), 1, [&](Value level) {
    // Pair number p is number o of the g-th run of 2^level entries.
    Value half = shift(b.sub(level, one)), run = shift(level);
    forPairs([&](Value row, Value pair) {
      Value o = arith::AndIOp::create(b, pair, b.sub(half, one));
      Value base = b.mul(b.sub(pair, o), 2);
      exchange(entries, row, b.add(base, o), b.sub(b.add(base, run), b.add(o, 1)));
    });
    b.loop(one, level, 1, [&](Value step) {
      Value half = shift(b.sub(b.sub(level, step), one));
      forPairs([&](Value row, Value pair) {
        Value o = arith::AndIOp::create(b, pair, b.sub(half, one));
        Value low = b.add(b.mul(b.sub(pair, o), 2), o);
        exchange(entries, row, low, b.add(low, half));
      });
    });
  });
}

void SortEmitter::emit() {
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  firstRow = b.mul(b.getBlock(), blockRows);
  ownRows = b.min(b.sub(b.i64(rows), firstRow), b.i64(blockRows));
  Value base = b.mul(firstRow, size), self = b.getPointer(0);
  Entries results = {b.getResultPointer(0), b.getResultPointer(1), element, i64};
  if (!fits) {
    results.values = b.address(results.values, element, base);
    results.indices = b.address(results.indices, i64, base);
    forElements([&](Value, Value column, Value i) {
      results.store(b, {b.load(self, element, b.add(base, i)), column}, i);
    });
    b.barrier();
    emitNetwork(results);
  } else {
    Entries own = {b.shared(element, blockRows * size), b.shared(i32, blockRows * size), element, i32};
    forElements([&](Value, Value column, Value i) {
      Value place = arith::TruncIOp::create(b, i32, column);
      own.store(b, {b.load(self, element, b.add(base, i)), place}, i);
    });
    b.barrier();
    emitNetwork(own);
    forElements([&](Value, Value, Value i) {
      SortEntry entry = own.load(b, i);
      results.store(b, {entry.value, arith::ExtUIOp::create(b, i64, entry.index)}, b.add(base, i));
    });
  }
  b.finish(threads, llvm::divideCeil(rows, blockRows));
}

static LogicalResult emitGpuSort(GpuBuilder &b, SortOp op, const Device &device) {
  SortEmitter(b, op, device).emit();
  return success();
}

void addGpuSortEmitters(GpuEmitters &emitters) { emitters.add(emitGpuSort); }

} // namespace spmd::kernel
