//===- EmitSegmented.cpp - kernel.segmented for GPUs ----------------------===//
//
// [Note: segments on GPUs]
// A block owns a stretch of the chunk and walks the segments in it, found by bisection once; what a segment fixes is
// made once per segment and thread. Inside a segment a thread owns 16 bytes of the widest operand, and of several such
// places of the stretch it loads all before it stores the first: the loop is loads, the body, stores. The few elements
// before the first whole access and behind the last go one to a thread, and padding is written as zeros.
//
// A reduction has one block per piece of a segment: lanes and accumulators of a thread, then the threads, in a fixed
// tree.
//
//===----------------------------------------------------------------------===//

#include "../SegmentedValues.h"
#include "BlockOps.h"
#include "GpuEmitters.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

class SegmentedEmitter : SegmentedValues {
public:
  SegmentedEmitter(GpuBuilder &b, SegmentedOp op, const Device &device)
      : SegmentedValues(b, op, [&](DenseElementsAttr values) { return b.table(values); }), b(b), device(device) {
    int64_t widest = 1;
    for (Type type : op.getElements().getTypes())
      widest = std::max(widest, getElementBytes(type));
    if (!op.hasReduction())
      for (Type type : op.getResultTypes())
        widest = std::max(widest, getElementBytes(type));
    // More than eight elements a thread would only be registers.
    width = std::clamp<int64_t>(kWideBytes / widest, 1, 8);
    // Registers of four bytes for what is in flight; a reduction has as many sums.
    uint64_t inFlight = op.hasReduction() ? 16 : 32, operands = std::max<uint64_t>(op.getElements().size(), 1);
    accesses = llvm::bit_floor(std::max<uint64_t>(inFlight / (operands * 4), 1));
  }
  LogicalResult emit();

private:
  using Scopes = SmallVector<Scope>;

  void emitElements();
  void emitPieces();
  Value getFirstBehind(bool isEnd, Value place);
  void fillZero(Value low, Value high);
  void emitPlaces(ArrayRef<Value> places, int64_t width);
  Scopes loadPlaces(ArrayRef<Value> places, int64_t width);
  SmallVector<Value> walk(Value low, Value high, ValueRange carried,
                          llvm::function_ref<SmallVector<Value>(ArrayRef<Value>, int64_t, ValueRange)> body);

  GpuBuilder &b;
  const Device &device;
  int64_t threads = 0;
  /// Elements of one access, and accesses of a thread in flight per operand.
  int64_t width, accesses;
};

} // namespace

LogicalResult SegmentedEmitter::emit() {
  op.hasReduction() ? emitPieces() : emitElements();
  b.addMovedBytes(countBytesReadAgain());
  return success();
}

/// The first segment that ends (starts) behind element `place` of the flat buffer; how many there are if none does.
Value SegmentedEmitter::getFirstBehind(bool isEnd, Value place) {
  int64_t segments = op.getStarts().size();
  unsigned steps = llvm::Log2_64_Ceil(segments + 1);
  return b.loop(b.i64(0), b.i64(steps), 1, b.i64(0), [&](Value i, ValueRange carried) {
    Value step = arith::ShRUIOp::create(b, b.i64(int64_t(1) << steps >> 1), i);
    Value next = b.add(carried[0], step);
    Value at = b.sub(b.min(next, b.i64(segments)), b.i64(1));
    Value edge = isEnd ? getEnd(at) : getStart(at);
    Value isBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, edge, place);
    Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, next, b.i64(segments));
    Value moves = arith::AndIOp::create(b, isBefore, isThere);
    return SmallVector<Value>{arith::SelectOp::create(b, moves, next, carried[0])};
  })[0];
}

void SegmentedEmitter::fillZero(Value low, Value high) {
  b.loop(b.add(low, b.getThread()), high, threads, [&](Value i) {
    for (auto [r, type] : llvm::enumerate(op.getResultTypes()))
      b.store(b.number(getElementTypeOrSelf(type), 0), b.getResultPointer(r), i);
  });
}

/// What elements hold at `places`, `width` of them side by side each.
SegmentedEmitter::Scopes SegmentedEmitter::loadPlaces(ArrayRef<Value> places, int64_t width) {
  Scopes scopes(places.size());
  for (BlockArgument argument : body.getArguments().take_front(op.getElements().size()))
    for (auto [scope, place] : llvm::zip_equal(scopes, places))
      if (!argument.use_empty())
        scope[argument] = b.load(b.getPointer(argument.getArgNumber()), argument.getType(), place, width,
                                 width * getElementBytes(argument.getType()));
  return scopes;
}

void SegmentedEmitter::emitPlaces(ArrayRef<Value> places, int64_t width) {
  Scopes scopes = loadPlaces(places, width);
  for (auto [scope, place] : llvm::zip_equal(scopes, places)) {
    SmallVector<Value> values;
    for (Value value : getYielded())
      values.push_back(b.broadcast(getValue(value, place, width, scope), width));
    for (auto [r, value] : llvm::enumerate(values))
      b.store(value, b.getResultPointer(r), place, width * getElementBytes(op.getResultTypes()[r]));
  }
}

/// Shares out [low, high) among the threads: `body` gets the places of several accesses, then of single ones, then
/// single elements. High is not below low.
SmallVector<Value>
SegmentedEmitter::walk(Value low, Value high, ValueRange carried,
                       llvm::function_ref<SmallVector<Value>(ArrayRef<Value>, int64_t, ValueRange)> body) {
  int64_t span = threads * width, turn = span * accesses;
  Value first = b.min(b.mul(b.floorDiv(b.add(low, width - 1), width), width), high);
  Value last = b.max(b.mul(b.floorDiv(high, width), width), first);
  Value mine = b.mul(b.getThread(), width);
  SmallVector<Value> state(carried);
  Value single = first;
  if (accesses > 1) {
    state = b.loop(first, b.sub(last, b.i64(turn - 1)), turn, state, [&](Value base, ValueRange carried) {
      SmallVector<Value> places;
      for (int64_t a = 0; a < accesses; ++a)
        places.push_back(b.add(b.add(base, mine), a * span));
      return body(places, width, carried);
    });
    single = b.add(first, b.mul(b.floorDiv(b.sub(last, first), turn), turn));
  }
  state = b.loop(b.add(single, mine), last, span, state,
                 [&](Value place, ValueRange carried) { return body(place, width, carried); });
  if (width == 1)
    return state;
  // Fewer than `width` before the first access, and behind the last.
  Value before = b.sub(first, low), rest = b.add(before, b.sub(high, last));
  return b.loop(b.getThread(), rest, threads, state, [&](Value i, ValueRange carried) {
    Value isBefore = b.isLess(i, before);
    Value place = arith::SelectOp::create(b, isBefore, b.add(low, i), b.add(last, b.sub(i, before)));
    return body(place, 1, carried);
  });
}

void SegmentedEmitter::emitElements() {
  // Eight blocks fill an SM; a few waves of them even out.
  constexpr int64_t kBlocksPerSM = 8, kWaves = 4;
  threads = device.threadsPerSM / kBlocksPerSM;
  int64_t span = threads * width, chunk = op.getChunk();
  int64_t stretch = llvm::divideCeil(chunk, device.sms * kBlocksPerSM * kWaves);
  stretch = llvm::alignTo(stretch, stretch > span ? span * accesses : span);
  int64_t grid = llvm::divideCeil(chunk, stretch);

  Value begin = b.mul(b.getBlock(), stretch), end = b.min(b.add(begin, stretch), b.i64(chunk));
  Value firstSegment = getFirstBehind(/*isEnd=*/true, b.add(position, begin));
  Value endSegment = getFirstBehind(/*isEnd=*/false, b.sub(b.add(position, end), b.i64(1)));
  Value covered = b.loop(firstSegment, endSegment, 1, begin, [&](Value segment, ValueRange carried) {
    Value low = b.max(b.sub(getStart(segment), position), begin);
    Value high = b.min(b.sub(getEnd(segment), position), end);
    fillZero(carried[0], low);
    emitSegmentValues(segment);
    walk(low, high, {}, [&](ArrayRef<Value> places, int64_t width, ValueRange) {
      emitPlaces(places, width);
      return SmallVector<Value>();
    });
    return SmallVector<Value>{high};
  })[0];
  fillZero(covered, end);
  b.finish(threads, grid);
}

void SegmentedEmitter::emitPieces() {
  int64_t iterations = op.getParallelIterations();
  // Threads that each have all their accesses in flight once.
  int64_t perThread = llvm::divideCeil(op.getChunk(), iterations * width * accesses);
  threads = std::clamp<int64_t>(llvm::bit_floor<uint64_t>(perThread), kWarpSize, device.threadsPerBlock);
  Range piece = getPiece(b.getBlock());
  emitSegmentValues(piece.segment);
  emitReductions([&](ReduceOp reduce) -> Value {
    ReduceKind kind = reduce.getKind();
    Type type = reduce.getType();
    // One accumulator per access, and one for single elements.
    SmallVector<Value> sums(accesses, b.neutral(kind, getWideType(type, width)));
    sums.push_back(b.neutral(kind, type));
    sums = walk(piece.low, piece.high, sums, [&](ArrayRef<Value> places, int64_t width, ValueRange carried) {
      SmallVector<Value> next(carried);
      Scopes scopes = loadPlaces(places, width);
      for (auto [i, place] : llvm::enumerate(places)) {
        Value &sum = this->width > 1 && width == 1 ? next.back() : next[i];
        Value value = b.broadcast(getValue(reduce.getValue(), place, width, scopes[i]), width);
        sum = b.combine(kind, sum, value);
      }
      return next;
    });
    Value single = sums.pop_back_val();
    for (; sums.size() > 1; sums.truncate(sums.size() / 2))
      for (size_t i = 0, half = sums.size() / 2; i < half; ++i)
        sums[i] = b.combine(kind, sums[i], sums[i + half]);
    Value sum = width > 1 ? b.reduceLanes(kind, sums.front()) : sums.front();
    return reduceBlock(b, kind, b.combine(kind, sum, single), threads);
  });
  b.when(b.isEqual(b.getThread(), b.i64(0)), [&] {
    for (auto [r, value] : llvm::enumerate(getYielded()))
      b.store(fixed.lookup(value), b.getResultPointer(r), b.getBlock());
  });
  b.finish(threads, iterations);
}

static LogicalResult emitGpuSegmented(GpuBuilder &b, SegmentedOp op, const Device &device) {
  b.addMovedBytes(op.getBytesMoved());
  return SegmentedEmitter(b, op, device).emit();
}

void addGpuSegmentedEmitters(GpuEmitters &emitters) { emitters.add(emitGpuSegmented); }

} // namespace spmd::kernel
