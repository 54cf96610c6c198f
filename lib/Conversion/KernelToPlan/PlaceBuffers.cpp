//===- PlaceBuffers.cpp - Arena offsets for the buffers of a program ------===//

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

void spmd::placeBuffers(plan::ProgramOp program) {
  eraseUnused(program);
  ProgramLiveness liveness(program);
  runtime::MemoryPeak peak = liveness.findPeak();
  memory::Placement placement = memory::placeBuffers(
      liveness.getRequests(), [&](unsigned a, unsigned b) { return liveness.mayOverlap(a, b); }, kTransientAlignment,
      peak.bytes);

  int64_t stateBytes = placeState(program);
  for (auto [buffer, offset] : llvm::zip_equal(liveness.getBuffers(), placement.offsets))
    plan::BufferOp(buffer.op).setOffset(stateBytes + offset);

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

  program.setStateBytes(stateBytes);
  program.setTransientBytes(placement.bytes);
  program.setLowerBound(peak.bytes);
  program.setPeakAttr(builder.getDictionaryAttr(classesAtPeak));
}
