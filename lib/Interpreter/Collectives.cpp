//===- Collectives.cpp - communication between the ranks ------------------===//

#include "Collectives.h"
#include "spmd/Interpreter/RankRows.h"

using namespace mlir;

namespace spmd::interp {

static SmallVector<Tensor> members(const PerRank &values, ArrayRef<int64_t> group) {
  SmallVector<Tensor> result;
  for (int64_t rank : group)
    result.push_back(values[rank]);
  return result;
}

FailureOr<SmallVector<PerRank>> runCollective(CollectiveOpInterface op, ArrayRef<PerRank> operands, const Mesh &mesh,
                                              Precision precision) {
  bool roundEach = precision == Precision::program;
  SmallVector<PerRank> received(operands.size(), PerRank(mesh.numRanks()));
  auto integer = [&](llvm::StringRef name) { return op->getAttrOfType<IntegerAttr>(name).getInt(); };
  for (ArrayRef<int64_t> group : mesh.groups(op.getAxesAttr())) {
    switch (op.getCollectiveKind()) {
    case CollectiveKind::AllGather: {
      Tensor whole = joinRows(members(operands[0], group), integer("dim"), integer("pre"), integer("total"));
      for (int64_t rank : group)
        received[0][rank] = whole;
      break;
    }
    case CollectiveKind::ReduceScatter: {
      Tensor whole = combine(members(operands[0], group), op.getReduceKinds().front(), roundEach);
      for (auto [position, rank] : llvm::enumerate(group))
        received[0][rank] = takeRows(whole, integer("dim"), integer("pre"), integer("chunk"), position);
      break;
    }
    case CollectiveKind::AllReduce:
      for (auto [index, kind] : llvm::enumerate(op.getReduceKinds())) {
        Tensor whole = combine(members(operands[index], group), kind, roundEach);
        for (int64_t rank : group)
          received[index][rank] = whole;
      }
      break;
    }
  }
  return received;
}

} // namespace spmd::interp
