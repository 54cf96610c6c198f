//===- PlaceBuffers.cpp - Arena offsets for the buffers of a program ------===//

#include "PlaceBuffers.h"
#include "mlir/IR/Builders.h"
#include "spmd/Transforms/Memory/HappensBefore.h"
#include "spmd/Transforms/Memory/Placement.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spmd;
using memory::HappensBefore;
using memory::Uses;

namespace {

/// Vector registers and cache lines; flat shards start on a multiple of 128 elements of 4 bytes in the flat buffer, and
/// so does their copy in the arena.
constexpr int64_t kAlignment = 64;
constexpr int64_t kStateAlignment = 512;

/// A transient buffer and when it is used.
struct Transient {
  plan::BufferOp op;
  Uses uses;
  /// Written by the runtime before the first command; read by it after the last.
  bool fromBegin = false, toEnd = false;

  bool isUsed() const { return fromBegin || toEnd || uses.firstUse() >= 0; }
  bool diesBefore(const Transient &other, const HappensBefore &order) const {
    return !toEnd && !other.fromBegin && uses.precede(other.uses, order);
  }
};

int64_t placeState(plan::ProgramOp program) {
  int64_t end = 0;
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    if (!buffer.getState())
      continue;
    int64_t bytes = buffer.getBytes();
    int64_t offset = llvm::alignTo(end, bytes >= kStateAlignment ? kStateAlignment : kAlignment);
    buffer.setOffset(offset);
    end = offset + bytes;
  }
  return llvm::alignTo(end, kStateAlignment);
}

/// The happens-before order of the program's commands.
HappensBefore computeOrder(plan::ProgramOp program, unsigned numStreams,
                           llvm::function_ref<unsigned(StringRef)> getStream) {
  DenseMap<Value, int64_t> ids;
  std::vector<memory::StreamCommand> commands;
  for (auto command : program.getOps<plan::CommandOpInterface>()) {
    ids[command.getEvent()] = commands.size();
    Value awaited = command.getAwaitedEvent();
    commands.push_back({getStream(command.getStream()), awaited ? ids.at(awaited) : -1});
  }
  return HappensBefore(commands, numStreams);
}

/// Every transient buffer with its uses, in program order.
llvm::MapVector<StringRef, Transient> collectUses(plan::ProgramOp program, unsigned numStreams,
                                                  llvm::function_ref<unsigned(StringRef)> getStream) {
  llvm::MapVector<StringRef, Transient> transients;
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (!buffer.getState())
      transients.insert({buffer.getSymName(), Transient{buffer, Uses(numStreams)}});
  auto find = [&](plan::RefAttr ref) -> Transient * {
    auto it = transients.find(ref.getBuffer().getValue());
    return it == transients.end() ? nullptr : &it->second;
  };
  int64_t id = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto input = dyn_cast<plan::InputOp>(op)) {
      if (Transient *transient = find(input.getRef()))
        transient->fromBegin = true;
    } else if (auto output = dyn_cast<plan::OutputOp>(op)) {
      if (Transient *transient = find(output.getRef()))
        transient->toEnd = true;
    } else if (auto command = dyn_cast<plan::CommandOpInterface>(op)) {
      for (plan::RefAttr ref : command.getRefs())
        if (Transient *transient = find(ref))
          transient->uses.add(getStream(command.getStream()), id);
      ++id;
    }
  }
  return transients;
}

} // namespace

void spmd::placeBuffers(plan::ProgramOp program) {
  SmallVector<StringRef> streams = llvm::to_vector(program.getStreams().getAsValueRange<StringAttr>());
  auto getStream = [&](StringRef name) -> unsigned { return llvm::find(streams, name) - streams.begin(); };

  HappensBefore order = computeOrder(program, streams.size(), getStream);
  SmallVector<Transient> live;
  for (auto &entry : collectUses(program, streams.size(), getStream)) {
    if (entry.second.isUsed())
      live.push_back(std::move(entry.second));
    else
      entry.second.op.erase();
  }

  int64_t last = llvm::range_size(program.getOps<plan::CommandOpInterface>()) + 1;
  std::vector<memory::BufferRequest> requests;
  for (const Transient &transient : live) {
    memory::BufferRequest request;
    request.bytes = transient.op->getAttrOfType<IntegerAttr>("bytes").getInt();
    // Position 0 is before the first command, `last` after the last.
    bool used = transient.uses.firstUse() >= 0;
    request.first = transient.fromBegin || !used ? 0 : transient.uses.firstUse() + 1;
    request.last = transient.toEnd || !used ? last : transient.uses.lastUse() + 1;
    if (!used && !transient.toEnd)
      request.last = 0;
    requests.push_back(request);
  }
  auto conflict = [&](unsigned i, unsigned j) {
    return !live[i].diesBefore(live[j], order) && !live[j].diesBefore(live[i], order);
  };
  memory::Placement placement = memory::placeBuffers(requests, conflict, kAlignment);
  memory::Peak peak = memory::computePeak(requests, kAlignment);

  int64_t stateBytes = placeState(program);
  llvm::MapVector<plan::BufferClass, int64_t> peakClasses;
  for (auto [index, transient] : llvm::enumerate(live)) {
    transient.op.setOffset(stateBytes + placement.offsets[index]);
    if (requests[index].first <= peak.position && peak.position <= requests[index].last)
      peakClasses[transient.op.getBufferClass()] += llvm::alignTo(requests[index].bytes, kAlignment);
  }
  Builder builder(program.getContext());
  SmallVector<NamedAttribute> classes;
  for (auto [bufferClass, bytes] : peakClasses)
    classes.push_back(builder.getNamedAttr(stringifyBufferClass(bufferClass), builder.getI64IntegerAttr(bytes)));
  program.setStateBytes(stateBytes);
  program.setTransientBytes(placement.bytes);
  program.setLowerBound(peak.bytes);
  program.setPeakAttr(builder.getDictionaryAttr(classes));
}
