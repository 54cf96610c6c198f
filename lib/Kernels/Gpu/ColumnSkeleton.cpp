//===- ColumnSkeleton.cpp - clusters whose threads share columns ----------===//
//
// [Note: columns shared by threads] Sums of few columns over many rows, such as what the blocks of a norm's backward
// leave, would be one long chain of loads for each of a few threads. So a block owns a few accesses along the columns
// and shares out the rows as well: the threads of a piece of them add it up in its order, and at the end those of the
// first piece add up what the pieces have left in shared memory, in the order of the pieces.
//
//===----------------------------------------------------------------------===//

#include "ClusterSkeleton.h"

using namespace mlir;

namespace spmd::kernel {
namespace {

/// Pieces of the rows at most, and accesses along the columns of a block: 256 threads.
constexpr int64_t kMostPieces = 32, kMostItems = 8;

/// Pieces of equally many rows, two at least.
int64_t countPieces(int64_t rows) {
  int64_t pieces = std::min(kMostPieces, rows / 2);
  while (rows % pieces)
    --pieces;
  return pieces;
}

class ColumnSkeleton : private ClusterSkeleton {
public:
  using ClusterSkeleton::ClusterSkeleton;
  LaunchShape emit();

private:
  SmallVector<Value> sumRows(const Roots &sums);
  Value loadReduction(ReduceOp, int64_t) override { llvm_unreachable("sums are known when they are read"); }
  int64_t getLanes(ReduceOp reduce) const { return schedule.getVarying(reduce.getValue()).test(*laneDim) ? width : 1; }
  int64_t getSumAlignment(ReduceOp reduce) const {
    return std::min(getLanes(reduce) * getStoredBytes(reduce.getType()), kWideBytes);
  }

  int64_t width = 1, pieces = 1;
  /// Number of the piece (i64).
  Value piece;
};

} // namespace

/// What a thread's piece of the rows adds up to.
SmallVector<Value> ColumnSkeleton::sumRows(const Roots &sums) {
  unsigned dim = nest.front();
  llvm::SmallBitVector changing(dims.size());
  changing.set(dim);
  emitInvariant(sums, changing, width);
  SmallVector<Value> inits;
  for (const Root *root : sums)
    inits.push_back(b.neutral(root->reduce.getKind(), getWideType(root->reduce.getType(), getLanes(root->reduce))));
  int64_t rows = dims[dim] / pieces;
  Value first = b.mul(piece, rows);
  SmallVector<Value> totals = b.loop(b.i64(0), b.i64(rows), 1, inits, [&](Value i, ValueRange before) {
    position[dim] = b.add(first, i);
    scopes.emplace_back();
    SmallVector<Value> out;
    for (auto [root, sum] : llvm::zip_equal(sums, before)) {
      Value value = b.broadcast(getValue(root->value, width, scopes.back()), getLanes(root->reduce));
      out.push_back(b.combine(root->reduce.getKind(), sum, value));
    }
    scopes.pop_back();
    return out;
  });
  position[dim] = Value();
  return totals;
}

LaunchShape ColumnSkeleton::emit() {
  laneDim = gridDims.back();
  width = getWidth(*laneDim);
  pieces = countPieces(dims[nest.front()]);
  int64_t items = 1, itemsOfBlock = kMostItems;
  for (unsigned d : gridDims)
    items *= dims[d];
  items /= width;
  while (items % itemsOfBlock)
    itemsOfBlock /= 2;
  Value item;
  std::tie(piece, item) = b.divide(b.getThread(), itemsOfBlock, pieces * itemsOfBlock);
  scopes.emplace_back();
  setItem(b.add(b.mul(block, itemsOfBlock), item), items, width);

  Roots sums, stores;
  for (const Root *root : getRoots())
    (root->reduce ? sums : stores).push_back(root);
  SmallVector<Value> ofPieces;
  for (auto [root, sum] : llvm::zip_equal(sums, sumRows(sums))) {
    int64_t lanes = getLanes(root->reduce);
    Value memory = b.shared(root->reduce.getType(), pieces * itemsOfBlock * lanes);
    b.store(sum, memory, b.mul(b.getThread(), lanes), getSumAlignment(root->reduce));
    ofPieces.push_back(memory);
  }
  b.barrier();
  b.when(b.isEqual(piece, b.i64(0)), [&] {
    SmallVector<Value> inits;
    for (const Root *root : sums)
      inits.push_back(b.neutral(root->reduce.getKind(), getWideType(root->reduce.getType(), getLanes(root->reduce))));
    SmallVector<Value> totals = b.loop(b.i64(0), b.i64(pieces), 1, inits, [&](Value p, ValueRange before) {
      SmallVector<Value> out;
      for (auto [root, memory, sum] : llvm::zip_equal(sums, ofPieces, before)) {
        ReduceOp reduce = root->reduce;
        Value index = b.mul(b.add(b.mul(p, itemsOfBlock), item), getLanes(reduce));
        Value value = b.load(memory, reduce.getType(), index, getLanes(reduce), getSumAlignment(reduce));
        out.push_back(b.combine(reduce.getKind(), sum, value));
      }
      return out;
    });
    for (auto [root, total] : llvm::zip_equal(sums, totals))
      scopes.back()[root->reduce] = total;
    SmallVector<Value> values;
    for (const Root *root : stores)
      values.push_back(getValue(root->value, width, scopes.back()));
    for (auto [root, value] : llvm::zip_equal(stores, values)) {
      bool hasLanes = root->dims.test(*laneDim);
      storeResult(*root, hasLanes ? b.broadcast(value, width) : value, hasLanes ? width : 1);
    }
  });
  scopes.pop_back();
  return LaunchShape{pieces * itemsOfBlock, items / itemsOfBlock};
}

bool hasFewColumns(ClusterOp op, const Device &device) {
  // Fewer rows are one thread's, in the order of the CPU's.
  constexpr int64_t kMostOfThread = 64, kThreads = 256;
  SmallVector<unsigned> nest = getNestDims(op);
  ArrayRef<int64_t> dims = op.getDims();
  if (nest.size() != 1 || nest.front() + 1 == dims.size())
    return false;
  int64_t rows = dims[nest.front()], columns = 1;
  for (auto [d, size] : llvm::enumerate(dims))
    columns *= d == nest.front() ? 1 : size;
  if (rows <= kMostOfThread || countPieces(rows) < 2 || columns > device.sms * kThreads)
    return false;
  // Sums first, then what is made of them.
  ClusterSchedule schedule(op);
  unsigned number = nest.front() - op.getParallel();
  constexpr int64_t kMostBytes = 8 * sizeof(double); // of a thread's sum
  int64_t sums = llvm::count_if(schedule.getRoots(), [](const auto &root) { return static_cast<bool>(root.reduce); });
  if (sums * kThreads * kMostBytes > device.sharedBytesPerBlock)
    return false;
  return llvm::all_of(schedule.getRoots(), [&](const ClusterSchedule::Root &root) {
    bool isSum = static_cast<bool>(root.reduce);
    return root.dims.test(nest.front()) == isSum && (!isSum || root.stage[number] == 0);
  });
}

FailureOr<LaunchShape> emitColumns(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                   const Device &device) {
  return ColumnSkeleton(b, op, arguments, device).emit();
}

} // namespace spmd::kernel
