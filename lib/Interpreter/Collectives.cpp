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
    if (op.getCollectiveKind() == CollectiveKind::all_gather) {
      Tensor whole = joinRows(members(operands[0], group), integer("dim"), integer("pre"), integer("total"));
      for (int64_t rank : group)
        received[0][rank] = whole;
    } else if (op.getCollectiveKind() == CollectiveKind::reduce_scatter) {
      auto kind = op->getAttrOfType<ReduceKindAttr>("kind").getValue();
      Tensor whole = combine(members(operands[0], group), kind, roundEach);
      for (auto [position, rank] : llvm::enumerate(group))
        received[0][rank] = takeRows(whole, integer("dim"), integer("pre"), integer("chunk"), position);
    } else if (op.getCollectiveName() == "all_reduce") {
      auto kinds = op->getAttrOfType<ArrayAttr>("kinds");
      for (size_t i = 0; i < operands.size(); ++i) {
        auto kind = cast<ReduceKindAttr>(kinds[i]).getValue();
        Tensor whole = combine(members(operands[i], group), kind, roundEach);
        for (int64_t rank : group)
          received[i][rank] = whole;
      }
    } else {
      return op->emitError() << "the interpreter does not know the collective " << op.getCollectiveName();
    }
  }
  return received;
}

} // namespace spmd::interp
