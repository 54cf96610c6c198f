//===- ProgramLiveness.cpp - When the buffers of a plan are alive ---------===//

#include "spmd/Conversion/KernelToPlan/ProgramLiveness.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <utility>

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
  for (TransientBuffer &buffer : buffers) {
    memory::BufferRequest request;
    if (!buffer.isBound()) {
      request.bytes = buffer.op.getBytes();
      request.first = buffer.uses.firstUse() + 1;
      request.last = buffer.uses.lastUse() + 1;
      request.alignment = buffer.op.getAlignment().value_or(1);
    }
    requests.push_back(request);
  }
}

// [Note: conflicts] Asking of every pair whether it may overlap takes a time that grows with the square of a step's
// length. A buffer that begins behind another one overlaps it only if, on some stream, it is first used before the
// other's past there; of these there are few.
std::vector<std::vector<unsigned>> ProgramLiveness::findConflicts() const {
  unsigned size = buffers.size();
  std::vector<std::vector<unsigned>> conflicts(size);
  std::vector<std::vector<std::pair<int64_t, unsigned>>> begins(numStreams);
  for (unsigned n = 0; n != size; ++n)
    for (unsigned stream = 0; stream != numStreams && !buffers[n].isBound(); ++stream)
      if (int64_t first = buffers[n].uses.firstUse(stream); first >= 0)
        begins[stream].emplace_back(first, n);
  for (std::vector<std::pair<int64_t, unsigned>> &own : begins)
    llvm::sort(own);
  std::vector<unsigned> askedBy(size, size);
  for (unsigned n = 0; n != size; ++n) {
    if (buffers[n].isBound())
      continue;
    std::pair<int64_t, unsigned> begin(buffers[n].uses.firstUse(), n);
    for (unsigned stream = 0; stream != numStreams; ++stream) {
      int64_t past = buffers[n].uses.findPast(stream, order);
      auto it = llvm::lower_bound(begins[stream], std::pair(begin.first, 0u));
      for (; it != begins[stream].end() && it->first < past; ++it) {
        unsigned other = it->second;
        if (std::pair(buffers[other].uses.firstUse(), other) <= begin || std::exchange(askedBy[other], n) == n)
          continue;
        if (!diesBefore(n, other) && !diesBefore(other, n)) {
          conflicts[n].push_back(other);
          conflicts[other].push_back(n);
        }
      }
    }
  }
  return conflicts;
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
