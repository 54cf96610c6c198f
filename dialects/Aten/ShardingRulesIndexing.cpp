//===- ShardingRulesIndexing.cpp - Rules of rows by number ----------------===//

#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/RuleBuilder.h"

using namespace mlir;
using namespace spmd;
using namespace spmd::aten;

namespace {

/// Factors of batch, index and row dimensions.
struct RowFactors {
  Dims index, rows, table;

  /// `rows`: the tensor with batch, index and row dimensions.
  RowFactors(RuleBuilder &builder, RankedTensorType rowsType, int64_t indexRank, int64_t batchDims) {
    rows = builder.factors(rowsType.getShape());
    index = Dims(llvm::ArrayRef(rows).take_front(indexRank));
    table = Dims(llvm::ArrayRef(rows).take_front(batchDims));
    table.push_back(ShardingRule::kWhole);
    llvm::append_range(table, llvm::ArrayRef(rows).drop_front(indexRank));
  }
};

} // namespace

Rule spmd::aten::gatherRowsRule(Operation *op) {
  auto gather = cast<GatherRowsOp>(op);
  RuleBuilder builder(op);
  RowFactors factors(builder, gather.getResult().getType(), gather.getIndex().getType().getRank(),
                     gather.getBatchDims());
  builder.operand(0, factors.table).operand(1, factors.index).result(0, factors.rows);
  return builder.linearity(Linearity::multilinear, {0}).rule;
}

Rule spmd::aten::scatterRowsRule(Operation *op) {
  auto scatter = cast<ScatterRowsOp>(op);
  int64_t batchDims = scatter.getBatchDims(), indexRank = scatter.getIndex().getType().getRank();
  RuleBuilder builder(op);
  RowFactors factors(builder, scatter.getSrc().getType(), indexRank, batchDims);
  unsigned next = 0;
  bool ontoZeros = !scatter.getSelf();
  // Only sums of what ranks scatter are a scatter; what was there before would be added by each of them.
  if (!ontoZeros || scatter.getReduce() != "sum")
    for (int64_t dim = batchDims; dim < indexRank; ++dim)
      factors.index[dim] = factors.rows[dim] = ShardingRule::kWhole;
  if (scatter.getSelf())
    builder.operand(next++, factors.table);
  builder.operand(next, factors.index).operand(next + 1, factors.rows).result(0, factors.table);
  if (ontoZeros)
    builder.linearity(Linearity::multilinear, {next + 1});
  return builder.rule;
}

Rule spmd::aten::checkIndexRule(Operation *op) {
  auto check = cast<CheckIndexOp>(op);
  Rule rule = pointwiseRule(op);
  rule->fillsPadding = true;
  rule->neutral[0] = std::max<double>(0, static_cast<int64_t>(check.getLow()));
  return rule;
}
