//===- EmitRows.cpp - gather_rows and scatter_rows for GPUs ---------------===//
//
// [Note: scattering without atomics]
// A block owns some rows of one table (and, of rows longer than a block is wide, some columns) and reads all ids of the
// table, a chunk at a time:
//   1. every thread looks at a few ids that follow each other; a scan over the block gives hits, those of the block's
//      rows, their places in a list, in the order of src;
//   2. the list is sorted by row and keeps its order: the thread that owns a row goes over the list twice, to count and
//      to place;
//   3. every element of the rows is one thread's, which combines its hits in registers, in the order of src, and writes
//      it once. What the first chunk finds starts from `into` or zeros, what later ones find from the result.
// So the bits are those of the CPU, whatever the grid.
//
//===----------------------------------------------------------------------===//

#include "../RowValues.h"
#include "BlockOps.h"
#include "GpuEmitters.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

/// Threads of a block: eight blocks fill an SM.
static int64_t getThreads(const Device &device) { return device.threadsPerSM / 8; }

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

LogicalResult emitGpuGatherRows(GpuBuilder &b, GatherRowsOp op, const Device &device) {
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
  Value collectHits(Value firstId);
  void sortHits(Value hits);
  void combineHits(Value firstId, Value isFirst);
  Value loadWord(Value pointer, Value i) { return b.load(pointer, i32, i); }
  Value word(int64_t value) { return b.number(i32, value); }
  Value wide(Value narrow) { return arith::ExtUIOp::create(b, b.getI64Type(), narrow); }
  Value narrow(Value wide) { return arith::TruncIOp::create(b, i32, wide); }

  /// Hits are kept as row * kMaxChunk + place in the chunk of ids.
  static constexpr int64_t kMaxChunk = 4096, kMaxRows = 1024;

  GpuBuilder &b;
  ScatterRowsOp op;
  Type element, i32;
  int64_t size, rows, ids, threads, width;
  /// Accesses of a row, and those of them that are a block's.
  int64_t perRow, columns;
  /// Rows of a block; blocks over the rows and the columns of a table.
  int64_t ownRows, rowBlocks, columnBlocks;
  int64_t idsPerThread, chunk;
  Value table, lowRow, highRow, firstColumn;
  /// Shared memory: hits in the order of src, places of hits in the order of rows, where those of each row end.
  Value list, sorted, ends;
};

} // namespace

ScatterEmitter::ScatterEmitter(GpuBuilder &b, ScatterRowsOp op, const Device &device)
    : b(b), op(op), element(getElementTypeOrSelf(op.getSrc().getType())), i32(b.getI32Type()), size(op.getRowSize()),
      rows(op.getRows()), threads(getThreads(device)) {
  int64_t batch = op.getBatch();
  ids = getNumElements(op.getIds().getType()) / batch;
  width = getAccessWidth(getElementBytes(element), size);
  perRow = size / width;
  columns = std::min(perRow, threads);
  columnBlocks = llvm::divideCeil(perRow, columns);
  int64_t blocks = device.sms * (device.threadsPerSM / threads);
  int64_t wanted = llvm::divideCeil(rows, std::max<int64_t>(blocks / (batch * columnBlocks), 1));
  ownRows = std::clamp<int64_t>(std::max(wanted, threads / columns), 1, std::min(rows, kMaxRows));
  rowBlocks = llvm::divideCeil(rows, ownRows);
  idsPerThread = std::clamp<int64_t>(llvm::divideCeil(ids, threads), 1, kMaxChunk / threads);
  chunk = idsPerThread * threads;
}

/// Puts the hits of the ids from `firstId` on into the list; returns how many there are.
Value ScatterEmitter::collectHits(Value firstId) {
  Value mine = b.mul(b.getThread(), idsPerThread), count = word(0);
  SmallVector<std::pair<Value, Value>> found;
  for (int64_t k = 0; k < idsPerThread; ++k) {
    Value place = b.add(mine, k), i = b.add(firstId, place);
    Value at = b.add(b.mul(table, ids), b.min(i, b.i64(ids - 1)));
    Value id = loadRowId(b, b.getPointer(1), op.getIds().getType(), at);
    Value isHit = arith::AndIOp::create(b, isWithin(b, id, lowRow, highRow), b.isLess(i, b.i64(ids)));
    if (int64_t padding = op.getPaddingIdx(); padding >= 0 && padding < rows)
      isHit = arith::AndIOp::create(
          b, isHit, arith::CmpIOp::create(b, arith::CmpIPredicate::ne, id, b.i64(padding)));
    count = arith::AddIOp::create(b, count, arith::ExtUIOp::create(b, i32, isHit));
    found.push_back({isHit, narrow(b.add(b.mul(b.sub(id, lowRow), kMaxChunk), place))});
  }
  BlockScan scan = scanBlock(b, count, threads);
  Value next = scan.before;
  for (auto [isHit, hit] : found) {
    b.when(isHit, [&, hit = hit] { b.store(hit, list, wide(next)); });
    next = arith::AddIOp::create(b, next, arith::ExtUIOp::create(b, i32, isHit));
  }
  b.barrier();
  return wide(scan.total);
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
  auto forHits = [&](llvm::function_ref<void(Value, Value)> body) {
    b.loop(b.i64(0), hits, 1, [&](Value h) {
      Value hit = wide(loadWord(list, h));
      Value row = b.floorDiv(hit, kMaxChunk);
      Value owner = b.divide(row, perThread, kMaxRows).first;
      b.when(b.isEqual(owner, b.getThread()), [&] { body(row, b.mod(hit, kMaxChunk)); });
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
  forHits([&](Value row, Value) { increment(row); });
  Value count = forRows(word(0), [&](Value row, Value sum) -> Value {
    return arith::AddIOp::create(b, sum, loadWord(ends, row));
  });
  // From counts to where each row's hits begin, and with every hit placed to where they end.
  forRows(scanBlock(b, count, threads).before, [&](Value row, Value begin) -> Value {
    Value next = arith::AddIOp::create(b, begin, loadWord(ends, row));
    b.store(begin, ends, row);
    return next;
  });
  forHits([&](Value row, Value place) { b.store(narrow(place), sorted, wide(increment(row))); });
  b.barrier();
}

/// Combines the sorted hits into the rows of the block.
void ScatterEmitter::combineHits(Value firstId, Value isFirst) {
  int64_t items = ownRows * columns, alignment = width * getElementBytes(element);
  Type wideType = getWideType(element, width);
  Value src = b.getPointer(0), result = b.getResultPointer(0), firstSrc = b.add(b.mul(table, ids), firstId);
  b.loop(b.getThread(), b.i64(items), threads, [&](Value item) {
    auto [ownRow, ownColumn] = b.divide(item, columns, items);
    Value row = b.add(lowRow, ownRow), column = b.add(firstColumn, ownColumn);
    Value end = wide(loadWord(ends, ownRow));
    Value before = wide(loadWord(ends, b.max(b.sub(ownRow, b.i64(1)), b.i64(0))));
    Value begin = arith::SelectOp::create(b, b.isEqual(ownRow, b.i64(0)), b.i64(0), before);
    Value isOwn = arith::AndIOp::create(b, b.isLess(row, highRow), b.isLess(column, b.i64(perRow)));
    Value changes = arith::OrIOp::create(b, isFirst, b.isLess(begin, end));
    b.when(arith::AndIOp::create(b, isOwn, changes), [&] {
      Value offset = b.mul(column, width);
      Value at = b.add(b.mul(b.add(b.mul(table, rows), row), size), offset);
      auto loadHit = [&](Value h) {
        Value from = b.add(b.mul(b.add(firstSrc, wide(loadWord(sorted, h))), size), offset);
        return b.load(src, element, from, width, alignment);
      };
      Value sum = scf::IfOp::create(
                      b, isFirst,
                      [&](OpBuilder &nested, Location) {
                        OpBuilder::InsertionGuard guard(b);
                        b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
                        Value start = op.getInto() ? b.load(b.getPointer(2), element, at, width, alignment)
                                                   : b.number(wideType, 0);
                        scf::YieldOp::create(b, start);
                      },
                      [&](OpBuilder &nested, Location) {
                        OpBuilder::InsertionGuard guard(b);
                        b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
                        scf::YieldOp::create(b, b.load(result, element, at, width, alignment));
                      })
                      .getResult(0);
      // Four loads in flight; combined one after the other.
      constexpr int64_t kInFlight = 4;
      auto combineFrom = [&](Value low, Value high, int64_t count, Value sum) {
        return b.loop(low, high, count, sum, [&](Value h, ValueRange carried) {
          SmallVector<Value> values;
          for (int64_t i = 0; i < count; ++i)
            values.push_back(loadHit(b.add(h, i)));
          Value combined = carried[0];
          for (Value value : values)
            combined = combineRows(b, op.getKind(), combined, value);
          return SmallVector<Value>{combined};
        })[0];
      };
      Value rest = b.add(begin, b.mul(b.floorDiv(b.sub(end, begin), kInFlight), kInFlight));
      sum = combineFrom(begin, rest, kInFlight, sum);
      sum = combineFrom(rest, end, 1, sum);
      b.store(sum, result, at, alignment);
    });
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
  list = b.shared(i32, chunk);
  sorted = b.shared(i32, chunk);
  ends = b.shared(i32, ownRows);
  b.loop(b.i64(0), b.i64(std::max<int64_t>(ids, 1)), chunk, [&](Value firstId) {
    Value isFirst = ids <= chunk ? b.constant(b.getBoolAttr(true)) : b.isEqual(firstId, b.i64(0));
    sortHits(collectHits(firstId));
    combineHits(firstId, isFirst);
    // The next chunk writes where this one was read.
    if (ids > chunk)
      b.barrier();
  });
  b.finish(threads, batch * perTable);
}

LogicalResult emitGpuScatterRows(GpuBuilder &b, ScatterRowsOp op, const Device &device) {
  ScatterEmitter(b, op, device).emit();
  return success();
}

} // namespace spmd::kernel
