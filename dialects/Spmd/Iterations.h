//===- Iterations.h - A step with a few iterations of a loop ----*- C++ -*-===//
#ifndef SPMD_DIALECTS_SPMD_ITERATIONS_H
#define SPMD_DIALECTS_SPMD_ITERATIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace spmd {

/// A dictionary on a module whose step has the first iterations of a loop over microbatches only.
constexpr llvm::StringLiteral kIterationsAttr = "spmd.iterations";

struct FewIterations {
  int64_t count = 0; ///< that there are
  int64_t kept = 0;  ///< that the step has
  /// For each batch input that differs between iterations a list of the names that it has, one an iteration.
  mlir::ArrayAttr fed;
  int64_t segmentsEnd = 0; ///< the first segment behind the loop

  int64_t missing() const { return count - kept; }

  /// Nothing where the module has none, or none of this kind.
  static std::optional<FewIterations> of(mlir::ModuleOp module) {
    auto attr = module->getAttrOfType<mlir::DictionaryAttr>(kIterationsAttr);
    if (!attr)
      return std::nullopt;
    auto number = [&](llvm::StringRef name) { return attr.getAs<mlir::IntegerAttr>(name); };
    FewIterations iterations;
    iterations.fed = attr.getAs<mlir::ArrayAttr>("fed");
    bool areLists = iterations.fed && llvm::all_of(iterations.fed, llvm::IsaPred<mlir::ArrayAttr>);
    if (!areLists || !number("count") || !number("kept") || !number("segments_end"))
      return std::nullopt;
    iterations.count = number("count").getInt();
    iterations.kept = number("kept").getInt();
    iterations.segmentsEnd = number("segments_end").getInt();
    return iterations;
  }

  mlir::DictionaryAttr toAttr(mlir::Builder &builder) const {
    auto number = [&](llvm::StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    return builder.getDictionaryAttr({number("count", count), builder.getNamedAttr("fed", fed), number("kept", kept),
                                      number("segments_end", segmentsEnd)});
  }
};

} // namespace spmd

#endif // SPMD_DIALECTS_SPMD_ITERATIONS_H
