//===- Body.cpp - what cluster-like ops share -----------------------------===//

#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/ArgumentType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace spmd::kernel {

ParseResult parseBoundOperands(OpAsmParser &parser, StringRef keyword, bool withMaps, BoundOperands &out) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    OpAsmParser::Argument &argument = out.arguments.emplace_back();
    if (parser.parseArgument(argument) || parser.parseEqual() || parser.parseOperand(out.operands.emplace_back()))
      return failure();
    if (withMaps && (parser.parseKeyword("at") || parser.parseAffineMap(out.maps.emplace_back())))
      return failure();
    if (withMaps && succeeded(parser.parseOptionalKeyword("guarded")))
      out.guarded.push_back(out.operands.size() - 1);
    if (parser.parseColonType(out.types.emplace_back()))
      return failure();
    auto tensor = dyn_cast<RankedTensorType>(out.types.back());
    if (!tensor)
      return parser.emitError(loc, "expected a ranked tensor, got ") << out.types.back();
    argument.type = getArgumentType(tensor);
    return success();
  });
}

DenseMap<Value, llvm::SmallBitVector> getVaryingDims(Block &body, unsigned numDims,
                                                     ArrayRef<llvm::SmallBitVector> argumentDims) {
  DenseMap<Value, llvm::SmallBitVector> varying;
  for (auto [argument, dims] : llvm::zip_equal(body.getArguments(), argumentDims))
    varying[argument] = dims;
  for (Operation &op : body) {
    llvm::SmallBitVector dims(numDims);
    for (Value operand : op.getOperands())
      if (auto it = varying.find(operand); it != varying.end())
        dims |= it->second;
    if (auto index = dyn_cast<IndexOp>(op)) {
      if (index.getDim() < numDims)
        dims.set(index.getDim());
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      for (int64_t d : reduce.getOver())
        if (d >= 0 && d < static_cast<int64_t>(numDims))
          dims.reset(d);
    }
    for (Value result : op.getResults())
      varying[result] = dims;
  }
  return varying;
}

int64_t countBodyFlops(Block &body) {
  int64_t flops = 0;
  for (Operation &op : body)
    if (isa<UniformOp>(op))
      flops += 60;
    else if (!isa<arith::ConstantOp, IndexOp, CoordOp, SegmentConstantOp, YieldOp>(op))
      ++flops;
  return flops;
}

LogicalResult verifyBody(Operation *op, Block &body, TypeRange inputs, TypeRange outputs) {
  if (body.getNumArguments() != inputs.size())
    return op->emitOpError("has ") << body.getNumArguments() << " body arguments for " << inputs.size() << " operands";
  for (auto [i, argument] : llvm::enumerate(body.getArguments()))
    if (argument.getType() != getArgumentType(inputs[i]))
      return op->emitOpError("body argument ")
             << i << " is " << argument.getType() << " but the operand is " << inputs[i];
  for (Operation &inner : body) {
    bool known = isa_and_present<arith::ArithDialect, math::MathDialect, KernelDialect>(inner.getDialect()) &&
                 !isa<KernelOpInterface>(inner) && inner.getNumRegions() == 0;
    if (!known) {
      InFlightDiagnostic diag = op->emitOpError("holds ") << inner.getName()
                                                          << ", which is no scalar arith, math or kernel "
                                                             "element op";
      diag.attachNote(inner.getLoc()) << "it is here";
      return diag;
    }
    for (Type type : inner.getResultTypes())
      if (!type.isIntOrIndexOrFloat())
        return op->emitOpError("holds ") << inner.getName() << " of type " << type << "; values of a body are scalars";
  }
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return op->emitOpError("body must end with kernel.yield");
  if (yield.getValues().size() != outputs.size())
    return op->emitOpError("yields ") << yield.getValues().size() << " values for " << outputs.size() << " results";
  for (auto [i, type] : llvm::enumerate(yield.getValues().getTypes()))
    if (type != getArgumentType(outputs[i]))
      return op->emitOpError("yields ") << type << " as value " << i << " but result " << i << " is " << outputs[i];
  return success();
}

int64_t getTensorBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += getNumElements(type) * getElementBytes(type);
  for (Type type : op->getResultTypes())
    bytes += getNumElements(type) * getElementBytes(type);
  return bytes;
}

int64_t getGrainFor(int64_t iterations, double work) {
  // About 64 K scalar operations (two microseconds on one core) amortize a hand-over: a few lines of the cache that
  // cores send each other, and the data that the next command then finds in another core.
  // Ranges of many iterations are kept at multiples of 64 so that the vector loop
  // of one task does not end in scalars.
  constexpr double kTask = 65536;
  int64_t grain = static_cast<int64_t>(kTask / std::max(work, 1.0));
  if (grain >= 64)
    grain = (grain + 63) / 64 * 64;
  return std::max<int64_t>(1, std::min(grain, iterations));
}

} // namespace spmd::kernel
