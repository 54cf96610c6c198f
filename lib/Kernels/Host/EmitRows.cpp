//===- EmitRows.cpp - loops of gather_rows and scatter_rows ---------------===//

#include "../RowValues.h"
#include "Emitters.h"
#include "VectorLoop.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

/// Runs `body(offset, width)` over [0, size) by vectors, then scalars.
static void forRow(KernelBuilder &b, int64_t size, llvm::function_ref<void(Value, int64_t)> body) {
  int64_t whole = size - size % kLanes;
  b.loop(b.i64(0), b.i64(whole), kLanes, [&](Value i) { body(i, kLanes); });
  b.loop(b.i64(whole), b.i64(size), 1, [&](Value i) { body(i, 1); });
}

static LogicalResult emitGatherRows(KernelBuilder &b, GatherRowsOp op) {
  Type element = getElementTypeOrSelf(op.getTable().getType());
  int64_t size = op.getRowSize(), rows = op.getNumRows(), batch = op.getBatch();
  int64_t idsPerTable = cast<RankedTensorType>(op.getIds().getType()).getNumElements() / batch;
  Value table = b.getPointer(0), ids = b.getPointer(1), result = b.getResultPointer(0);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value row) {
    Value id = loadRowId(b, ids, op.getIds().getType(), row);
    Value first = batch == 1 ? id : b.add(id, b.mul(b.floorDiv(row, idsPerTable), rows));
    Value to = b.mul(row, size), from = b.mul(first, size);
    auto choice = scf::IfOp::create(b, isWithin(b, id, b.i64(0), b.i64(rows)), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    forRow(b, size, [&](Value i, int64_t width) {
      b.store(b.load(table, element, b.add(from, i), width), result, b.add(to, i));
    });
    b.setInsertionPointToStart(choice.elseBlock());
    forRow(b, size,
           [&](Value i, int64_t width) { b.store(b.number(getWideType(element, width), 0), result, b.add(to, i)); });
  });
  return success();
}

/// Whether `id` is among the ids [first, end).
static Value isAmong(KernelBuilder &b, Value id, Value pointer, Type type, Value first, Value end) {
  Type element = getElementTypeOrSelf(type);
  Value same = element.isInteger(64) ? id : Value(arith::TruncIOp::create(b, element, id));
  return emitVectorLoop(b, first, end, Reduction{ReduceKind::Max, b.getI1Type()}, /*vectorize=*/true,
                        [&](Value i, int64_t width, ValueRange found) {
                          Value isSame =
                              arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.load(pointer, element, i, width),
                                                    b.broadcast(same, width));
                          return SmallVector<Value>{b.combine(ReduceKind::Max, found[0], isSame)};
                        })
      .front();
}

/// Combines the rows of src from `first` on whose id is `id` with row `to` of the result, in `sums`, by blocks of
/// columns.
static void combineRowsInF32(KernelBuilder &b, ScatterRowsOp op, Value sums, int64_t block, Value id, Value first,
                             Value end, Value to) {
  Type element = getElementTypeOrSelf(op.getSrc().getType()), f32 = b.getF32Type();
  Value src = b.getPointer(0), result = b.getResultPointer(0);
  int64_t size = op.getRowSize();
  auto loadWide = [&](Value pointer, Value index, int64_t width) -> Value {
    return arith::ExtFOp::create(b, getWideType(f32, width), b.load(pointer, element, index, width));
  };
  auto emitBlock = [&](Value column, int64_t columns) {
    forRow(b, columns,
           [&](Value c, int64_t width) { b.store(loadWide(result, b.add(b.add(to, column), c), width), sums, c); });
    b.loop(first, end, 1, [&](Value i) {
      Value isSame = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                           loadRowId(b, b.getPointer(1), op.getIds().getType(), i), id);
      auto choice = scf::IfOp::create(b, isSame, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choice.thenBlock());
      Value from = b.add(b.mul(i, size), column);
      forRow(b, columns, [&](Value c, int64_t width) {
        b.store(combineRows(b, op.getKind(), b.load(sums, f32, c, width), loadWide(src, b.add(from, c), width)), sums,
                c);
      });
    });
    forRow(b, columns, [&](Value c, int64_t width) {
      Value rounded = arith::TruncFOp::create(b, getWideType(element, width), b.load(sums, f32, c, width));
      b.store(rounded, result, b.add(b.add(to, column), c));
    });
  };
  int64_t whole = size - size % block;
  b.loop(b.i64(0), b.i64(whole), block, [&](Value column) { emitBlock(column, block); });
  if (whole < size)
    emitBlock(b.i64(whole), size - whole);
}

/// Zeros elements [begin, end) of a table, which are whole cache lines, by non-temporal stores.
static void zeroPastCaches(KernelBuilder &b, Value table, Type element, Value begin, Value end) {
  int64_t width = kLineBytes / getStoredBytes(element);
  Value zeros = b.number(getWideType(element, width), 0);
  b.loop(begin, end, width, [&](Value i) { b.storePastCaches(zeros, table, i); });
  b.finishPastCaches();
}

/// Whether the rows of a table are whole lines of the cache and too many for it.
static bool exceedsCaches(ScatterRowsOp op) {
  int64_t rowBytes = op.getRowSize() * getStoredBytes(getElementTypeOrSelf(op.getSrc().getType()));
  return rowBytes % kLineBytes == 0 && op.getBatch() * op.getRows() * rowBytes >= kPastCachesBytes;
}

/// What comes on top of every operand and result once ([Note: bytes moved on CPUs]). Where an iteration's ids, rows of
/// src and of the table are more than the cache holds, every iteration reads the ids again; where its part of the table
/// alone is, a row of it is read and written for each of its ids; and for narrow floats each of them goes through all
/// ids.
static void countScattered(KernelBuilder &b, ScatterRowsOp op) {
  auto bytesOf = [](Type type) { return getNumElements(type) * getElementBytes(type); };
  int64_t batch = op.getBatch(), iterations = op.getIterationsPerTable(), ids = getNumElements(op.getIds().getType());
  int64_t idBytes = bytesOf(op.getIds().getType()), tableBytes = bytesOf(op.getResult().getType());
  int64_t srcBytes = bytesOf(op.getSrc().getType());
  if (idBytes / batch + (tableBytes + srcBytes) / (batch * iterations) <= b.getCacheBytes())
    return;
  b.addMovedBytes((iterations - 1) * idBytes);
  if (tableBytes / (batch * iterations) > b.getCacheBytes())
    b.addMovedBytes((op.getKind() == ScatterKind::Set ? 1 : 2) * srcBytes);
  if (combinesInF32(op) && idBytes / batch > b.getCacheBytes())
    b.addMovedBytes(ids * (idBytes / batch));
}

/// An iteration owns a range of a table's rows and goes through all ids of the table, so what is scattered onto a row
/// comes in the order of src whoever runs the iteration. Narrow floats are summed in f32, one row at a time, and
/// rounded once.
static LogicalResult emitScatterRows(KernelBuilder &b, ScatterRowsOp op) {
  Type element = getElementTypeOrSelf(op.getSrc().getType());
  int64_t size = op.getRowSize(), rows = op.getRows(), iterations = op.getIterationsPerTable(), batch = op.getBatch();
  int64_t ids = cast<RankedTensorType>(op.getIds().getType()).getNumElements() / batch;
  Value src = b.getPointer(0), idPointer = b.getPointer(1), result = b.getResultPointer(0);
  Value into = op.getInto() ? b.getPointer(2) : Value();
  int64_t block = std::min<int64_t>(size, 1024);
  Value sums = combinesInF32(op) ? b.stack(b.getF32Type(), block) : Value();
  countScattered(b, op);
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value anyIteration) {
    Value table = batch == 1 ? b.i64(0) : b.floorDiv(anyIteration, iterations);
    Value iteration = batch == 1 ? anyIteration : b.mod(anyIteration, iterations);
    Value firstRow = b.mul(table, rows), firstId = b.mul(table, ids);
    Value low = b.floorDiv(b.mul(iteration, rows), iterations),
          high = b.floorDiv(b.mul(b.add(iteration, 1), rows), iterations);
    auto start = [&] {
      b.loop(low, high, 1, [&](Value row) {
        forRow(b, size, [&](Value i, int64_t width) {
          Value index = b.add(b.mul(b.add(firstRow, row), size), i);
          Value start = into ? b.load(into, element, index, width) : b.number(getWideType(element, width), 0);
          b.store(start, result, index);
        });
      });
    };
    if (!into && exceedsCaches(op)) {
      auto zero = [&] {
        zeroPastCaches(b, result, element, b.mul(b.add(firstRow, low), size), b.mul(b.add(firstRow, high), size));
      };
      b.choose(b.isLineAligned(result), zero, start);
    } else {
      start();
    }
    b.loop(b.i64(0), b.i64(ids), 1, [&](Value i) {
      Value position = b.add(firstId, i);
      Value id = loadRowId(b, idPointer, op.getIds().getType(), position);
      Value mine = isWithin(b, id, low, high);
      Value counts = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, id, b.i64(op.getPaddingIdx()));
      auto choice = scf::IfOp::create(b, arith::AndIOp::create(b, mine, counts), /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choice.thenBlock());
      Value to = b.mul(b.add(firstRow, id), size), from = b.mul(position, size);
      if (sums) {
        // The first of the rows with this id takes the others along.
        Value done = isAmong(b, id, idPointer, op.getIds().getType(), firstId, position);
        auto first =
            scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, done, b.number(done.getType(), 0)),
                              /*withElseRegion=*/false);
        b.setInsertionPointToStart(first.thenBlock());
        return combineRowsInF32(b, op, sums, block, id, position, b.add(firstId, ids), to);
      }
      forRow(b, size, [&](Value c, int64_t width) {
        Value index = b.add(to, c), value = b.load(src, element, b.add(from, c), width);
        if (op.getKind() != ScatterKind::Set)
          value = combineRows(b, op.getKind(), b.load(result, element, index, width), value);
        b.store(value, result, index);
      });
    });
  });
  return success();
}

void addRowsEmitters(HostEmitters &emitters) {
  emitters.add(emitGatherRows);
  emitters.add(emitScatterRows);
}

} // namespace spmd::kernel
