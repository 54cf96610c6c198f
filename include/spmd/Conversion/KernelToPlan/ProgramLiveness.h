//===- ProgramLiveness.h - When the buffers of a plan are alive -*- C++ -*-===//
#ifndef SPMD_CONVERSION_KERNELTOPLAN_PROGRAMLIVENESS_H
#define SPMD_CONVERSION_KERNELTOPLAN_PROGRAMLIVENESS_H

#include "dialects/Plan/Plan.h"
#include "spmd/Runtime/Core/MemoryPeak.h"
#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Transforms/Memory/HappensBefore.h"
#include "spmd/Transforms/Memory/Placement.h"

namespace spmd {

/// A transient buffer and when it is used.
struct TransientBuffer {
  plan::BufferOp op;
  memory::Uses uses;
  /// The commands that use it.
  std::vector<int32_t> commands;
  /// Written by the runtime before the first command; read by it after the last. Either way it shares no byte
  /// with another buffer: what is given to a step and what it gives lie in blocks of their own ([Note: io blocks]).
  bool isInput = false, isOutput = false;

  bool isBound() const { return isInput || isOutput; }
  bool isUsed() const { return isBound() || uses.firstUse() >= 0; }
};

/// The order of a program's commands, and the lives of its transient buffers.
class ProgramLiveness {
public:
  /// Computes both from the commands; offsets are not looked at.
  explicit ProgramLiveness(plan::ProgramOp program);

  llvm::ArrayRef<TransientBuffer> getBuffers() const { return buffers; }
  /// As the planner wants them, by position: command N is at N + 1. A bound buffer, which is not for it to place, has
  /// no bytes.
  llvm::ArrayRef<memory::BufferRequest> getRequests() const { return requests; }
  /// For each buffer those that may overlap it, in no order: unless all uses of one are complete before any use of the
  /// other. None of a bound one.
  std::vector<std::vector<unsigned>> findConflicts() const;
  /// The largest set of buffers of which no two may share bytes, each rounded up to the alignment of placement.
  runtime::MemoryPeak findPeak() const;

private:
  bool diesBefore(unsigned a, unsigned b) const { return buffers[a].uses.precede(buffers[b].uses, order); }

  llvm::SmallVector<TransientBuffer> buffers;
  std::vector<memory::BufferRequest> requests;
  std::vector<memory::StreamCommand> commands;
  unsigned numStreams;
  memory::HappensBefore order;
};

using runtime::kTransientAlignment;

} // namespace spmd

#endif // SPMD_CONVERSION_KERNELTOPLAN_PROGRAMLIVENESS_H
