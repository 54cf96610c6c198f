//===- PlaceBuffers.cpp - Arena offsets for the buffers of a program ------===//
//
// [Note: io blocks] Behind the state come the inputs of the step and its hyper-parameters, side by side, then its
// outputs. Nothing else has these bytes, so that a device is given a step by one copy, whatever still runs, and its
// outputs stay until the next step. All other buffers share what is behind them.
//
// [Note: buffers of iterations] Where a few iterations of a loop stand for all, a buffer that each has for itself must
// lie at the same bytes in all of them: these are placed as one, which may overlap what none of them may. Where two of
// one kind are alive together that cannot be, and all iterations are planned one by one.
//

#include "PlaceBuffers.h"
#include "Iterations/PlanIterations.h"
#include "dialects/Spmd/Iterations.h"
#include "mlir/IR/Builders.h"
#include "spmd/Conversion/KernelToPlan/ProgramLiveness.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spmd;

/// Flat shards start at multiples of 128 elements of their flat buffer, and as well aligned in the arena.
static constexpr int64_t kStateAlignment = 512;

static int64_t placeState(plan::ProgramOp program) {
  int64_t end = 0;
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    if (!buffer.getState())
      continue;
    int64_t bytes = buffer.getBytes();
    int64_t offset = llvm::alignTo(end, bytes >= kStateAlignment ? kStateAlignment : kTransientAlignment);
    buffer.setOffset(offset);
    end = offset + bytes;
  }
  return llvm::alignTo(end, kStateAlignment);
}

static void eraseUnused(plan::ProgramOp program) {
  ProgramLiveness liveness(program);
  for (const TransientBuffer &buffer : liveness.getBuffers())
    if (!buffer.isUsed())
      plan::BufferOp(buffer.op).erase();
}

static void setPeak(plan::ProgramOp program, const ProgramLiveness &liveness, const runtime::MemoryPeak &peak) {
  llvm::MapVector<plan::BufferClass, int64_t> classes;
  for (size_t number : peak.alive) {
    plan::BufferOp buffer = liveness.getBuffers()[number].op;
    classes[buffer.getBufferClass()] += llvm::alignTo(buffer.getBytes(), kTransientAlignment);
  }
  Builder builder(program.getContext());
  SmallVector<NamedAttribute> classesAtPeak;
  for (auto [bufferClass, bytes] : classes)
    classesAtPeak.push_back(
        builder.getNamedAttr(plan::stringifyBufferClass(bufferClass), builder.getI64IntegerAttr(bytes)));
  program.setLowerBound(peak.bytes);
  program.setPeakAttr(builder.getDictionaryAttr(classesAtPeak));
}

void spmd::setPeak(plan::ProgramOp program) {
  ProgramLiveness liveness(program);
  ::setPeak(program, liveness, liveness.findPeak());
}

namespace {
/// What is placed: buffers, or those of all iterations as one.
class PlacedTogether {
public:
  PlacedTogether(plan::ProgramOp program, const ProgramLiveness &liveness);

  memory::Placement place(int64_t lowerBound) const {
    return memory::placeBuffers(requests, conflicts, kTransientAlignment, lowerBound);
  }
  unsigned of(unsigned buffer) const { return classes[buffer]; }

private:
  void join(const FoundIteration &iteration, const ProgramLiveness &liveness);

  llvm::IntEqClasses classes; ///< by buffer
  std::vector<memory::BufferRequest> requests;
  std::vector<std::vector<unsigned>> conflicts;
};
} // namespace

PlacedTogether::PlacedTogether(plan::ProgramOp program, const ProgramLiveness &liveness)
    : requests(liveness.getRequests()), conflicts(liveness.findConflicts()) {
  // Each by itself, unless iterations are found.
  classes.grow(requests.size());
  classes.compress();
  if (!program->getParentOfType<ModuleOp>()->hasAttr(kIterationsAttr))
    return;
  std::string unused; // spmd-mark-iteration says why there are none
  if (std::optional<FoundIteration> iteration = findIteration(program, unused))
    join(*iteration, liveness);
}

void PlacedTogether::join(const FoundIteration &iteration, const ProgramLiveness &liveness) {
  DenseMap<Operation *, unsigned> numbers;
  for (auto [number, buffer] : llvm::enumerate(liveness.getBuffers()))
    numbers[buffer.op] = number;
  llvm::IntEqClasses joined(requests.size());
  for (auto [buffer, next] : iteration.later)
    joined.join(numbers.at(buffer), numbers.at(next));
  joined.compress();
  for (unsigned n = 0; n != requests.size(); ++n)
    if (llvm::any_of(conflicts[n], [&](unsigned other) { return joined[n] == joined[other]; }))
      return;

  std::vector<memory::BufferRequest> requestsOf(joined.getNumClasses());
  std::vector<llvm::SetVector<unsigned>> conflictsOf(joined.getNumClasses());
  for (unsigned n = 0; n != requests.size(); ++n) {
    // The last of them is alive when others are as they always are.
    if (memory::BufferRequest &request = requestsOf[joined[n]]; requests[n].last >= request.last)
      request = requests[n];
    for (unsigned other : conflicts[n])
      conflictsOf[joined[n]].insert(joined[other]);
  }
  requests = std::move(requestsOf);
  conflicts.clear();
  for (llvm::SetVector<unsigned> &others : conflictsOf)
    conflicts.emplace_back(others.begin(), others.end());
  classes = std::move(joined);
}

void spmd::placeBuffers(plan::ProgramOp program) {
  eraseUnused(program);
  ProgramLiveness liveness(program);
  runtime::MemoryPeak peak = liveness.findPeak();
  ArrayRef<TransientBuffer> buffers = liveness.getBuffers();
  int64_t stateBytes = placeState(program), blocks = 0;
  auto placeBlock = [&](auto isInBlock) {
    for (const TransientBuffer &buffer : buffers)
      if (plan::BufferOp op = buffer.op; isInBlock(buffer)) {
        op.setOffset(stateBytes + blocks);
        blocks = llvm::alignTo(blocks + static_cast<int64_t>(op.getBytes()), kTransientAlignment);
      }
  };
  placeBlock([](const TransientBuffer &buffer) { return buffer.isInput; });
  placeBlock([](const TransientBuffer &buffer) { return buffer.isOutput && !buffer.isInput; });

  int64_t lowerBound = peak.bytes - blocks, alignment = kTransientAlignment;
  for (const memory::BufferRequest &request : liveness.getRequests())
    alignment = std::max(alignment, request.alignment);
  blocks = llvm::alignTo(blocks, alignment);
  PlacedTogether together(program, liveness);
  memory::Placement placement = together.place(lowerBound);
  for (auto [number, buffer] : llvm::enumerate(buffers))
    if (!buffer.isBound())
      plan::BufferOp(buffer.op).setOffset(stateBytes + blocks + placement.offsets[together.of(number)]);
  program.setStateBytes(stateBytes);
  program.setTransientBytes(blocks + placement.bytes);
  ::setPeak(program, liveness, peak);
}
