//===- GroupedOps.cpp - kernel.grouped_gemm, kernel.grouped_outer ---------===//

#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace spmd::kernel;

/// One type of numbers, and of groups an integer.
static LogicalResult verifyTypes(Operation *op) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element))
    return op->emitOpError("works on f32, f64, bf16 or f16, got ") << element;
  for (Value operand : op->getOperands().take_front(2))
    if (getElementTypeOrSelf(operand.getType()) != element)
      return op->emitOpError("has operands of other types than its result: ")
             << operand.getType() << " and " << op->getResult(0).getType();
  Type groups = getElementTypeOrSelf(op->getOperand(2).getType());
  if (!groups.isInteger(64) && !groups.isInteger(32))
    return op->emitOpError("groups must be i32 or i64, got ") << op->getOperand(2).getType();
  return success();
}

static LogicalResult verifyElements(Operation *op, StringRef name, Value value, int64_t elements) {
  if (getNumElements(value.getType()) != elements)
    return op->emitOpError() << name << ' ' << value.getType() << " must have " << elements << " elements";
  return success();
}

//===----------------------------------------------------------------------===//
// grouped_gemm
//===----------------------------------------------------------------------===//

LogicalResult GroupedGemmOp::verify() {
  int64_t m = getM(), n = getN(), k = getK(), groups = getNumGroups();
  if (m <= 0 || n <= 0 || k <= 0 || groups <= 0)
    return emitOpError("sizes must be positive, got m ") << m << " n " << n << " k " << k << " groups " << groups;
  if (failed(verifyTypes(*this)))
    return failure();
  int64_t offset = getBOffset(), ld = getLdb(), stride = getBStride();
  int64_t rows = getTransB() ? n : k, columns = getTransB() ? k : n;
  if (ld < columns)
    return emitOpError("leading dimension of b is ") << ld << ", less than a row of " << columns;
  int64_t last = offset + (groups - 1) * stride + (rows - 1) * ld + columns - 1;
  if (offset < 0 || stride < 0 || last >= getNumElements(getB().getType()))
    return emitOpError("view of b ends at element ") << last << ", outside of " << getB().getType();
  if (failed(verifyElements(*this, "a", getA(), m * k)) || failed(verifyElements(*this, "groups", getGroups(), m)))
    return failure();
  return verifyElements(*this, "result", getResult(), m * n);
}

int64_t GroupedGemmOp::getParallelIterations() { return getM(); }
int64_t GroupedGemmOp::getGrain() { return getGrainFor(getM(), getFlops() / 8 / static_cast<double>(getM())); }
double GroupedGemmOp::getFlops() { return 2.0 * getM() * getN() * getK(); }
int64_t GroupedGemmOp::getBytesMoved() { return getTensorBytes(*this); }
bool GroupedGemmOp::canAlias(unsigned, unsigned) { return false; }

//===----------------------------------------------------------------------===//
// grouped_outer
//===----------------------------------------------------------------------===//

LogicalResult GroupedOuterOp::verify() {
  int64_t rows = getRows(), m = getM(), n = getN(), groups = getNumGroups();
  if (rows <= 0 || m <= 0 || n <= 0 || groups <= 0)
    return emitOpError("sizes must be positive, got rows ") << rows << " m " << m << " n " << n << " groups " << groups;
  if (failed(verifyTypes(*this)) || failed(verifyElements(*this, "a", getA(), rows * m)) ||
      failed(verifyElements(*this, "b", getB(), rows * n)) || failed(verifyElements(*this, "groups", getGroups(), rows)))
    return failure();
  return verifyElements(*this, "result", getResult(), groups * m * n);
}

int64_t GroupedOuterOp::getParallelIterations() { return static_cast<int64_t>(getNumGroups() * getM()); }
int64_t GroupedOuterOp::getGrain() {
  // Every iteration goes over the groups of all rows, and over the rows of its own.
  double products = getFlops() / 8 / static_cast<double>(getParallelIterations());
  return getGrainFor(getParallelIterations(), products + static_cast<double>(getRows()));
}
double GroupedOuterOp::getFlops() { return 2.0 * getRows() * getM() * getN(); }
int64_t GroupedOuterOp::getBytesMoved() { return getTensorBytes(*this); }
bool GroupedOuterOp::canAlias(unsigned, unsigned) { return false; }
