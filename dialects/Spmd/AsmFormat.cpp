//===- AsmFormat.cpp - pieces of the dialect's assembly -------------------===//

#include "dialects/Spmd/AsmFormat.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace spmd {

ParseResult parseTrainable(AsmParser &parser, bool &trainable) {
  trainable = succeeded(parser.parseOptionalComma());
  return trainable ? parser.parseKeyword("trainable") : success();
}

void printTrainable(AsmPrinter &printer, bool trainable) {
  if (trainable)
    printer << ", trainable";
}

ParseResult parseIntList(AsmParser &parser, SmallVector<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(values.emplace_back()); });
}

void printIntList(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer);
  printer << ']';
}

ParseResult parseSegments(AsmParser &parser, SmallVector<SegmentAttr> &segments) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseAttribute(segments.emplace_back()); });
}

void printSegments(AsmPrinter &printer, ArrayRef<SegmentAttr> segments) {
  printer << '[';
  llvm::interleaveComma(segments, printer);
  printer << ']';
}

/// A reduce kind by name; the error lists the names.
static ParseResult parseKindName(AsmParser &parser, ReduceKind &kind) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<ReduceKind> parsed = symbolizeReduceKind(name);
  if (!parsed)
    return parser.emitError(loc, "unknown reduce kind '") << name << "', expected sum, max, min or norm2";
  kind = *parsed;
  return success();
}

static ParseResult parseState(AsmParser &parser, AxisState &state) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  if (name == "replicated") {
    state = AxisState::replicated();
    return success();
  }
  if (name == "owned") {
    state = AxisState::owned();
    return success();
  }
  if (name == "varying") {
    state = AxisState::varying();
    return success();
  }
  if (name == "partial") {
    state = AxisState::partial(ReduceKind::sum);
    return failure(parser.parseLess() || parseKindName(parser, state.kind) || parser.parseGreater());
  }
  if (name == "shard") {
    state = AxisState::shard(0, 1, 0);
    return failure(parser.parseLess() || parser.parseInteger(state.dim) || parser.parseComma() ||
                   parser.parseInteger(state.pre) || parser.parseComma() || parser.parseInteger(state.chunk) ||
                   parser.parseGreater());
  }
  return parser.emitError(loc, "unknown state '") << name << "', expected replicated, shard, partial, owned or varying";
}

ParseResult parseStates(AsmParser &parser, SmallVector<AxisState> &states) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parseState(parser, states.emplace_back()); });
}

void printStates(AsmPrinter &printer, ArrayRef<AxisState> states) {
  printer << '[';
  llvm::interleaveComma(states, printer, [&](const AxisState &s) { printer << s.str(); });
  printer << ']';
}

ParseResult parseBatchDim(AsmParser &parser, int64_t &dim) {
  dim = -1;
  if (succeeded(parser.parseOptionalKeyword("none")))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(dim))
    return failure();
  if (dim < 0)
    return parser.emitError(loc, "expected a dimension or none");
  return success();
}

void printBatchDim(AsmPrinter &printer, int64_t dim) {
  if (dim < 0)
    printer << "none";
  else
    printer << dim;
}

ParseResult parseMeshAxes(OpAsmParser &parser, ArrayAttr &names, DenseI64ArrayAttr &sizes) {
  SmallVector<Attribute> nameList;
  SmallVector<int64_t> sizeList;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        StringAttr name;
        return failure(parser.parseAttribute(name) || parser.parseEqual() ||
                       parser.parseInteger(sizeList.emplace_back()) || (nameList.push_back(name), false));
      }))
    return failure();
  names = parser.getBuilder().getArrayAttr(nameList);
  sizes = parser.getBuilder().getDenseI64ArrayAttr(sizeList);
  return success();
}

void printMeshAxes(OpAsmPrinter &printer, Operation *, ArrayAttr names, DenseI64ArrayAttr sizes) {
  printer << '[';
  llvm::interleaveComma(llvm::zip(names, sizes.asArrayRef()), printer,
                        [&](auto axis) { printer << std::get<0>(axis) << " = " << std::get<1>(axis); });
  printer << ']';
}

ParseResult parseKind(OpAsmParser &parser, ReduceKindAttr &kind) {
  ReduceKind value = ReduceKind::sum;
  if (parseKindName(parser, value))
    return failure();
  kind = ReduceKindAttr::get(parser.getContext(), value);
  return success();
}

void printKind(OpAsmPrinter &printer, Operation *, ReduceKindAttr kind) {
  printer << stringifyReduceKind(kind.getValue());
}

ParseResult parseKinds(OpAsmParser &parser, ArrayAttr &kinds) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        ReduceKindAttr kind;
        if (parseKind(parser, kind))
          return failure();
        list.push_back(kind);
        return success();
      }))
    return failure();
  kinds = parser.getBuilder().getArrayAttr(list);
  return success();
}

void printKinds(OpAsmPrinter &printer, Operation *, ArrayAttr kinds) {
  printer << '[';
  llvm::interleaveComma(kinds.getAsRange<ReduceKindAttr>(), printer,
                        [&](ReduceKindAttr kind) { printer << stringifyReduceKind(kind.getValue()); });
  printer << ']';
}

ParseResult parseMode(OpAsmParser &parser, UnitModeAttr &mode) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<UnitMode> parsed = symbolizeUnitMode(name);
  if (!parsed)
    return parser.emitError(loc, "unknown mode '") << name << "', expected fully_shard, shard_optimizer or replicate";
  mode = UnitModeAttr::get(parser.getContext(), *parsed);
  return success();
}

void printMode(OpAsmPrinter &printer, Operation *, UnitModeAttr mode) { printer << stringifyUnitMode(mode.getValue()); }

} // namespace spmd
