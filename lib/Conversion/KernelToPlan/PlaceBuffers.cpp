//===- PlaceBuffers.cpp - Arena offsets for the buffers of a program ------===//
//
// [Note: io blocks] Behind the state come the inputs of the step and its hyper-parameters, side by side, then its
// outputs. Nothing else has these bytes, so that a device is given a step by one copy, whatever still runs, and its
// outputs stay until the next step. All other buffers share what is behind them.
//

#include "PlaceBuffers.h"
#include "mlir/IR/Builders.h"
#include "spmd/Conversion/KernelToPlan/ProgramLiveness.h"
#include "llvm/ADT/MapVector.h"
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
  memory::Placement placement =
      memory::placeBuffers(liveness.getRequests(), liveness.findConflicts(), kTransientAlignment, lowerBound);
  for (auto [buffer, offset] : llvm::zip_equal(buffers, placement.offsets))
    if (!buffer.isBound())
      plan::BufferOp(buffer.op).setOffset(stateBytes + blocks + offset);
  program.setStateBytes(stateBytes);
  program.setTransientBytes(blocks + placement.bytes);
  ::setPeak(program, liveness, peak);
}
