//===- ProgramLiveness.cpp - When the buffers of a plan are alive ---------===//

#include "spmd/Conversion/KernelToPlan/ProgramLiveness.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace spmd;
using memory::HappensBefore;

static SmallVector<StringRef> getStreams(plan::ProgramOp program) {
  return llvm::to_vector(program.getStreams().getAsValueRange<StringAttr>());
}

static unsigned getStreamNumber(ArrayRef<StringRef> streams, StringRef name) {
  return llvm::find(streams, name) - streams.begin();
}

static HappensBefore computeOrder(plan::ProgramOp program) {
  SmallVector<StringRef> streams = getStreams(program);
  DenseMap<Value, int64_t> ids;
  std::vector<memory::StreamCommand> commands;
  for (auto command : program.getOps<plan::CommandOpInterface>()) {
    ids[command.getEvent()] = commands.size();
    Value awaited = command.getAwaitedEvent();
    commands.push_back({getStreamNumber(streams, command.getStream()), awaited ? ids.at(awaited) : -1});
  }
  return HappensBefore(commands, streams.size());
}

/// Every transient buffer with its uses, in the order of the buffers.
static SmallVector<TransientBuffer> collectUses(plan::ProgramOp program) {
  SmallVector<StringRef> streams = getStreams(program);
  SmallVector<TransientBuffer> buffers;
  llvm::StringMap<unsigned> numbers;
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (!buffer.getState()) {
      numbers[buffer.getSymName()] = buffers.size();
      buffers.push_back({buffer, memory::Uses(streams.size())});
    }
  auto find = [&](plan::RefAttr ref) -> TransientBuffer * {
    auto it = numbers.find(ref.getBuffer().getValue());
    return it == numbers.end() ? nullptr : &buffers[it->second];
  };
  int64_t id = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto input = dyn_cast<plan::InputOp>(op)) {
      if (TransientBuffer *buffer = find(input.getRef()))
        buffer->fromBegin = true;
    } else if (auto output = dyn_cast<plan::OutputOp>(op)) {
      if (TransientBuffer *buffer = find(output.getRef()))
        buffer->toEnd = true;
    } else if (auto command = dyn_cast<plan::CommandOpInterface>(op)) {
      for (plan::RefAttr ref : command.getRefs())
        if (TransientBuffer *buffer = find(ref))
          buffer->uses.add(getStreamNumber(streams, command.getStream()), id);
      ++id;
    }
  }
  return buffers;
}

ProgramLiveness::ProgramLiveness(plan::ProgramOp program)
    : buffers(collectUses(program)), order(computeOrder(program)) {
  int64_t end = llvm::range_size(program.getOps<plan::CommandOpInterface>()) + 1;
  for (TransientBuffer &buffer : buffers) {
    memory::BufferRequest request;
    request.bytes = buffer.op.getBytes();
    int64_t first = buffer.uses.firstUse(), last = buffer.uses.lastUse();
    request.first = buffer.fromBegin || first < 0 ? 0 : first + 1;
    request.last = buffer.toEnd ? end : last + 1;
    requests.push_back(request);
  }
}

memory::Peak ProgramLiveness::getPeak() const { return memory::computePeak(requests, kTransientAlignment); }

SmallVector<plan::BufferOp> ProgramLiveness::getAliveAtPeak() const {
  int64_t position = getPeak().position;
  SmallVector<plan::BufferOp> alive;
  for (auto [buffer, request] : llvm::zip_equal(buffers, requests))
    if (buffer.isUsed() && request.first <= position && position <= request.last)
      alive.push_back(buffer.op);
  llvm::sort(alive, [](plan::BufferOp a, plan::BufferOp b) {
    return a.getBytes() != b.getBytes() ? a.getBytes() > b.getBytes() : a->isBeforeInBlock(b);
  });
  return alive;
}
