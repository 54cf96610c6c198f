//===- ClusterOp.cpp - kernel.cluster -------------------------------------===//

#include "dialects/Kernel/AccessMap.h"
#include "dialects/Kernel/ArgumentType.h"
#include "dialects/Kernel/Body.h"
#include "dialects/Kernel/ClusterSchedule.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Kernel/PaddedRows.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace spmd::kernel;

void ClusterOp::build(OpBuilder &builder, OperationState &state, TypeRange outputs, ValueRange inputs,
                      ArrayRef<int64_t> dims, int64_t parallel, ArrayRef<AffineMap> operandMaps,
                      ArrayRef<AffineMap> resultMaps, ArrayRef<int64_t> guarded) {
  state.addTypes(outputs);
  state.addOperands(inputs);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.dims = builder.getDenseI64ArrayAttr(dims);
  properties.parallel = builder.getI64IntegerAttr(parallel);
  properties.operand_maps = builder.getAffineMapArrayAttr(operandMaps);
  properties.result_maps = builder.getAffineMapArrayAttr(resultMaps);
  properties.guarded = builder.getDenseI64ArrayAttr(guarded);
  Block &body = state.addRegion()->emplaceBlock();
  for (Value input : inputs)
    body.addArgument(getArgumentType(input.getType()), input.getLoc());
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

ParseResult ClusterOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<int64_t> dims;
  int64_t parallel = 0;
  BoundOperands ins;
  SmallVector<AffineMap> resultMaps;
  auto parseResult = [&]() -> ParseResult {
    return failure(parser.parseKeyword("at") || parser.parseAffineMap(resultMaps.emplace_back()) ||
                   parser.parseColonType(result.types.emplace_back()));
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword("dims") ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(dims.emplace_back()); }) ||
      parser.parseKeyword("parallel") || parser.parseInteger(parallel) ||
      parseBoundOperands(parser, "ins", /*withMaps=*/true, ins) || parser.parseKeyword("outs") ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseResult) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(ins.operands, ins.types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), ins.arguments))
    return failure();
  Builder &builder = parser.getBuilder();
  Properties &properties = result.getOrAddProperties<Properties>();
  properties.dims = builder.getDenseI64ArrayAttr(dims);
  properties.parallel = builder.getI64IntegerAttr(parallel);
  properties.operand_maps = builder.getAffineMapArrayAttr(ins.maps);
  properties.result_maps = builder.getAffineMapArrayAttr(resultMaps);
  properties.guarded = builder.getDenseI64ArrayAttr(ins.guarded);
  return success();
}

void ClusterOp::print(OpAsmPrinter &p) {
  p << " dims [" << getDims() << "] parallel " << getParallel();
  auto newline = [&] {
    p.increaseIndent();
    p.increaseIndent();
    p.printNewline();
    p.decreaseIndent();
    p.decreaseIndent();
  };
  if (!getInputs().empty()) {
    newline();
    p << "ins(";
    llvm::interleave(
        llvm::seq<unsigned>(0, getInputs().size()),
        [&](unsigned i) {
          p << getBodyBlock()->getArgument(i) << " = " << getInputs()[i] << " at " << getOperandMap(i);
          if (llvm::is_contained(getGuarded(), i))
            p << " guarded";
          p << " : " << getInputs()[i].getType();
        },
        [&] {
          p << ",";
          newline();
          p << "    ";
        });
    p << ")";
  }
  newline();
  p << "outs(";
  llvm::interleave(
      llvm::seq<unsigned>(0, getNumResults()),
      [&](unsigned i) { p << "at " << getResultMap(i) << " : " << getResult(i).getType(); },
      [&] {
        p << ",";
        newline();
        p << "     ";
      });
  p << ")";
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {"dims", "parallel", "operand_maps", "result_maps", "guarded"});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Map `map` of operand or result `what` number `i`, of type `type`.
static LogicalResult verifyMap(ClusterOp op, AffineMap map, StringRef what, unsigned i, Type type, bool guarded) {
  if (map.getNumDims() != op.getDims().size() || map.getNumResults() != 1)
    return op.emitOpError("map of ") << what << " " << i << " has " << map.getNumDims() << " dims and "
                                     << map.getNumResults() << " results, expected " << op.getDims().size() << " and 1";
  auto range = AccessMap::get(map).getRange(op.getDims());
  if (range && !guarded && (range->first < 0 || range->second >= getNumElements(type)))
    return op.emitOpError("map of ") << what << " " << i << " gives indices " << range->first << " to " << range->second
                                     << ", outside of " << type;
  return success();
}

LogicalResult ClusterOp::verify() {
  ArrayRef<int64_t> dims = getDims();
  for (int64_t size : dims)
    if (size <= 0)
      return emitOpError("has a dim of size ") << size;
  if (getParallel() > dims.size())
    return emitOpError("has ") << getParallel() << " parallel dims of " << dims.size();
  if (getOperandMaps().size() != getInputs().size() || getResultMaps().size() != getNumResults())
    return emitOpError("needs one map per operand and result");
  for (int64_t i : getGuarded())
    if (i < 0 || i >= static_cast<int64_t>(getInputs().size()))
      return emitOpError("guards operand ") << i << ", which is not there";
  for (unsigned i = 0; i < getInputs().size(); ++i)
    if (failed(verifyMap(*this, getOperandMap(i), "operand", i, getInputs()[i].getType(),
                         llvm::is_contained(getGuarded(), i))))
      return failure();
  for (unsigned i = 0; i < getNumResults(); ++i)
    if (failed(verifyMap(*this, getResultMap(i), "result", i, getResult(i).getType(), /*guarded=*/false)))
      return failure();
  return success();
}

LogicalResult ClusterOp::verifyRegions() {
  if (failed(verifyBody(*this, *getBodyBlock(), getInputs().getTypes(), getResultTypes())))
    return failure();
  ArrayRef<int64_t> dims = getDims();
  int64_t rank = dims.size();
  for (Operation &op : *getBodyBlock()) {
    if (auto index = dyn_cast<IndexOp>(op))
      if (index.getDim() >= dims.size())
        return index.emitOpError("names dim ") << index.getDim() << " of " << rank;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      llvm::SmallBitVector seen(rank);
      for (int64_t d : reduce.getOver()) {
        if (d < static_cast<int64_t>(getParallel()) || d >= rank)
          return reduce.emitOpError("is over dim ")
                 << d << "; sequential dims are " << getParallel() << " to " << rank - 1;
        if (seen.test(d))
          return reduce.emitOpError("names dim ") << d << " twice";
        seen.set(d);
      }
      if (reduce.getOver().empty())
        return reduce.emitOpError("is over no dim");
    }
  }
  auto varying = getClusterVaryingDims(*this);
  auto yield = cast<YieldOp>(getBodyBlock()->getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    AccessMap map = AccessMap::get(getResultMap(i));
    auto it = varying.find(value);
    int64_t count = 1;
    for (int64_t d = 0; d < rank; ++d) {
      bool used = map.uses(d);
      if (used)
        count *= dims[d];
      if (used || dims[d] == 1)
        continue;
      if (it != varying.end() && it->second.test(d))
        return emitOpError("result ") << i << " varies along dim " << d << ", which its map lacks";
      if (d < static_cast<int64_t>(getParallel()))
        return emitOpError("result ") << i << " has a map without parallel dim " << d;
    }
    if (count != getNumElements(getResult(i).getType()) && !getPaddedRows(*this, i))
      return emitOpError("result ") << i << " has " << getNumElements(getResult(i).getType())
                                    << " elements but the dims of its map count " << count;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOpInterface
//===----------------------------------------------------------------------===//

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

int64_t ClusterOp::getParallelIterations() { return product(getDims().take_front(getParallel())); }

double ClusterOp::getFlops() { return static_cast<double>(product(getDims())) * countBodyFlops(*getBodyBlock()); }

int64_t ClusterOp::getGrain() {
  double work = getFlops() + getInputs().size() * product(getDims());
  return getGrainFor(getParallelIterations(), work / getParallelIterations());
}

int64_t ClusterOp::getBytesMoved() {
  // A tensor may be read in part, and by several operands.
  llvm::SmallMapVector<Value, int64_t, 8> reached;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    int64_t elements = getNumElements(input.getType()), &sum = reached[input];
    sum = std::min(elements, sum + AccessMap::get(getOperandMap(i)).countReached(getDims(), elements));
  }
  int64_t bytes = 0;
  for (auto [input, elements] : reached)
    bytes += elements * getElementBytes(input.getType());
  for (Type type : getResultTypes())
    bytes += getNumElements(type) * getElementBytes(type);
  return bytes;
}

bool ClusterOp::canAlias(unsigned operand, unsigned result) {
  Type from = getInputs()[operand].getType(), to = getResult(result).getType();
  if (getElementBytes(from) != getElementBytes(to) || getNumElements(from) != getNumElements(to))
    return false;
  // Every use of the value must read exactly the element that is then written,
  // and not in a later pass over memory.
  ClusterSchedule schedule(*this);
  for (auto [i, input] : llvm::enumerate(getInputs()))
    if (input == getInputs()[operand] && (getOperandMap(i) != getResultMap(result) ||
                                          llvm::is_contained(getGuarded(), i) || schedule.isReadAfterWrite(i, result)))
      return false;
  return true;
}
