//===- Kernel.cpp - kernel dialect, attributes, element ops ---------------===//

#include "dialects/Kernel/Body.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd::kernel;

#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"
#include "dialects/Kernel/KernelInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/KernelOps.cpp.inc"
      >();
}

/// piece ::= `<` (integer | `zero`) `[` sizes `]` (map)? `to` map `>`
Attribute PieceAttr::parse(AsmParser &parser, Type) {
  int64_t source = -1;
  SmallVector<int64_t> dims;
  AffineMap from, to;
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalKeyword("zero")) && parser.parseInteger(source))
    return {};
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(dims.emplace_back()); }) ||
      (source >= 0 && parser.parseAffineMap(from)) || parser.parseKeyword("to") || parser.parseAffineMap(to) ||
      parser.parseGreater())
    return {};
  return PieceAttr::get(parser.getContext(), source, dims, from ? from : to, to);
}

void PieceAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (getSource() < 0)
    printer << "zero";
  else
    printer << getSource();
  printer << " [" << getDims() << "] ";
  if (getSource() >= 0)
    printer << getFrom() << " ";
  printer << "to " << getTo() << ">";
}

LogicalResult SegmentConstantOp::verify() {
  auto segmented = cast<SegmentedOp>((*this)->getParentOp());
  ElementsAttr values = getValues();
  if (values.getElementType() != getResult().getType())
    return emitOpError("gives ") << getResult().getType() << " but its values are " << values.getElementType();
  if (values.getNumElements() != static_cast<int64_t>(segmented.getStarts().size()))
    return emitOpError("has ") << values.getNumElements() << " values for " << segmented.getStarts().size()
                               << " segments";
  return success();
}
