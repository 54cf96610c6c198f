//===- AttentionForwardWarps.cpp - forward on tensor cores ----------------===//
//
// As EmitAttention.cpp, in the tiles of [Note: attention on tensor cores].
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "AttentionWarps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class ForwardEmitter : AttentionWarps {
public:
  ForwardEmitter(GpuBuilder &b, AttentionOp op, const Device &device)
      : AttentionWarps(b, op, device, /*firstMaskOperand=*/3), op(op), headDim(sizes.getHeadDim()),
        vDim(sizes.getVDim()), tile(chooseTile(op, device)) {}
  static bool canEmit(AttentionOp op, const Device &device);
  void emit();

private:
  static Tile chooseTile(AttentionOp op, const Device &device) {
    AttentionSizesAttr sizes = op.getSizes();
    // What comes next takes registers, too.
    int64_t most = sizes.getHeadDim() + sizes.getVDim() > 256 ? 32 : 64;
    return AttentionWarps::chooseTile(device, sizes.getQLen(), sizes.getKvLen(), sizes.getBatch() * sizes.getHeads(),
                                      most);
  }
  /// Of shared memory.
  static int64_t countElements(AttentionSizesAttr sizes, Tile tile) {
    return (tile.rows + tile.columns) * getStride(sizes.getHeadDim()) + tile.columns * getStride(sizes.getVDim());
  }
  void emitSoftmax(Matrix &scores, Matrix &maxima, Matrix &totals, Matrix &out);
  /// The extreme gives 1, however large it is.
  Value powerBelow(Value score, Value extreme) { return exp2(mul(sub(score, extreme), number(getExponentScale()))); }

  AttentionOp op;
  int64_t headDim, vDim;
  Tile tile;
};

} // namespace

bool ForwardEmitter::canEmit(AttentionOp op, const Device &device) {
  AttentionSizesAttr sizes = op.getSizes();
  int64_t headDim = sizes.getHeadDim(), vDim = sizes.getVDim();
  return canBeWarpRows(op.getQ().getType(), op.getQView(), headDim) &&
         canBeWarpRows(op.getK().getType(), op.getKView(), headDim) &&
         canBeWarpRows(op.getV().getType(), op.getVView(), vDim) &&
         canBeWarpRows(op.getOut().getType(), op.getOutView(), vDim) && haveRegisters(sizes) &&
         countElements(sizes, chooseTile(op, device)) * getStoredBytes(getElement(op)) <= device.sharedBytesPerBlock;
}

/// Scores to probabilities, not normalized; what the rows carry is brought to their new maxima. Totals are each lane's.
void ForwardEmitter::emitSoftmax(Matrix &scores, Matrix &maxima, Matrix &totals, Matrix &out) {
  int64_t n = scores.size() / 2, columns = out.size() / 2;
  Matrix extremes, shifts;
  for (int64_t i = 0; i < 2; ++i) {
    // What is not a number makes the total one that is none.
    auto max = [&](Value x, Value y) { return LLVM::MaxNumOp::create(b, x, y); };
    Value top = scores[i * n];
    for (Value score : ArrayRef(scores).slice(i * n + 1, n - 1))
      top = max(top, score);
    top = max(maxima[i], max(top, b.shuffleXor(top, 2)));
    top = max(top, b.shuffleXor(top, 1));
    // A row that has seen nothing yet has weight 0, not NaN.
    extremes.push_back(arith::SelectOp::create(b, isMinusInfinity(top), number(0), top));
    shifts.push_back(mul(extremes[i], number(-getExponentScale())));
    Value weight = powerBelow(maxima[i], extremes[i]);
    maxima[i] = top;
    totals[i] = mul(totals[i], weight);
    for (Value &sum : MutableArrayRef(out).slice(i * columns, columns))
      sum = mul(sum, weight);
  }
  auto powers = [&](llvm::function_ref<Value(Value score, int64_t row)> power) {
    Matrix result;
    for (auto [e, score] : llvm::enumerate(scores))
      result.push_back(power(score, static_cast<int64_t>(e) / n));
    return result;
  };
  scores = b.chooseValues(
      isAnyLarge(shifts),
      [&] { return powers([&](Value score, int64_t row) { return powerBelow(score, extremes[row]); }); },
      [&] { return powers([&](Value score, int64_t row) { return exp2(score, shifts[row]); }); });
  for (auto [e, power] : llvm::enumerate(scores))
    totals[e / n] = add(totals[e / n], power);
}

void ForwardEmitter::emit() {
  int64_t heads = sizes.getHeads(), qLen = sizes.getQLen(), kvLen = sizes.getKvLen();
  int64_t allHeads = sizes.getBatch() * heads, threads = getThreads(tile), offset = 0;
  Value arena = b.shared(element, countElements(sizes, tile));
  SharedTile queries = placeTile(arena, offset, tile.rows, headDim);
  SharedTile keys = placeTile(arena, offset, tile.columns, headDim);
  SharedTile values = placeTile(arena, offset, tile.columns, vDim);

  int64_t tiles = llvm::divideCeil(qLen, tile.rows);
  Value batchHead, turn;
  std::tie(batchHead, turn) = b.divide(b.getBlock(), tiles, allHeads * tiles);
  Value batch, head;
  std::tie(batch, head) = b.divide(batchHead, heads, allHeads);
  Value kvHead = b.divide(head, heads / sizes.getKvHeads(), heads).first;
  // The blocks with most keys first.
  Value firstQuery = b.mul(b.sub(b.i64(tiles - 1), turn), tile.rows);
  HeadRows q = getRows(b.getPointer(0), op.getQ().getType(), op.getQView(), batch, head, qLen, headDim);
  HeadRows k = getRows(b.getPointer(1), op.getK().getType(), op.getKView(), batch, kvHead, kvLen, headDim);
  HeadRows v = getRows(b.getPointer(2), op.getV().getType(), op.getVView(), batch, kvHead, kvLen, vDim);

  fillTile(queries, q, firstQuery, tile.rows, threads);
  auto [firstKey, endKey] = getKeyBounds(firstQuery, tile.rows, tile.columns);
  // The tile after the last is not there: the last again.
  Value lastKey = b.i64((llvm::divideCeil(kvLen, tile.columns) - 1) * tile.columns);
  auto load = [&](Value key) {
    Value from = b.min(key, lastKey);
    Matrix items = loadTile(k, from, tile.columns, threads);
    items.append(loadTile(v, from, tile.columns, threads));
    return items;
  };
  // What rows carry: maxima, totals, output; then the tiles that come next.
  Matrix carried(2, infinity());
  carried.append(Matrix(2, number(0)));
  carried.append(getZeros(vDim));
  int64_t own = carried.size(), itemsOfK = countItems(tile.columns, headDim, threads);
  carried.append(load(firstKey));
  carried = b.loop(firstKey, endKey, tile.columns, carried, [&](Value key, ValueRange state) {
    Matrix maxima(state.take_front(2)), totals(state.slice(2, 2)), out(state.slice(4, own - 4));
    ValueRange items = state.drop_front(own);
    // The tile before may still be read.
    b.barrier();
    storeTile(keys, items.take_front(itemsOfK), tile.columns, headDim, threads);
    storeTile(values, items.drop_front(itemsOfK), tile.columns, vDim, threads);
    b.barrier();
    Matrix next = load(b.add(key, tile.columns));
    Matrix scores = dot(queries, keys, tile.columns, headDim);
    finishScores(scores, batch, head, firstQuery, key, tile, /*queriesAreRows=*/true);
    emitSoftmax(scores, maxima, totals, out);
    out = accumulate(out, scores, values, vDim);
    Matrix result(maxima);
    result.append(totals);
    result.append(out);
    result.append(next);
    return result;
  });

  Matrix out(ArrayRef(carried).slice(4, own - 4));
  int64_t columns = out.size() / 2;
  for (int64_t i = 0; i < 2; ++i) {
    Value top = carried[i], total = reduceRow(ReduceKind::Add, carried[2 + i]);
    Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, number(0));
    Value inverse = arith::SelectOp::create(b, isEmpty, number(0), arith::DivFOp::create(b, number(1), total));
    for (Value &sum : MutableArrayRef(out).slice(i * columns, columns))
      sum = mul(sum, inverse);
    Value lse = add(mul(top, number(getFactor())), math::LogOp::create(b, total));
    lse = arith::SelectOp::create(b, isEmpty, infinity(), lse);
    Value row = getRow(firstQuery, i);
    Value isFirst = b.isEqual(matrices.t, b.i64(0));
    b.when(arith::AndIOp::create(b, isFirst, b.isLess(row, b.i64(qLen))),
           [&] { b.store(lse, b.getResultPointer(1), b.add(b.mul(batchHead, qLen), row)); });
  }
  HeadRows to = getRows(b.getResultPointer(0), op.getOut().getType(), op.getOutView(), batch, head, qLen, vDim);
  storeRows(to, firstQuery, out, tile.rows);
  b.finish(threads, allHeads * tiles);
}

bool emitAttentionWarps(GpuBuilder &b, AttentionOp op, const Device &device) {
  if (!ForwardEmitter::canEmit(op, device))
    return false;
  ForwardEmitter(b, op, device).emit();
  return true;
}

} // namespace spmd::kernel
