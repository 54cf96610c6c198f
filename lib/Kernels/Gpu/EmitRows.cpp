//===- EmitRows.cpp - gather_rows and scatter_rows for GPUs ---------------===//
//
// [Note: scattering without atomics]
// A block owns some rows of one table (and, of rows longer than a block is wide, some columns). It reads all ids of the
// table, every thread a few that follow each other; a scan over the block gives hits, those of the block's rows, their
// places in a list in shared memory, in the order of src. The list is sorted by row and keeps its order: the thread
// that owns a row goes over the list twice, to count and to place. Then every element of the rows is one thread's,
// which starts from `into` or zero, combines its hits in registers, in the order of src, and writes it once. So nothing
// is written before it is final, and the bits are those of the CPU whatever the grid.
//
// When more hit the block's rows than the list holds (ids that are nearly all the same), the block takes its rows one
// by one: it goes over the ids again for each and combines what a turn of the list finds before the next.
//
//===----------------------------------------------------------------------===//

#include "../RowValues.h"
#include "BlockOps.h"
#include "GpuEmitters.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

/// Threads of a block: eight blocks fill an SM.
static int64_t getThreads(const Device &device) { return device.threadsPerSM / 8; }

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static LogicalResult emitGpuGatherRows(GpuBuilder &b, GatherRowsOp op, const Device &device) {
  b.addMovedBytes(op.getBytesMoved());
  Type element = getElementTypeOrSelf(op.getTable().getType()), idType = op.getIds().getType();
  int64_t size = op.getRowSize(), rows = op.getNumRows(), ids = getNumElements(idType);
  int64_t idsPerTable = ids / static_cast<int64_t>(op.getBatch());
  int64_t bytes = getElementBytes(element), width = getAccessWidth(bytes, size);
  int64_t perRow = size / width, total = ids * perRow, threads = getThreads(device);
  // Several in flight, as long as there are blocks for all SMs.
  int64_t accesses = std::clamp<int64_t>(total / (threads * device.sms), 1, 4);
  Value first = b.add(b.mul(b.getBlock(), threads * accesses), b.getThread());
  struct Access {
    Value place, isInside, to, value;
  };
  SmallVector<Access> moved;
  for (int64_t a = 0; a < accesses; ++a) {
    Value place = b.add(first, a * threads);
    Value inside = b.min(place, b.i64(total - 1));
    auto [row, column] = b.divide(inside, perRow, total);
    Value id = loadRowId(b, b.getPointer(1), idType, row);
    Value isThere = isWithin(b, id, b.i64(0), b.i64(rows));
    Value from = b.add(arith::SelectOp::create(b, isThere, id, b.i64(0)),
                       b.mul(b.divide(row, idsPerTable, ids).first, rows));
    Value at = b.add(b.mul(from, size), b.mul(column, width));
    Value value = b.load(b.getPointer(0), element, at, width, width * bytes);
    value = arith::SelectOp::create(b, isThere, value, b.number(value.getType(), 0));
    moved.push_back({place, b.isLess(place, b.i64(total)), b.mul(inside, width), value});
  }
  for (const Access &access : moved)
    b.when(access.isInside, [&] { b.store(access.value, b.getResultPointer(0), access.to, width * bytes); });
  b.finish(threads, llvm::divideCeil(total, threads * accesses));
  return success();
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

namespace {

class ScatterEmitter {
public:
  ScatterEmitter(GpuBuilder &b, ScatterRowsOp op, const Device &device);
  void emit();

private:
  Value collectHits(Value firstId, Value low, Value high, Value known, bool listsRows);
  void sortHits(Value hits);
  void emitSorted(Value hits);
  void emitRowByRow();
  Value getStart(Value at);
  Value combineHits(Value places, Value begin, Value end, Value offset, Value sum);
  void storeSum(Value sum, Value at);
  Value loadWord(Value pointer, Value i) { return b.load(pointer, i32, i); }
  Value word(int64_t value) { return b.number(i32, value); }
  Value wide(Value narrow) { return arith::ExtUIOp::create(b, b.getI64Type(), narrow); }
  Value narrow(Value wide) { return arith::TruncIOp::create(b, i32, wide); }

  /// The most hits of a list, and rows of a block.
  static constexpr int64_t kMaxHits = 2048, kMaxRows = 1024;

  GpuBuilder &b;
  ScatterRowsOp op;
  Type element, i32;
  /// Narrow floats are combined in f32 and rounded once.
  bool isWide;
  int64_t size, rows, ids, threads, width;
  /// Accesses of a row, and those of them that are a block's.
  int64_t perRow, columns;
  /// Rows of a block; blocks over the rows and the columns of a table.
  int64_t ownRows, rowBlocks, columnBlocks;
  /// Ids that a thread, and the block, looks at in a turn.
  int64_t idsPerThread, turn;
  /// Hits that the list holds.
  int64_t held;
  Value table, lowRow, highRow, firstColumn;
  /// Shared memory: rows (of the block's) and ids of the hits in the order of src, ids in the order of rows, where
  /// those of each row end.
  Value rowList, idList, sorted, ends;
};

} // namespace

ScatterEmitter::ScatterEmitter(GpuBuilder &b, ScatterRowsOp op, const Device &device)
    : b(b), op(op), element(getElementTypeOrSelf(op.getSrc().getType())), i32(b.getI32Type()),
      isWide(combinesInF32(op)), size(op.getRowSize()), rows(op.getRows()), threads(getThreads(device)) {
  int64_t batch = op.getBatch();
  ids = getNumElements(op.getIds().getType()) / batch;
  width = getAccessWidth(getElementBytes(element), size);
  perRow = size / width;
  // As many rows as fill the threads of a block, and as many blocks as fill the SMs; rather fewer rows or columns to a
  // block than an SM without one.
  int64_t resident = device.sms * (device.threadsPerSM / threads);
  for (columns = std::min(perRow, threads);; columns = llvm::divideCeil(columns, 2)) {
    columnBlocks = llvm::divideCeil(perRow, columns);
    int64_t perRows = batch * columnBlocks, all = rows * perRows;
    int64_t filling = std::min(threads / columns, all / device.sms);
    ownRows = std::max<int64_t>(llvm::divideCeil(all, resident), filling);
    ownRows = std::clamp<int64_t>(ownRows, 1, std::min(rows, kMaxRows));
    rowBlocks = llvm::divideCeil(rows, ownRows);
    if (rowBlocks * perRows >= device.sms || columns <= kWarpSize)
      break;
  }
  idsPerThread = std::clamp<int64_t>(llvm::divideCeil(ids, threads), 1, kMaxHits / threads);
  turn = idsPerThread * threads;
  held = std::min(ids, kMaxHits);
}

/// Appends the hits of rows [low, high) among the ids of the turn at `firstId` to the list, which has `known`, with
/// their rows or without; returns how many there are then, those that the list does not hold included.
Value ScatterEmitter::collectHits(Value firstId, Value low, Value high, Value known, bool listsRows) {
  Value mine = b.add(firstId, b.mul(b.getThread(), idsPerThread)), count = word(0);
  struct Hit {
    Value isHit, row, id;
  };
  SmallVector<Hit> found;
  for (int64_t k = 0; k < idsPerThread; ++k) {
    Value i = b.add(mine, k);
    Value at = b.add(b.mul(table, ids), b.min(i, b.i64(ids - 1)));
    Value row = loadRowId(b, b.getPointer(1), op.getIds().getType(), at);
    Value isHit = arith::AndIOp::create(b, isWithin(b, row, low, high), b.isLess(i, b.i64(ids)));
    if (int64_t padding = op.getPaddingIdx(); padding >= 0 && padding < rows)
      isHit = arith::AndIOp::create(b, isHit,
                                    arith::CmpIOp::create(b, arith::CmpIPredicate::ne, row, b.i64(padding)));
    count = arith::AddIOp::create(b, count, arith::ExtUIOp::create(b, i32, isHit));
    found.push_back({isHit, listsRows ? narrow(b.sub(row, lowRow)) : Value(), narrow(i)});
  }
  BlockScan scan = scanBlock(b, count, threads);
  Value next = b.add(known, wide(scan.before));
  for (const Hit &hit : found) {
    b.when(arith::AndIOp::create(b, hit.isHit, b.isLess(next, b.i64(held))), [&] {
      if (listsRows)
        b.store(hit.row, rowList, next);
      b.store(hit.id, idList, next);
    });
    next = b.add(next, arith::ExtUIOp::create(b, b.getI64Type(), hit.isHit));
  }
  b.barrier();
  return b.add(known, wide(scan.total));
}

/// Sorts the list by rows; the thread that owns a row keeps count of it, so that none counts for another.
void ScatterEmitter::sortHits(Value hits) {
  int64_t perThread = llvm::divideCeil(ownRows, threads);
  auto forRows = [&](Value init, llvm::function_ref<Value(Value, Value)> body) {
    Value first = b.mul(b.getThread(), perThread);
    return b.loop(first, b.min(b.add(first, perThread), b.i64(ownRows)), 1, init, [&](Value row, ValueRange carried) {
      return SmallVector<Value>{body(row, carried[0])};
    })[0];
  };
  auto forOwnHits = [&](llvm::function_ref<void(Value, Value)> body) {
    b.loop(b.i64(0), hits, 1, [&](Value h) {
      Value row = wide(loadWord(rowList, h));
      Value owner = b.divide(row, perThread, kMaxRows).first;
      b.when(b.isEqual(owner, b.getThread()), [&] { body(row, h); });
    });
  };
  auto increment = [&](Value row) {
    Value old = loadWord(ends, row);
    b.store(arith::AddIOp::create(b, old, word(1)), ends, row);
    return old;
  };
  forRows(word(0), [&](Value row, Value zero) {
    b.store(word(0), ends, row);
    return zero;
  });
  forOwnHits([&](Value row, Value) { increment(row); });
  Value count = forRows(word(0), [&](Value row, Value sum) -> Value {
    return arith::AddIOp::create(b, sum, loadWord(ends, row));
  });
  // From counts to where each row's hits begin, and with every hit placed to where they end.
  forRows(scanBlock(b, count, threads).before, [&](Value row, Value begin) -> Value {
    Value next = arith::AddIOp::create(b, begin, loadWord(ends, row));
    b.store(begin, ends, row);
    return next;
  });
  forOwnHits([&](Value row, Value h) { b.store(loadWord(idList, h), sorted, wide(increment(row))); });
  b.barrier();
}

/// What the elements at `at` hold before anything is scattered onto them.
Value ScatterEmitter::getStart(Value at) {
  Value start = op.getInto() ? b.load(b.getPointer(2), element, at, width, width * getElementBytes(element))
                             : b.number(getWideType(element, width), 0);
  return isWide ? Value(arith::ExtFOp::create(b, getWideType(b.getF32Type(), width), start)) : start;
}

/// Combines rows `places[begin]` to `places[end - 1]` of src, from `offset` on, with `sum`.
Value ScatterEmitter::combineHits(Value places, Value begin, Value end, Value offset, Value sum) {
  auto load = [&](Value h) -> Value {
    Value row = b.add(b.mul(table, ids), wide(loadWord(places, h)));
    Value value = b.load(b.getPointer(0), element, b.add(b.mul(row, size), offset), width,
                         width * getElementBytes(element));
    return isWide ? Value(arith::ExtFOp::create(b, sum.getType(), value)) : value;
  };
  auto combineFrom = [&](Value low, Value high, int64_t count, Value sum) {
    return b.loop(low, high, count, sum, [&](Value h, ValueRange carried) {
      SmallVector<Value> values;
      for (int64_t i = 0; i < count; ++i)
        values.push_back(load(b.add(h, i)));
      Value combined = carried[0];
      for (Value value : values)
        combined = combineRows(b, op.getKind(), combined, value);
      return SmallVector<Value>{combined};
    })[0];
  };
  // Eight loads in flight; combined one after the other.
  constexpr int64_t kInFlight = 8;
  Value rest = b.add(begin, b.mul(b.floorDiv(b.sub(end, begin), kInFlight), kInFlight));
  return combineFrom(rest, end, 1, combineFrom(begin, rest, kInFlight, sum));
}

void ScatterEmitter::storeSum(Value sum, Value at) {
  if (isWide)
    sum = arith::TruncFOp::create(b, getWideType(element, width), sum);
  b.store(sum, b.getResultPointer(0), at, width * getElementBytes(element));
}

/// The rows of the block from a list that holds all hits.
void ScatterEmitter::emitSorted(Value hits) {
  sortHits(hits);
  int64_t items = ownRows * columns;
  b.loop(b.getThread(), b.i64(items), threads, [&](Value item) {
    auto [ownRow, ownColumn] = b.divide(item, columns, items);
    Value row = b.add(lowRow, ownRow), column = b.add(firstColumn, ownColumn);
    Value end = wide(loadWord(ends, ownRow));
    Value before = wide(loadWord(ends, b.max(b.sub(ownRow, b.i64(1)), b.i64(0))));
    Value begin = arith::SelectOp::create(b, b.isEqual(ownRow, b.i64(0)), b.i64(0), before);
    Value isOwn = arith::AndIOp::create(b, b.isLess(row, highRow), b.isLess(column, b.i64(perRow)));
    b.when(isOwn, [&] {
      Value offset = b.mul(column, width);
      Value at = b.add(b.mul(b.add(b.mul(table, rows), row), size), offset);
      storeSum(combineHits(sorted, begin, end, offset, getStart(at)), at);
    });
  });
}

/// The rows of the block one by one, with a turn of the list for each turn of ids.
void ScatterEmitter::emitRowByRow() {
  Value column = b.add(firstColumn, b.getThread());
  Value isOwn = arith::AndIOp::create(b, b.isLess(b.getThread(), b.i64(columns)), b.isLess(column, b.i64(perRow)));
  // Threads without a column take part in the scans, and read the last one.
  Value offset = b.mul(b.min(column, b.i64(perRow - 1)), width);
  b.loop(lowRow, highRow, 1, [&](Value row) {
    Value at = b.add(b.mul(b.add(b.mul(table, rows), row), size), offset);
    Value sum = b.loop(b.i64(0), b.i64(ids), turn, getStart(at), [&](Value firstId, ValueRange carried) {
      Value hits = collectHits(firstId, row, b.add(row, 1), b.i64(0), /*listsRows=*/false);
      return SmallVector<Value>{combineHits(idList, b.i64(0), hits, offset, carried[0])};
    })[0];
    b.when(isOwn, [&] { storeSum(sum, at); });
  });
}

void ScatterEmitter::emit() {
  int64_t batch = op.getBatch(), perTable = rowBlocks * columnBlocks;
  auto [whichTable, ofTable] = b.divide(b.getBlock(), perTable, batch * perTable);
  auto [rowBlock, columnBlock] = b.divide(ofTable, columnBlocks, perTable);
  table = whichTable;
  lowRow = b.mul(rowBlock, ownRows);
  highRow = b.min(b.add(lowRow, ownRows), b.i64(rows));
  firstColumn = b.mul(columnBlock, columns);
  rowList = b.shared(i32, held);
  idList = b.shared(i32, held);
  sorted = b.shared(i32, held);
  ends = b.shared(i32, ownRows);
  Value hits = b.loop(b.i64(0), b.i64(ids), turn, b.i64(0), [&](Value firstId, ValueRange known) {
    return SmallVector<Value>{collectHits(firstId, lowRow, highRow, known[0], /*listsRows=*/true)};
  })[0];
  if (ids <= held)
    emitSorted(hits);
  else
    b.choose(
        b.isLess(hits, b.i64(held + 1)), [&] { emitSorted(hits); }, [&] { emitRowByRow(); });
  b.finish(threads, batch * perTable);
}

static LogicalResult emitGpuScatterRows(GpuBuilder &b, ScatterRowsOp op, const Device &device) {
  ScatterEmitter(b, op, device).emit();
  return success();
}

void addGpuRowsEmitters(GpuEmitters &emitters) {
  emitters.add(emitGpuGatherRows);
  emitters.add(emitGpuScatterRows);
}

} // namespace spmd::kernel
