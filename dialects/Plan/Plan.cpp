//===- Plan.cpp - the plan dialect: attributes and types ------------------===//

#include "dialects/Plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"

FailureOr<CollectiveKind> spmd::plan::parseCollective(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  if (std::optional<CollectiveKind> kind = runtime::parseCollectiveKind(name))
    return *kind;
  InFlightDiagnostic error = parser.emitError(loc) << "collective '" << name << "' is not one of: ";
  llvm::interleaveComma(runtime::kCollectiveKinds, error, [&](CollectiveKind kind) { error << runtime::nameOf(kind); });
  return failure();
}

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

llvm::StringRef spmd::plan::getClassName(BufferClass bufferClass) {
  return bufferClass == BufferClass::optimizer_state ? "optimizer state" : stringifyBufferClass(bufferClass);
}

//===----------------------------------------------------------------------===//
// AttentionShapeAttr
//===----------------------------------------------------------------------===//

LogicalResult AttentionShapeAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type dtype, int64_t batch,
                                         int64_t heads, int64_t kvHeads, int64_t qLen, int64_t kvLen, int64_t headDim,
                                         int64_t vDim, FloatAttr scale, AttentionMaskAttr, std::optional<int64_t>,
                                         std::optional<int64_t>, ViewAttr q, ViewAttr k, ViewAttr v, ViewAttr out,
                                         ViewAttr dout, ViewAttr dq, ViewAttr dk, ViewAttr dv) {
  for (int64_t size : {batch, heads, kvHeads, qLen, kvLen, headDim, vDim})
    if (size <= 0)
      return emitError() << "attention has a size " << size << ", which is not positive";
  if (heads % kvHeads != 0)
    return emitError() << "attention has " << heads << " heads, no multiple of " << kvHeads << " key/value heads";
  if (!isa<Float32Type, BFloat16Type, Float16Type>(dtype))
    return emitError() << "attention is of f32, bf16 or f16, got " << dtype;
  if (!scale.getValue().isFinite())
    return emitError() << "attention has a scale that is not finite";
  unsigned gradients = 0;
  for (ViewAttr view : {dout, dq, dk, dv})
    gradients += view ? 1 : 0;
  if (gradients != 0 && gradients != 4)
    return emitError() << "attention has views of " << gradients << " gradients, expected dout, dq, dk and dv or none";
  for (ViewAttr view : {q, k, v, out, dout, dq, dk, dv})
    if (view && (view.getOffset() < 0 || view.getBatch() < 0 || view.getHead() < 0 || view.getRow() < 0))
      return emitError() << "attention has a negative offset or stride in " << view;
  return success();
}

//===----------------------------------------------------------------------===//
// RefAttr: `r @b3[128 + 64 * c0 : 256]`
//===----------------------------------------------------------------------===//

LogicalResult RefAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr buffer,
                              int64_t offset, ArrayRef<int64_t> coord, int64_t bytes, Access access) {
  if (offset < 0 || bytes < 0)
    return emitError() << "range of " << buffer << " has negative offset " << offset << " or size " << bytes;
  return success();
}

namespace {
/// Parses ` + STRIDE * cN` until there is no `+` left; `coord` has one entry per mesh axis.
ParseResult parseCoordinates(AsmParser &parser, SmallVectorImpl<int64_t> &coord) {
  while (succeeded(parser.parseOptionalPlus())) {
    int64_t stride = 0;
    StringRef name;
    unsigned axis = 0;
    if (parser.parseInteger(stride) || parser.parseStar())
      return failure();
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    if (!name.consume_front("c") || name.getAsInteger(10, axis) || axis > 7)
      return parser.emitError(loc, "expected a mesh coordinate c0, c1, … c7");
    if (axis >= coord.size())
      coord.resize(axis + 1, 0);
    coord[axis] += stride;
  }
  return success();
}

/// Parses the inside of a ref.
ParseResult parseRefBody(AsmParser &parser, RefAttr &ref) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Access> access = symbolizeAccess(keyword);
  if (!access)
    return parser.emitError(loc, "expected access r, w or rw, found '") << keyword << "'";
  StringAttr name;
  int64_t offset = 0, bytes = 0;
  SmallVector<int64_t> coord;
  if (parser.parseSymbolName(name) || parser.parseLSquare() || parser.parseInteger(offset) ||
      parseCoordinates(parser, coord) || parser.parseColon() || parser.parseInteger(bytes) || parser.parseRSquare())
    return failure();
  ref = RefAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), FlatSymbolRefAttr::get(name),
                            offset, coord, bytes, *access);
  return success(static_cast<bool>(ref));
}

void printRefBody(AsmPrinter &printer, RefAttr ref) {
  printer << stringifyAccess(ref.getAccess()) << ' ' << ref.getBuffer() << '[' << ref.getOffset();
  for (auto [axis, stride] : llvm::enumerate(ref.getCoord()))
    if (stride != 0)
      printer << " + " << stride << " * c" << axis;
  printer << " : " << ref.getBytes() << ']';
}
} // namespace

Attribute RefAttr::parse(AsmParser &parser, Type) {
  RefAttr ref;
  if (parser.parseLess() || parseRefBody(parser, ref) || parser.parseGreater())
    return {};
  return ref;
}

void RefAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printRefBody(printer, *this);
  printer << '>';
}

// The directives custom<Ref> and custom<RefList> of PlanOps.td.
static ParseResult parseRef(OpAsmParser &parser, RefAttr &ref) { return parseRefBody(parser, ref); }
static void printRef(OpAsmPrinter &printer, Operation *, RefAttr ref) { printRefBody(printer, ref); }

static ParseResult parseRefList(OpAsmParser &parser, ArrayAttr &refs) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    RefAttr ref;
    if (parseRefBody(parser, ref))
      return failure();
    list.push_back(ref);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  refs = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printRefList(OpAsmPrinter &printer, Operation *, ArrayAttr refs) {
  llvm::interleaveComma(refs.getAsRange<RefAttr>(), printer, [&](RefAttr ref) { printRefBody(printer, ref); });
}

static ParseResult parseKinds(OpAsmParser &parser, ArrayAttr &kinds) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    ReductionKindAttr kind;
    if (parser.parseCustomAttributeWithFallback(kind, Type()))
      return failure();
    list.push_back(kind);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  kinds = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printKinds(OpAsmPrinter &printer, Operation *, ArrayAttr kinds) {
  printer << '[';
  llvm::interleaveComma(kinds.getAsRange<ReductionKindAttr>(), printer,
                        [&](ReductionKindAttr kind) { printer << stringifyReductionKind(kind.getValue()); });
  printer << ']';
}

/// The parts of a product's epilogue that are there, each after its name.
static ParseResult parseEpilogue(OpAsmParser &parser, RefAttr &bias, RefAttr &residual, ActivationAttr &activation,
                                 RefAttr &preActivation) {
  auto parseNamed = [&](StringRef name, RefAttr &ref) -> ParseResult {
    return failed(parser.parseOptionalKeyword(name)) ? ParseResult(success()) : parseRefBody(parser, ref);
  };
  if (parseNamed("bias", bias) || parseNamed("residual", residual))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("activation")) &&
      parser.parseCustomAttributeWithFallback(activation, Type()))
    return failure();
  return parseNamed("pre_activation", preActivation);
}
static void printEpilogue(OpAsmPrinter &printer, Operation *, RefAttr bias, RefAttr residual, ActivationAttr activation,
                          RefAttr preActivation) {
  auto printNamed = [&](StringRef name, RefAttr ref) {
    if (ref)
      printRefBody(printer << ' ' << name << ' ', ref);
  };
  printNamed("bias", bias);
  printNamed("residual", residual);
  if (activation)
    printer << " activation " << stringifyActivation(activation.getValue());
  printNamed("pre_activation", preActivation);
}

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"
