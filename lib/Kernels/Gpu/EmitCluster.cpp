//===- EmitCluster.cpp - the GPU kernel of a cluster ----------------------===//

#include "../SimplifyCluster.h"
#include "ClusterSkeleton.h"
#include "GpuEmitters.h"

using namespace mlir;

namespace spmd::kernel {

FailureOr<LaunchShape> emitGpuClusterBlocks(GpuBuilder &b, ClusterOp op, const GpuClusterArguments &arguments,
                                            const Device &device) {
  ArrayRef<int64_t> dims = op.getDims();
  SmallVector<unsigned> nest = getNestDims(op);
  // A thread alone runs short nests, and those that leave the last dim, which has the lanes, to the grid.
  constexpr int64_t kShort = 32;
  int64_t iterations = 1;
  for (unsigned d : nest)
    iterations *= dims[d];
  if (!nest.empty() && nest.back() + 1 == dims.size() && iterations > kShort)
    return emitGroups(b, op, arguments, device);
  if (hasFewColumns(op, device))
    return emitColumns(b, op, arguments, device);
  if (isTransposing(op))
    return emitTiles(b, op, arguments, device);
  return emitThreads(b, op, arguments, device);
}

static LogicalResult emitGpuCluster(GpuBuilder &b, ClusterOp op, const Device &device) {
  b.addMovedBytes(op.getBytesMoved());
  GpuClusterArguments arguments = {{}, {}, b.getBlock()};
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    arguments.operands.push_back(b.getPointer(i));
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    arguments.results.push_back(b.getResultPointer(i));
  auto shape = emitGpuClusterBlocks(b, *simplifyCluster(op), arguments, device);
  if (failed(shape))
    return failure();
  b.finish(shape->block, shape->grid);
  return success();
}

void addGpuClusterEmitters(GpuEmitters &emitters) { emitters.add(emitGpuCluster); }

} // namespace spmd::kernel
