//===- SegmentedOp.cpp - kernel.segmented ---------------------------------===//

#include "dialects/Kernel/ArgumentType.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace spmd::kernel;

void SegmentedOp::build(OpBuilder &builder, OperationState &state, TypeRange outputs, ValueRange elements,
                        ValueRange tables, ValueRange scalars, int64_t chunk, AffineMap position,
                        ArrayRef<int64_t> starts, ArrayRef<int64_t> ends, int64_t pieces) {
  state.addTypes(outputs);
  Block &body = state.addRegion()->emplaceBlock();
  Properties &properties = state.getOrAddProperties<Properties>();
  const ValueRange groups[] = {elements, tables, scalars};
  for (auto [i, values] : llvm::enumerate(groups)) {
    state.addOperands(values);
    properties.operandSegmentSizes[i] = values.size();
    for (Value value : values)
      body.addArgument(getArgumentType(value.getType()), value.getLoc());
  }
  properties.chunk = builder.getI64IntegerAttr(chunk);
  properties.position = AffineMapAttr::get(position);
  properties.starts = builder.getDenseI64ArrayAttr(starts);
  properties.ends = builder.getDenseI64ArrayAttr(ends);
  properties.pieces = builder.getI64IntegerAttr(pieces);
}

bool SegmentedOp::hasReduction() { return !getBodyBlock()->getOps<ReduceOp>().empty(); }

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

ParseResult SegmentedOp::parse(OpAsmParser &parser, OperationState &result) {
  int64_t chunk = 0, pieces = 1;
  AffineMap position;
  SmallVector<int64_t> starts, ends;
  BoundOperands groups[3];
  auto parseIntegers = [&](SmallVector<int64_t> &out) {
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                          [&] { return parser.parseInteger(out.emplace_back()); });
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword("chunk") || parser.parseInteger(chunk) || parser.parseKeyword("position") ||
      parser.parseAffineMap(position) || parser.parseKeyword("segments") || parseIntegers(starts) ||
      parser.parseKeyword("to") || parseIntegers(ends) ||
      (succeeded(parser.parseOptionalKeyword("pieces")) && parser.parseInteger(pieces)) ||
      parseBoundOperands(parser, "elements", false, groups[0]) ||
      parseBoundOperands(parser, "tables", false, groups[1]) ||
      parseBoundOperands(parser, "scalars", false, groups[2]) || parser.parseKeyword("outs") ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     [&] { return parser.parseType(result.types.emplace_back()); }) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Properties &properties = result.getOrAddProperties<Properties>();
  SmallVector<OpAsmParser::Argument> arguments;
  for (auto [i, group] : llvm::enumerate(groups)) {
    if (parser.resolveOperands(group.operands, group.types, loc, result.operands))
      return failure();
    properties.operandSegmentSizes[i] = group.operands.size();
    llvm::append_range(arguments, group.arguments);
  }
  Builder &builder = parser.getBuilder();
  properties.chunk = builder.getI64IntegerAttr(chunk);
  properties.position = AffineMapAttr::get(position);
  properties.starts = builder.getDenseI64ArrayAttr(starts);
  properties.ends = builder.getDenseI64ArrayAttr(ends);
  properties.pieces = builder.getI64IntegerAttr(pieces);
  return parser.parseRegion(*result.addRegion(), arguments);
}

void SegmentedOp::print(OpAsmPrinter &p) {
  p << " chunk " << getChunk() << " position " << getPosition() << " segments [" << getStarts() << "] to [" << getEnds()
    << "]";
  if (getPieces() != 1)
    p << " pieces " << getPieces();
  auto newline = [&] {
    p.increaseIndent();
    p.increaseIndent();
    p.printNewline();
    p.decreaseIndent();
    p.decreaseIndent();
  };
  unsigned next = 0;
  auto printGroup = [&](StringRef keyword, ValueRange values) {
    if (values.empty())
      return;
    newline();
    p << keyword << "(";
    llvm::interleaveComma(values, p, [&](Value value) {
      p << getBodyBlock()->getArgument(next++) << " = " << value << " : " << value.getType();
    });
    p << ")";
  };
  printGroup("elements", getElements());
  printGroup("tables", getTables());
  printGroup("scalars", getScalars());
  newline();
  p << "outs(";
  llvm::interleaveComma(getResultTypes(), p);
  p << ")";
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {"chunk", "position", "starts", "ends", "pieces", "operandSegmentSizes"});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult SegmentedOp::verify() {
  ArrayRef<int64_t> starts = getStarts(), ends = getEnds();
  if (starts.size() != ends.size())
    return emitOpError("has ") << starts.size() << " starts and " << ends.size() << " ends";
  int64_t previous = 0;
  for (auto [i, start, end] : llvm::enumerate(starts, ends)) {
    if (start < previous || end < start)
      return emitOpError("segment ") << i << " is " << start << " to " << end
                                     << ", not ordered after the one that ends at " << previous;
    previous = end;
  }
  if (getChunk() <= 0 || getPieces() <= 0)
    return emitOpError("has chunk ") << getChunk() << " and pieces " << getPieces() << "; both are positive";
  AffineMap position = getPosition();
  if (position.getNumDims() != 0 || position.getNumResults() != 1)
    return emitOpError("position ") << getPositionAttr() << " must have no dims and one result";
  int64_t segments = starts.size();
  bool reduces = llvm::any_of(getBodyBlock()->getOperations(), [](Operation &op) { return isa<ReduceOp>(op); });
  if (!reduces && getPieces() != 1)
    return emitOpError("has pieces but no kernel.reduce");
  auto check = [&](TypeRange types, int64_t count, StringRef what) -> LogicalResult {
    for (Type type : types)
      if (getNumElements(type) != count)
        return emitOpError("has ") << what << " of type " << type << ", expected " << count << " elements";
    return success();
  };
  return failure(failed(check(getElements().getTypes(), getChunk(), "an element")) ||
                 failed(check(getTables().getTypes(), segments, "a table")) ||
                 failed(check(getScalars().getTypes(), 1, "a scalar")) ||
                 failed(check(getResultTypes(), reduces ? segments * getPieces() : getChunk(), "a result")));
}

LogicalResult SegmentedOp::verifyRegions() {
  Block &body = *getBodyBlock();
  if (failed(verifyBody(*this, body, getOperandTypes(), getResultTypes())))
    return failure();
  for (Operation &op : body) {
    if (auto reduce = dyn_cast<ReduceOp>(op))
      if (reduce.getOver() != ArrayRef<int64_t>{0})
        return reduce.emitOpError("must be over dim 0, the chunk");
    if (auto index = dyn_cast<IndexOp>(op))
      if (index.getDim() != 0)
        return index.emitOpError("names dim ") << index.getDim() << " of 1";
  }
  if (!hasReduction())
    return success();
  SmallVector<llvm::SmallBitVector> arguments;
  for (unsigned i = 0; i < body.getNumArguments(); ++i)
    arguments.emplace_back(1, i < getElements().size());
  auto varying = getVaryingDims(body, 1, arguments);
  for (auto [i, value] : llvm::enumerate(cast<YieldOp>(body.getTerminator()).getValues()))
    if (auto it = varying.find(value); it != varying.end() && it->second.test(0))
      return emitOpError("result ") << i << " is a table but varies inside a segment";
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOpInterface
//===----------------------------------------------------------------------===//

int64_t SegmentedOp::getParallelIterations() {
  return hasReduction() ? static_cast<int64_t>(getStarts().size()) * getPieces() : getChunk();
}

double SegmentedOp::getFlops() { return static_cast<double>(getChunk()) * countBodyFlops(*getBodyBlock()); }

int64_t SegmentedOp::getGrain() {
  double work = getFlops() + static_cast<double>(getElements().size()) * static_cast<double>(getChunk());
  return getGrainFor(getParallelIterations(), work / getParallelIterations());
}

int64_t SegmentedOp::getBytesMoved() { return getTensorBytes(*this); }

bool SegmentedOp::canAlias(unsigned operand, unsigned result) {
  // Elementwise, every element is read just before it is written; tables are
  // read by several threads, reductions write other places than they read.
  return !hasReduction() && operand < getElements().size() &&
         getElementBytes((*this)->getOperand(operand).getType()) == getElementBytes(getResult(result).getType()) &&
         !llvm::is_contained(getOperands().drop_front(getElements().size()), (*this)->getOperand(operand));
}
