//===- ProgramLiveness.cpp - When the buffers of a plan are alive ---------===//

#include "spmd/Conversion/KernelToPlan/ProgramLiveness.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spmd;
using memory::HappensBefore;

static constexpr unsigned kNumStreams = plan::getMaxEnumValForStream() + 1;

static unsigned getStreamNumber(plan::CommandOpInterface command) { return static_cast<unsigned>(command.getStream()); }

static std::vector<memory::StreamCommand> collectCommands(plan::ProgramOp program) {
  DenseMap<Value, int64_t> ids;
  std::vector<memory::StreamCommand> commands;
  for (auto command : program.getOps<plan::CommandOpInterface>()) {
    ids[command.getEvent()] = commands.size();
    Value awaited = command.getAwaitedEvent();
    commands.push_back({getStreamNumber(command), awaited ? ids.at(awaited) : -1});
  }
  return commands;
}

/// Every transient buffer with its uses, in the order of the buffers.
static SmallVector<TransientBuffer> collectUses(plan::ProgramOp program) {
  SmallVector<TransientBuffer> buffers;
  llvm::StringMap<unsigned> numbers;
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (!buffer.getState()) {
      numbers[buffer.getSymName()] = buffers.size();
      buffers.push_back({buffer, memory::Uses(kNumStreams), {}});
    }
  auto find = [&](plan::RefAttr ref) -> TransientBuffer * {
    auto it = numbers.find(ref.getBuffer().getValue());
    return it == numbers.end() ? nullptr : &buffers[it->second];
  };
  int64_t id = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto input = dyn_cast<plan::InputOp>(op)) {
      if (TransientBuffer *buffer = find(input.getRef()))
        buffer->isInput = true;
    } else if (auto output = dyn_cast<plan::OutputOp>(op)) {
      if (TransientBuffer *buffer = find(output.getRef()))
        buffer->isOutput = true;
    } else if (auto command = dyn_cast<plan::CommandOpInterface>(op)) {
      for (plan::RefAttr ref : command.getRefs())
        if (TransientBuffer *buffer = find(ref)) {
          buffer->uses.add(getStreamNumber(command), id);
          buffer->commands.push_back(static_cast<int32_t>(id));
        }
      ++id;
    }
  }
  return buffers;
}

ProgramLiveness::ProgramLiveness(plan::ProgramOp program)
    : buffers(collectUses(program)), commands(collectCommands(program)), numStreams(kNumStreams),
      order(commands, numStreams) {
  int64_t end = commands.size() + 1;
  for (TransientBuffer &buffer : buffers) {
    memory::BufferRequest request;
    request.bytes = buffer.op.getBytes();
    int64_t first = buffer.uses.firstUse(), last = buffer.uses.lastUse();
    request.first = buffer.isBound() || first < 0 ? 0 : first + 1;
    request.last = buffer.isBound() ? end : last + 1;
    request.past = buffer.isBound() ? end + 1 : buffer.uses.findPast(order) + 1;
    requests.push_back(request);
  }
}

runtime::MemoryPeak ProgramLiveness::findPeak() const {
  std::vector<runtime::ScheduledCommand> schedule;
  for (const memory::StreamCommand &command : commands)
    schedule.push_back({static_cast<int32_t>(command.stream), static_cast<int32_t>(command.awaited)});
  std::vector<runtime::BufferLife> lives;
  for (const TransientBuffer &buffer : buffers)
    lives.push_back({static_cast<int64_t>(llvm::alignTo(plan::BufferOp(buffer.op).getBytes(), kTransientAlignment)),
                     buffer.commands, buffer.isBound(), buffer.isBound()});
  return runtime::findMemoryPeak(schedule, runtime::HappensBefore(schedule, numStreams), lives);
}
