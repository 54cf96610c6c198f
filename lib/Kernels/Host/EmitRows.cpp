//===- EmitRows.cpp - loops of gather_rows and scatter_rows ---------------===//

#include "../RowValues.h"
#include "Emitters.h"
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

LogicalResult emitGatherRows(KernelBuilder &b, GatherRowsOp op) {
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

/// A trip owns a range of a table's rows and goes through all ids of the table, so what is scattered onto a row comes in
/// the order of src whoever runs the trip.
LogicalResult emitScatterRows(KernelBuilder &b, ScatterRowsOp op) {
  Type element = getElementTypeOrSelf(op.getSrc().getType());
  int64_t size = op.getRowSize(), rows = op.getRows(), trips = op.getTripsPerTable(), batch = op.getBatch();
  int64_t ids = cast<RankedTensorType>(op.getIds().getType()).getNumElements() / batch;
  Value src = b.getPointer(0), idPointer = b.getPointer(1), result = b.getResultPointer(0);
  Value into = op.getInto() ? b.getPointer(2) : Value();
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value anyTrip) {
    Value table = batch == 1 ? b.i64(0) : b.floorDiv(anyTrip, trips);
    Value trip = batch == 1 ? anyTrip : b.mod(anyTrip, trips);
    Value firstRow = b.mul(table, rows), firstId = b.mul(table, ids);
    Value low = b.floorDiv(b.mul(trip, rows), trips), high = b.floorDiv(b.mul(b.add(trip, 1), rows), trips);
    b.loop(low, high, 1, [&](Value row) {
      forRow(b, size, [&](Value i, int64_t width) {
        Value index = b.add(b.mul(b.add(firstRow, row), size), i);
        Value start = into ? b.load(into, element, index, width) : b.number(getWideType(element, width), 0);
        b.store(start, result, index);
      });
    });
    b.loop(b.i64(0), b.i64(ids), 1, [&](Value i) {
      Value position = b.add(firstId, i);
      Value id = loadRowId(b, idPointer, op.getIds().getType(), position);
      Value mine = isWithin(b, id, low, high);
      Value counts = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, id, b.i64(op.getPaddingIdx()));
      auto choice = scf::IfOp::create(b, arith::AndIOp::create(b, mine, counts), /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(choice.thenBlock());
      Value to = b.mul(b.add(firstRow, id), size), from = b.mul(position, size);
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

} // namespace spmd::kernel
