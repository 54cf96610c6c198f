//===- AtenCost.cpp - Floating-point operations ---------------------------===//

#include "dialects/Aten/AtenHeavy.h"
#include "dialects/Aten/AtenIndexing.h"
#include "dialects/Aten/AtenRules.h"
#include "dialects/Aten/AtenWindow.h"
#include "dialects/Aten/RuleBuilder.h"

#include <cmath>

using namespace mlir;
using namespace spmd::aten;

double spmd::aten::noFlops(Operation *) { return 0; }

double spmd::aten::resultElements(Operation *op, double each) {
  return op->getNumResults() ? each * typeOf(op->getResult(0)).getNumElements() : 0;
}

double spmd::aten::operandElements(Operation *op, double each) {
  return op->getNumOperands() ? each * typeOf(op->getOperand(0)).getNumElements() : 0;
}

double spmd::aten::contractionFlops(Operation *op) {
  Value left = op->getOperand(op->getNumOperands() - 2);
  return resultElements(op, 2.0 * typeOf(left).getShape().back());
}

double spmd::aten::groupedFlops(Operation *op) {
  auto outer = dyn_cast<GroupedOuterOp>(op);
  Value columns = op->getResult(0);
  if (outer)
    columns = outer.getOther();
  return operandElements(op, 2.0 * typeOf(columns).getShape().back());
}

double spmd::aten::convolutionFlops(Operation *op) {
  auto backward = dyn_cast<ConvolutionBackwardOp>(op);
  auto forward = dyn_cast<ConvolutionOp>(op);
  RankedTensorType weight = typeOf(backward ? backward.getWeight() : forward.getWeight());
  RankedTensorType input = typeOf(backward ? backward.getInput() : forward.getInput());
  RankedTensorType output = typeOf(backward ? backward.getGradOutput() : forward.getResult());
  // Each window meets the weight of its group: of the input's windows, for a transposed one of the output's.
  bool transposed = backward ? backward.getTransposed() : forward.getTransposed();
  RankedTensorType windows = transposed ? input : output;
  double perWindow = static_cast<double>(weight.getNumElements()) / weight.getDimSize(0);
  double products =
      backward ? static_cast<bool>(backward.getGradInput()) + static_cast<bool>(backward.getGradWeight()) : 1;
  return 2.0 * windows.getNumElements() * perWindow * products;
}

double spmd::aten::attentionFlops(Operation *op) {
  auto backward = dyn_cast<SdpaBackwardOp>(op);
  Value query = backward ? backward.getQuery() : cast<SdpaOp>(op).getQuery();
  Value value = backward ? backward.getValue() : cast<SdpaOp>(op).getValue();
  ArrayRef<int64_t> q = typeOf(query).getShape();
  ArrayRef<int64_t> v = typeOf(value).getShape();
  double pairs = static_cast<double>(q[0]) * q[1] * q[2] * v[2];
  double perPair = backward ? 2.0 * (3 * q[3] + 2 * v[3]) : 2.0 * (q[3] + v[3]);
  bool causal = cast<BoolAttr>(op->getAttr("is_causal")).getValue();
  return pairs * perPair * (causal ? 0.5 : 1);
}

double spmd::aten::scatterFlops(Operation *op) {
  auto scatter = cast<ScatterRowsOp>(op);
  return scatter.getReduce() == "set" ? 0 : static_cast<double>(scatter.getSrc().getType().getNumElements());
}

double spmd::aten::sortFlops(Operation *op) {
  auto sort = cast<SortStableOp>(op);
  RankedTensorType type = sort.getSelf().getType();
  double rows = type.getRank() ? static_cast<double>(type.getDimSize(sort.getDim())) : 1;
  return static_cast<double>(type.getNumElements()) * std::log2(std::max(rows, 2.0));
}
