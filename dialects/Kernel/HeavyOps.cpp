//===- HeavyOps.cpp - kernel.gemm -----------------------------------------===//

#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"

using namespace mlir;
using namespace spmd::kernel;

//===----------------------------------------------------------------------===//
// gemm
//===----------------------------------------------------------------------===//

LogicalResult GemmOp::verify() {
  int64_t m = getM(), n = getN(), k = getK(), batch = getBatch();
  if (m <= 0 || n <= 0 || k <= 0 || batch <= 0)
    return emitOpError("sizes must be positive, got m ") << m << " n " << n << " k " << k << " batch " << batch;
  Type element = getElementTypeOrSelf(getResult().getType());
  if (!isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element))
    return emitOpError("works on f32, f64, bf16 or f16, got ") << element;
  for (Type type : llvm::concat<const Type>(getOperandTypes(), getResultTypes()))
    if (getElementTypeOrSelf(type) != element)
      return emitOpError("has operands of other types than its result: ") << type << " and " << getResult().getType();
  auto checkView = [&](StringRef name, Type type, int64_t rows, int64_t columns, int64_t offset, int64_t ld,
                       int64_t stride) -> LogicalResult {
    if (ld < columns)
      return emitOpError("leading dimension of ") << name << " is " << ld << ", less than a row of " << columns;
    int64_t last = offset + (batch - 1) * stride + (rows - 1) * ld + columns - 1;
    if (offset < 0 || stride < 0 || last >= getNumElements(type))
      return emitOpError("view of ") << name << " ends at element " << last << ", outside of " << type;
    return success();
  };
  if (failed(checkView("a", getA().getType(), getTransA() ? k : m, getTransA() ? m : k, getAOffset(), getLda(),
                       getAStride())) ||
      failed(checkView("b", getB().getType(), getTransB() ? n : k, getTransB() ? k : n, getBOffset(), getLdb(),
                       getBStride())))
    return failure();
  auto checkElements = [&](StringRef name, Value value, int64_t elements) -> LogicalResult {
    if (value && getNumElements(value.getType()) != elements)
      return emitOpError() << name << ' ' << value.getType() << " must have " << elements << " elements";
    return success();
  };
  int64_t ldc = getResultLd();
  if (ldc < n)
    return emitOpError("leading dimension of the result is ") << ldc << ", less than a row of " << n;
  if (failed(checkElements("result", getResult(), batch * m * ldc)) || failed(checkElements("bias", getBias(), n)) ||
      failed(checkElements("residual", getResidual(), batch * m * ldc)) ||
      failed(checkElements("pre_activation", getPreActivation(), batch * m * ldc)) ||
      failed(checkElements("pre_activation", getSavedPreActivation(), batch * m * ldc)))
    return failure();
  if (getPreActivation() && !getActivation())
    return emitOpError("has a result pre_activation, but no activation");
  if (isGeluTanhBackward() != static_cast<bool>(getSavedPreActivation()))
    return emitOpError("has one of gelu_tanh_backward and an operand pre_activation without the other");
  if (isGeluTanhBackward() && (getBias() || getResidual() || getPreActivation()))
    return emitOpError("has gelu_tanh_backward, which is without bias, residual and a result pre_activation");
  if (getBiasGradientOf().has_value() != static_cast<bool>(getBiasGradient()))
    return emitOpError("has one of bias_gradient and bias_gradient_of without the other");
  if (!getBiasGradient())
    return success();
  bool isOfResult = *getBiasGradientOf() == GemmOperand::C;
  if (batch != 1 || (isOfResult ? !isGeluTanhBackward() : getBias() || getActivation()))
    return emitOpError("has a bias_gradient, which is for a batch of 1, of a and b without bias and activation, of c "
                       "with gelu_tanh_backward");
  return checkElements("bias_gradient", getBiasGradient(), *getBiasGradientOf() == GemmOperand::A ? m : n);
}

ParseResult spmd::kernel::parseSideResult(OpAsmParser &parser, Type &preActivation, Type &biasGradient) {
  if (failed(parser.parseOptionalComma()))
    return success();
  if (succeeded(parser.parseOptionalKeyword("pre_activation")))
    return parser.parseType(preActivation);
  return failure(parser.parseKeyword("bias_gradient") || parser.parseType(biasGradient));
}

void spmd::kernel::printSideResult(OpAsmPrinter &p, Operation *, Type preActivation, Type biasGradient) {
  if (preActivation)
    p << ", pre_activation " << preActivation;
  if (biasGradient)
    p << ", bias_gradient " << biasGradient;
}

void GemmOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getPreActivation())
    setName(getPreActivation(), "pre_activation");
  if (getBiasGradient())
    setName(getBiasGradient(), "bias_gradient");
}

StringAttr GemmOp::getSymbolAttr() { return {}; }
void GemmOp::setSymbolAttr(StringAttr) {}
int64_t GemmOp::getParallelIterations() { return 1; }
int64_t GemmOp::getGrain() { return 1; }
double GemmOp::getFlops() {
  double sums = 0;
  if (getBiasGradient())
    sums = static_cast<double>(getNumElements(getBiasGradient().getType())) *
           (*getBiasGradientOf() == GemmOperand::C ? getM() : getK());
  return 2.0 * getBatch() * getM() * getN() * getK() + sums;
}
int64_t GemmOp::getBytesMoved() { return getTensorBytes(*this); }
bool GemmOp::canAlias(unsigned operand, unsigned result) {
  Value residual = getResidual();
  return residual && operand == 2 && result == 0 && residual != getA() && residual != getB() && residual != getBias();
}
