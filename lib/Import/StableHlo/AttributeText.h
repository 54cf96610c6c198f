//===- AttributeText.h - What opaque StableHLO attributes say ---*- C++ -*-===//
//
// The dialect is not registered, so its attributes are text: "dot<lhs_contracting_dimensions = [1], ...>", and for an
// enumeration "comparison_direction GT". Its ops are MLIR's generic ones, whose properties are one dictionary.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_STABLEHLO_ATTRIBUTETEXT_H
#define SPMD_LIB_IMPORT_STABLEHLO_ATTRIBUTETEXT_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"

namespace spmd::stablehlo {

using Ints = llvm::SmallVector<int64_t>;

/// An error at the op, which it names.
mlir::InFlightDiagnostic opError(mlir::Operation *op);

/// The attribute `name` of an op, be it a property or not; null when it has none.
mlir::Attribute getAttribute(mlir::Operation *op, llvm::StringRef name);

/// Numbers of an `array<i64: ...>` or a dense list; an error at the op when it is neither. An absent one is no error
/// and gives `otherwise`, if that is given.
mlir::FailureOr<Ints> getInts(mlir::Operation *op, llvm::StringRef name, std::optional<Ints> otherwise = {});

/// The value of an enumeration: of `#stablehlo<comparison_direction GT>`, GT. Empty when there is no such attribute; an
/// error at the op when it is something else.
mlir::FailureOr<llvm::StringRef> getEnum(mlir::Operation *op, llvm::StringRef name);

/// The fields of an attribute with parameters.
class Fields {
public:
  /// Reads attribute `name` of `op`, `#stablehlo.kind<field = [1, 2], field = 3>`; errors are at the op.
  static mlir::FailureOr<Fields> read(mlir::Operation *op, llvm::StringRef name, llvm::StringRef kind);

  /// The list `field`, which is empty when it is not there; a single number is a list of one.
  Ints list(llvm::StringRef field) const { return lists.lookup(field); }

private:
  llvm::StringMap<Ints> lists;
};

} // namespace spmd::stablehlo

#endif // SPMD_LIB_IMPORT_STABLEHLO_ATTRIBUTETEXT_H
