//===- ClusterMemory.cpp - what a cluster's loops have to do with memory ---===//
//
// Prefetches, and non-temporal stores of large results. No bit depends on either.
//
//===----------------------------------------------------------------------===//

#include "ClusterEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

/// Prefetches the lines of `width` elements from `index` on, into the first or second cache.
static void prefetchLines(KernelBuilder &b, Value pointer, Type element, Value index, int64_t width, int64_t cache) {
  int64_t bytes = getStoredBytes(element);
  for (int64_t offset = 0; offset < width * bytes; offset += kLineBytes)
    LLVM::Prefetch::create(b, b.address(pointer, element, b.add(index, offset / bytes)), /*rw=*/0,
                           /*hint=*/cache == 1 ? 3 : 2, /*cache=*/1);
}

/// Whether `root` runs in the first pass over the innermost dim.
bool ClusterEmitter::isInFirstPass(const Root &root) const {
  return llvm::none_of(schedule.getRoots(),
                       [&](const Root &other) { return other.dims.test(innermostDim()) && other.stage < root.stage; });
}

/// Whether successive iterations read successive rows of an operand.
bool ClusterEmitter::isReadByRows(unsigned operand) const {
  const AccessMap &access = operandAccess[operand];
  unsigned inner = innermostDim();
  return access.isLinear() && access.getStride(inner) == 1 && access.getStride(inner - 1).value_or(0) != 0;
}

/// Prefetches what is `ahead` elements after the current position of an operand.
void ClusterEmitter::prefetchOperand(unsigned operand, int64_t ahead, int64_t width, int64_t cache) {
  Value index = b.add(emitIndex(op.getOperandMap(operand)), ahead);
  prefetchLines(b, operands[operand], op.getBodyBlock()->getArgument(operand).getType(), index, width, cache);
}

/// Prefetches what the loop of `roots` or that of a later iteration will need.
void ClusterEmitter::prefetch(const Roots &roots, int64_t width) {
  constexpr int64_t kCacheBytes = 4 << 20;
  if (width < kLanes)
    return;
  if (int64_t rows = countRowsAhead(roots))
    prefetchRows(rows, width);
  else if (width > kLanes && op.getBytesMoved() >= kCacheBytes)
    prefetchAhead(width);
}

/// Prefetches what lies ahead in the operands and results that are walked element by element: functions leave time for
/// it, and the machine's own prefetching ends with every page.
void ClusterEmitter::prefetchAhead(int64_t width) {
  constexpr int64_t kAheadBytes = 2048;
  auto prefetchOne = [&](Value pointer, Type element, const AccessMap &access, AffineMap map) {
    if (access.isLinear() && access.getStride(innermostDim()) == 1)
      prefetchLines(b, pointer, element, b.add(emitIndex(map), kAheadBytes / getStoredBytes(element)), width,
                    /*cache=*/1);
  };
  for (unsigned o = 0; o < operandAccess.size(); ++o)
    prefetchOne(operands[o], op.getBodyBlock()->getArgument(o).getType(), operandAccess[o], op.getOperandMap(o));
  for (unsigned r = 0; r < resultAccess.size(); ++r)
    prefetchOne(results[r], cast<RankedTensorType>(op.getResult(r).getType()).getElementType(), resultAccess[r],
                op.getResultMap(r));
}

//===----------------------------------------------------------------------===//
// [Note: rows ahead]
// The first of several passes over a row from memory waits for memory; the later ones find the row in a cache, and
// memory would rest. So those prefetch rows that come next, element by element: as many bytes ahead as memory delivers
// while it answers, in whole rows, where the second cache holds them beside the row at work. Once is enough where
// functions leave time for it: then the passes without any do not prefetch.
//===----------------------------------------------------------------------===//

/// Bytes of a row in all operands.
int64_t ClusterEmitter::getRowBytes() const {
  int64_t bytes = 0;
  for (unsigned o = 0; o < operandAccess.size(); ++o)
    if (isReadByRows(o))
      bytes += dims[innermostDim()] * getStoredBytes(op.getBodyBlock()->getArgument(o).getType());
  return bytes;
}

/// How many rows ahead the loop of `roots` asks; 0: it does not.
int64_t ClusterEmitter::countRowsAhead(const Roots &roots) const {
  constexpr int64_t kCacheBytes = 8 << 20, kLongestRow = 400 << 10, kAheadBytes = 8 << 10;
  if (nest.size() != 1 || op.getParallel() == 0 || op.getBytesMoved() < kCacheBytes || isInFirstPass(*roots.front()))
    return 0;
  bool laterHasFunctions = llvm::any_of(getRoots(), [&](const Root *root) {
    return root->dims.test(innermostDim()) && !isInFirstPass(*root) && hasFunctions({root});
  });
  if (laterHasFunctions && !hasFunctions(roots))
    return 0;
  int64_t bytes = getRowBytes();
  return bytes == 0 || bytes > kLongestRow ? 0 : llvm::divideCeil(kAheadBytes, bytes);
}

void ClusterEmitter::prefetchRows(int64_t rows, int64_t width) {
  constexpr int64_t kFirstCacheBytes = 16 << 10;
  int64_t cache = rows * getRowBytes() <= kFirstCacheBytes ? 1 : 2;
  for (unsigned o = 0; o < operandAccess.size(); ++o)
    if (isReadByRows(o))
      prefetchOperand(o, rows * *operandAccess[o].getStride(innermostDim() - 1), width, cache);
}

//===----------------------------------------------------------------------===//
// [Note: non-temporal stores]
// A store reads the line that it overwrites first: a third of what layer norm moves. So rows of a result that no cache
// holds are written by non-temporal stores. Who reads the result from its start would not find that in a cache either
// way: the end has taken its place. Later passes only: a result that lies on an operand read by that very pass would
// wait for the line to leave the cache.
//===----------------------------------------------------------------------===//

bool ClusterEmitter::mayPassCaches(const Root &root) const {
  // What waits in a result is read again.
  if (root.reduce || nest.empty() || isInFirstPass(root) || (kept && root.result == keptResult))
    return false;
  auto type = cast<RankedTensorType>(op.getResult(root.result).getType());
  const AccessMap &access = resultAccess[root.result];
  int64_t bytes = getStoredBytes(type.getElementType());
  auto isWholeLines = [&](int64_t elements) { return elements * bytes % kLineBytes == 0; };
  for (auto [d, stride] : llvm::enumerate(access.strides))
    if (d != innermostDim() && !isWholeLines(stride))
      return false;
  return type.getNumElements() * bytes >= kPastCachesBytes && access.isLinear() &&
         access.getStride(innermostDim()) == 1 && isWholeLines(access.constant) &&
         llvm::all_of(access.symbols, isWholeLines);
}

/// Runs `emitLoops`, which write large results by non-temporal stores where these begin with a cache line.
void ClusterEmitter::emitPastCaches(llvm::function_ref<void()> emitLoops) {
  llvm::SmallBitVector large(resultAccess.size());
  Value areAligned;
  for (const Root &root : schedule.getRoots()) {
    if (!mayPassCaches(root))
      continue;
    large.set(root.result);
    Value isAligned = b.isLineAligned(results[root.result]);
    areAligned = areAligned ? arith::AndIOp::create(b, areAligned, isAligned) : isAligned;
  }
  if (large.none())
    return emitLoops();
  auto emitPast = [&] {
    pastCaches = large;
    emitLoops();
    pastCaches.reset();
    b.finishPastCaches();
  };
  b.choose(areAligned, emitPast, emitLoops);
}

void ClusterEmitter::storeAt(unsigned result, Value value, Value index, int64_t alignment) {
  if (isa<VectorType>(value.getType()) && pastCaches.test(result))
    b.storePastCaches(value, results[result], index);
  else
    ClusterValues::storeAt(result, value, index, alignment);
}

} // namespace spmd::kernel
