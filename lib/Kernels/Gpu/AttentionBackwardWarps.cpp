//===- AttentionBackwardWarps.cpp - backward on tensor cores --------------===//
//
// The blocks of [Note: blocks of attention's backward], in the tiles of [Note: attention on tensor cores].
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardBlocks.h"
#include "AttentionKernels.h"
#include "AttentionWarps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class BackwardEmitter : BackwardBlocks<AttentionWarps> {
public:
  BackwardEmitter(GpuBuilder &b, AttentionBackwardOp op, const Device &device)
      : BackwardBlocks(b, op, device), plans(op, device) {}
  static bool canEmit(AttentionBackwardOp op, const Device &device);
  void emit();

private:
  struct Plans {
    Plans(AttentionBackwardOp op, const Device &device);
    Plan ofKeys, ofQueries, ofMask;
    /// All have as many: those of the widest.
    int64_t threads;
  };
  /// The block's rows or those that are streamed past it: q and dout, or k and v.
  struct Tiles {
    SharedTile keyed, valued;
  };
  /// Log-sum-exp, the shift of powers by it, and delta of queries, in shared memory.
  struct Statistics {
    Value lse, shift, delta;
  };
  struct Gradients {
    Matrix probabilities, ofMasked;
  };
  static int64_t countElements(AttentionSizesAttr sizes, Tile tile) {
    return (tile.rows + tile.columns) * (getStride(sizes.getHeadDim()) + getStride(sizes.getVDim()));
  }
  static int64_t getSharedBytes(AttentionBackwardOp op, const Plans &plans);

  Tiles placeTiles(int64_t &offset, int64_t rows);
  Matrix loadTiles(const HeadRows &keyed, const HeadRows &valued, Value first, int64_t rows);
  void storeTiles(const Tiles &to, ValueRange items, int64_t rows);
  void storeStatistics(Value lse, Value delta, Value query, Value isOwn);
  void fillStatistics(Value batch, Value head, Value firstQuery, int64_t queries);
  bool canStreamStatistics() const;
  Matrix loadStatistics(Value batch, Value head, Value firstQuery, int64_t queries);
  void storeStatistics(ValueRange douts, ValueRange items, int64_t queries);
  Gradients emitScores(const Tiles &rows, const Tiles &columns, Value batch, Value head, Value firstQuery,
                       Value firstKey, Tile tile, bool queriesAreRows);
  Matrix scaled(ArrayRef<Value> matrix) {
    return llvm::map_to_vector(matrix, [&](Value v) { return mul(v, number(scale)); });
  }
  void emitKeyBlock(Value number);
  void emitQueryBlock(Value number);
  void emitMaskBlock(Value number);

  Plans plans;
  Value arena;
  Statistics statistics;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

BackwardEmitter::Plans::Plans(AttentionBackwardOp op, const Device &device) {
  AttentionSizesAttr sizes = op.getSizes();
  int64_t qLen = sizes.getQLen(), kvLen = sizes.getKvLen(), batch = sizes.getBatch();
  auto plan = [&](int64_t rows, int64_t columns, int64_t heads) -> Plan {
    // Sums of dk and dv leave fewer registers for wide heads.
    int64_t width = sizes.getHeadDim() + sizes.getVDim(), most = width > 256 ? 16 : width > 192 ? 32 : 64;
    Tile tile = AttentionWarps::chooseTile(device, rows, columns, heads, most);
    int64_t tiles = llvm::divideCeil(rows, tile.rows);
    return {tile, tiles, heads * tiles};
  };
  ofKeys = plan(kvLen, qLen, batch * sizes.getKvHeads());
  ofQueries = plan(qLen, kvLen, batch * sizes.getHeads());
  // One size of block for all of the kernel.
  int64_t rows = std::max(ofKeys.tile.rows, ofQueries.tile.rows);
  for (auto [plan, length, heads] : {std::tuple(&ofKeys, kvLen, batch * sizes.getKvHeads()),
                                     std::tuple(&ofQueries, qLen, batch * sizes.getHeads())}) {
    plan->tile.rows = rows;
    plan->tiles = llvm::divideCeil(length, rows);
    plan->blocks = heads * plan->tiles;
  }
  threads = getThreads(ofKeys.tile);
  ofMask = {ofQueries.tile, ofQueries.tiles, countMaskBlocks(op, ofQueries.tiles, ofQueries.tile.columns)};
}

int64_t BackwardEmitter::getSharedBytes(AttentionBackwardOp op, const Plans &plans) {
  int64_t elements =
      std::max(countElements(op.getSizes(), plans.ofKeys.tile), countElements(op.getSizes(), plans.ofQueries.tile));
  int64_t queries = std::max(plans.ofKeys.tile.columns, plans.ofQueries.tile.rows);
  return elements * getStoredBytes(getElement(op)) + 3 * queries * getStoredBytes(Float32Type::get(op.getContext()));
}

bool BackwardEmitter::canEmit(AttentionBackwardOp op, const Device &device) {
  AttentionSizesAttr sizes = op.getSizes();
  int64_t headDim = sizes.getHeadDim(), vDim = sizes.getVDim();
  auto canBeGrad = [&](unsigned i, ViewAttr view, int64_t columns) {
    return canBeWarpRows(op.getGrads()[i].getType(), view, columns);
  };
  unsigned last = op.getGrads().size() - 1;
  return canBeWarpRows(op.getDout().getType(), op.getDoutView(), vDim) &&
         canBeWarpRows(op.getQ().getType(), op.getQView(), headDim) &&
         canBeWarpRows(op.getK().getType(), op.getKView(), headDim) &&
         canBeWarpRows(op.getV().getType(), op.getVView(), vDim) &&
         canBeWarpRows(op.getOut().getType(), op.getOutView(), vDim) && canBeGrad(0, op.getDqView(), headDim) &&
         canBeGrad((last + 1) / 2, op.getDkView(), headDim) && canBeGrad(last, op.getDvView(), vDim) &&
         haveRegisters(sizes) && getSharedBytes(op, Plans(op, device)) <= device.sharedBytesPerBlock;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

BackwardEmitter::Tiles BackwardEmitter::placeTiles(int64_t &offset, int64_t rows) {
  Tiles tiles;
  tiles.keyed = placeTile(arena, offset, rows, headDim);
  tiles.valued = placeTile(arena, offset, rows, vDim);
  return tiles;
}

AttentionScores::Matrix BackwardEmitter::loadTiles(const HeadRows &keyed, const HeadRows &valued, Value first,
                                                   int64_t rows) {
  Matrix items = loadTile(keyed, first, rows, plans.threads);
  items.append(loadTile(valued, first, rows, plans.threads));
  return items;
}

void BackwardEmitter::storeTiles(const Tiles &to, ValueRange items, int64_t rows) {
  int64_t ofKeyed = countItems(rows, headDim, plans.threads);
  storeTile(to.keyed, items.take_front(ofKeyed), rows, headDim, plans.threads);
  storeTile(to.valued, items.drop_front(ofKeyed), rows, vDim, plans.threads);
}

/// Of `query` of the tile, if `isOwn`.
void BackwardEmitter::storeStatistics(Value lse, Value delta, Value query, Value isOwn) {
  // A query that sees nothing: its scores are -inf too.
  lse = arith::SelectOp::create(b, isMinusInfinity(lse), number(0), lse);
  b.when(isOwn, [&] {
    b.store(lse, statistics.lse, query);
    b.store(mul(lse, number(-kLog2E)), statistics.shift, query);
    b.store(delta, statistics.delta, query);
  });
}

/// Of the queries from `firstQuery` on, some neighbouring threads to each.
void BackwardEmitter::fillStatistics(Value batch, Value head, Value firstQuery, int64_t queries) {
  int64_t sharers = std::max<int64_t>(plans.threads / queries, 1), atATime = plans.threads / sharers;
  HeadRows dout = getDout(batch, head), out = getOut(batch, head);
  Value firstLse = b.mul(b.add(b.mul(batch, sizes.getHeads()), head), sizes.getQLen());
  Value part = b.mod(b.getThread(), sharers);
  for (int64_t done = 0; done < queries; done += atATime) {
    Value own = b.add(b.floorDiv(b.getThread(), sharers), done);
    Value row = b.min(b.add(firstQuery, own), b.i64(sizes.getQLen() - 1));
    Value sum = b.loop(b.mul(part, kWidth), b.i64(vDim), sharers * kWidth, b.number(getWideType(f32, kWidth), 0),
                       [&](Value c, ValueRange sums) {
                         Value product = mul(loadColumns(dout, row, c, kWidth), loadColumns(out, row, c, kWidth));
                         return SmallVector<Value>{add(sums[0], product)};
                       })[0];
    sum = b.reduceWarp(ReduceKind::Add, b.reduceLanes(ReduceKind::Add, sum), sharers);
    Value isOwn = b.isEqual(part, b.i64(0));
    if (done + atATime > queries)
      isOwn = arith::AndIOp::create(b, isOwn, b.isLess(own, b.i64(queries)));
    Value lse = b.load(b.getPointer(firstStatistic + 1), f32, b.add(firstLse, row));
    storeStatistics(lse, sum, own, isOwn);
  }
}

/// Whether neighbouring lanes, a power of two of them, bring a row of dout: then they sum up its delta.
bool BackwardEmitter::canStreamStatistics() const {
  int64_t perRow = getPadded(vDim) / kWidth;
  return llvm::isPowerOf2_64(perRow) && perRow <= kWarpSize;
}

/// The rows of out that match those of dout, as loadTile brings them, then log-sum-exp of each.
AttentionScores::Matrix BackwardEmitter::loadStatistics(Value batch, Value head, Value firstQuery, int64_t queries) {
  Matrix items = loadTile(getOut(batch, head), firstQuery, queries, plans.threads);
  int64_t perRow = getPadded(vDim) / kWidth, count = items.size();
  Value firstLse = b.mul(b.add(b.mul(batch, sizes.getHeads()), head), sizes.getQLen());
  for (int64_t i = 0; i < count; ++i) {
    Value row = b.add(firstQuery, b.floorDiv(b.add(b.getThread(), i * plans.threads), perRow));
    row = b.min(row, b.i64(sizes.getQLen() - 1));
    items.push_back(b.load(b.getPointer(firstStatistic + 1), f32, b.add(firstLse, row)));
  }
  return items;
}

void BackwardEmitter::storeStatistics(ValueRange douts, ValueRange items, int64_t queries) {
  int64_t perRow = getPadded(vDim) / kWidth, count = douts.size();
  auto widen = [&](Value item) {
    Value narrow = LLVM::BitcastOp::create(b, getWideType(element, kWidth), item);
    return arith::ExtFOp::create(b, getWideType(f32, kWidth), narrow);
  };
  for (int64_t i = 0; i < count; ++i) {
    Value number = b.add(b.getThread(), i * plans.threads), own = b.floorDiv(number, perRow);
    Value sum = b.reduceLanes(ReduceKind::Add, mul(widen(douts[i]), widen(items[i])));
    sum = b.reduceWarp(ReduceKind::Add, sum, perRow);
    Value isOwn = b.isEqual(b.mod(number, perRow), b.i64(0));
    if (count * plans.threads > queries * perRow)
      isOwn = arith::AndIOp::create(b, isOwn, b.isLess(own, b.i64(queries)));
    storeStatistics(items[count + i], sum, own, isOwn);
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// P and dM of a pair of tiles.
BackwardEmitter::Gradients BackwardEmitter::emitScores(const Tiles &rows, const Tiles &columns, Value batch, Value head,
                                                       Value firstQuery, Value firstKey, Tile tile,
                                                       bool queriesAreRows) {
  Matrix p = dot(rows.keyed, columns.keyed, tile.columns, headDim);
  finishScores(p, batch, head, firstQuery, firstKey, tile, queriesAreRows);
  Matrix d = dot(rows.valued, columns.valued, tile.columns, vDim);
  int64_t n = tile.columns / 4;
  auto getStatistic = [&](Value from) {
    Matrix values;
    for (int64_t i = 0; queriesAreRows && i < 2; ++i)
      values.push_back(b.load(from, f32, getRow(b.i64(0), i)));
    // Columns come in neighbouring pairs.
    for (int64_t j = 0; !queriesAreRows && j < n; j += 2) {
      Value pair = b.load(from, f32, getColumn(b.i64(0), j), 2, 2 * getStoredBytes(f32));
      values.append({b.lane(pair, 0), b.lane(pair, 1)});
    }
    return values;
  };
  Matrix shift = getStatistic(statistics.shift), delta = getStatistic(statistics.delta);
  auto getQuery = [&](int64_t e) { return queriesAreRows ? e / n : e % n; };
  p = b.chooseValues(
      isAnyLarge(shift),
      [&] {
        // As lse is made: the largest score gives 1, and what products round otherwise no more.
        Matrix powers, lse = getStatistic(statistics.lse);
        for (auto [e, score] : llvm::enumerate(p)) {
          Value above = mul(sub(mul(score, number(getFactor())), lse[getQuery(e)]), number(kLog2E));
          powers.push_back(exp2(arith::MinimumFOp::create(b, above, number(0))));
        }
        return powers;
      },
      [&] {
        Matrix powers;
        for (auto [e, score] : llvm::enumerate(p))
          powers.push_back(exp2(score, shift[getQuery(e)]));
        return powers;
      });
  for (auto [e, gradient] : llvm::enumerate(d))
    gradient = mul(p[e], sub(gradient, delta[getQuery(e)]));
  return {p, d};
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// dk and dv of a tile of keys.
void BackwardEmitter::emitKeyBlock(Value number) {
  auto [tile, tiles, blocks] = plans.ofKeys;
  int64_t kvHeads = sizes.getKvHeads(), offset = 0, qLen = sizes.getQLen();
  Tiles own = placeTiles(offset, tile.rows), streamed = placeTiles(offset, tile.columns);
  Value batchHead, which;
  std::tie(batchHead, which) = b.divide(number, tiles, blocks);
  Value batch, kvHead;
  std::tie(batch, kvHead) = b.divide(batchHead, kvHeads, sizes.getBatch() * kvHeads);
  // What keys see most queries comes first.
  Value firstKey = b.mul(which, tile.rows);
  storeTiles(own, loadTiles(getK(batch, kvHead), getV(batch, kvHead), firstKey, tile.rows), tile.rows);
  Value firstQuery, endQuery;
  std::tie(firstQuery, endQuery) = getQueryBounds(firstKey, tile.rows, tile.columns);
  Value lastQuery = b.i64((llvm::divideCeil(qLen, tile.columns) - 1) * tile.columns);
  Matrix sums = getZeros(vDim);
  int64_t sumsOfV = sums.size();
  sums.append(getZeros(headDim));
  int64_t columns = tile.columns, numSums = sums.size();
  Tile ownTile = tile;
  sums = b.loop(b.i64(0), b.i64(group), 1, sums, [&](Value member, ValueRange carried) {
    Value head = b.add(b.mul(kvHead, group), member);
    auto load = [&](Value query) {
      query = b.min(query, lastQuery);
      Matrix items = loadTiles(getQ(batch, head), getDout(batch, head), query, columns);
      if (canStreamStatistics())
        items.append(loadStatistics(batch, head, query, columns));
      return items;
    };
    Matrix state(carried);
    state.append(load(firstQuery));
    state = b.loop(firstQuery, endQuery, columns, state, [&](Value query, ValueRange state) {
      Matrix dv(state.take_front(sumsOfV)), dk(state.slice(sumsOfV, numSums - sumsOfV));
      // The tile before may still be read.
      b.barrier();
      ValueRange items = state.drop_front(numSums);
      int64_t ofQ = countItems(columns, headDim, plans.threads), ofDout = countItems(columns, vDim, plans.threads);
      storeTiles(streamed, items.take_front(ofQ + ofDout), columns);
      if (canStreamStatistics())
        storeStatistics(items.slice(ofQ, ofDout), items.drop_front(ofQ + ofDout), columns);
      else
        fillStatistics(batch, head, query, columns);
      b.barrier();
      Matrix next = load(b.add(query, columns));
      Gradients g = emitScores(own, streamed, batch, head, query, firstKey, ownTile, /*queriesAreRows=*/false);
      Matrix result = accumulate(dv, g.probabilities, streamed.valued, vDim);
      result.append(accumulate(dk, g.ofMasked, streamed.keyed, headDim));
      result.append(next);
      return result;
    });
    state.truncate(numSums);
    return state;
  });
  HeadRows dk = getGrad(numGrads / 2, op.getDkView(), batch, kvHead, sizes.getKvLen(), headDim);
  HeadRows dv = getGrad(numGrads - 1, op.getDvView(), batch, kvHead, sizes.getKvLen(), vDim);
  storeRows(dv, firstKey, Matrix(ArrayRef(sums).take_front(sumsOfV)), tile.rows);
  storeRows(dk, firstKey, scaled(ArrayRef(sums).drop_front(sumsOfV)), tile.rows);
}

/// dq of a tile of queries.
void BackwardEmitter::emitQueryBlock(Value number) {
  Plan plan = plans.ofQueries;
  Tile tile = plan.tile;
  int64_t heads = sizes.getHeads(), kvLen = sizes.getKvLen(), offset = 0;
  Tiles own = placeTiles(offset, tile.rows), streamed = placeTiles(offset, tile.columns);
  auto [batchHead, turn] = b.divide(number, plan.tiles, plan.blocks);
  Value batch, head;
  std::tie(batch, head) = b.divide(batchHead, heads, sizes.getBatch() * heads);
  Value kvHead = getKvHead(head);
  Value firstQuery = b.mul(b.sub(b.i64(plan.tiles - 1), turn), tile.rows);
  storeTiles(own, loadTiles(getQ(batch, head), getDout(batch, head), firstQuery, tile.rows), tile.rows);
  fillStatistics(batch, head, firstQuery, tile.rows);
  auto [firstKey, endKey] = getKeyBounds(firstQuery, tile.rows, tile.columns);
  Value lastKey = b.i64((llvm::divideCeil(kvLen, tile.columns) - 1) * tile.columns);
  auto load = [&](Value key) {
    return loadTiles(getK(batch, kvHead), getV(batch, kvHead), b.min(key, lastKey), tile.columns);
  };
  Matrix state = getZeros(headDim);
  int64_t numSums = state.size();
  state.append(load(firstKey));
  state = b.loop(firstKey, endKey, tile.columns, state, [&](Value key, ValueRange state) {
    b.barrier();
    storeTiles(streamed, state.drop_front(numSums), tile.columns);
    b.barrier();
    Matrix next = load(b.add(key, tile.columns));
    Gradients g = emitScores(own, streamed, batch, head, firstQuery, key, tile, /*queriesAreRows=*/true);
    Matrix result = accumulate(Matrix(state.take_front(numSums)), g.ofMasked, streamed.keyed, headDim);
    result.append(next);
    return result;
  });
  storeRows(getGrad(0, op.getDqView(), batch, head, sizes.getQLen(), headDim), firstQuery,
            scaled(ArrayRef(state).take_front(numSums)), tile.rows);
}

/// The mask's gradient on a tile of queries and keys, summed over the batches and heads that share it.
void BackwardEmitter::emitMaskBlock(Value number) {
  Tile tile = plans.ofMask.tile;
  int64_t offset = 0;
  Tiles rows = placeTiles(offset, tile.rows), columns = placeTiles(offset, tile.columns);
  auto emit = [&](Value batch, Value head, Value firstQuery, Value firstKey) {
    Value kvHead = getKvHead(head);
    b.barrier();
    storeTiles(rows, loadTiles(getQ(batch, head), getDout(batch, head), firstQuery, tile.rows), tile.rows);
    storeTiles(columns, loadTiles(getK(batch, kvHead), getV(batch, kvHead), firstKey, tile.columns), tile.columns);
    fillStatistics(batch, head, firstQuery, tile.rows);
    b.barrier();
    return emitScores(rows, columns, batch, head, firstQuery, firstKey, tile, /*queriesAreRows=*/true).ofMasked;
  };
  emitMaskGradient(number, plans.ofMask, 2, tile.columns / 4, emit);
}

void BackwardEmitter::emit() {
  int64_t queries = std::max(plans.ofKeys.tile.columns, plans.ofQueries.tile.rows);
  arena =
      b.shared(element, std::max(countElements(sizes, plans.ofKeys.tile), countElements(sizes, plans.ofQueries.tile)));
  statistics.lse = b.shared(f32, queries);
  statistics.shift = b.shared(f32, queries);
  statistics.delta = b.shared(f32, queries);
  emitParts(
      plans.ofKeys.blocks, [&](Value block) { emitKeyBlock(block); }, plans.ofQueries.blocks,
      [&](Value block) { emitQueryBlock(block); }, plans.ofMask.blocks, [&](Value block) { emitMaskBlock(block); });
  b.finish(plans.threads, plans.ofKeys.blocks + plans.ofQueries.blocks + plans.ofMask.blocks);
}

bool emitAttentionWarps(GpuBuilder &b, AttentionBackwardOp op, const Device &device) {
  if (!BackwardEmitter::canEmit(op, device))
    return false;
  BackwardEmitter(b, op, device).emit();
  return true;
}

} // namespace spmd::kernel
